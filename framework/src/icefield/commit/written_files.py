"""The files that an operation wrote, and the three rules of cleaning up.

1. only files that this operation wrote are ever deleted (``WrittenFiles``);
2. nothing is deleted while the outcome of a commit is unknown;
3. a failure to clean up is logged and never hides the outcome.
"""

from __future__ import annotations

import logging

from icefield.commit.state import TableHandle

_log = logging.getLogger(__name__)


class WrittenFiles:
    """The files that one operation wrote, and the files that its latest attempt does not use.

    A manifest is written once and referred to by every attempt; a manifest list serves one attempt only. After a
    success a file is deleted only if it was retired, so that a missing ``retire`` leaves an orphan and never loses
    data.
    """

    def __init__(self) -> None:
        self._retired: dict[str, bool] = {}
        self.exposed = False
        """Whether a version may refer to the files: from the publishing call until it is known to have failed."""

    def add(self, *locations: str) -> None:
        """Record files that were written, or that are used again."""
        self._retired.update(dict.fromkeys(locations, False))

    def retire(self, *locations: str) -> None:
        """Record that the current attempt does not refer to these files of an earlier attempt."""
        self._retired.update((location, True) for location in locations if location in self._retired)

    def forget(self) -> None:
        """Clear the record after the files are deleted."""
        self._retired.clear()

    def all(self) -> list[str]:
        """Every file that was written, in the order of writing."""
        return list(self._retired)

    def retired(self) -> list[str]:
        """The files that the latest attempt does not refer to."""
        return [location for location, retired in self._retired.items() if retired]


def discard_unexposed(handle: TableHandle, written: WrittenFiles) -> None:
    """Delete the files of an operation that ended without a commit, unless a version may refer to them."""
    if not written.exposed:
        discard(handle, written.all())
        written.forget()


def discard(handle: TableHandle, locations: list[str]) -> None:
    """Delete files that no version refers to. A failure leaves orphans, is logged and raises nothing."""
    if not locations:
        return
    try:
        handle.io.delete_many(locations)
    except Exception:
        _log.warning(
            "could not delete %d files that '%s' does not refer to: %s", len(locations), handle.full_name, locations
        )
