"""Replaces a table's columns, partitioning, order and rows at once, under its name and history."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from os import PathLike

from icefield.metadata import MAIN_BRANCH, RemoveSnapshotRef, TableMetadata, TableUpdate
from icefield.metadata.properties import FORMAT_VERSION, check_properties
from icefield.metadata.requirements import (
    AssertCurrentSchemaId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    TableRequirement,
)
from icefield.metadata.updates.definitions import choose_schema, choose_sort_order, choose_spec
from icefield.metadata.updates.table import SetLocation, SetProperties
from icefield.partitioning import PartitionField, PartitionSpec, SortOrder
from icefield.partitioning.sort_order import order_for_new_table
from icefield.partitioning.spec import spec_for_new_table
from icefield.partitioning.transforms import parse_transform
from icefield.schema import Schema, assign_fresh_ids
from icefield.storage import given_location
from icefield.transaction.action import Action, ActionContext, Changes
from icefield.transaction.metadata_changes.upgrade import OldSnapshots, upgrade


class ReplaceTable(Action):
    """Give a table other columns, another partitioning and order, and no rows; its snapshots and branches stay.

    A column with the full name of an earlier column keeps its id. Properties are added to the existing properties.
    Files that the same transaction adds have the ids that were assigned when this action was staged. So the commit
    fails after a concurrent change of the columns or of the partitioning.
    """

    def __init__(
        self,
        stage: Callable[[Action], None],
        base: TableMetadata,
        schema: Schema,
        spec: PartitionSpec,
        order: SortOrder,
        location: str | PathLike[str] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(stage)
        self._schema, self._spec, self._order = schema, spec, order
        self._location = None if location is None else given_location(location)
        self._properties = check_properties(properties or {})
        self._version = self._properties.pop(FORMAT_VERSION.name, None)
        self._old = OldSnapshots()
        self._required: tuple[TableRequirement, ...] = (
            AssertCurrentSchemaId(base.current_schema_id),
            AssertLastAssignedFieldId(base.last_column_id),
            AssertLastAssignedPartitionId(base.last_partition_id),
        )

    def apply(self, base: TableMetadata, context: ActionContext) -> Changes:
        """Raises ``InvalidArgument`` for a lower format version, ``InvalidSchema`` for columns that it forbids."""
        schema, ids = _renumbered(self._schema, base)
        spec = _numbered(spec_for_new_table(self._spec, ids), base)
        order = order_for_new_table(self._order, ids)
        updates: list[TableUpdate] = []
        if self._version is not None:
            updates += upgrade(base, int(self._version), context, self._old)
        updates += [
            RemoveSnapshotRef(MAIN_BRANCH),  # even if there is none: rows that others add meanwhile are a conflict
            *choose_schema(base, schema, max(base.last_column_id, schema.highest_field_id)),
            *choose_spec(base, spec),
            *choose_sort_order(base, order),
        ]
        if self._location is not None:
            updates.append(SetLocation(self._location))
        if self._properties:
            updates.append(SetProperties(self._properties))
        return Changes(tuple(updates), self._required)


def _renumbered(schema: Schema, base: TableMetadata) -> tuple[Schema, dict[int, int]]:
    """The schema with the ids of the table's columns of the same names, and with new ids."""
    numbered, places = assign_fresh_ids(schema)  # 1, 2, ... in the order in which ids are asked for
    there, fresh = base.schema(), count(base.last_column_id + 1)
    paths = [numbered.name_path(place) for place in sorted(places.values())]
    given = [there.find_field(path).field_id if there.has_field(path) else next(fresh) for path in paths]
    made, ids = assign_fresh_ids(numbered, iter(given).__next__)
    return made, {old: ids[place] for old, place in places.items()}


def _numbered(spec: PartitionSpec, base: TableMetadata) -> PartitionSpec:
    """The spec with the field ids of the same fields in the table's specs, and with new ids."""
    fresh = count(base.last_partition_id + 1)
    if base.format_version == 1:
        return PartitionSpec(*_in_old_places(spec.fields, base.spec().fields, fresh))
    known = {_what(field): field.field_id for each in base.partition_specs for field in each.fields}
    fields = [replace(field, field_id=known.get(_what(field)) or next(fresh)) for field in spec.fields]
    return PartitionSpec(*fields)


def _in_old_places(
    fields: Iterable[PartitionField], old: Iterable[PartitionField], fresh: Iterator[int]
) -> list[PartitionField]:
    """The fields in the positions that version 1 requires; a removed field becomes void."""
    left = {_what(field): field for field in fields}
    taken = {field.name for field in left.values()}
    made = []
    for field in old:
        same = left.pop(_what(field), None)
        name = f"{field.name}_{field.field_id}" if field.name in taken else field.name
        void = replace(field, name=name, transform=parse_transform("void"))
        made.append(void if same is None else replace(same, field_id=field.field_id))
    return [*made, *(replace(field, field_id=next(fresh)) for field in left.values())]


def _what(field: PartitionField) -> tuple[tuple[int, ...], str]:
    return tuple(field.source_ids), str(field.transform)
