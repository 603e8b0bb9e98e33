"""The checks of what a catalog may keep besides names and tables, one group a module."""

from icefield_testing.catalogs.several_tables import SeveralTablesChecks
from icefield_testing.catalogs.views import ViewChecks

__all__ = ["SeveralTablesChecks", "ViewChecks"]
