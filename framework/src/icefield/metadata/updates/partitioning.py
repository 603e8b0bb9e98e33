"""Updates of the partition specs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from icefield.errors import InvalidArgument
from icefield.metadata.table_metadata import TableMetadata
from icefield.metadata.updates.base import LAST_ADDED, TableDrafts, bound_to, nothing_added
from icefield.metadata.validation import check_spec
from icefield.partitioning import PartitionSpec


@dataclass(frozen=True, slots=True)
class AddPartitionSpec:
    """Add a spec of the current schema's columns under the next free id; an equivalent one is not added again."""

    spec: PartitionSpec
    action: ClassVar[str] = "add-spec"

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        known = self.known_to(metadata)
        if known is not None:
            change.specs.found(known.spec_id, after_any=True)
            return metadata
        check_spec(self.spec, bound_to(metadata, change), metadata.format_version)
        added = PartitionSpec(*self.spec.fields, spec_id=self.next_id(metadata))
        change.specs.add(added.spec_id)
        return replace(
            metadata,
            partition_specs=change.extended(metadata.partition_specs, added),
            last_partition_id=max(metadata.last_partition_id, added.last_assigned_field_id),
        )

    def known_to(self, metadata: TableMetadata) -> PartitionSpec | None:
        """The equivalent spec that the table has."""
        return metadata.partition_specs.alike(self.spec)

    @staticmethod
    def next_id(metadata: TableMetadata) -> int:
        """The id that the next spec gets."""
        return metadata.partition_specs.next_id()


@dataclass(frozen=True, slots=True)
class SetDefaultSpec:
    """Make a spec of the table the default for new files; -1 means the last spec added."""

    spec_id: int = LAST_ADDED
    action: ClassVar[str] = "set-default-spec"

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        chosen = change.specs.chosen(self.spec_id)
        if chosen is None:
            raise InvalidArgument(nothing_added("partition spec", metadata))
        if not metadata.partition_specs.has(chosen):
            raise InvalidArgument(f"table {metadata.location} has no partition spec {self.spec_id} to make the default")
        return metadata if chosen == metadata.default_spec_id else replace(metadata, default_spec_id=chosen)


@dataclass(frozen=True, slots=True)
class RemovePartitionSpecs:
    """Remove specs that no manifest refers to any more; the default one cannot go."""

    spec_ids: Iterable[int]
    action: ClassVar[str] = "remove-partition-specs"

    def __post_init__(self) -> None:
        object.__setattr__(self, "spec_ids", frozenset(self.spec_ids))

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        gone = frozenset(self.spec_ids)
        if metadata.default_spec_id in gone:
            raise InvalidArgument(f"partition spec {metadata.default_spec_id} is the default and cannot be removed")
        return replace(metadata, partition_specs=change.dropped(metadata.partition_specs, gone)) if gone else metadata
