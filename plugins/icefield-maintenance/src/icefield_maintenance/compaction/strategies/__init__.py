"""The orders for rewritten rows, one module each."""

from icefield_maintenance.compaction.strategies.chosen import chosen_strategy
from icefield_maintenance.compaction.strategies.ordering import Ordering, OrderingRequest

__all__ = ["Ordering", "OrderingRequest", "chosen_strategy"]
