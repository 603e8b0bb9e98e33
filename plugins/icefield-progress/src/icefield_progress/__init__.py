"""The progress of long calls, in terminals and notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icefield import lazy_names

if TYPE_CHECKING:
    from icefield_progress.bars import ProgressBar
    from icefield_progress.places import is_interactive

# Names are imported lazily: each process that lists plugins imports this package.
__getattr__, __dir__ = lazy_names(__name__)

__all__ = ["ProgressBar", "is_interactive"]
