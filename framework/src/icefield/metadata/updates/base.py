"""What every update of table metadata is: a small value that makes new metadata of old."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from icefield.metadata.table_metadata import TableMetadata

LAST_ADDED = -1
"""As an id of a schema, spec or sort order: the one that was added last in the same change."""


@dataclass(slots=True)
class Change:
    """What the updates of one change know of each other."""

    base: TableMetadata
    timestamp_ms: int
    """The time of the change: that of its newest snapshot, and never before the base's."""

    last_schema_id: int | None = None
    last_spec_id: int | None = None
    last_order_id: int | None = None
    adds_snapshot: bool = False


@runtime_checkable
class TableUpdate(Protocol):
    """One step of a change.

    ``apply`` returns new metadata, or the same object when there is nothing to change. It raises
    ``InvalidArgument`` or ``InvalidSchema`` for a step that breaks a rule of the format.
    """

    action: ClassVar[str]
    """The step's name in the REST catalog protocol."""

    def apply(self, metadata: TableMetadata, change: Change) -> TableMetadata:
        """The metadata after this step."""
