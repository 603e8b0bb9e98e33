"""A line on a terminal without rich."""

from __future__ import annotations

import shutil
import sys

from icefield_progress.texts import amount, elapsed


class PlainLine:
    """A line of text on the standard error, which is drawn over itself."""

    def draw(self, what: str, done: int, total: int | None, seconds: float) -> None:
        """See ``DrawnLine``."""
        line = " ".join(filter(None, (what, amount(done, total), elapsed(seconds))))
        self._write(line[: shutil.get_terminal_size().columns - 1])

    def close(self) -> None:
        """Wipe it away."""
        self._write("")

    def _write(self, line: str) -> None:
        sys.stderr.write(f"\r\x1b[2K{line}")
        sys.stderr.flush()


def new_line() -> PlainLine:
    """A line that is not drawn yet."""
    return PlainLine()
