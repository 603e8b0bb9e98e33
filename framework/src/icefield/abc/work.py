"""Work with many items: done by this process, or by the tasks of a cluster.

Upkeep plans and commits, and a scan plans. What lies between, reading and writing many files, is a ``Work`` with items,
which a ``WorkRunner`` is given. Work, items and results can be pickled; the same code runs wherever it is done.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from icefield.abc.file_system import FileInfo

T = TypeVar("T")
R = TypeVar("R")

Note = Callable[[str], None]
"""Called with the location of each file before it is begun."""

Done = Callable[[], None]
"""Called after each item, in any thread."""


def unnoted(location: str) -> None:
    """Where locations go that nobody asks for."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of one item. ``item`` counts from 1.

    ``item`` and ``number`` are in the names of the files that it writes, so that no two tries meet. ``threads``: how
    many it may use; None: as many as suit the machine. ``note`` is called with the location of each file before it is
    begun.
    """

    item: int
    number: int = 0
    threads: int | None = None
    note: Note = unnoted


class Swept(Protocol):
    """What lists and deletes files: a ``FileIO``."""

    def list_files(self, prefix: str) -> Iterator[FileInfo]:
        """The files whose locations begin so."""

    def delete_many(self, locations: Iterable[str]) -> None:
        """Delete files; those that are gone are no error."""


@dataclass(frozen=True, slots=True)
class Traces:
    """How files are found that tries left behind: they are below ``folder``, and have ``mark`` in their names."""

    io: Swept
    folder: str
    mark: str


class Work(ABC, Generic[T, R]):
    """What is done with each of many items. Immutable; picklable."""

    @abstractmethod
    def do(self, item: T, attempt: Attempt) -> R:
        """Do one item. On an error no file of it is left, as far as that can be done."""

    def files(self, result: R) -> Iterable[str]:
        """The files that a result names, which stay."""
        return ()

    @property
    def traces(self) -> Traces | None:
        """How files of tries are found; None where no file is written."""
        return None


class WorkRunner(ABC):
    """Where work is done. ``least_manifest_bytes``: a scan whose manifests have fewer reads them without it."""

    least_manifest_bytes: int = 64 << 20

    @property
    @abstractmethod
    def slots(self) -> int:
        """How many items are worked on at once."""

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

        ``note`` is called with the location of every file that may be there afterwards; what tries left that do not
        count is deleted. An error of an item (``IcefieldError`` or ``OSError``) ends all of them and is raised; with
        ``keep_going`` it stands in the place of the result.
        """

    def run(self, work: Work[T, R], items: Iterable[T], note: Note = unnoted, *, done: Done | None = None) -> list[R]:
        """The result of each item, in their order; the error of one is raised. See ``attempts``."""
        found = self.attempts(work, items, note, done=done)
        return [each for each in found if not isinstance(each, Exception)]
