"""Scans as frames, relations and data sets of other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icefield import lazy_names

if TYPE_CHECKING:
    from icefield_frames.methods import ScanMethods

# Names are handed on lazily: the hooks are in this package, and each process that lists plugins imports them.
__getattr__, __dir__ = lazy_names(__name__, {"icefield_frames.methods": ["ScanMethods"]})

__all__ = ["ScanMethods"]
