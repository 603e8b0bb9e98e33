"""The answers of WebHDFS that describe files, checked before use: another server may send anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from icefield_hdfs.client import HdfsFailure, Status

MAX_ENTRIES: Final = 6_400_000
"""The most entries of one folder that a name node can be configured to hold."""

MAX_PAGES: Final = 100_000

Entries = list[Mapping[str, Any]]


def pages(ask: Callable[[str], Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The entries of a folder; ``ask`` gets the answer with the page after a name.

    Raises ``HdfsFailure`` for a listing that goes in a circle, or has too many pages or entries.
    """
    after, seen, come = "", {""}, 0
    while True:
        entries, more = _page(ask(after))
        come += len(entries)
        if come > MAX_ENTRIES or len(seen) > MAX_PAGES:
            said = f"the server lists more than {MAX_ENTRIES:,} entries in a folder, or {MAX_PAGES:,} pages of them"
            raise HdfsFailure(said, passing=False)
        yield from entries
        if not entries or not more:
            return
        after = entries[-1]["pathSuffix"]
        if after in seen:
            raise HdfsFailure("the server lists a folder in a circle", passing=False)
        seen.add(after)


def whole_listing(answer: Mapping[str, Any]) -> Entries:
    """The entries of a listing that came at once."""
    return _entries(answer)


def status_of(path: str, answer: Mapping[str, Any]) -> Status:
    """Return the status of a path in an answer."""
    return status_in(path, _checked(answer.get("FileStatus")))


def status_in(path: str, entry: Mapping[str, Any]) -> Status:
    """Return the status of a path in a checked entry."""
    return Status(path, entry["type"] == "DIRECTORY", entry["length"], entry["modificationTime"])


def _page(answer: Mapping[str, Any]) -> tuple[Entries, bool]:
    found = answer.get("DirectoryListing")
    if not isinstance(found, dict) or not isinstance(found.get("partialListing"), dict):
        raise _damaged()
    return _entries(found["partialListing"]), bool(found.get("remainingEntries"))


def _entries(holder: Mapping[str, Any]) -> Entries:
    found = holder.get("FileStatuses")
    entries = found.get("FileStatus") if isinstance(found, dict) else None
    if not isinstance(entries, list):
        raise _damaged()
    return [_checked(entry) for entry in entries]


def _checked(entry: Any) -> Mapping[str, Any]:
    if (
        not isinstance(entry, dict)
        or not isinstance(entry.get("pathSuffix"), str)
        or "/" in entry["pathSuffix"]
        or entry["pathSuffix"] in (".", "..")
        or not isinstance(entry.get("type"), str)
        or any(type(entry.get(name)) is not int for name in ("length", "modificationTime"))
        or entry["length"] < 0
    ):
        raise _damaged()
    return entry


def _damaged() -> HdfsFailure:
    return HdfsFailure("the server's answer does not describe files as WebHDFS does", passing=False)
