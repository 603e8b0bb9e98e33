"""Partition specs: how the rows of a table are grouped into files (spec: "Partitioning")."""

from __future__ import annotations

import math
import struct
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final
from urllib.parse import quote_plus

import pyarrow as pa

from icefield.base import compute as pc
from icefield.base.limits import MAX_NAME_LENGTH
from icefield.base.notebooks import html_of
from icefield.errors import InvalidArgument, InvalidMetadata, InvalidSchema, UnsupportedFeature, printable
from icefield.partitioning.sources import (
    check_source,
    int_from_json,
    source_column,
    source_ids_from_json,
    source_ids_to_json,
    transform_from_json,
)
from icefield.partitioning.transforms import (
    IdentityTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    parse_transform,
)
from icefield.schema import Schema
from icefield.types import DecimalType, IcebergType, NestedField, StructType, UnknownType
from icefield.types.arrow.types import to_arrow_field
from icefield.types.values import decimal_from_unscaled

PARTITION_FIELD_ID_START: Final = 1000
"""The id of the first partition field of a table."""

INITIAL_SPEC_ID: Final = 0


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One field of a partition spec: a transform of a column, with a name and an id of its own.

    ``transform`` may be given as a string. ``source_ids`` holds more than one id for a transform of several columns
    (format version 3); ``source_id`` is then the first. Raises ``InvalidArgument`` for a transform out of range.
    """

    source_id: int
    field_id: int
    transform: Transform
    name: str
    source_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "transform", parse_transform(self.transform))
        object.__setattr__(self, "source_ids", tuple(self.source_ids) or (self.source_id,))
        object.__setattr__(self, "source_id", self.source_ids[0])

    @property
    def is_known(self) -> bool:
        """Whether this version can compute the field's values."""
        return self.transform.is_known and len(self.source_ids) == 1

    @property
    def definition(self) -> tuple[tuple[int, ...], Transform, str]:
        """The parts that two equivalent fields of different specs have in common."""
        return self.source_ids, self.transform, self.name

    def __str__(self) -> str:
        return printable(f"{self.field_id}: {self.name}: {self.transform}({', '.join(map(str, self.source_ids))})")


@dataclass(frozen=True, slots=True, init=False)
class PartitionSpec:
    """An ordered list of partition fields: ``PartitionSpec(PartitionField(...), ..., spec_id=0)``.

    Nothing is checked against a schema, for a stored spec may speak of columns that are gone; new specs go through
    ``validate_spec``.
    """

    fields: tuple[PartitionField, ...]
    spec_id: int

    def __init__(self, *fields: PartitionField, spec_id: int = INITIAL_SPEC_ID) -> None:
        object.__setattr__(self, "fields", tuple(fields))
        object.__setattr__(self, "spec_id", spec_id)

    @property
    def is_unpartitioned(self) -> bool:
        """Whether all rows share one partition: the spec has no fields, or only void fields."""
        return all(isinstance(field.transform, VoidTransform) for field in self.fields)

    @property
    def last_assigned_field_id(self) -> int:
        """The highest id of its fields; 999 without fields."""
        return max((field.field_id for field in self.fields), default=PARTITION_FIELD_ID_START - 1)

    def compatible_with(self, other: PartitionSpec) -> bool:
        """Whether both specs group rows in the same way under the same names; ids do not matter."""
        return self.definition == other.definition

    @property
    def definition(self) -> tuple[tuple[tuple[int, ...], Transform, str], ...]:
        """The parts that two equivalent specs have in common: everything but the ids."""
        return tuple(field.definition for field in self.fields)

    def partition_type(self, schema: Schema, older: Iterable[Schema] = ()) -> StructType:
        """The struct of partition values: optional fields with the partition fields' ids and names.

        A column that ``schema`` no longer has is looked up in the table's ``older`` schemas. The latest schema that has
        it counts, since columns only get wider. If no schema has it, the type is the transform's, or ``unknown`` where
        that depends on the type of the column.
        """
        schemas = (schema, *sorted(older, key=lambda other: other.schema_id, reverse=True))
        return StructType(
            *(NestedField(field.field_id, field.name, _result_type(field, schemas)) for field in self.fields)
        )

    def partition_path(self, schema: Schema, values: Sequence[Any]) -> str:
        """The folders ``name=value/name=value`` of a partition, for people; nothing parses them back.

        ``values`` are internal values in the order of the fields. Names and values are URL-escaped.
        """
        escaped = partial(quote_plus, safe="")
        return "/".join(
            f"{escaped(field.name)}={escaped(field.transform.to_display(_result_type(field, (schema,)), value))}"
            for field, value in zip(self.fields, values, strict=True)
        )

    def __len__(self) -> int:
        return len(self.fields)

    def __bool__(self) -> bool:
        return True

    _repr_html_ = html_of

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.fields))}]"

    def __repr__(self) -> str:
        return f"PartitionSpec({self}, spec_id={self.spec_id})"

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(PartitionSpec, spec_id=self.spec_id), self.fields


