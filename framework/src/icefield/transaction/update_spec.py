"""Changing how new files are partitioned. Files that exist keep their own spec."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from icefield.metadata import TableMetadata
from icefield.metadata.requirements import (
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    AssertLastAssignedPartitionId,
)
from icefield.metadata.updates import choose_spec
from icefield.partitioning.spec_evolution import SpecUpdate
from icefield.partitioning.transforms import Transform
from icefield.schema.schema import FieldName
from icefield.transaction.action import Action, ActionContext, Changes


class UpdateSpec(Action):
    """Add, remove and rename partition fields. Fails when another commit changed the schema or the spec meanwhile."""

    def __init__(self, stage: Callable[[Action], None], base: TableMetadata, case_sensitive: bool = True) -> None:
        super().__init__(stage)
        self._update = SpecUpdate(
            base.partition_specs,
            base.default_spec_id,
            base.schema(),
            base.last_partition_id,
            base.format_version,
            case_sensitive=case_sensitive,
        )
        self._requirements = (
            AssertCurrentSchemaId(base.current_schema_id),
            AssertDefaultSpecId(base.default_spec_id),
            AssertLastAssignedPartitionId(base.last_partition_id),
        )

    def add_field(
        self, source_column_name: FieldName, transform: str | Transform, partition_field_name: str | None = None
    ) -> Self:
        """Add a field, such as ``add_field("ts", "day")``. Raises ``InvalidSchema`` for an invalid field."""
        self._update.add_field(source_column_name, transform, partition_field_name)
        return self

    def add_identity(self, source_column_name: FieldName) -> Self:
        """Add a column's own values as a field."""
        self._update.add_identity(source_column_name)
        return self

    def remove_field(self, name: str | tuple[FieldName, str | Transform]) -> Self:
        """Remove a field of the current spec, by its name or as (source, transform)."""
        self._update.remove_field(name)
        return self

    def rename_field(self, name: str, new_name: str) -> Self:
        """Rename a field of the current spec."""
        self._update.rename_field(name, new_name)
        return self

    def apply(self, base: TableMetadata, context: ActionContext) -> Changes:
        """The new default spec; an equivalent spec of the table is used again."""
        return Changes(choose_spec(base, self._update.apply()), self._requirements)
