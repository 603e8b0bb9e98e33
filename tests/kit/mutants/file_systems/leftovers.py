"""File systems that show or leave what nobody should find, one defect each."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from icefield.abc import FileInfo, InputFile, OutputStream, PutMode
from icefield.builtin.local import LocalFileSystem
from icefield.builtin.memory import MemoryFileSystem
from icefield.errors import IcefieldError
from icefield.storage import local_path
from icefield.toolkit import BytesInput

from mutants import Mutant, of
from mutants.file_systems.failing import Remote
from mutants.file_systems.streams import Handed, Streams

_LOG = logging.getLogger(__name__)


class ListsUnfinished(MemoryFileSystem):
    """Lists pending uploads among the files."""

    pending: ClassVar[dict[str, OutputStream]] = {}

    def open_output(self, location: str) -> OutputStream:
        self.pending[location] = super().open_output(location)
        return self.pending[location]

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        yield from super().list_files(prefix, shallow=shallow)
        for location, stream in self.pending.items():
            if location.startswith(prefix.rstrip("/") + "/") and not stream.closed:
                yield FileInfo(location, stream.tell())


class ListsAborted(ListsUnfinished):
    """Lists aborted uploads until the store forgets them."""

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        yield from MemoryFileSystem.list_files(self, prefix, shallow=shallow)
        for location, stream in self.pending.items():
            if location.startswith(prefix.rstrip("/") + "/") and stream.closed and location not in self.files:
                yield FileInfo(location, 0)


class StatesUnfinished(ListsUnfinished):
    """Finds a pending upload where it looks for several files."""

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        return MemoryFileSystem.list_files(self, prefix, shallow=shallow)

    def stat_many(self, locations: Sequence[str]) -> list[FileInfo | None]:
        found = super().stat_many(locations)
        return [
            info or (FileInfo(at, 0) if at in self.pending else None) for at, info in zip(locations, found, strict=True)
        ]


class LeavesTemporaryFiles(LocalFileSystem):
    """Leaves the file in which it gathered an aborted stream."""

    def open_output(self, location: str) -> OutputStream:
        return _Leaving(super().open_output(location), location)


class _Leaving(Handed):
    def abort(self) -> None:
        if not self.closed:
            Path(local_path(self.location) + ".part").write_bytes(b"part")
        self.inner.abort()


class LeavesRefusedFiles(LocalFileSystem):
    """Leaves the file that it wrote aside when the name turns out to be taken."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        try:
            super().put(location, data, mode)
        except IcefieldError:
            Path(local_path(location) + f".{os.urandom(4).hex()}").write_bytes(data)
            raise


class PublishesWhatIsForgotten(Streams):
    """Publishes a stream when it is garbage, as files of fsspec do."""

    class kind(Handed):
        def __del__(self) -> None:
            if not self.closed:
                self.close()


class LeaksDescriptors(LocalFileSystem):
    """Opens a second descriptor for each file, and forgets it."""

    kept: ClassVar[list[int]] = []

    def open_input(self, location: str) -> InputFile:
        source = super().open_input(location)
        self.kept.append(os.open(local_path(location), os.O_RDONLY))
        return source


class AbortKeepsItsDescriptor(Streams):
    """Releases a file in ``close`` alone."""

    kept: ClassVar[list[int]] = []

    class kind(Handed):
        def abort(self) -> None:
            if not self.closed:
                AbortKeepsItsDescriptor.kept.append(os.open(os.devnull, os.O_RDONLY))
            self.inner.abort()


class SecretInFileRepr(MemoryFileSystem):
    """Shows its properties in an open file."""

    def open_input(self, location: str) -> InputFile:
        source = _Shown(super().open_input(location).read())
        source.shown = f"<{location} of {self.properties}>"
        return source


class _Shown(BytesInput):
    shown = ""

    def __repr__(self) -> str:
        return self.shown


class SecretInStreamRepr(LocalFileSystem):
    """Shows its properties in a stream."""

    def open_output(self, location: str) -> OutputStream:
        return _ShownStream(super().open_output(location), f"{location} of {self.properties}")


class _ShownStream(Handed):
    def __repr__(self) -> str:
        return self.location


class SecretInTheSourceOfCredentials(LocalFileSystem):
    """Describes credentials by showing them."""

    def credentials(self, location: str) -> str | None:
        return f"the properties {self.properties}"


class SecretInLog(Remote):
    """Logs the properties with a failure."""

    def failed(self, location: str) -> Exception:
        _LOG.warning("cannot reach %s with %s", location, self.properties)
        return super().failed(location)


