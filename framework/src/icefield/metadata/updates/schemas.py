"""Updates of the schemas."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from icefield.errors import InvalidArgument
from icefield.metadata.table_metadata import TableMetadata
from icefield.metadata.updates.base import LAST_ADDED, TableDrafts, nothing_added
from icefield.schema import Schema, check_schema


@dataclass(frozen=True, slots=True)
class AddSchema:
    """Add a schema under the next free id; an identical one is not added again. Its field ids are final.

    ``last_column_id`` may state that higher ids were assigned already.
    """

    schema: Schema
    last_column_id: int | None = None
    action: ClassVar[str] = "add-schema"

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        check_schema(self.schema, metadata.format_version, known=metadata.schemas)
        stated = metadata.last_column_id if self.last_column_id is None else self.last_column_id
        if stated < metadata.last_column_id:
            raise InvalidArgument(f"last column id {stated} is below {metadata.last_column_id}, which was given out")
        highest = max(stated, self.schema.highest_field_id)
        known = self.known_to(metadata)
        if known is not None:
            change.schemas.found(known.schema_id)
            return metadata if highest == metadata.last_column_id else replace(metadata, last_column_id=highest)
        added = self.schema.with_schema_id(self.next_id(metadata))
        change.schemas.add(added.schema_id)
        return replace(metadata, schemas=change.extended(metadata.schemas, added), last_column_id=highest)

    def known_to(self, metadata: TableMetadata) -> Schema | None:
        """The identical schema that the table has."""
        return metadata.schemas.alike(self.schema)

    @staticmethod
    def next_id(metadata: TableMetadata) -> int:
        """The id that the next schema gets."""
        return metadata.schemas.next_id()


@dataclass(frozen=True, slots=True)
class SetCurrentSchema:
    """Make a schema of the table the current one; -1 means the last schema added."""

    schema_id: int = LAST_ADDED
    action: ClassVar[str] = "set-current-schema"

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        chosen = change.schemas.chosen(self.schema_id)
        if chosen is None:
            raise InvalidArgument(nothing_added("schema", metadata))
        if not metadata.schemas.has(chosen):
            raise InvalidArgument(f"table {metadata.location} has no schema {self.schema_id} to make current")
        return metadata if chosen == metadata.current_schema_id else replace(metadata, current_schema_id=chosen)


@dataclass(frozen=True, slots=True)
class RemoveSchemas:
    """Remove schemas that nothing refers to any more; the current one cannot go."""

    schema_ids: Iterable[int]
    action: ClassVar[str] = "remove-schemas"

    def __post_init__(self) -> None:
        object.__setattr__(self, "schema_ids", frozenset(self.schema_ids))

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        gone = frozenset(self.schema_ids)
        if metadata.current_schema_id in gone:
            raise InvalidArgument(f"schema {metadata.current_schema_id} is current and cannot be removed")
        return replace(metadata, schemas=change.dropped(metadata.schemas, gone)) if gone else metadata
