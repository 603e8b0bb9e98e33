"""The processes of one server on a machine: their shared folder, the living ones, and the counts of each."""

from __future__ import annotations

import mmap
import os
import shutil
import stat
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from icefield.errors import InvalidArgument

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None  # type: ignore[assignment]

Name = tuple[str, ...]

_MOST: Final = 2048
_VALUES: Final = _MOST * 8
_NAME: Final = 120
_SIZE: Final = _VALUES + _MOST * _NAME
_GENERATION: Final = 0
_SEPARATOR: Final = "\x1f"
_PREFIX: Final = "icefield-rest-server-"
_YOUNG: Final = 60.0


class SharedCounts:
    """Numbers by names, in memory that other processes may read: a name never goes, and a number is one word.

    Names beyond the 2,047th are not counted. The server has fewer names, and clients cannot add any.
    """

    def __init__(self, memory: bytearray | mmap.mmap) -> None:
        view = memoryview(memory)
        self._values, self._names = view[:_VALUES].cast("d"), view[_VALUES:]
        self._places = {name: place for place, name in self._named()}

    def add(self, name: Name, amount: float = 1) -> None:
        """Add to a number. Threads of one process must call it one after another."""
        place = self._places.get(name)
        if place is None:
            place = len(self._places) + 1
            text = _SEPARATOR.join(name).encode()
            if place >= _MOST or len(text) >= _NAME:
                return
            begin = place * _NAME
            self._names[begin + 1 : begin + 1 + len(text)] = text
            self._names[begin] = len(text)  # from now on it is there
            self._places[name] = place
        self._values[place] += amount

    def clear(self, name: Name) -> None:
        """Reset a number to zero."""
        if (place := self._places.get(name)) is not None:
            self._values[place] = 0.0

    def found(self) -> dict[Name, float]:
        """Return all numbers by name."""
        return {name: self._values[place] for place, name in self._named()}

    @property
    def generation(self) -> int:
        """The number of processes that have used this memory."""
        return int(self._values[_GENERATION])

    def begin_generation(self) -> None:
        """Record that another process takes over the memory."""
        self._values[_GENERATION] += 1

    def close(self) -> None:
        """Release the memory."""
        self._values.release()
        self._names.release()

    def _named(self) -> Iterator[tuple[int, Name]]:
        for place in range(1, _MOST):
            begin = place * _NAME
            length = self._names[begin]
            if not length:
                return
            text = bytes(self._names[begin + 1 : begin + 1 + length])
            yield place, tuple(text.decode(errors="replace").split(_SEPARATOR))


class OneProcess:
    """A process without shared memory: its own counts are the sums."""

    def __init__(self) -> None:
        self.counts = SharedCounts(bytearray(_SIZE))

    def summed(self, of_the_living: frozenset[str]) -> tuple[Mapping[Name, float], int]:
        """All numbers, and the number of processes."""
        return self.counts.found(), 1


class Processes:
    """This process, as one of the processes that share a folder.

    Each holds a file there, and a lock on it as long as it lives.

    A new process takes over the file and the counts of a dead one. So sums never fall, and the folder has at most one
    file for each process that ran at the same time.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = checked(folder)
        self._place, self._file = self._taken()
        self.counts = SharedCounts(mmap.mmap(self._file, _SIZE))
        self.counts.begin_generation()
        self.own = f"{self._place}.{self.counts.generation}"
        """The name of this process, which no other has had or will have."""

    def summed(self, of_the_living: frozenset[str]) -> tuple[Mapping[Name, float], int]:
        """Return the sums of all processes, and the number of living ones.

        Names that begin with one of the strings in ``of_the_living`` are summed only over living processes.
        """
        total: Counter[Name] = Counter(self.counts.found())
        living = 1
        for place in self._others():
            found, alive = self._look(place)
            living += alive
            if found is None:
                continue
            for name, value in found.found().items():
                if alive or name[0] not in of_the_living:
                    total[name] += value  # type: ignore[assignment]
            found.close()
        return total, living

    def is_alive(self, name: str) -> bool:
        """Whether the process of a name still lives."""
        place, _, generation = name.partition(".")
        if not (place.isdigit() and generation.isdigit()):
            return False
        if int(place) == self._place:
            return name == self.own
        found, alive = self._look(int(place))
        if found is None:
            return False
        current = found.generation
        found.close()
        return alive and current == int(generation)

    def close(self) -> None:
        """Leave the folder. The counts stay for the sums."""
        fcntl.flock(self._file, fcntl.LOCK_UN)  # the memory has the file, too
        os.close(self._file)

    def _taken(self) -> tuple[int, int]:
        """Lock the first free file. Returns its number and the file descriptor."""
        place = 0
        while True:
            file = os.open(self._path(place), os.O_RDWR | os.O_CREAT, 0o600)
            if _locked(file, exclusive=True):
                os.ftruncate(file, _SIZE)
                return place, file
            os.close(file)
            place += 1

    def _others(self) -> list[int]:
        named = (path.name.rpartition("-")[2] for path in self.folder.glob("process-*"))
        return sorted(int(number) for number in named if number.isdigit() and int(number) != self._place)

    def _look(self, place: int) -> tuple[SharedCounts | None, bool]:
        """Return the counts of a process, None for a new process, and whether it lives."""
        try:
            file = os.open(self._path(place), os.O_RDONLY)
        except FileNotFoundError:
            return None, False
        try:
            alive = not _locked(file, exclusive=False)
            data = os.pread(file, _SIZE, 0)
        finally:
            os.close(file)
        return (SharedCounts(bytearray(data)), alive) if len(data) == _SIZE else (None, alive)

    def _path(self, place: int) -> Path:
        return self.folder / f"process-{place}"


def checked(folder: Path) -> Path:
    """A folder that processes may share, created if it does not exist. Raises ``InvalidArgument``."""
    if fcntl is None:
        raise InvalidArgument("several processes need locks of files, which this system does not have: use one")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o022:
        raise InvalidArgument(
            f"{folder} must be this user's, and no other may write there: the server trusts its files"
        )
    return folder


@contextmanager
def shared_folder() -> Iterator[Path]:
    """Create a folder for the processes of a server during the block; remove the folders of dead servers first."""
    _remove_left()
    folder = checked(Path(tempfile.mkdtemp(prefix=_PREFIX)))
    file = os.open(folder / "server", os.O_RDWR | os.O_CREAT, 0o600)
    _locked(file, exclusive=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(file)


def _remove_left() -> None:
    """Remove the folders that dead servers left behind, once all their processes are gone."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            found = folder.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or time.time() - found.st_mtime < _YOUNG:
                continue
            if not any(_is_held(path) for path in (folder / "server", *folder.glob("process-*")) if path.exists()):
                shutil.rmtree(folder, ignore_errors=True)


def _is_held(path: Path) -> bool:
    file = os.open(path, os.O_RDONLY)
    try:
        return not _locked(file, exclusive=False)
    finally:
        os.close(file)


def _locked(file: int, *, exclusive: bool) -> bool:
    """Whether a lock on a file was free; it is held until the file is closed."""
    try:
        fcntl.flock(file, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
