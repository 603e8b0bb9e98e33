"""The metadata tables, with one module for each kind."""

from icefield.catalog.inspection.inspect_table import InspectTable

__all__ = ["InspectTable"]
