"""Scans as frames, relations and data sets of other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icefield import lazy_names

if TYPE_CHECKING:
    from icefield_frames.methods import ScanMethods
    from icefield_frames.worker_writes import write_on_workers

# Names are handed on lazily: the hooks are in this package, and each process that lists plugins imports them.
__getattr__, __dir__ = lazy_names(__name__)

__all__ = ["ScanMethods", "write_on_workers"]
