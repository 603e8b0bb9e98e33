"""File systems with defects in the local copies that they give to libraries, one defect each."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar
from uuid import uuid4

from icefield.abc import InputFile
from icefield.builtin.memory import MemoryFileSystem
from icefield.errors import FileMissing, StorageError, UnsupportedFeature
from icefield.toolkit import BytesInput

from mutants import Mutant, of
from mutants.file_systems.failing import Remote, _RemoteInput


class _Copies(MemoryFileSystem):
    """Opens files as objects of the class ``kind``."""

    kind: type[_Copying]

    def open_input(self, location: str) -> InputFile:
        file = self.kind(super().open_input(location).read())
        file.location = location
        return file


class _Copying(BytesInput):
    """An open file whose ``copy`` writes its bytes to a path."""

    location = ""

    def copy(self, path: str) -> None:
        Path(path).write_bytes(self.read_at(0, self.size))

    def check(self, max_bytes: int) -> None:
        if self.closed:
            raise ValueError("the file is closed")
        if self.size > max_bytes:
            raise UnsupportedFeature(f"{self.size} bytes")

    @contextmanager
    def local_path(self, max_bytes: int) -> Iterator[str]:
        self.check(max_bytes)
        process, folder = os.getpid(), tempfile.mkdtemp()
        try:
            self.copy(path := f"{folder}/copy")
            yield path
        finally:
            if os.getpid() == process:
                shutil.rmtree(folder, ignore_errors=True)


class CopiesOneBuffer(_Copies):
    """Copies the first mebibyte."""

    class kind(_Copying):
        def copy(self, path: str) -> None:
            Path(path).write_bytes(self.read_at(0, 1 << 20))


class CopiesPartsInAnyOrder(_Copies):
    """Puts the last part of a large file first."""

    class kind(_Copying):
        def copy(self, path: str) -> None:
            half = max(self.size - (16 << 20), 0)
            Path(path).write_bytes(self.read_at(half, self.size) + self.read_at(0, half))


class CopyEndsWithTheFile(_Copies):
    """Deletes the copy when the file is closed."""

    class kind(_Copying):
        path = ""

        def copy(self, path: str) -> None:
            super().copy(path)
            self.path = path

        def close(self) -> None:
            super().close()
            if self.path:
                Path(self.path).unlink(missing_ok=True)


class CopiesAClosedFile(_Copies):
    """Gives the path of an empty copy after ``close``."""

    class kind(_Copying):
        def check(self, max_bytes: int) -> None:
            if not self.closed:
                super().check(max_bytes)

        def copy(self, path: str) -> None:
            Path(path).write_bytes(b"" if self.closed else self.read_at(0, self.size))


class _CopiesWithoutFinally(_Copies):
    class kind(_Copying):
        @contextmanager
        def local_path(self, max_bytes: int) -> Iterator[str]:
            self.check(max_bytes)
            folder = tempfile.mkdtemp()
            self.copy(path := f"{folder}/copy")
            yield path
            shutil.rmtree(folder, ignore_errors=True)


class LeavesCopiesAfterErrors(_CopiesWithoutFinally):
    """Deletes the copy after the block, and not after an exception in it."""


class LeavesCopies(_Copies):
    """Never deletes a copy."""

    class kind(_Copying):
        @contextmanager
        def local_path(self, max_bytes: int) -> Iterator[str]:
            self.check(max_bytes)
            self.copy(path := f"{tempfile.mkdtemp()}/copy")
            yield path


class LeavesCopiesInItsOwnFolder(_Copies):
    """Keeps copies in a cache that nothing empties."""

    class kind(_Copying):
        cache = tempfile.TemporaryDirectory(prefix="icefield-kit-")

        @contextmanager
        def local_path(self, max_bytes: int) -> Iterator[str]:
            self.check(max_bytes)
            path = f"{self.cache.name}/{uuid4()}"
            self.copy(path)
            yield path


class LeavesEmptyFolders(_Copies):
    """Deletes the copy, and not the folder for it."""

    class kind(_Copying):
        @contextmanager
        def local_path(self, max_bytes: int) -> Iterator[str]:
            self.check(max_bytes)
            process = os.getpid()
            self.copy(path := f"{tempfile.mkdtemp()}/copy")
            try:
                yield path
            finally:
                if os.getpid() == process:
                    os.unlink(path)


class ChildrenDeleteCopies(_Copies):
    """Deletes the copy when a forked process leaves the block."""

    class kind(_Copying):
        @contextmanager
        def local_path(self, max_bytes: int) -> Iterator[str]:
            self.check(max_bytes)
            with tempfile.TemporaryDirectory() as folder:
                self.copy(path := f"{folder}/copy")
                yield path


class NamesCopiesByTheFile(_Copies):
    """Gives every copy the name of the stored file."""

    class kind(_Copying):
        @contextmanager
        def local_path(self, max_bytes: int) -> Iterator[str]:
            self.check(max_bytes)
            folder = f"{tempfile.gettempdir()}/icefield-{os.getpid()}"
            os.makedirs(folder, exist_ok=True)
            path = f"{folder}/copy"
            self.copy(path)
            try:
                yield path
            finally:
                shutil.rmtree(folder, ignore_errors=True)


class SharesOneCopy(_Copies):
    """Gives all readers of a file one copy, which is deleted after the last of them."""

    class kind(_Copying):
        readers: ClassVar[dict[str, list[str]]] = {}

        @contextmanager
        def local_path(self, max_bytes: int) -> Iterator[str]:
            self.check(max_bytes)
            process = os.getpid()
            held = self.readers.setdefault(self.location, [])
            if not held:
                self.copy(path := f"{tempfile.mkdtemp()}/copy")
            else:
                path = held[0]
            held.append(path)
            try:
                yield path
            finally:
                held.pop()
                if not held and os.getpid() == process:
                    shutil.rmtree(os.path.dirname(path), ignore_errors=True)


class StoresChangesOfACopy(_Copies):
    """Sends a changed copy back."""

    class kind(_Copying):
        @contextmanager
        def local_path(self, max_bytes: int) -> Iterator[str]:
            with super().local_path(max_bytes) as path:
                yield path
                MemoryFileSystem.files[self.location] = (Path(path).read_bytes(), 1)


class CopiesMoreThanStated(_Copies):
    """Ignores ``max_bytes``."""

    class kind(_Copying):
        def check(self, max_bytes: int) -> None:
            super().check(1 << 60)


class CopiesLessThanStated(_Copies):
    """Refuses a file of just ``max_bytes``."""

    class kind(_Copying):
        def check(self, max_bytes: int) -> None:
            super().check(max(max_bytes - 1, 0))


class CopiesBeforeItCompares(_Copies):
    """Finds out after the copy that it is too large, and leaves it."""

    class kind(_Copying):
        @contextmanager
        def local_path(self, max_bytes: int) -> Iterator[str]:
            self.copy(path := f"{tempfile.mkdtemp()}/copy")
            self.check(max_bytes)
            try:
                yield path
            finally:
                shutil.rmtree(os.path.dirname(path), ignore_errors=True)


class _RemoteCopies(Remote):
    """Opens files of the class ``kind``."""

    kind: type[_RemoteInput]

    def open_input(self, location: str) -> InputFile:
        return self.kind(self, location).open()


class CopyEndsAtAnOutage(_RemoteCopies):
    """Treats a missing answer as the end of the file."""

    class kind(_RemoteInput):
        @contextmanager
        def local_path(self, max_bytes: int) -> Iterator[str]:
            data = self.read_at(0, 65_536)
            with suppress(StorageError):
                data = self.read_at(0, self.size)
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "copy")
                path.write_bytes(data)
                yield str(path)


class CopyBlamesTheFile(_RemoteCopies):
    """Says that the file is missing where the store does not answer."""

    class kind(_RemoteInput):
        @contextmanager
        def local_path(self, max_bytes: int) -> Iterator[str]:
            try:
                block = super().local_path(max_bytes)
                path = block.__enter__()
            except StorageError as error:
                raise FileMissing("no file", location=self.location) from error
            try:
                yield path
            finally:
                block.__exit__(None, None, None)


class LeavesHalfACopy(_RemoteCopies):
    """Leaves an incomplete copy when the store fails."""

    class kind(_RemoteInput):
        @contextmanager
        def local_path(self, max_bytes: int) -> Iterator[str]:
            folder = tempfile.mkdtemp()
            Path(folder, "copy").write_bytes(self.read_at(0, self.size))
            try:
                yield f"{folder}/copy"
            finally:
                shutil.rmtree(folder, ignore_errors=True)


_BYTES = "test_a_local_path_has_the_bytes_of_the_file"
_DELETED = "test_a_local_copy_is_deleted"
_FORK = "test_a_forked_process_deletes_no_copy_of_its_parent"
_CHANGES = "test_changes_to_a_local_copy_stay_there"
_BOUND = "test_no_more_than_the_stated_bytes_are_copied"
_HALF = "test_a_store_that_fails_makes_no_half_copy"

MUTANTS: list[Mutant] = of(
    {
        CopiesOneBuffer: (_BYTES, "the local path of the large file has 1,048,576 bytes, not 20,080,000"),
        CopiesPartsInAnyOrder: (_BYTES, "the local path of the large file has other bytes"),
        CopyEndsWithTheFile: (_BYTES, "the local path of the empty file is no file"),
        CopiesAClosedFile: (_BYTES, "DID NOT RAISE"),
        NamesCopiesByTheFile: (_BYTES, "the local path of one of two files has 5 bytes, not 25,100"),
        LeavesCopiesAfterErrors: (_DELETED, "a copy is left when its block ends by an exception"),
        LeavesCopies: (_DELETED, "a copy is left when its block ends normally"),
        LeavesCopiesInItsOwnFolder: (_DELETED, "a copy is left at"),
        LeavesEmptyFolders: (_DELETED, "a copy is left when its block ends normally"),
        ChildrenDeleteCopies: (_FORK, "a forked process deleted the file of ``local_path``"),
        SharesOneCopy: (_CHANGES, "the copy of another reader has 7 bytes, not 25,100"),
        StoresChangesOfACopy: (_CHANGES, "the stored file is b'changed' after a change of a copy"),
        CopiesMoreThanStated: (_BOUND, "a copy of 25,100 bytes is one more than stated"),
        CopiesLessThanStated: (_BOUND, "refuses one that is not"),
        CopiesBeforeItCompares: (_BOUND, "a refused copy is left"),
        CopyEndsAtAnOutage: (_HALF, "when the store fails, the local path has 65,536 bytes, not 3,012,000"),
        CopyBlamesTheFile: (_HALF, "does not say that the store fails"),
        LeavesHalfACopy: (_HALF, "when the store fails, half a copy is left"),
    }
)
