"""A file system, as a plugin, that kills its process like ``kill -9`` at a chosen step, and ``dies_at`` to use it."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from forked import ended
from icefield import Catalog, Plugins, Provider, Table, hookimpl, load_catalog
from icefield.abc import FileSystem
from icefield.builtin.local import LocalFileSystem
from icefield_s3.s3_file_system import S3FileSystem
from icefield_sql.sqlite import SqliteConnection
from icefield_sql.strategy import SqlStrategy
from icefield_testing import FaultyFileSystem
from sqlalchemy.engine.default import DefaultDialect

CHANGING = frozenset({"write", "close", "put", "rename", "delete_many"})
"""The calls that leave something behind. Between two of them it is all one at which step a process dies."""

SWAP = ((SqlStrategy, "swap_pointer"),)
"""Where a metastore commits, which no file system sees."""

STATEMENTS = (
    (SqliteConnection, "execute"),
    (SqliteConnection, "commit"),
    (DefaultDialect, "do_execute"),
    (DefaultDialect, "do_commit"),
)
"""Where a catalog in a database runs its statements and commits."""


class Steps:
    """The number of steps that this process has done, and the step at which it dies."""

    done: ClassVar[int] = 0
    deadly: ClassVar[int | None] = None
    counted: ClassVar[frozenset[str] | None] = None
    """The calls of a file system that have steps; all of them by default."""

    @classmethod
    def step(cls) -> None:
        """Count one more step, and kill the process if it is the chosen one."""
        cls.done += 1
        if cls.deadly is not None and cls.done == cls.deadly:
            os.kill(os.getpid(), signal.SIGKILL)


class KillingFileSystem(FaultyFileSystem):
    """The local file system, with a step before and after each call, and between the files of a deletion."""

    kind: ClassVar[type[FileSystem]] = LocalFileSystem

    def __init__(self, properties: Any = None) -> None:
        super().__init__(self.kind(properties))

    def run(self, name: str, location: str, action: Callable[[], Any]) -> Any:
        if Steps.counted is not None and name not in Steps.counted:
            return action()
        Steps.step()
        result = action()
        Steps.step()
        return result

    def delete_many(self, locations: Iterable[str]) -> None:
        for location in locations:
            super().delete_many([location])


class KillingS3(KillingFileSystem):
    """The same for S3."""

    kind = S3FileSystem


@hookimpl
def icefield_file_systems() -> list[Provider]:
    return [Provider(("file",), "killing:KillingFileSystem"), Provider(("s3",), "killing:KillingS3")]


def killing_plugins() -> Plugins:
    """The plugins that are installed, with these file systems in the place of theirs."""
    return Plugins.installed({"file-systems.file": "killing", "file-systems.s3": "killing"}, ["killing"])


def stepping(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function with a step before and after it."""

    def stepped(*arguments: Any, **options: Any) -> Any:
        Steps.step()
        result = function(*arguments, **options)
        Steps.step()
        return result

    return stepped


def dies_at(
    step: int,
    opened: Mapping[str, str] | Catalog,
    change: Callable[[Table], Any],
    *,
    also: Iterable[tuple[type, str]] = SWAP,
    counted: frozenset[str] | None = None,
) -> bool:
    """Change the table ``db.t`` in a process that dies at that step; False when it ended before.

    ``opened`` is a catalog, or the properties of a catalog to open with file systems that have steps. ``also`` are
    further methods that count as steps, with their classes; ``counted`` are the file system calls that count as steps.
    """

    def until_it_dies() -> None:
        try:
            for owner, name in also:
                setattr(owner, name, stepping(getattr(owner, name)))
            catalog = (
                opened if isinstance(opened, Catalog) else load_catalog("test", plugins=killing_plugins(), **opened)
            )
            table = catalog.load_table("db.t")
            Steps.done, Steps.deadly, Steps.counted = 0, step, counted
            change(table)
        except BaseException:
            traceback.print_exc()
            raise

    status = ended(until_it_dies, 240.0)
    assert status in (0, -signal.SIGKILL), "the change failed by itself"
    return status != 0


__all__ = [
    "CHANGING",
    "SWAP",
    "KillingFileSystem",
    "KillingS3",
    "Steps",
    "dies_at",
    "icefield_file_systems",
    "killing_plugins",
    "stepping",
]
