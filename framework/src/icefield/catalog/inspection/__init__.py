"""Tables about a table: one a file."""

from icefield.catalog.inspection.inspect_table import InspectTable

__all__ = ["InspectTable"]
