"""Pages to browse a catalog: its tables, their snapshots and files, plans of filters, rows and SQL.

Names are imported when they are first used: the hooks of this plugin need no template engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from icefield import lazy_names

if TYPE_CHECKING:
    from icefield_explorer.pages import show

__getattr__, __dir__ = lazy_names(__name__)

__all__ = ["show"]
