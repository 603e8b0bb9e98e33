"""Changing how a table is partitioned: a new spec out of the current one (spec: "Partition Evolution")."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Self

from icefield.errors import InvalidSchema
from icefield.partitioning.sources import check_source
from icefield.partitioning.spec import (
    INITIAL_SPEC_ID,
    PARTITION_FIELD_ID_START,
    UNPARTITIONED,
    PartitionField,
    PartitionSpec,
    validate_spec,
)
from icefield.partitioning.transforms import (
    BucketTransform,
    IdentityTransform,
    TemporalTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    parse_transform,
)
from icefield.schema import Schema
from icefield.schema.schema import FieldName
from icefield.types import NestedField

_Definition = tuple[tuple[int, ...], Transform]


class SpecUpdate:
    """Collects changes of a table's partitioning; ``result`` returns the resulting spec. Changes nothing itself.

    ``specs`` are all specs of the table, ``default_spec_id`` names the spec to change, and ``last_partition_id`` is
    the highest partition field id that the table ever assigned. ``voids`` allows added void fields, as a new table may
    have them. Every method raises ``InvalidSchema`` for an impossible change.
    """

    def __init__(
        self,
        specs: Iterable[PartitionSpec],
        default_spec_id: int,
        schema: Schema,
        last_partition_id: int | None,
        format_version: int,
        *,
        case_sensitive: bool = True,
        voids: bool = False,
    ) -> None:
        self._voids = voids
        self._specs = tuple(specs)
        self._schema = schema
        self._format_version = format_version
        self._case_sensitive = case_sensitive
        base = next((spec for spec in self._specs if spec.spec_id == default_spec_id), None)
        if base is None:
            raise InvalidSchema(f"the table has no partition spec with id {default_spec_id}", spec_id=default_spec_id)
        self._base = base
        highest = max(spec.last_assigned_field_id for spec in self._specs)
        self._last_id = max(highest, last_partition_id or highest)
        self._removed: set[int] = set()
        self._renamed: dict[int, str] = {}
        self._added: dict[int, PartitionField] = {}
        self._added_times: dict[int, PartitionField] = {}
        # Fields of the current spec and added fields: by definition, by original name, and by current name.
        self._defined: dict[_Definition, list[PartitionField]] = {}
        self._named: dict[str, list[PartitionField]] = {}
        self._taken: dict[str, list[PartitionField]] = {}
        self._older: dict[_Definition, list[PartitionField]] = {}
        self._own_ids = {field.field_id for field in self._base.fields}
        ids = [field.field_id for field in self._base.fields]
        self._by_position = ids == [*range(PARTITION_FIELD_ID_START, PARTITION_FIELD_ID_START + len(ids))]
        for field in self._base.fields:
            self._enter(field)
        for spec in self._specs:
            for field in spec.fields:
                self._older.setdefault(field.definition[:2], []).append(field)

    @property
    def last_partition_id(self) -> int:
        """The highest partition field id assigned so far, including this update."""
        return self._last_id

    def add_field(
        self,
        source_column_name: FieldName | int,
        transform: str | Transform,
        partition_field_name: str | None = None,
    ) -> Self:
        """Add a field at the end: a transform of a column, which is given by name or id.

        The default name is the same as in every other implementation: ``ts_day``, ``id_bucket_16``, ``name_trunc_3``,
        and the column's name for an identity. A field of an earlier spec gets its id again (format version 2 and up).
        """
        transform, name = parse_transform(transform), partition_field_name
        column = self._schema.find_field(source_column_name, self._case_sensitive)
        column_name = self._schema.find_column_name(column.field_id) or column.name
        check_source(column.field_id, transform, self._schema, f"partition field '{name or column_name}'")
        if not transform.is_known or (isinstance(transform, VoidTransform) and not self._voids):
            raise InvalidSchema(f"a partition field cannot be added with the transform '{transform}'")
        if self._taken_back(column, transform, name):
            return self
        field = self._new_field(column, transform, name, default_name(column_name, transform))
        if isinstance(transform, TemporalTransform):
            other = self._added_times.get(field.source_id)
            if other is not None:
                raise InvalidSchema(
                    f"partition fields '{other.name}' and '{field.name}' are times of one column; the finer one will do"
                )
        self._make_room(field.name)
        self._added[field.field_id] = field
        if isinstance(transform, TemporalTransform):
            self._added_times[field.source_id] = field
        self._enter(field)
        return self

    def add_identity(self, source_column_name: FieldName | int) -> Self:
        """Add the values of a column themselves, under its name."""
        return self.add_field(source_column_name, IdentityTransform())

    def remove_field(self, name: str | tuple[FieldName | int, str | Transform]) -> Self:
        """Drop a field of the current spec, given by its name or as (source, transform).

        In format version 1 the field stays in its position, with the void transform.
        """
        found = self._find(name)
        if self._added.get(found.field_id) == found:
            raise InvalidSchema(f"partition field '{found.name}' was added by this same change; do not add it")
        if found.field_id in self._renamed:
            raise InvalidSchema(f"partition field '{found.name}' is renamed by this same change")
        self._removed.add(found.field_id)
        return self

    def rename_field(self, name: str, new_name: str) -> Self:
        """Rename a field of the current spec; it stays the same field."""
        found = self._find(name)
        if self._added.get(found.field_id) == found:
            raise InvalidSchema(f"partition field '{name}' was added by this same change; add it under the new name")
        if found.field_id in self._removed:
            raise InvalidSchema(f"partition field '{name}' is removed by this same change")
        if new_name != name:
            self._make_room(new_name)
        self._rename(found, new_name)
        return self

    def result(self) -> PartitionSpec:
        """The spec that the changes lead to: an equivalent one of the table's own, else a new one with the next id.

        Raises ``InvalidSchema`` or ``UnsupportedFeature`` for a new spec that the table may not have.
        """
        fields = [
            *(kept for field in self._base.fields if (kept := self._kept(field)) is not None),
            *self._added.values(),
        ]
        candidate = PartitionSpec(*fields)
        if candidate.compatible_with(self._base):
            return self._base
        for spec in self._specs:
            if spec.compatible_with(candidate):
                return spec
        validate_spec(candidate, self._schema)
        return PartitionSpec(*fields, spec_id=max(spec.spec_id for spec in self._specs) + 1)

    def _kept(self, field: PartitionField) -> PartitionField | None:
        if field.field_id not in self._removed:
            return replace(field, name=self._renamed.get(field.field_id, field.name))
        if self._format_version > 1:
            return None
        # Version 1 finds partition values by position, so positions never change.
        return replace(field, transform=VoidTransform(), name=self._renamed.get(field.field_id, field.name))

    def _find(self, wanted: str | tuple[FieldName | int, str | Transform]) -> PartitionField:
        if isinstance(wanted, str):
            found = self._named.get(wanted, [])
        else:
            column = self._schema.find_field(wanted[0], self._case_sensitive)
            found = self._defined.get(((column.field_id,), parse_transform(wanted[1])), [])
        if not found:
            names = ", ".join(field.name for field in self._base.fields) or "no fields"
            raise InvalidSchema(f"there is no partition field {wanted!r}; the current spec has {names}")
        return found[0]

    def _taken_back(self, column: NestedField, transform: Transform, name: str | None) -> bool:
        """Undo the removal of this field in the same change, perhaps under a new name; return whether it was removed.

        Raises ``InvalidSchema`` for a field of the current spec that is not removed.
        """
        defined = self._defined.get(((column.field_id,), transform), [])
        for field in defined:
            if field.field_id in self._removed:
                self._removed.discard(field.field_id)
                if name is not None and name != field.name:
                    self._make_room(name)
                    self._rename(field, name)
                return True
        if defined:
            raise InvalidSchema(f"partition field '{defined[0].name}' is {transform} of '{column.name}' already")
        return False

    def _new_field(self, column: NestedField, transform: Transform, name: str | None, default: str) -> PartitionField:
        if self._format_version > 1:
            for field in self._older.get(((column.field_id,), transform), []):
                id_ = field.field_id
                is_used = id_ in self._added or (id_ in self._own_ids and id_ not in self._removed)
                if name in (None, field.name) and not is_used:
                    return field
        return PartitionField(column.field_id, self._next_id(), transform, default if name is None else name)

    def _next_id(self) -> int:
        if self._format_version == 1 and self._by_position:
            # Readers of version 1 assign ids by position and ignore the written ids.
            position = PARTITION_FIELD_ID_START + len(self._base.fields) + len(self._added)
            self._last_id = max(self._last_id, position)
            return position
        self._last_id += 1
        return self._last_id

    def _make_room(self, name: str) -> None:
        """Refuse a name in use; a void field of version 1 is renamed instead, with its id as suffix."""
        for field in [*self._taken.get(name, [])]:
            removed = field.field_id in self._removed
            if removed and self._format_version > 1:
                continue
            if removed or isinstance(field.transform, VoidTransform):
                self._rename(field, f"{field.name}_{field.field_id}")
                continue
            raise InvalidSchema(f"a partition field is named '{name}' already")

    def _enter(self, field: PartitionField) -> None:
        self._defined.setdefault(field.definition[:2], []).append(field)
        self._named.setdefault(field.name, []).append(field)
        self._taken.setdefault(field.name, []).append(field)

    def _rename(self, field: PartitionField, name: str) -> None:
        self._taken[self._renamed.get(field.field_id, field.name)].remove(field)
        self._renamed[field.field_id] = name
        self._taken.setdefault(name, []).append(field)


def build_spec(
    schema: Schema,
    terms: Iterable[tuple[FieldName | int, str | Transform] | tuple[FieldName | int, str | Transform, str]],
) -> PartitionSpec:
    """The spec of a new table from (source, transform) or (source, transform, name); ids from 1000, spec id 0.

    Raises ``InvalidSchema``.
    """
    update = SpecUpdate((UNPARTITIONED,), INITIAL_SPEC_ID, schema, PARTITION_FIELD_ID_START - 1, 2, voids=True)
    for term in terms:
        update.add_field(*term)
    return PartitionSpec(*update.result().fields, spec_id=INITIAL_SPEC_ID)


def default_name(column_name: str, transform: Transform) -> str:
    """The default name of a partition field, the same as in other implementations."""
    match transform:
        case IdentityTransform():
            return column_name
        case BucketTransform():
            return f"{column_name}_bucket_{transform.num_buckets}"
        case TruncateTransform():
            return f"{column_name}_trunc_{transform.width}"
        case VoidTransform():
            return f"{column_name}_null"
    return f"{column_name}_{transform}"
