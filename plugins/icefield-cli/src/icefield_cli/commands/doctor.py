"""Check that a catalog works: plugins, configuration, and what the storage really can."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from uuid import uuid4

from icefield import IcefieldError, Plugins
from icefield.abc import FileSystemAbility, PutMode
from icefield.errors import FileExists
from icefield.file_io import FileIO

from icefield_cli.context import Context

NAME = "doctor"
Check = tuple[str, str, str]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    del parser


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    del given
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
    yield from _storage(catalog.io, f"{warehouse.rstrip('/')}/.icefield-doctor-{uuid4().hex}")


def _storage(io: FileIO, folder: str) -> Iterator[Check]:
    """Try each ability on the warehouse for real, and clean up."""
    try:
        abilities = io.file_system(folder).abilities
    except IcefieldError as error:
        yield "file system", "failed", str(error)
        return
    first, second = f"{folder}/a", f"{folder}/b"
    try:
        yield _try("write and read", lambda: _write_and_read(io, first))
        if FileSystemAbility.ATOMIC_CREATE in abilities:
            yield _try("atomic create", lambda: _refuses(lambda: io.put(first, b"again", PutMode.CREATE)))
        if FileSystemAbility.ATOMIC_RENAME in abilities:
            io.put(second, b"other", PutMode.OVERWRITE)
            system = io.file_system(first)
            yield _try("atomic rename", lambda: _refuses(lambda: system.rename(second, first)))
        if FileSystemAbility.LIST in abilities:
            yield _try("list", lambda: None if any(io.list(folder)) else "a file that was written is not listed")
    finally:
        yield _try("delete", lambda: io.delete_many([first, second]))


def _try(name: str, action: Callable[[], str | None]) -> Check:
    try:
        problem = action()
    except IcefieldError as error:
        problem = str(error)
    return (name, "failed", problem) if problem else (name, "ok", "")


def _write_and_read(io: FileIO, location: str) -> str | None:
    with io.open_output(location) as sink:
        sink.write(b"written")
    return None if io.read(location) == b"written" else "what was written does not read back"


def _refuses(action: Callable[[], None]) -> str | None:
    try:
        action()
    except FileExists:
        return None
    return "the storage replaced a file that it had to refuse: commits would lose updates here; use a metastore catalog"
