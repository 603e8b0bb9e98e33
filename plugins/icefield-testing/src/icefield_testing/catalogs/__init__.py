"""Checks of the objects that a catalog may keep besides names and tables, with one group per module."""

from icefield_testing.catalogs.several_tables import SeveralTablesChecks
from icefield_testing.catalogs.views import ViewChecks

__all__ = ["SeveralTablesChecks", "ViewChecks"]