class SecretInDebugLog(MemoryFileSystem):
    """Logs the properties for debugging."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        _LOG.debug("put %s with %s", location, self.properties)
        super().put(location, data, mode)


class SecretInWarning(Remote):
    """Warns of a failure, with the properties."""

    def failed(self, location: str) -> Exception:
        warnings.warn(f"no answer with {self.properties}", RuntimeWarning, stacklevel=2)
        return super().failed(location)


class SecretInLoggedTraceback(Remote):
    """Logs the error of the SDK; its message repeats the properties."""

    def failed(self, location: str) -> Exception:
        _LOG.info("no answer for %s", location, exc_info=True)
        return super().failed(location)


class HidesItsTemporaryFiles(LocalFileSystem):
    """Leaves the temporary file of an aborted stream, under a name that its listing leaves out."""

    def open_output(self, location: str) -> OutputStream:
        folder, _, name = location.rpartition("/")
        return _LeavesAPart(super().open_output(location), f"{folder}/_part-{name}")

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        found = super().list_files(prefix, shallow=shallow)
        return (info for info in found if "/_part-" not in info.location)


class _LeavesAPart(Handed):
    def abort(self) -> None:
        if not self.closed:
            Path(local_path(self.location)).write_bytes(b"x")
        super().abort()


class ClosesItsNumberAgain(LocalFileSystem):
    """Closes the descriptor of a file by its number, each time."""

    def open_input(self, location: str) -> InputFile:
        with super().open_input(location) as source:
            return _ClosesItsNumberAgain(source.read())


class _ClosesItsNumberAgain(BytesInput):
    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._descriptor = os.open(os.devnull, os.O_RDONLY)

    def close(self) -> None:
        with suppress(OSError):
            os.close(self._descriptor)
        super().close()


class AbortsWhatItPublished(Streams):
    """Deletes the file that it published when it is aborted after ``close``, as an error after it may do."""

    class kind(Handed):
        def abort(self) -> None:
            if self.closed:
                Path(local_path(self.location)).unlink(missing_ok=True)
            super().abort()


_HIDDEN = "test_no_leftover_is_hidden_from_the_listing"
_TWICE = "test_a_second_close_touches_nothing_of_others"
_UNFINISHED = "test_an_unfinished_file_is_not_listed"
_NO_OTHER = "test_writes_that_come_to_nothing_leave_no_other_file"
_DESCRIPTOR = "test_closed_files_keep_no_descriptor"
_SHOWN = "test_open_files_show_no_property"
_LOGGED = "test_no_credential_is_in_a_log"

MUTANTS: list[Mutant] = of(
    {
        ListsUnfinished: (_UNFINISHED, "list_files shows a file that was written and not published"),
        ListsAborted: (_UNFINISHED, "list_files shows a file that was aborted and not published"),
        StatesUnfinished: (_UNFINISHED, "stat_many shows a file that was written"),
        LeavesTemporaryFiles: (_NO_OTHER, "3 files were left by 3 aborted streams and 6 refused calls"),
        LeavesRefusedFiles: (_NO_OTHER, "3 files were left by 3 aborted streams and 6 refused calls"),
        HidesItsTemporaryFiles: (_HIDDEN, "3 files were left by 3 aborted streams and 6 refused calls: ['_part-"),
        ClosesItsNumberAgain: (_TWICE, "a second close has closed 1 descriptors of others"),
        AbortsWhatItPublished: (_TWICE, "a second close or abort changed another's file"),
        PublishesWhatIsForgotten: ("test_a_forgotten_stream_publishes_nothing", "published half a file"),
        LeaksDescriptors: (_DESCRIPTOR, "30 descriptors are left open by 30 files of each kind"),
        AbortKeepsItsDescriptor: (_DESCRIPTOR, "30 descriptors are left open by 30 files of each kind"),
        SecretInFileRepr: (_SHOWN, "the secret of a property is in a _Shown"),
        SecretInStreamRepr: (_SHOWN, "the secret of a property is in a _ShownStream"),
        SecretInTheSourceOfCredentials: (_SHOWN, "the secret of a property is in a str"),
        SecretInLog: (_LOGGED, "a record of mutants.file_systems.leftovers"),
        SecretInDebugLog: (_LOGGED, "a record of mutants.file_systems.leftovers"),
        SecretInWarning: (_LOGGED, "a record of"),
        SecretInLoggedTraceback: (_LOGGED, "a record of mutants.file_systems.leftovers"),
    }
)
