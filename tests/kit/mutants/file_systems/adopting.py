"""File systems with streams that adopt local files wrongly, one defect each."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from icefield.abc import OutputStream
from icefield.builtin.local import LocalFileSystem
from icefield.errors import StorageError
from icefield.storage import local_path

from mutants import Mutant, of
from mutants.file_systems.streams import Handed, Streams


class _Adopts(Streams):
    """Adopts by ``taking``, a function of the stream, its right ``adopt`` and the path."""

    @staticmethod
    def taking(stream: Handed, right: Callable[[str], None], path: str) -> None:
        right(path)

    def open_output(self, location: str) -> OutputStream:
        stream = Handed(LocalFileSystem.open_output(self, location), location)
        inner: Any = stream.inner
        right, taking = inner.adopt, type(self).taking
        stream.adopt = lambda path, /: taking(stream, right, path)  # type: ignore[method-assign]
        stream.adoptable_path = inner.adoptable_path  # type: ignore[method-assign]
        return stream


class AdoptPublishes(_Adopts):
    """Moves the file to its place at once."""

    @staticmethod
    def taking(stream: Handed, right: Callable[[str], None], path: str) -> None:
        shutil.copy(path, local_path(stream.location))
        right(path)


class AdoptablePathIsTheTarget(_Adopts):
    """Lets the library write to the final place."""

    def open_output(self, location: str) -> OutputStream:
        stream: Any = super().open_output(location)
        stream.adoptable_path = lambda: local_path(location)
        return stream


class AdoptablePathIsTaken(_Adopts):
    """Makes an empty file, which many libraries refuse to overwrite."""

    def open_output(self, location: str) -> OutputStream:
        stream: Any = super().open_output(location)
        right = stream.adoptable_path

        def taken() -> str:
            Path(path := right()).touch()
            return path

        stream.adoptable_path = taken
        return stream


class AdoptLeavesTheFile(_Adopts):
    """Copies, and leaves the local file."""

    @staticmethod
    def taking(stream: Handed, right: Callable[[str], None], path: str) -> None:
        if stream.closed:
            right(path)
        stream.write(Path(path).read_bytes())


class AdoptIsNotCounted(_Adopts):
    """Counts the bytes that were written, and not those of the file."""

    @staticmethod
    def taking(stream: Handed, right: Callable[[str], None], path: str) -> None:
        size = os.path.getsize(path) if os.path.exists(path) else 0
        right(path)
        tell = stream.tell
        stream.tell = lambda: tell() - size  # type: ignore[method-assign]


class AdoptsOneBuffer(_Adopts):
    """Takes the first mebibyte, and states the size of the file."""

    @staticmethod
    def taking(stream: Handed, right: Callable[[str], None], path: str) -> None:
        size = os.path.getsize(path) if os.path.exists(path) else 0
        if size > 1 << 20:
            os.truncate(path, 1 << 20)
            stream.tell = lambda: size  # type: ignore[method-assign]
        right(path)


class AClosedStreamAdopts(_Adopts):
    """Takes a file although the stream is closed."""

    @staticmethod
    def taking(stream: Handed, right: Callable[[str], None], path: str) -> None:
        if stream.closed:
            os.unlink(path)
            raise ValueError("the stream is closed")
        right(path)


class AdoptReplaces(_Adopts):
    """Replaces the whole stream by the file."""

    @staticmethod
    def taking(stream: Handed, right: Callable[[str], None], path: str) -> None:
        if not stream.closed and stream.tell() and os.path.isfile(path):
            os.ftruncate(stream.inner._descriptor, 0)  # type: ignore[attr-defined]
            os.lseek(stream.inner._descriptor, 0, os.SEEK_SET)  # type: ignore[attr-defined]
            stream.inner._written = 0  # type: ignore[attr-defined]
        right(path)


class WritesOverTheAdopted(_Adopts):
    """Goes on at the start of the file after ``adopt``."""

    @staticmethod
    def taking(stream: Handed, right: Callable[[str], None], path: str) -> None:
        right(path)
        inner: Any = stream.inner
        there = os.open(inner._temporary, os.O_WRONLY)
        os.dup2(there, inner._descriptor)
        os.close(there)


class AbortKeepsTheAdopted(_Adopts):
    """Makes the adopted file the published one, and forgets to abort it."""

    @staticmethod
    def taking(stream: Handed, right: Callable[[str], None], path: str) -> None:
        right(path)
        stream.abort = stream.close  # type: ignore[method-assign]


class AbortLeavesTheAdopted(_Adopts):
    """Leaves the adopted file under its temporary name when the stream is aborted."""

    @staticmethod
    def taking(stream: Handed, right: Callable[[str], None], path: str) -> None:
        right(path)
        inner: Any = stream.inner
        kept = f"{inner._temporary}-kept"
        os.link(inner._temporary, kept)
        close = stream.close

        def closed() -> None:
            os.unlink(kept)
            close()

        stream.close = closed  # type: ignore[method-assign]


class LeavesWhatIsNotAdopted(_Adopts):
    """Leaves a file that was written for ``adopt`` and not adopted."""

    def open_output(self, location: str) -> OutputStream:
        stream: Any = super().open_output(location)
        stream.adoptable_path = lambda: f"{tempfile.mkdtemp(dir=os.path.dirname(local_path(location)))}/file"
        return stream


class AdoptsItsOwnFolderAlone(_Adopts):
    """Renames, so that only a file beside the target is adopted."""

    @staticmethod
    def taking(stream: Handed, right: Callable[[str], None], path: str) -> None:
        if not path.startswith(os.path.dirname(local_path(stream.location))) and not stream.closed:
            raise StorageError("another disk")
        right(path)


class AdoptKeepsOtherNames(_Adopts):
    """Publishes a file that also has another name, a hard link."""

    @staticmethod
    def taking(stream: Handed, right: Callable[[str], None], path: str) -> None:
        inner: Any = stream.inner
        if not stream.closed and os.path.isfile(path) and not os.path.islink(path) and os.stat(path).st_nlink > 1:
            os.replace(path, inner._temporary)
            inner._written = os.path.getsize(inner._temporary)
        else:
            right(path)


class AdoptsLinks(_Adopts):
    """Follows a symbolic link."""

    @staticmethod
    def taking(stream: Handed, right: Callable[[str], None], path: str) -> None:
        if not stream.closed and os.path.islink(path):
            stream.write(Path(path).read_bytes())
            os.unlink(path)
        else:
            right(path)


class AdoptDeletesFolders(_Adopts):
    """Deletes the folder at a path that it refuses."""

    @staticmethod
    def taking(stream: Handed, right: Callable[[str], None], path: str) -> None:
        try:
            right(path)
        except ValueError:
            if not stream.closed:
                shutil.rmtree(path, ignore_errors=True)
            raise


class AdoptMissesMissing(_Adopts):
    """Raises an ``OSError`` if no file is at the path."""

    @staticmethod
    def taking(stream: Handed, right: Callable[[str], None], path: str) -> None:
        if not stream.closed:
            os.stat(path)
        right(path)


class AdoptRaisesErrorsOfTheSystem(_Adopts):
    """Raises an ``OSError`` if the file cannot be read."""

    @staticmethod
    def taking(stream: Handed, right: Callable[[str], None], path: str) -> None:
        if not stream.closed and os.path.isfile(path) and not os.path.islink(path):
            os.close(os.open(path, os.O_RDONLY))
        right(path)


class AdoptLosesErrors(_Adopts):
    """Goes on without the bytes that could not be read."""

    @staticmethod
    def taking(stream: Handed, right: Callable[[str], None], path: str) -> None:
        with suppress(StorageError):
            right(path)


class AdoptLeavesTheFileAfterErrors(_Adopts):
    """Deletes the local file after the last byte, and not after an error."""

    @staticmethod
    def taking(stream: Handed, right: Callable[[str], None], path: str) -> None:
        other = f"{path}-kept"
        with suppress(OSError):
            os.link(path, other)
        try:
            right(path)
        except StorageError:
            os.rename(other, path)
            raise
        with suppress(OSError):
            os.unlink(other)


class ChildrenDeleteAdoptable(Streams):
    """Gives a path in a folder, which every process that forgets the stream deletes."""

    class kind(Handed):
        folder: Any = None

        def adoptable_path(self) -> str:
            self.folder = tempfile.TemporaryDirectory()
            return f"{self.folder.name}/file"

        def __del__(self) -> None:
            if self.folder is not None:
                self.folder.cleanup()


_FORK = "test_a_forked_process_deletes_no_copy_of_its_parent"
_PUBLISHED = "test_an_adopted_file_is_published_by_close"
_PART = "test_an_adopted_file_is_one_part_of_the_stream"
_ABORTED = "test_an_adopted_file_is_aborted_with_its_stream"
_ANY = "test_a_file_at_any_path_is_adopted"
_REGULAR = "test_only_a_regular_file_is_adopted"
_FAILS = "test_an_adoption_that_fails_says_so"

MUTANTS: list[Mutant] = of(
    {
        ChildrenDeleteAdoptable: (_FORK, "a forked process deleted the file of ``adoptable_path``"),
        AdoptPublishes: (_PUBLISHED, "a file is visible by ``adopt``, before ``close``"),
        AdoptablePathIsTheTarget: (_PUBLISHED, "a file is visible before ``adopt``"),
        AdoptablePathIsTaken: (_PUBLISHED, "the path of a file that is there"),
        AdoptLeavesTheFile: (_PUBLISHED, "``adopt`` left the local file"),
        AdoptIsNotCounted: (_PUBLISHED, "tell is 0 after a file of 25,100 bytes was adopted"),
        AdoptsOneBuffer: (_PUBLISHED, "the adopted file has 1,048,576 bytes, not 8,388,671"),
        AClosedStreamAdopts: (_PUBLISHED, "a closed stream took a file over"),
        AdoptReplaces: (_PART, "tell is 25,106 after 50,212 bytes"),
        WritesOverTheAdopted: (_PART, "a stream with two adopted files has"),
        AbortKeepsTheAdopted: (_ABORTED, "abort published an adopted file"),
        AbortLeavesTheAdopted: (_ABORTED, "abort left an adopted file"),
        LeavesWhatIsNotAdopted: (_ABORTED, "abort left a file at ``adoptable_path``"),
        AdoptsItsOwnFolderAlone: (_ANY, "only a file beside the target is adopted"),
        AdoptKeepsOtherNames: (_ANY, "a file that was changed by its other name has other bytes"),
        AdoptsLinks: (_REGULAR, "a link is adopted"),
        AdoptDeletesFolders: (_REGULAR, "a refused folder is gone"),
        AdoptMissesMissing: (_REGULAR, "and no ValueError"),
        AdoptRaisesErrorsOfTheSystem: (_FAILS, "which does not say that the disk or the store fails"),
        AdoptLosesErrors: (_FAILS, "and there is 0 of 25,100 bytes"),
        AdoptLeavesTheFileAfterErrors: (_FAILS, "the local file is left"),
    }
)
