"""Requirements of a change on its table, as in the REST catalog protocol."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import ClassVar, Protocol, runtime_checkable

from icefield.base.limits import NameText
from icefield.errors import CommitFailed, ValidationFailed
from icefield.metadata.entries import Int
from icefield.metadata.table_metadata import TableMetadata


@runtime_checkable
class TableRequirement(Protocol):
    """A condition on the current metadata; None stands for a table that does not exist."""

    type: ClassVar[str]
    """The condition's name in the REST catalog protocol."""

    def check(self, metadata: TableMetadata | None) -> None:
        """Raise ``CommitFailed`` or ``ValidationFailed`` unless the condition holds."""


def check(requirements: Iterable[TableRequirement], metadata: TableMetadata | None) -> None:
    """Check all requirements against the current metadata (None: there is no table).

    Raises ``CommitFailed`` where building the change again on the current metadata may help, and
    ``ValidationFailed`` where it may not, such as for a changed schema.
    """
    for requirement in requirements:
        requirement.check(metadata)


def holds(requirement: TableRequirement, metadata: TableMetadata | None) -> bool:
    """Whether a requirement is met."""
    try:
        requirement.check(metadata)
    except (CommitFailed, ValidationFailed):
        return False
    return True


@dataclass(frozen=True, slots=True)
class AssertCreate:
    """The table does not exist."""

    type: ClassVar[str] = "assert-create"

    def check(self, metadata: TableMetadata | None) -> None:
        if metadata is not None:
            raise CommitFailed(f"the table exists already, at {metadata.location}", requirement=self.type)


@dataclass(frozen=True, slots=True)
class AssertTableUUID:
    """The table is the loaded table, not another one under the same name."""

    uuid: NameText
    type: ClassVar[str] = "assert-table-uuid"

    def check(self, metadata: TableMetadata | None) -> None:
        found = _existing(metadata, self.type).table_uuid
        if (found or "").lower() != self.uuid.lower():
            raise ValidationFailed(f"the table's uuid was {self.uuid} and is now {found}", requirement=self.type)


@dataclass(frozen=True, slots=True)
class AssertRefSnapshotID:
    """A branch or tag is at a snapshot, or, with None, does not exist."""

    ref: str
    snapshot_id: int | None
    type: ClassVar[str] = "assert-ref-snapshot-id"

    def check(self, metadata: TableMetadata | None) -> None:
        ref = _existing(metadata, self.type).refs.get(self.ref)
        found = None if ref is None else ref.snapshot_id
        if found != self.snapshot_id:
            raise CommitFailed(
                f"'{self.ref}' was {_at(self.snapshot_id)} and is now {_at(found)}",
                requirement=self.type,
                snapshot_id=found,
            )


class _AssertNumber:
    """A number of the metadata is still that of the change's base."""

    __slots__ = ()
    type: ClassVar[str]
    _number: ClassVar[tuple[str, str]]
    """Its name in the metadata, and in errors."""

    def check(self, metadata: TableMetadata | None) -> None:
        name, shown = self._number
        (expected,), found = astuple(self), getattr(_existing(metadata, self.type), name)  # type: ignore[call-overload]
        if expected != found:
            raise ValidationFailed(
                f"the {shown} was {expected} and is now {found}: another commit changed it; load the table again",
                requirement=self.type,
                expected=expected,
                found=found,
            )


@dataclass(frozen=True, slots=True)
class AssertLastAssignedFieldId(_AssertNumber):
    """No column was added meanwhile."""

    last_assigned_field_id: Int
    type: ClassVar[str] = "assert-last-assigned-field-id"
    _number: ClassVar[tuple[str, str]] = ("last_column_id", "last assigned column id")


@dataclass(frozen=True, slots=True)
class AssertCurrentSchemaId(_AssertNumber):
    """The current schema is still that of the change's base."""

    current_schema_id: Int
    type: ClassVar[str] = "assert-current-schema-id"
    _number: ClassVar[tuple[str, str]] = ("current_schema_id", "current schema")


@dataclass(frozen=True, slots=True)
class AssertLastAssignedPartitionId(_AssertNumber):
    """No partition field was added meanwhile."""

    last_assigned_partition_id: Int
    type: ClassVar[str] = "assert-last-assigned-partition-id"
    _number: ClassVar[tuple[str, str]] = ("last_partition_id", "last assigned partition field id")


@dataclass(frozen=True, slots=True)
class AssertDefaultSpecId(_AssertNumber):
    """The default partition spec is still that of the change's base."""

    default_spec_id: Int
    type: ClassVar[str] = "assert-default-spec-id"
    _number: ClassVar[tuple[str, str]] = ("default_spec_id", "default partition spec")


@dataclass(frozen=True, slots=True)
class AssertDefaultSortOrderId(_AssertNumber):
    """The default sort order is still that of the change's base."""

    default_sort_order_id: Int
    type: ClassVar[str] = "assert-default-sort-order-id"
    _number: ClassVar[tuple[str, str]] = ("default_sort_order_id", "default sort order")


def _existing(metadata: TableMetadata | None, requirement: str) -> TableMetadata:
    if metadata is None:
        raise ValidationFailed("the table does not exist any more", requirement=requirement)
    return metadata


def _at(snapshot_id: int | None) -> str:
    return "absent" if snapshot_id is None else f"at snapshot {snapshot_id}"
