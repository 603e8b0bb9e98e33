"""Changing a table's columns. No data file is touched."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from icefield.errors import ValidationFailed
from icefield.metadata import MAIN_BRANCH, TableMetadata
from icefield.metadata.properties import NAME_MAPPING_DEFAULT
from icefield.metadata.requirements import (
    AssertCurrentSchemaId,
    AssertLastAssignedFieldId,
    AssertRefSnapshotID,
    TableRequirement,
)
from icefield.metadata.updates.base import TableUpdate
from icefield.metadata.updates.definitions import choose_schema
from icefield.metadata.updates.table import RemoveProperties, SetProperties
from icefield.partitioning import PartitionSpec
from icefield.partitioning.transforms import VoidTransform
from icefield.schema import Schema, parse_name_mapping
from icefield.schema.evolution import SchemaUpdate
from icefield.schema.name_mapping import update_name_mapping
from icefield.schema.schema import FieldName
from icefield.transaction.action import Action, ActionContext, Changes


class UpdateSchema(Action, SchemaUpdate):
    """Add, delete, rename, move, promote columns. Fails when another commit changed the schema meanwhile.

    A field of a struct is named by a tuple, ``("address", "city")``; a column with a dot in its own name by
    ``("a.b",)``. Every method raises ``InvalidSchema`` for a change that the format forbids.
    """

    def __init__(
        self,
        stage: Callable[[Action], None],
        base: TableMetadata,
        allow_incompatible_changes: bool = False,
        case_sensitive: bool = True,
    ) -> None:
        super().__init__(stage)
        SchemaUpdate.__init__(
            self,
            base.schema(),
            last_column_id=base.last_column_id,
            format_version=base.format_version,
            partition_source_ids=_sources(base.spec()),
            sort_source_ids=[id_ for field in base.sort_order().fields for id_ in field.source_ids],
            all_partition_source_ids=[id_ for spec in base.partition_specs for id_ in _sources(spec)],
            history=base.schemas,
            case_sensitive=case_sensitive,
            allow_incompatible_changes=allow_incompatible_changes,
        )
        self._base = base
        self._pinned = False
        self._requirements: list[TableRequirement] = [
            AssertCurrentSchemaId(base.current_schema_id),
            AssertLastAssignedFieldId(base.last_column_id),
        ]

    def _is_filled(self) -> bool:
        return self.result() != self._base.schema()

    def _is_unwritten(self, path: FieldName) -> bool:
        snapshot = self._base.current_snapshot()
        unwritten = snapshot is None or self._base.schema_of(snapshot).has_field(path)
        if unwritten and not self._pinned:
            self._pinned = True
            self._requirements.append(AssertRefSnapshotID(MAIN_BRANCH, self._base.current_snapshot_id))
        return unwritten

    def apply(self, base: TableMetadata, context: ActionContext) -> Changes:
        """The new current schema, and the name mapping and properties that go with it."""
        if self._pinned and base.current_snapshot_id != self._base.current_snapshot_id:
            raise ValidationFailed(
                "a required column cannot be brought back: rows that lack it were committed meanwhile",
                snapshot_id=base.current_snapshot_id,
            )
        schema = self.result()
        if schema == self._base.schema():
            return Changes(requirements=tuple(self._requirements))
        updates: list[TableUpdate] = [
            *choose_schema(base, schema, self.last_column_id),
            *_properties_follow(base, self._base.schema(), schema, context.io.plugins.table_properties.column_prefixes),
        ]
        return Changes(tuple(updates), tuple(self._requirements))


def _sources(spec: PartitionSpec) -> list[int]:
    return [id_ for field in spec.fields for id_ in field.source_ids if not isinstance(field.transform, VoidTransform)]


def _properties_follow(
    base: TableMetadata, before: Schema, after: Schema, prefixes: Iterable[str]
) -> list[TableUpdate]:
    """Updates of the properties that name columns: the stored name mapping, and properties of single columns."""
    sets: dict[str, str] = {}
    removals: list[str] = []
    mapping = base.properties.get(NAME_MAPPING_DEFAULT.name)
    if mapping is not None:
        updated = update_name_mapping(parse_name_mapping(mapping), after).to_string()
        if updated != mapping:
            sets[NAME_MAPPING_DEFAULT.name] = updated
    for name, value in base.properties.items():
        prefix = next((prefix for prefix in prefixes if name.startswith(prefix)), None)
        column = None if prefix is None else name[len(prefix) :]
        if prefix is None or column is None or not before.has_field(column):
            continue
        now = after.find_column_name(before.find_field(column).field_id)
        if now == column:
            continue
        removals.append(name)
        if now is not None:
            sets[prefix + now] = value
    removals = [name for name in removals if name not in sets]
    updates: list[TableUpdate] = [RemoveProperties(removals)] if removals else []
    return [*updates, SetProperties(sets)] if sets else updates
