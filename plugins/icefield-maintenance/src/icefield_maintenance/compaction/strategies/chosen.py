"""The strategy that a policy asks for."""

from __future__ import annotations

from icefield.metadata import TableMetadata
from icefield.scan.temporary_batches import HELD_BYTES

from icefield_maintenance.compaction.policy import RewriteDataPolicy
from icefield_maintenance.compaction.strategies.binpack import BinPack
from icefield_maintenance.compaction.strategies.ordering import Ordering
from icefield_maintenance.compaction.strategies.sort import Sort
from icefield_maintenance.compaction.strategies.zorder import ZOrder


def chosen_strategy(policy: RewriteDataPolicy, metadata: TableMetadata) -> Ordering:
    """The order of the rows. Raises ``InvalidArgument`` for columns that the strategy cannot use."""
    held = HELD_BYTES // policy.max_concurrent_groups
    match policy.strategy:
        case "sort":
            return Sort(metadata, policy.sort_order, held)
        case "zorder":
            return ZOrder(metadata, policy.zorder_columns, held)
    return BinPack()
