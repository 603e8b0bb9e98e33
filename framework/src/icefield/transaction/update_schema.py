"""Changing a table's columns. No data file is touched."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self

import pyarrow as pa

from icefield.errors import ValidationFailed
from icefield.metadata import TableMetadata
from icefield.metadata.properties import NAME_MAPPING_DEFAULT
from icefield.metadata.refs import MAIN_BRANCH
from icefield.metadata.requirements import (
    AssertCurrentSchemaId,
    AssertLastAssignedFieldId,
    AssertRefSnapshotID,
    TableRequirement,
)
from icefield.metadata.updates import RemoveProperties, SetProperties, TableUpdate, choose_schema
from icefield.partitioning import PartitionSpec
from icefield.partitioning.transforms import VoidTransform
from icefield.schema import Schema, parse_name_mapping
from icefield.schema.evolution import SchemaUpdate
from icefield.schema.name_mapping import update_name_mapping
from icefield.schema.schema import FieldName
from icefield.transaction.action import Action, ActionContext, Changes
from icefield.types.arrow.types import GivenType


class UpdateSchema(Action):
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
        self._base = base
        self._update = SchemaUpdate(
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
        self._pinned = False
        self._requirements: list[TableRequirement] = [
            AssertCurrentSchemaId(base.current_schema_id),
            AssertLastAssignedFieldId(base.last_column_id),
        ]

    def allow_incompatible_changes(self) -> Self:
        """Let optional columns become required, and required columns be added without a default."""
        self._update.allow_incompatible_changes()
        return self

    def add_column(
        self,
        path: FieldName,
        field_type: GivenType,
        doc: str | None = None,
        required: bool = False,
        default_value: Any = None,
    ) -> Self:
        """Add a column at the end, or with a tuple a field at the end of a struct; new ids are given to all of it."""
        self._update.add_column(path, field_type, doc, required, default_value)
        return self

    def delete_column(self, path: FieldName) -> Self:
        """Delete a column. Files keep it and readers ignore it; its id is never used again."""
        self._update.delete_column(path)
        return self

    def undelete_column(self, path: FieldName) -> Self:
        """Bring a deleted column back under its old id, if it could hold null or no rows were written since."""
        snapshot = self._base.current_snapshot()
        written = self._base.schema() if snapshot is None else self._base.schema_of(snapshot)
        unchanged = snapshot is None or written.has_field(path)
        self._update.undelete(path, snapshot_unchanged=unchanged)
        if unchanged:
            self._pinned = True
            self._requirements.append(AssertRefSnapshotID(MAIN_BRANCH, self._base.current_snapshot_id))
        return self

    def rename_column(self, path_from: FieldName, new_name: str) -> Self:
        """Rename a column. The stored name mapping and the properties that name the column follow."""
        self._update.rename_column(path_from, new_name)
        return self

    def update_column(
        self,
        path: FieldName,
        field_type: GivenType | None = None,
        required: bool | None = None,
        doc: str | None = None,
    ) -> Self:
        """Promote a column's type, change whether it is required, or its doc."""
        self._update.update_column(path, field_type, required, doc)
        return self

    def make_column_optional(self, path: FieldName) -> Self:
        """Let a required column hold null."""
        self._update.make_column_optional(path)
        return self

    def set_default_value(self, path: FieldName, default_value: Any) -> Self:
        """Change the value that is written where a writer gives none (format version 3)."""
        self._update.set_default_value(path, default_value)
        return self

    def move_first(self, path: FieldName) -> Self:
        """Move a column to the front of its struct."""
        self._update.move_first(path)
        return self

    def move_before(self, path: FieldName, before_path: FieldName) -> Self:
        """Move a column to just before another of the same struct."""
        self._update.move_before(path, before_path)
        return self

    def move_after(self, path: FieldName, after_name: FieldName) -> Self:
        """Move a column to just after another of the same struct."""
        self._update.move_after(path, after_name)
        return self

    def set_identifier_fields(self, *fields: FieldName) -> Self:
        """Make these the fields that identify a row."""
        self._update.set_identifier_fields(*fields)
        return self

    def union_by_name(self, new_schema: Schema | pa.Schema) -> Self:
        """Add the columns, wider types and nullability that another schema has, by name."""
        self._update.union_by_name(new_schema)
        return self

    def apply(self, base: TableMetadata, context: ActionContext) -> Changes:
        """The new current schema, and the name mapping and properties that go with it."""
        if self._pinned and base.current_snapshot_id != self._base.current_snapshot_id:
            raise ValidationFailed(
                "a required column cannot be brought back: rows that lack it were committed meanwhile",
                snapshot_id=base.current_snapshot_id,
            )
        schema = self._update.apply()
        if schema == self._base.schema():
            return Changes(requirements=tuple(self._requirements))
        updates: list[TableUpdate] = [
            *choose_schema(base, schema, self._update.last_column_id),
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
