"""File systems that use after a fork what was made before it, one defect each."""

from __future__ import annotations

import os
import threading
from itertools import count
from typing import Any

from icefield.abc import InputFile, OutputStream, PutMode
from icefield.builtin.local import LocalFileSystem
from icefield.storage import local_path

from mutants import Mutant, of
from mutants.file_systems.streams import Handed


class _OneConnection(LocalFileSystem):
    """Knows which process it was made in."""

    def __init__(self, properties: Any = None) -> None:
        super().__init__(properties)
        self._process = os.getpid()

    def hang_in_a_fork(self) -> None:
        if os.getpid() != self._process:
            threading.Event().wait()  # for a thread that the fork did not copy


class ForkUnsafe(_OneConnection):
    """Writes by a thread that a forked process does not have."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        self.hang_in_a_fork()
        super().put(location, data, mode)


class StreamsHangAfterAFork(_OneConnection):
    """Writes streams by a thread that a forked process does not have."""

    def open_output(self, location: str) -> OutputStream:
        self.hang_in_a_fork()
        return super().open_output(location)


class ReadsHangAfterAFork(_OneConnection):
    """Reads by a thread that a forked process does not have."""

    def open_input(self, location: str) -> InputFile:
        self.hang_in_a_fork()
        return super().open_input(location)


class RefusesAfterAFork(_OneConnection):
    """Uses a connection that belongs to another process."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        if os.getpid() != self._process:
            raise ConnectionError("bad record mac")
        super().put(location, data, mode)


class CountsTemporaryNames(LocalFileSystem):
    """Numbers its temporary files: a forked process goes on from the same number."""

    numbers = count()

    def open_output(self, location: str) -> OutputStream:
        path = local_path(location)
        temporary = os.path.join(os.path.dirname(path), f".temporary-{next(self.numbers)}")
        return _Numbered(super().open_output(location), location, temporary)


class _Numbered(Handed):
    def __init__(self, inner: OutputStream, location: str, temporary: str) -> None:
        super().__init__(inner, location)
        self.file = open(temporary, "wb+", buffering=0)  # noqa: SIM115

    def write(self, data: Any, /) -> int:
        return self.file.write(memoryview(data).cast("B")) if not self.closed else self.inner.write(data)

    def tell(self) -> int:
        return self.file.tell()

    def close(self) -> None:
        if not self.closed:
            with open(self.file.name, "rb") as file:
                self.inner.write(file.read())
            self._end()
        self.inner.close()

    def abort(self) -> None:
        if not self.closed:
            self._end()
        self.inner.abort()

    def _end(self) -> None:
        self.file.close()
        if os.path.exists(self.file.name):
            os.unlink(self.file.name)


class DeletesForgottenFiles(LocalFileSystem):
    """Deletes the temporary file of a stream that is garbage, in whichever process."""

    def open_output(self, location: str) -> OutputStream:
        return _Aborting(super().open_output(location), location)


class _Aborting(Handed):
    def __del__(self) -> None:
        self.inner.abort()


_FORKED = "test_a_forked_process_and_its_parent_write_and_read"

MUTANTS: list[Mutant] = of(
    {
        ForkUnsafe: (_FORKED, "another process did not end its call within 2 s"),
        StreamsHangAfterAFork: (_FORKED, "another process did not end its call within 2 s"),
        ReadsHangAfterAFork: (_FORKED, "another process did not end its call within 2 s"),
        RefusesAfterAFork: (_FORKED, "bad record mac"),
        DeletesForgottenFiles: (
            "test_a_forked_process_that_forgets_a_stream_of_its_parent_deletes_nothing",
            "the parent's file is gone",
        ),
        CountsTemporaryNames: (_FORKED, "two processes write one temporary file"),
    }
)
