"""The user's interface to catalogs, tables and views."""

from icefield.base.lazy_names import public_names
from icefield.catalog.catalog import Catalog as Catalog
from icefield.catalog.catalog import PropertiesUpdateSummary as PropertiesUpdateSummary
from icefield.catalog.opening import load_catalog as load_catalog
from icefield.catalog.opening import open_table as open_table
from icefield.catalog.table import Table as Table
from icefield.catalog.views import View as View

__all__ = public_names(__name__)
