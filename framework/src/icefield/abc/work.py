"""Work with many items: done by this process, or by the tasks of a cluster.

Maintenance plans and commits; a scan plans. The step in between reads and writes many files: it is a ``Work`` with
items for a ``WorkRunner``. Work, items and results can be pickled; the same code runs in a process and in a cluster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from icefield.abc.file_system import FileInfo
from icefield.errors import IcefieldError

T = TypeVar("T")
R = TypeVar("R")

Note = Callable[[str], None]
"""Called with the location of each file before it is begun."""

Done = Callable[[], None]
"""Called after each item, in any thread."""


def unnoted(location: str) -> None:
    """Ignore a location: the default ``Note``."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at one item. ``item`` counts from 1.

    The names of written files contain ``item`` and ``number``, so that no two attempts collide. ``threads`` is the
    number of threads to use; None for a number that suits the machine. ``note`` is called with the location of each
    file before it is begun.
    """

    item: int
    number: int = 0
    threads: int | None = None
    note: Note = unnoted


class FileLister(Protocol):
    """The part of a ``FileIO`` that lists and deletes files."""

    def list_files(self, prefix: str) -> Iterator[FileInfo]:
        """The files below a prefix."""

    def delete_many(self, locations: Iterable[str]) -> None:
        """Delete files; a missing file is no error."""


@dataclass(frozen=True, slots=True)
class AttemptFiles:
    """Where failed attempts leave files: below ``folder``, with ``mark`` in their names."""

    io: FileLister
    folder: str
    mark: str

    def sweep(self, kept: Iterable[str] = ()) -> None:
        """Delete all files that are not kept. It raises nothing: maintenance removes leftovers as orphans."""
        names = {location.rpartition("/")[2] for location in kept}
        with suppress(IcefieldError, OSError):
            found = [
                (info.location, info.location.rpartition("/")[2]) for info in self.io.list_files(f"{self.folder}/")
            ]
            self.io.delete_many([location for location, name in found if self.mark in name and name not in names])


class Work(ABC, Generic[T, R]):
    """An operation to apply to each of many items. Immutable; picklable."""

    @abstractmethod
    def do(self, item: T, attempt: Attempt) -> R:
        """Process one item. On an error its files are deleted, if possible."""

    def files(self, result: R) -> Iterable[str]:
        """The files that a result refers to; they are kept."""
        return ()

    @property
    def traces(self) -> AttemptFiles | None:
        """Where failed attempts leave files; None if the work writes none."""
        return None


class WorkRunner(ABC):
    """Runs work, here or in a cluster.

    A scan uses it to read manifests of at least ``least_manifest_bytes`` in total.
    """

    least_manifest_bytes: int = 64 << 20

    @property
    @abstractmethod
    def slots(self) -> int:
        """The number of items that run at the same time."""

    @abstractmethod
    def attempts(
        self,
        work: Work[T, R],
        items: Iterable[T],
        note: Note = unnoted,
        *,
        keep_going: bool = False,
        done: Done | None = None,
    ) -> list[R | Exception]:
        """The result of each item, in their order.

        ``note`` is called with the location of every file that may remain. Files of discarded attempts are deleted. An
        error of an item (``IcefieldError`` or ``OSError``) stops all items and is raised; with ``keep_going`` it is
        returned in place of the result.
        """

    def run(self, work: Work[T, R], items: Iterable[T], note: Note = unnoted, *, done: Done | None = None) -> list[R]:
        """The result of each item, in their order; the error of one is raised. See ``attempts``."""
        found = self.attempts(work, items, note, done=done)
        return [each for each in found if not isinstance(each, Exception)]