UNPARTITIONED: Final = PartitionSpec(spec_id=INITIAL_SPEC_ID)


def _result_type(field: PartitionField, schemas: Sequence[Schema]) -> IcebergType:
    """The type of a field's values, by the first schema that has its source."""
    sources = (schema.id_to_field.get(field.source_id) for schema in schemas)
    source_type = next((source.field_type for source in sources if source is not None), UnknownType())
    return field.transform.result_type(source_type)


def validate_spec(spec: PartitionSpec, schema: Schema) -> None:
    """Check a spec that is to be added to a table.

    Raises ``InvalidSchema`` for a name that is empty, duplicate or the name of another column. Also for a source that
    is missing, not primitive, inside a list or map, or not fit for the transform. Raises ``UnsupportedFeature`` for
    a transform that this version cannot compute.
    """
    names: set[str] = set()
    ids: set[int] = set()
    for field in spec.fields:
        _check_name(field, schema)
        if field.name in names:
            raise InvalidSchema(f"two partition fields are named '{field.name}'", field_id=field.field_id)
        if field.field_id in ids:
            raise InvalidSchema(f"two partition fields have the id {field.field_id}", field_id=field.field_id)
        names.add(field.name)
        ids.add(field.field_id)
        if not field.is_known:
            raise UnsupportedFeature(
                f"partition field '{field.name}' has the transform '{field.transform}', which this version cannot"
                " compute; nothing new can be written with it",
                field_id=field.field_id,
            )
        if not isinstance(field.transform, VoidTransform):
            check_source(field.source_id, field.transform, schema, f"partition field '{field.name}'")


def _check_name(field: PartitionField, schema: Schema) -> None:
    if not field.name or not isinstance(field.name, str):
        raise InvalidSchema("a partition field needs a name", field_id=field.field_id)
    if not schema.has_field(field.name):
        return
    # In format version 1 a dropped identity field stays as void under the column's name.
    if not isinstance(field.transform, IdentityTransform | VoidTransform) or takes_name_of_column(field, schema):
        raise InvalidSchema(
            f"partition field '{field.name}' has a column's name and is not its identity; name it otherwise",
            field_id=field.field_id,
        )


def takes_name_of_column(field: PartitionField, schema: Schema) -> bool:
    """Whether a partition field has the full name of a column, nested ones included, that is not its source.

    Iceberg's Java library refuses a table with such a field in any spec, for every transform. It compares the name
    with the current schema, with regard to case.
    """
    if not schema.has_field(field.name):
        return False
    try:
        return schema.find_field(field.name).field_id != field.source_id
    except InvalidArgument:  # the name is ambiguous
        return True


def spec_for_new_table(spec: PartitionSpec, source_ids: Mapping[int, int]) -> PartitionSpec:
    """The spec as the first one of a new table: spec id 0, field ids from 1000, new source ids.

    ``source_ids`` gives the new id of each column by its old one. Raises ``InvalidSchema`` for an unknown source.
    """
    fields = []
    for position, field in enumerate(spec.fields):
        missing = [old for old in field.source_ids if old not in source_ids]
        if missing:
            raise InvalidSchema(
                f"the source of partition field '{field.name}' is column {missing[0]}, which is missing"
            )
        renumbered = tuple(source_ids[old] for old in field.source_ids)
        fields.append(replace(field, field_id=PARTITION_FIELD_ID_START + position, source_ids=renumbered))
    return PartitionSpec(*fields, spec_id=INITIAL_SPEC_ID)


def normalised_key(values: Iterable[Any]) -> tuple[Hashable, ...]:
    """A tuple that is equal for equal partitions: floats by their bits, with one NaN, so 0.0 and -0.0 differ."""
    return tuple(_float_bits(value) if isinstance(value, float) else value for value in values)


def _float_bits(value: float) -> bytes:
    return struct.pack(">d", math.nan if math.isnan(value) else value)


