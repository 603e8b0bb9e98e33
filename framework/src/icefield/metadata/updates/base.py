"""What every update of table metadata is: a small value that makes new metadata of old."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Protocol, runtime_checkable

from icefield.metadata.table_metadata import TableMetadata
from icefield.schema import Schema

LAST_ADDED = -1
"""As an id of a schema, spec or sort order: the one that was added last in the same change."""


@dataclass(slots=True)
class LastAdded:
    """The ids that one change gave to schemas, specs, orders or versions, and the one that -1 stands for.

    As in the builders of Iceberg's Java library, an update that adds nothing new leaves -1 without a meaning: services
    that are built on it refuse the change.
    """

    last: int | None = None
    added: set[int] = field(default_factory=set)

    def add(self, id_: int) -> None:
        """Note that one was added."""
        self.last = id_
        self.added.add(id_)

    def found(self, id_: int, *, after_any: bool = False) -> None:
        """Note that one was to be added that is there already: -1 means it if this change added it.

        With ``after_any``, which is Java's rule for specs and sort orders, the change may have added another one last.
        """
        new = self.last if after_any else id_
        self.last = id_ if self.last is not None and new in self.added else None

    def chosen(self, given: int) -> int | None:
        """The id that an update names; None for -1 where it stands for nothing."""
        return self.last if given == LAST_ADDED else given


@dataclass(slots=True)
class Change:
    """What the updates of one change know of each other."""

    base: TableMetadata
    timestamp_ms: int
    """The time of the change: that of its newest snapshot, and never before the base's."""

    schemas: LastAdded = field(default_factory=LastAdded)
    specs: LastAdded = field(default_factory=LastAdded)
    orders: LastAdded = field(default_factory=LastAdded)
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


def bound_to(metadata: TableMetadata, change: Change) -> Schema:
    """The schema that a new spec or sort order is made for: the current one, or the first of a new table."""
    first = min(change.schemas.added, default=metadata.current_schema_id)
    return metadata.schema_by_id(first if metadata.current_schema_id < 0 else metadata.current_schema_id)


def nothing_added(what: str, metadata: TableMetadata) -> str:
    """The message for -1 where the change has added none."""
    return (
        f"table {metadata.location}: -1 stands for the {what} that the change added last, and it has added none; name "
        "one that the table has by its id"
    )
