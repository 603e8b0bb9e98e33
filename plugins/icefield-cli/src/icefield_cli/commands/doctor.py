"""Check that a catalog works: plugins, configuration, and what the storage really does.

What the warehouse's file system says that it can is tried on the warehouse, with files of the command's own in the
folder .icefield-doctor, which are deleted at the end.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from uuid import uuid4

from icefield import IcefieldError, Plugins
from icefield.abc import FileSystemAbility, PutMode
from icefield.errors import FileExists
from icefield.file_io import FileIO

from icefield_cli.context import Context

NAME = "doctor"
Check = tuple[str, str, str]

_RIVALS = 8
_LOSES = "commits would lose updates here; use a metastore catalog (type='sql') on this storage"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    del parser


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    del given
    with context.progress("examining"):
        checks = [*_plugins(), *_catalog(context)]
    context.rows(
        ({"check": name, "result": result, "advice": advice} for name, result, advice in checks),
        ("check", "result", "advice"),
    )
    failed = [name for name, result, _ in checks if result == "failed"]
    if failed:
        raise IcefieldError(f"{len(failed)} of {len(checks)} checks failed: {', '.join(failed)}")


def _plugins() -> Iterator[Check]:
    for info in Plugins.installed().listing():
        name = f"plugin {info.name}"
        yield (name, "failed", f"{info.error}; reinstall {info.distribution}") if info.error else (name, "ok", "")


def _catalog(context: Context) -> Iterator[Check]:
    try:
        catalog = context.catalog
        catalog.list_namespaces()
    except IcefieldError as error:
        yield "catalog", "failed", str(error)
        return
    yield "catalog", "ok", ""
    warehouse = catalog.properties.get("warehouse")
    if not warehouse:
        yield "warehouse", "skipped", "the catalog has no property 'warehouse'"
        return
    try:
        abilities = catalog.io.file_system(warehouse).abilities
    except IcefieldError as error:
        yield "file system", "failed", str(error)
        return
    examination = _Examination(catalog.io, warehouse)
    try:
        yield from examination.checks(abilities)
    finally:
        yield _try("delete", examination.clean_up)


class _Examination:
    """Tries each ability for real, under names that nobody else uses."""

    def __init__(self, io: FileIO, warehouse: str) -> None:
        self._io = io
        # One folder for all examinations: a file system may have no way to remove it.
        self._folder = f"{warehouse.rstrip('/')}/.icefield-doctor"
        self._id = uuid4().hex
        self._used: list[str] = []

    def checks(self, abilities: frozenset[FileSystemAbility]) -> Iterator[Check]:
        """What was declared, and whether it is so."""
        yield _try("write and read", self._write_and_read)
        for ability, name, check in (
            (FileSystemAbility.ATOMIC_CREATE, "atomic create", self._create),
            (FileSystemAbility.ATOMIC_RENAME, "atomic rename", self._rename),
            (FileSystemAbility.LIST, "list", self._list),
        ):
            yield _try(name, check) if ability in abilities else (name, "skipped", "the file system does not offer it")

    def clean_up(self) -> str | None:
        """Delete every file that was made."""
        self._io.delete_many(self._used)
        left = [location for location in self._used if self._io.exists(location)]
        return f"a file that was deleted is still there: {left[0]}" if left else None

    def _new(self, name: str) -> str:
        location = f"{self._folder}/{self._id}-{name}"
        self._used.append(location)
        return location

    def _write_and_read(self) -> str | None:
        location = self._new("stream")
        with self._io.open_output(location) as sink:
            sink.write(b"written")
        return None if self._io.read(location) == b"written" else "what was written does not read back"

    def _create(self) -> str | None:
        target = self._new("created")
        won = _race(lambda rival: self._io.put(target, b"%d" % rival, PutMode.CREATE))
        return _one_winner(won, self._io.read(target), "created")

    def _rename(self) -> str | None:
        system, target = self._io.file_system(self._folder), self._io.resolve(self._new("renamed"))
        sources = []
        for rival in range(_RIVALS):
            sources.append(self._new(f"rival-{rival}"))
            with self._io.open_output(sources[-1]) as sink:
                sink.write(b"%d" % rival)
        won = _race(lambda rival: system.rename(self._io.resolve(sources[rival]), target))
        return _one_winner(won, self._io.read(target), "renamed")

    def _list(self) -> str | None:
        location = self._new("listed")
        with self._io.open_output(location) as sink:
            sink.write(b"")
        found = [info.location for info in self._io.list(self._folder)]
        name = location.rpartition("/")[2]
        return None if any(each.endswith(name) for each in found) else "a file that was written is not listed"


def _race(attempt: Callable[[int], None]) -> list[int]:
    """Who of several at once was not refused."""
    barrier = Barrier(_RIVALS)

    def run(rival: int) -> bool:
        barrier.wait()
        try:
            attempt(rival)
        except FileExists:
            return False
        return True

    with ThreadPoolExecutor(_RIVALS) as pool:
        return [rival for rival, won in enumerate(pool.map(run, range(_RIVALS))) if won]


def _one_winner(won: list[int], content: bytes, done: str) -> str | None:
    if len(won) != 1:
        return f"{len(won)} of {_RIVALS} writers at once {done} one file, where it had to be 1: {_LOSES}"
    if content != b"%d" % won[0]:
        return f"the file that one writer {done} holds what another one wrote: {_LOSES}"
    return None


def _try(name: str, action: Callable[[], str | None]) -> Check:
    try:
        problem = action()
    except IcefieldError as error:
        problem = str(error)
    except Exception as error:  # a file system that breaks its contract
        problem = f"{type(error).__name__}: {error}; tell the author of the plugin"
    return (name, "failed", problem) if problem else (name, "ok", "")
