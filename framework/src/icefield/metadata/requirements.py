"""Requirements of a change on its table, as in the REST catalog protocol."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class AssertLastAssignedFieldId:
    """No column was added meanwhile."""

    last_assigned_field_id: Int
    type: ClassVar[str] = "assert-last-assigned-field-id"

    def check(self, metadata: TableMetadata | None) -> None:
        _compare(metadata, "last_column_id", self.last_assigned_field_id, "last assigned column id", self.type)


@dataclass(frozen=True, slots=True)
class AssertCurrentSchemaId:
    """The current schema is still that of the change's base."""

    current_schema_id: Int
    type: ClassVar[str] = "assert-current-schema-id"

    def check(self, metadata: TableMetadata | None) -> None:
        _compare(metadata, "current_schema_id", self.current_schema_id, "current schema", self.type)


@dataclass(frozen=True, slots=True)
class AssertLastAssignedPartitionId:
    """No partition field was added meanwhile."""

    last_assigned_partition_id: Int
    type: ClassVar[str] = "assert-last-assigned-partition-id"

    def check(self, metadata: TableMetadata | None) -> None:
        _compare(
            metadata,
            "last_partition_id",
            self.last_assigned_partition_id,
            "last assigned partition field id",
            self.type,
        )


@dataclass(frozen=True, slots=True)
class AssertDefaultSpecId:
    """The default partition spec is still that of the change's base."""

    default_spec_id: Int
    type: ClassVar[str] = "assert-default-spec-id"

    def check(self, metadata: TableMetadata | None) -> None:
        _compare(metadata, "default_spec_id", self.default_spec_id, "default partition spec", self.type)


@dataclass(frozen=True, slots=True)
class AssertDefaultSortOrderId:
    """The default sort order is still that of the change's base."""

    default_sort_order_id: Int
    type: ClassVar[str] = "assert-default-sort-order-id"

    def check(self, metadata: TableMetadata | None) -> None:
        _compare(metadata, "default_sort_order_id", self.default_sort_order_id, "default sort order", self.type)


def _existing(metadata: TableMetadata | None, requirement: str) -> TableMetadata:
    if metadata is None:
        raise ValidationFailed("the table does not exist any more", requirement=requirement)
    return metadata


def _compare(metadata: TableMetadata | None, name: str, expected: int, what: str, requirement: str) -> None:
    found = getattr(_existing(metadata, requirement), name)
    if expected != found:
        raise ValidationFailed(
            f"the {what} was {expected} and is now {found}: another commit changed it; load the table again",
            requirement=requirement,
            expected=expected,
            found=found,
        )


def _at(snapshot_id: int | None) -> str:
    return "absent" if snapshot_id is None else f"at snapshot {snapshot_id}"
