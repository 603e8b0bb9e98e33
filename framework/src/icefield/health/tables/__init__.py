"""The health of a table: what the specification demands of it, looked at rule by rule."""

from icefield.health.tables.examine import GroupOfChecks, examine_table
from icefield.health.tables.rules import Repair

__all__ = ["GroupOfChecks", "Repair", "examine_table"]
