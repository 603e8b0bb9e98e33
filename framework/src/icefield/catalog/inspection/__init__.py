"""The metadata tables, with one module for each kind."""

from icefield.base.lazy_names import public_names
from icefield.catalog.inspection.inspect_table import InspectTable as InspectTable

__all__ = public_names(__name__)
