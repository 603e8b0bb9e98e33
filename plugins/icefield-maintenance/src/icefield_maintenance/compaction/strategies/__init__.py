"""The orders that rewritten rows are brought into, one module each."""

from icefield_maintenance.compaction.strategies.chosen import chosen_strategy
from icefield_maintenance.compaction.strategies.ordering import Ordering

__all__ = ["Ordering", "chosen_strategy"]
