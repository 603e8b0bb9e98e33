"""The checks of what a catalog may keep besides names and tables, one group a module."""

from icefield.testing.catalogs.several_tables import SeveralTablesChecks
from icefield.testing.catalogs.views import ViewChecks

__all__ = ["SeveralTablesChecks", "ViewChecks"]
