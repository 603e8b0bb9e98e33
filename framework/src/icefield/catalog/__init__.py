"""The user's interface to catalogs, tables and views."""

from typing import TYPE_CHECKING

from icefield.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from icefield.catalog.catalog import Catalog as Catalog
    from icefield.catalog.identifiers import PropertiesUpdateSummary as PropertiesUpdateSummary
    from icefield.catalog.opening import load_catalog as load_catalog
    from icefield.catalog.opening import open_table as open_table
    from icefield.catalog.table import Table as Table
    from icefield.catalog.views import View as View

__getattr__, __dir__ = lazy_names(__name__)
