"""The orders that rewritten rows are brought into, one module each."""

from icefield.maintenance.compaction.strategies.chosen import chosen_strategy
from icefield.maintenance.compaction.strategies.ordering import Ordering

__all__ = ["Ordering", "chosen_strategy"]
