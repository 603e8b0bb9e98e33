"""The files that an operation wrote, and the rules of cleaning up, which are three:

1. only files that this operation wrote are ever deleted (``WrittenFiles``);
2. nothing is deleted while the outcome of a commit is unknown;
3. a failure to clean up is logged and never hides the outcome.
"""

from __future__ import annotations

import logging

from icefield.commit.state import TableHandle

_log = logging.getLogger(__name__)


class WrittenFiles:
    """The files that one operation wrote, and which of them its latest attempt has no use for.

    A manifest is written once and referred to by every attempt; a manifest list serves one attempt only. A file is
    kept after a success unless it was retired, so that forgetting to say so costs an orphan and never data.
    """

    def __init__(self) -> None:
        self._retired: dict[str, bool] = {}
        self.exposed = False
        """Whether a version may refer to them: from the call that publishes one until it is known to have failed."""

    def add(self, *locations: str) -> None:
        """Note files that were written, or that are of use again."""
        self._retired.update(dict.fromkeys(locations, False))

    def retire(self, *locations: str) -> None:
        """Note that the attempt that is being built does not refer to these files of an earlier one."""
        self._retired.update((location, True) for location in locations if location in self._retired)

    def forget(self) -> None:
        """Drop the account: the files are gone."""
        self._retired.clear()

    def all(self) -> list[str]:
        """Every file that was written, in the order of writing."""
        return list(self._retired)

    def retired(self) -> list[str]:
        """The files that the latest attempt does not refer to."""
        return [location for location, retired in self._retired.items() if retired]


def discard_unexposed(handle: TableHandle, written: WrittenFiles) -> None:
    """Delete what an operation wrote that ends without a commit, unless a version may refer to it."""
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
