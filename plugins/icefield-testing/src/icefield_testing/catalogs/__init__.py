"""The checks of optional features of a catalog besides names and tables, one group per module."""

from icefield_testing.catalogs.several_tables import SeveralTablesChecks
from icefield_testing.catalogs.views import ViewChecks

__all__ = ["SeveralTablesChecks", "ViewChecks"]
