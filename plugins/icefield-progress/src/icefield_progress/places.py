"""The places where progress is shown: a terminal or a notebook."""

from __future__ import annotations

import os
import sys
from typing import Any, Protocol


class DrawnLine(Protocol):
    """One line that shows progress, and is drawn again whenever it changed."""

    def draw(self, what: str, done: int, total: int | None, seconds: float) -> None:
        """Draw the line."""

    def close(self) -> None:
        """Draw it for the last time, or wipe it away."""


def notebook_shell() -> Any:
    """The shell of a Jupyter kernel that runs this process; None elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell if hasattr(shell, "kernel") else None


def is_interactive() -> bool:
    """Whether somebody is likely to look: a notebook or a terminal, and the variable ``CI`` is not set."""
    if os.environ.get("CI", "").lower() not in ("", "0", "false"):
        return False
    return notebook_shell() is not None or (sys.stderr is not None and sys.stderr.isatty())
