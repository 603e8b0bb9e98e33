"""The user's interface to catalogs, tables and views."""

from icefield.catalog.catalog import Catalog, PropertiesUpdateSummary
from icefield.catalog.opening import load_catalog, open_table
from icefield.catalog.table import Table
from icefield.catalog.views import View

__all__ = ["Catalog", "PropertiesUpdateSummary", "Table", "View", "load_catalog", "open_table"]