def partition_batch(spec: PartitionSpec, schema: Schema, batch: pa.RecordBatch) -> pa.StructArray:
    """The partition values of each row, one child for each field of the spec under its name.

    Columns are found in ``batch`` by their names in ``schema``. Raises ``InvalidArgument`` for a column that the
    batch lacks, ``UnsupportedFeature`` for a transform that this version cannot compute.
    """
    kinds = [to_arrow_field(kind) for kind in spec.partition_type(schema).fields]
    if not kinds:
        return pa.Array.from_buffers(pa.struct([]), batch.num_rows, [None])
    columns = [
        _partition_column(field, schema, batch, kind.type) for field, kind in zip(spec.fields, kinds, strict=True)
    ]
    return pa.StructArray.from_arrays(columns, fields=kinds)


def _partition_column(field: PartitionField, schema: Schema, batch: pa.RecordBatch, kind: pa.DataType) -> pa.Array:
    if isinstance(field.transform, VoidTransform):
        return pa.nulls(batch.num_rows, kind)
    if not field.is_known:
        raise UnsupportedFeature(
            f"partition field '{field.name}' has the transform '{field.transform}', which this version cannot compute",
            field_id=field.field_id,
        )
    source = schema.id_to_field.get(field.source_id)
    if source is None:
        raise InvalidArgument(
            f"the source of partition field '{field.name}' is not in the schema", field_id=field.field_id
        )
    values = field.transform.apply(source_column(schema, field.source_id, batch), source.field_type)
    return values if values.type == kind else values.cast(kind)


def check_partition_values(spec: PartitionSpec, values: pa.StructArray) -> None:
    """Refuse partition values that no manifest can hold, before any file is written.

    Truncation may round a decimal near the type's minimum down to a number with one digit more than the type has.
    Raises ``InvalidArgument``.
    """
    for place, field in enumerate(spec.fields):
        column = values.field(place)
        if not pa.types.is_decimal(column.type) or not isinstance(field.transform, TruncateTransform):
            continue
        kind = DecimalType(column.type.precision, column.type.scale)
        least = pa.scalar(decimal_from_unscaled(1 - 10**kind.precision, kind.scale), column.type)
        if pc.any(pc.less(column, least)).as_py():
            raise InvalidArgument(
                f"a value of {kind} is so near to the least one that {field.transform} rounds it down beyond the type: "
                f"partition field '{field.name}' cannot hold it; give the column a digit more",
                field_id=field.field_id,
            )


def spec_to_json(spec: PartitionSpec) -> dict[str, Any]:
    """The JSON object of a spec."""
    return {"spec-id": spec.spec_id, "fields": fields_to_json(spec)}


def fields_to_json(spec: PartitionSpec) -> list[dict[str, Any]]:
    """The JSON array of a spec's fields, which is all that version 1 metadata and manifest headers hold."""
    return [
        {
            **source_ids_to_json(field.source_ids),
            "field-id": field.field_id,
            "name": field.name,
            "transform": str(field.transform),
        }
        for field in spec.fields
    ]


def spec_from_json(obj: Any) -> PartitionSpec:
    """The spec of a JSON object. Raises ``InvalidMetadata`` for any other value."""
    if not isinstance(obj, dict):
        raise InvalidMetadata("a partition spec is not a JSON object")
    spec_id = int_from_json(obj, "spec-id", "a partition spec")
    return PartitionSpec(*fields_from_json(obj.get("fields")), spec_id=spec_id)


def fields_from_json(fields: Any) -> tuple[PartitionField, ...]:
    """The fields of a JSON array. If no field has an id, the ids count from 1000, as in version 1.

    A known transform over several columns is kept as an unknown one. Raises ``InvalidMetadata``.
    """
    if not isinstance(fields, list) or not all(isinstance(item, dict) for item in fields):
        raise InvalidMetadata("the fields of a partition spec are not a JSON array of objects")
    missing = sum("field-id" not in item for item in fields)
    if missing not in (0, len(fields)):
        raise InvalidMetadata(f"{missing} of {len(fields)} fields of a partition spec lack a field-id")
    return tuple(
        _field_from_json(item, PARTITION_FIELD_ID_START + i if missing else None) for i, item in enumerate(fields)
    )


def _field_from_json(item: dict[str, Any], field_id: int | None) -> PartitionField:
    name = item.get("name")
    if not isinstance(name, str):
        raise InvalidMetadata("a partition field has no name")
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidMetadata(f"the name of a partition field has more than {MAX_NAME_LENGTH:,} characters")
    what = f"partition field '{name}'"
    sources = source_ids_from_json(item, what)
    return PartitionField(
        source_id=sources[0],
        field_id=int_from_json(item, "field-id", what) if field_id is None else field_id,
        transform=transform_from_json(item, sources, what),
        name=name,
        source_ids=sources,
    )
