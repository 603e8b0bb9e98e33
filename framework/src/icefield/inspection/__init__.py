"""Tables about a table: one a file."""

from icefield.inspection.inspect_table import InspectTable

__all__ = ["InspectTable"]
