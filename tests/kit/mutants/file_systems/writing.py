"""File systems that write, create or rename wrongly, one defect each."""

from __future__ import annotations

import io
import os
import shutil
import time
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
from icefield.abc import FileSystemAbility, OutputStream, PutMode
from icefield.builtin.local import LocalFileSystem
from icefield.builtin.memory import MemoryFileSystem
from icefield.errors import FileExists, FileMissing
from icefield.storage import local_path
from icefield.toolkit import PartedOutput

from mutants import Mutant, of


class ChecksThenWrites(LocalFileSystem):
    """Checks whether the name is free, and then writes."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        if mode is PutMode.CREATE and os.path.exists(local_path(location)):
            raise FileExists("taken", location=location)
        time.sleep(0.001)
        super().put(location, data, PutMode.OVERWRITE)


class OpensExclusively(LocalFileSystem):
    """Creates with O_EXCL, and writes in place."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        if mode is PutMode.OVERWRITE:
            super().put(location, data, mode)
            return
        path = Path(local_path(location))
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with path.open("xb") as file:
                self.fill(file, data)
        except FileExistsError as error:
            raise FileExists("taken", location=location) from error

    def fill(self, file: BinaryIO, data: bytes) -> None:
        file.write(data)


class ShowsHalfFiles(OpensExclusively):
    """Creates with O_EXCL and writes afterwards, in two steps."""

    def fill(self, file: BinaryIO, data: bytes) -> None:
        file.write(data[: len(data) // 2])
        file.flush()
        time.sleep(0.005)
        file.write(data[len(data) // 2 :])


class RenameReplaces(LocalFileSystem):
    """Renames as POSIX does."""

    def rename(self, source: str, target: str) -> None:
        try:
            os.replace(local_path(source), local_path(target))
        except FileNotFoundError as error:
            raise FileMissing("gone", location=source) from error


class PublishesOnAbort(LocalFileSystem):
    """Closes an aborted stream, and so publishes it."""

    def open_output(self, location: str) -> OutputStream:
        stream = super().open_output(location)
        stream.abort = stream.close  # type: ignore[method-assign]
        return stream


class WritesInPlace(LocalFileSystem):
    """Shows a file while it is being written."""

    def open_output(self, location: str) -> OutputStream:
        return _InPlace(local_path(location))


class _InPlace(OutputStream):
    def __init__(self, path: str) -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self._file = open(path, "wb")  # noqa: SIM115

    def write(self, data: Any, /) -> int:
        count = self._file.write(data)
        self._file.flush()
        return count

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        self._file.close()

    def abort(self) -> None:
        if not self._file.closed:
            os.unlink(self._file.name)
        self._file.close()

    @property
    def closed(self) -> bool:
        return self._file.closed


class ClosesOnExceptions(LocalFileSystem):
    """Publishes the bytes that were written before an exception."""

    def open_output(self, location: str) -> OutputStream:
        stream = super().open_output(location)
        stream.__exit__ = lambda *_: stream.close()  # type: ignore[method-assign]
        return stream


class TakesBytesOnly(LocalFileSystem):
    """Refuses other buffers than Python's own."""

    def open_output(self, location: str) -> OutputStream:
        stream = super().open_output(location)
        write = stream.write

        def write_bytes(data: Any, /) -> int:
            if not isinstance(data, bytes | memoryview):
                raise TypeError(f"a {type(data).__name__} is no bytes")
            return write(data)

        stream.write = write_bytes  # type: ignore[method-assign]
        return stream


class SharesItsOutput(MemoryFileSystem):
    """Writes every file through one buffer."""

    buffer = io.BytesIO()

    def open_output(self, location: str) -> OutputStream:
        stream: Any = super().open_output(location)
        stream._buffer = self.buffer
        self.buffer.seek(0)
        self.buffer.truncate()
        return stream


class LosesAFullLastPart(MemoryFileSystem):
    """Loses the last part when it is a full one."""

    part = 8 * 1024 * 1024

    def open_output(self, location: str) -> OutputStream:
        return _Parts(self, location, self.part)


class _Parts(PartedOutput):
    def __init__(self, owner: LosesAFullLastPart, location: str, part_size: int) -> None:
        super().__init__(location, part_size)
        self.owner, self.parts = owner, list[bytes]()

    def put_whole(self, data: bytes) -> None:
        self.finish(0, data)

    def put_part(self, number: int, data: bytes) -> None:
        self.parts.append(data)

    def finish(self, number: int, data: bytes) -> None:
        last = data if len(data) < self.part_size else b""
        self.owner.put(self.location, b"".join([*self.parts, last]), PutMode.OVERWRITE)

    def cancel(self) -> None:
        self.parts.clear()


class ReordersParts(LosesAFullLastPart):
    """Puts parts together in the order in which they arrive."""

    part = 4 * 1024 * 1024

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        parts = [data[start : start + self.part] for start in range(0, len(data), self.part)]
        super().put(location, b"".join(reversed(parts)), mode)


class CopiesOnClose(LocalFileSystem):
    """Publishes a stream by copying it to its name."""

    def open_output(self, location: str) -> OutputStream:
        stream = super().open_output(location + ".part")
        close = stream.close

        def copy() -> None:
            close()
            shutil.copyfile(local_path(location) + ".part", local_path(location))
            os.unlink(local_path(location) + ".part")

        stream.close = copy  # type: ignore[method-assign]
        return stream


class OverwritesInPlace(LocalFileSystem):
    """Empties a file and writes it anew."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        if mode is PutMode.CREATE:
            super().put(location, data, mode)
            return
        path = Path(local_path(location))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


class DeletesThenCreates(LocalFileSystem):
    """Deletes a file before it creates the new one."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        if mode is PutMode.OVERWRITE:
            self.delete_many([location])
        super().put(location, data, PutMode.CREATE)


class OverwritesByArrow(LocalFileSystem):
    """Overwrites in place within one call of a library, so that nobody can look between its steps."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        if mode is PutMode.CREATE:
            super().put(location, data, mode)
            return
        with pa.OSFile(local_path(location), "wb") as file:
            file.write(data)


class Appends(LocalFileSystem):
    """Appends where it should replace."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        path = Path(local_path(location))
        before = path.read_bytes() if mode is PutMode.OVERWRITE and path.exists() else b""
        super().put(location, before + data, mode)


class CreateReplaces(LocalFileSystem):
    """Creates by overwriting."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        super().put(location, data, PutMode.OVERWRITE)


class CreatesThoughItSaysItCannot(LocalFileSystem):
    """Creates files atomically without declaring this ability."""

    abilities = frozenset({FileSystemAbility.LIST})


class LooksThenRenames(LocalFileSystem):
    """Looks whether the name is free, and renames as POSIX does."""

    def rename(self, source: str, target: str) -> None:
        if os.path.exists(local_path(target)):
            raise FileExists("taken", location=target)
        time.sleep(0.001)
        try:
            os.replace(local_path(source), local_path(target))
        except FileNotFoundError as error:
            raise FileMissing("gone", location=source) from error


class RenamesByCopying(LocalFileSystem):
    """Copies and deletes."""

    def rename(self, source: str, target: str) -> None:
        self.stat(source)
        try:
            with open(local_path(target), "xb") as file:
                file.write(Path(local_path(source)).read_bytes())
        except FileExistsError as error:
            raise FileExists("taken", location=target) from error
        os.unlink(local_path(source))


MUTANTS: list[Mutant] = of(
    {
        ChecksThenWrites: ("test_one_of_many_creators_wins", "looks first and writes then"),
        ShowsHalfFiles: ("test_a_created_file_is_never_seen_half", "the name appears before the bytes do"),
        OpensExclusively: ("test_nobody_sees_a_step_of_a_creation", "``O_EXCL``"),
        OverwritesInPlace: ("test_nobody_sees_a_step_of_an_overwriting", "where it is"),
        DeletesThenCreates: ("test_nobody_sees_a_step_of_an_overwriting", "a reader finds none"),
        CopiesOnClose: ("test_nobody_sees_a_step_of_a_stream", "``close`` copies to the final name"),
        RenameReplaces: ("test_renaming_moves_and_refuses_a_taken_name", "``rename`` replaces"),
        RenamesByCopying: ("test_nobody_sees_a_step_of_a_renaming", "copies and deletes"),
        PublishesOnAbort: ("test_an_aborted_stream_leaves_nothing", "``abort`` publishes"),
        WritesInPlace: ("test_a_stream_publishes_on_close_and_not_before", "while it is still being written"),
        SharesItsOutput: ("test_two_streams_that_are_written_at_once_keep_apart", "share a buffer"),
        LosesAFullLastPart: ("test_a_stream_of_whole_parts_arrives_whole", "the last part is lost when it is full"),
        ClosesOnExceptions: ("test_an_exception_in_a_with_block_leaves_nothing", "closes where it should abort"),
        TakesBytesOnly: ("test_pyarrow_writes_to_a_stream", "pyarrow asks of a Python file"),
        ReordersParts: ("test_a_large_stream_arrives_whole", "reorders parts"),
        OverwritesByArrow: ("test_a_process_that_dies_while_it_writes_leaves_no_part", "the file of before"),
        Appends: ("test_overwriting_replaces_whole", "appends"),
        CreateReplaces: ("test_creating_refuses_a_taken_name", "``put(CREATE)`` overwrites"),
        CreatesThoughItSaysItCannot: ("test_an_undeclared_atomic_step_is_refused", "stands in for an atomic step"),
        LooksThenRenames: ("test_one_of_many_renamers_wins", "looks first and renames then"),
    }
)
