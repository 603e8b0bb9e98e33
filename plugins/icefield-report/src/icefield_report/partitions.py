"""The partitions of a table in columns, and their values as people read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from icefield import Table
from icefield.partitioning import PartitionField
from icefield.toolkit import field_id
from icefield.types import NestedField

Ints = npt.NDArray[np.int64]

_COLUMNS: Final = (
    "file_count",
    "record_count",
    "total_data_file_size_in_bytes",
    "position_delete_record_count",
    "equality_delete_record_count",
    "position_delete_file_count",
    "equality_delete_file_count",
)


@dataclass(frozen=True, slots=True)
class Partitions:
    """The partitions in columns, one row for each. ``values`` has a column for each partition field of any spec.

    ``ids`` are the ids of these fields, since two specs may use one name for different fields.
    """

    ids: tuple[int, ...]
    values: tuple[pa.Array, ...]
    specs: Ints
    files: Ints
    rows: Ints
    bytes: Ints
    position_deletes: Ints
    equality_deletes: Ints
    delete_files: Ints
    fields: dict[int, tuple[PartitionField, NestedField]]
    of_spec: dict[int, frozenset[int]]

    def __len__(self) -> int:
        return len(self.files)

    @property
    def deletes(self) -> Ints:
        """Deleted positions and keys."""
        return self.position_deletes + self.equality_deletes

    @property
    def is_partitioned(self) -> bool:
        """Whether any spec of the table has a field."""
        return bool(self.ids)

    def label(self, place: int) -> str:
        """The values of one partition: ``2013-01, EU``."""
        own = self.of_spec.get(int(self.specs[place]), frozenset())
        shown = [
            self.display(number, values.slice(place, 1))[0]
            for number, values in zip(self.ids, self.values, strict=True)
            if number in own
        ]
        return ", ".join(shown) or "(not partitioned)"

    def display(self, number: int, values: pa.Array) -> list[str]:
        """Values of the field with this id."""
        known = self.fields.get(number)
        if known is None:
            return ["null" if value is None else str(value) for value in values.to_pylist()]
        field, kind = known
        return [field.transform.to_display(kind.field_type, value) for value in internal(values)]


def internal(values: pa.Array) -> list[Any]:
    """Values as transforms know them: dates and times are numbers."""
    if pa.types.is_date32(values.type) or pa.types.is_time32(values.type):
        values = values.view(pa.int32())
    elif pa.types.is_timestamp(values.type) or pa.types.is_time64(values.type):
        values = values.view(pa.int64())
    found: list[Any] = values.to_pylist()
    return found


def partitions_of(table: Table, snapshot_id: int | None = None) -> Partitions:
    """The partitions of a snapshot, by default the current one."""
    metadata = table.metadata
    scan = table.inspect.scan("partitions", snapshot_id=snapshot_id)
    found = scan.to_arrow().combine_chunks()
    partition = pa.array([], pa.struct([]))
    if "partition" in found.column_names:
        (partition,) = found["partition"].chunks or [pa.array([], scan.schema.field("partition").type)]
    fields: dict[int, tuple[PartitionField, NestedField]] = {}
    for spec in (metadata.spec(), *reversed(metadata.partition_specs)):
        kinds = spec.partition_type(metadata.schema(), metadata.schemas).fields
        for field, kind in zip(spec.fields, kinds, strict=True):
            # Version 1 keeps a removed field with the transform void, which cannot show the values of earlier specs.
            if field.field_id not in fields or str(fields[field.field_id][0].transform) == "void":
                fields[field.field_id] = (field, kind)
    numbers = {name: np.asarray(found[name]).astype(np.int64) for name in _COLUMNS}
    specs = np.asarray(found["spec_id"]).astype(np.int64) if "spec_id" in found.column_names else None
    return Partitions(
        ids=tuple(field_id(each) or 0 for each in partition.type),
        values=tuple(partition.flatten()),
        specs=np.zeros(found.num_rows, np.int64) if specs is None else specs,
        files=numbers["file_count"],
        rows=numbers["record_count"],
        bytes=numbers["total_data_file_size_in_bytes"],
        position_deletes=numbers["position_delete_record_count"],
        equality_deletes=numbers["equality_delete_record_count"],
        delete_files=numbers["position_delete_file_count"] + numbers["equality_delete_file_count"],
        fields=fields,
        of_spec={spec.spec_id: frozenset(field.field_id for field in spec.fields) for spec in metadata.partition_specs},
    )
