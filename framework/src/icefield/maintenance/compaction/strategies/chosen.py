"""The strategy that a policy asks for."""

from __future__ import annotations

from icefield.maintenance.compaction.policy import RewriteDataPolicy
from icefield.maintenance.compaction.strategies.binpack import BinPack
from icefield.maintenance.compaction.strategies.ordering import Ordering
from icefield.maintenance.compaction.strategies.sort import Sort
from icefield.maintenance.compaction.strategies.zorder import ZOrder
from icefield.metadata import TableMetadata
from icefield.scan.temporary_batches import HELD_BYTES


def chosen_strategy(policy: RewriteDataPolicy, metadata: TableMetadata) -> Ordering:
    """The order of the rows. Raises ``InvalidArgument`` for columns that do not serve it."""
    held = HELD_BYTES // policy.max_concurrent_groups
    match policy.strategy:
        case "sort":
            return Sort(metadata, policy.sort_order, held)
        case "zorder":
            return ZOrder(metadata, policy.zorder_columns, held)
    return BinPack()
