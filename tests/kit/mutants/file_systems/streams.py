"""File systems with streams that mistake their data or an earlier file, one defect each."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from icefield.abc import OutputStream
from icefield.builtin.local import LocalFileSystem
from icefield.builtin.memory import MemoryFileSystem
from icefield.errors import IcefieldError
from icefield.storage import local_path

from mutants import Mutant, of


class Handed(OutputStream):
    """A right stream, handed on."""

    def __init__(self, inner: OutputStream, location: str) -> None:
        self.inner, self.location = inner, location

    def write(self, data: Any, /) -> int:
        return self.inner.write(data)

    def tell(self) -> int:
        return self.inner.tell()

    def close(self) -> None:
        self.inner.close()

    def abort(self) -> None:
        self.inner.abort()

    @property
    def closed(self) -> bool:
        return self.inner.closed


class Streams(LocalFileSystem):
    """Opens streams of the class ``kind``."""

    kind: type[Handed] = Handed

    def open_output(self, location: str) -> OutputStream:
        return self.kind(super().open_output(location), location)


class KeepsTheBuffer(Streams):
    """Keeps views of what is written until the stream is closed."""

    smallest = 1

    class kind(Handed):
        smallest = 1

        def __init__(self, inner: OutputStream, location: str) -> None:
            super().__init__(inner, location)
            self.parts: list[Any] = []

        def write(self, data: Any, /) -> int:
            if self.closed:
                return self.inner.write(data)
            view = memoryview(data).cast("B")
            self.parts.append(view if len(view) >= self.smallest else bytes(view))
            return len(view)

        def tell(self) -> int:
            return sum(len(part) for part in self.parts)

        def close(self) -> None:
            if not self.closed:
                for part in self.parts:
                    self.inner.write(part)
            self.inner.close()


class KeepsLargeBuffers(Streams):
    """Copies small writes, and keeps views of large ones, to save a copy."""

    class kind(KeepsTheBuffer.kind):
        smallest = 1 << 20


class CountsItems(Streams):
    """Returns the number of items of a buffer."""

    class kind(Handed):
        def write(self, data: Any, /) -> int:
            self.inner.write(data)
            return len(data)


class TellsItems(Streams):
    """Returns the right number, and adds up the items."""

    class kind(Handed):
        told = 0

        def write(self, data: Any, /) -> int:
            self.told += len(data)
            return self.inner.write(data)

        def tell(self) -> int:
            return self.told


class PublishesNoEmptyStream(Streams):
    """Publishes a stream when its first byte is there."""

    class kind(Handed):
        def close(self) -> None:
            if self.inner.tell():
                self.inner.close()
            else:
                self.inner.abort()


class EndsAtAnEmptyWrite(Streams):
    """Takes a write of no bytes for the end."""

    class kind(Handed):
        ended = False

        def write(self, data: Any, /) -> int:
            self.ended = self.ended or not len(data)
            return len(data) if self.ended and not self.closed else self.inner.write(data)


class AppendsToExisting(LocalFileSystem):
    """Appends to a file that is there, and deletes it when the stream is aborted."""

    def open_output(self, location: str) -> OutputStream:
        return _Appending(super().open_output(location), location)


class _Appending(Handed):
    def close(self) -> None:
        if self.closed:
            return
        path = Path(local_path(self.location))
        before = path.read_bytes() if path.exists() else b""
        path.unlink(missing_ok=True)
        self.inner.close()
        path.write_bytes(before + path.read_bytes())


class AbortDeletesTheName(Streams):
    """Deletes the file under the name when it is aborted, also one of before."""

    class kind(Handed):
        def abort(self) -> None:
            if not self.closed:
                Path(local_path(self.location)).unlink(missing_ok=True)
            self.inner.abort()


class EmptiesTheNameOnOpening(Streams):
    """Deletes a file of that name when a stream to it is opened."""

    class kind(Handed):
        def __init__(self, inner: OutputStream, location: str) -> None:
            super().__init__(inner, location)
            Path(local_path(location)).unlink(missing_ok=True)


class RenameNeedsAFolder(LocalFileSystem):
    """Renames only where the folder of the target is there."""

    def rename(self, source: str, target: str) -> None:
        self.stat(source)
        if not os.path.isdir(os.path.dirname(local_path(target))):
            raise IcefieldError(f"no folder for {target}")
        super().rename(source, target)


class PutNeedsAFolder(LocalFileSystem):
    """Makes one folder for a new file, and none above it."""

    def _make_folder(self, path: str) -> None:
        if not os.path.isdir(os.path.dirname(path)):
            raise FileNotFoundError(path)
        with suppress(FileExistsError):
            os.mkdir(path)


class CopiesToKeepApart(MemoryFileSystem):
    """Cuts a file to the size of one copy buffer."""

    def open_output(self, location: str) -> OutputStream:
        return _Cut(super().open_output(location), location)


class _Cut(Handed):
    def write(self, data: Any, /) -> int:
        view = memoryview(data).cast("B")
        self.inner.write(view[: shutil.COPY_BUFSIZE])
        return len(view)


_BUFFER = "test_a_buffer_may_be_filled_again_after_a_write"
_WIDE = "test_a_buffer_of_wide_items_is_counted_in_bytes"
_EMPTY = "test_a_stream_without_a_byte_makes_an_empty_file"
_THERE = "test_a_stream_leaves_a_file_that_was_there_alone"
_FOLDER = "test_no_folder_is_needed_to_write_or_rename"

MUTANTS: list[Mutant] = of(
    {
        KeepsTheBuffer: (_BUFFER, "5 of 5 writes of 4 bytes have the bytes of a later one"),
        KeepsLargeBuffers: (_BUFFER, "5 of 5 writes of 1,572,864 bytes have the bytes of a later one"),
        CountsItems: (_WIDE, "write took 1,000 of 8,000 bytes of a array"),
        TellsItems: (_WIDE, "tell is 1,000 after whole buffers of 8,000 bytes"),
        PublishesNoEmptyStream: (_EMPTY, "[None, None, b'ab']"),
        EndsAtAnEmptyWrite: (_EMPTY, "[b'', b'', b'']"),
        AppendsToExisting: (_THERE, "neither the file of before nor the new one"),
        AbortDeletesTheName: (_THERE, "``abort`` deleted or changed the file of before"),
        EmptiesTheNameOnOpening: (_THERE, "an open stream changed the file of before"),
        RenameNeedsAFolder: (_FOLDER, "rename into a new folder"),
        PutNeedsAFolder: (_FOLDER, "put(OVERWRITE) into a new folder"),
        CopiesToKeepApart: ("test_a_large_stream_arrives_whole", "loses or reorders parts"),
    }
)
