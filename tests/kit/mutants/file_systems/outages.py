"""File systems that hide a failure halfway: in ``close``, between pages, in one kind of read, one defect each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice

import pyarrow as pa
from icefield.abc import FileInfo, InputFile, OutputStream, PutMode
from icefield.builtin.local import LocalFileSystem
from icefield.errors import FileExists, FileMissing, IcefieldError, LocationRefused, StorageError
from icefield.storage import local_path

from mutants import Mutant, of
from mutants.file_systems.failing import Remote, _RemoteInput
from mutants.file_systems.streams import Handed, Streams


class CloseLosesErrors(Streams):
    """Closes without an error, whatever the system says, and writes with all errors."""

    class kind(Handed):
        def close(self) -> None:
            with suppress(Exception):
                self.inner.close()


class CloseLosesErrorsOfTheStore(Remote):
    """Sends the file in ``close``, and swallows that the store did not answer."""

    def open_output(self, location: str) -> OutputStream:
        return CloseLosesErrors.kind(super().open_output(location), location)


class CloseRaisesErrorsOfTheSystem(Streams):
    """Lets errors of the system out of ``close``."""

    class kind(Handed):
        def close(self) -> None:
            try:
                self.inner.close()
            except StorageError as error:
                raise OSError(str(error)) from error


class TimeoutIsEof(LocalFileSystem):
    """Takes a read that fails for the end of the file."""

    def open_input(self, location: str) -> InputFile:
        self.stat(location)
        return _Positioned(local_path(location))


class _Positioned(InputFile):
    def __init__(self, path: str) -> None:
        self._descriptor: int | None = os.open(path, os.O_RDONLY)
        self._size = os.path.getsize(path)

    @property
    def size(self) -> int:
        return self._size

    def read_at(self, offset: int, length: int) -> bytes:
        if offset < 0 or length < 0 or self._descriptor is None:
            raise ValueError(f"no {length} bytes from {offset}")
        try:
            return os.pread(self._descriptor, length, offset)
        except OSError:
            return b""

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = None

    @property
    def closed(self) -> bool:
        return self._descriptor is None


class _Reads(Remote):
    """Opens files of the class ``kind``."""

    kind: type[_RemoteInput] = _RemoteInput

    def open_input(self, location: str) -> InputFile:
        return self.kind(self, location).open()


class ReadAtTakesAnOutageForTheEnd(_Reads):
    """Gives no bytes where the store does not answer."""

    class kind(_RemoteInput):
        def read_at(self, offset: int, length: int) -> bytes:
            try:
                return super().read_at(offset, length)
            except StorageError:
                return b""


class RangesOfAnOutageAreEmpty(_Reads):
    """Leaves out what the store does not answer for, of several ranges."""

    class kind(_RemoteInput):
        def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
            try:
                return super().read_ranges(ranges)
            except StorageError:
                return [b"" for _ in ranges]


class ArrowFileEndsEarly(_Reads):
    """Gives Arrow a file with the bytes that were read so far."""

    class kind(_RemoteInput):
        def arrow_file(self) -> pa.NativeFile:
            try:
                return pa.BufferReader(self.read_at(0, self.size))
            except StorageError:
                return pa.BufferReader(b"")


class RangesOfAnOutageAreDamage(_Reads):
    """Blames the file for what the store does not answer."""

    class kind(_RemoteInput):
        def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
            try:
                return super().read_ranges(ranges)
            except StorageError as error:
                raise FileMissing("the file ends early", location=self.location) from error


class ListingEndsAtAnOutage(Remote):
    """Ends a listing at the page that did not come."""

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        listing = super().list_files(prefix, shallow=shallow)
        yield from islice(listing, 1)
        with suppress(StorageError):
            yield from listing


class ListingLetsTheSdkOutLater(Remote):
    """Translates an error of the first page alone."""

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        listing = super().list_files(prefix, shallow=shallow)
        yield from islice(listing, 1)
        try:
            yield from listing
        except StorageError as error:
            raise ConnectionError("page 2") from error


class StatTakesAnOutageForMissing(Remote):
    """Finds no file where the store does not answer."""

    def stat(self, location: str) -> FileInfo:
        try:
            return super().stat(location)
        except StorageError as error:
            raise FileMissing(f"no file {location}", location=location) from error


class StatManyTakesAnOutageForMissing(Remote):
    """Finds no file where the store does not answer for several."""

    def stat_many(self, locations: Sequence[str]) -> list[FileInfo | None]:
        found: list[FileInfo | None] = []
        for location in locations:
            try:
                found.append(self.stat(location))
            except StorageError:
                found.append(None)
        return found


class DeletesNothingInAnOutage(Remote):
    """Takes an answer that does not come for a file that is gone."""

    def delete_many(self, locations: Iterable[str]) -> None:
        with suppress(StorageError):
            super().delete_many(locations)


class RenameSaysTakenInAnOutage(Remote):
    """Takes an outage for a refusal."""

    def rename(self, source: str, target: str) -> None:
        try:
            super().rename(source, target)
        except FileMissing:
            raise
        except StorageError as error:
            raise RuntimeError(f"{target} is taken") from error


class AlwaysRetryable(LocalFileSystem):
    """Calls every error retryable, so that a missing file is waited for."""

    def stat(self, location: str) -> FileInfo:
        try:
            return super().stat(location)
        except IcefieldError as error:
            error.retryable = True
            raise


class RetriesTakenNames(LocalFileSystem):
    """Calls a name that is taken retryable."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        try:
            super().put(location, data, mode)
        except FileExists as error:
            error.retryable = True
            raise


class RetriesLongNames(LocalFileSystem):
    """Calls all that the store refuses retryable, such as a name that is too long."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        try:
            super().put(location, data, mode)
        except LocationRefused as error:
            raise StorageError(f"cannot write {location[:50]}", retryable=True, location=location) from error


_CLOSE = "test_a_close_that_fails_says_so"
_END = "test_no_way_to_read_takes_a_failure_for_the_end_of_the_file"
_HALFWAY = "test_a_listing_that_fails_halfway_does_not_end"
_METHOD = "test_no_method_passes_over_a_store_that_fails"
_STAYS = "test_what_stays_as_it_is_is_not_retryable"

MUTANTS: list[Mutant] = of(
    {
        CloseLosesErrors: (_CLOSE, "``close`` returned, and there is no file: EIO after fsync"),
        CloseLosesErrorsOfTheStore: (_CLOSE, "``close`` returned, and there is no file: the store fails"),
        CloseRaisesErrorsOfTheSystem: (_CLOSE, "none of Icefield's errors"),
        TimeoutIsEof: (_END, "read raised no error (EIO after pread), and its result has 0 bytes, not 3,012,000"),
        ReadAtTakesAnOutageForTheEnd: (_END, "read raised no error (the store fails), and its result has 0 bytes"),
        RangesOfAnOutageAreEmpty: (_END, "read_ranges raised no error (the store fails), and its result has 0 bytes"),
        ArrowFileEndsEarly: (_END, "arrow_file raised no error (the store fails), and its result has 0 bytes"),
        RangesOfAnOutageAreDamage: (_END, "which does not say that the store fails"),
        ListingEndsAtAnOutage: (_HALFWAY, "a listing ended after 50 of 202 files when the store failed"),
        ListingLetsTheSdkOutLater: (_HALFWAY, "ConnectionError('page 2') is no StorageError"),
        StatTakesAnOutageForMissing: (_METHOD, "stat takes a store that fails for FileMissing"),
        StatManyTakesAnOutageForMissing: (_METHOD, "stat_many passes over a store that fails: [None, None]"),
        DeletesNothingInAnOutage: (_METHOD, "delete_many passes over a store that fails"),
        RenameSaysTakenInAnOutage: (_METHOD, "rename takes a store that fails for RuntimeError"),
        AlwaysRetryable: (_STAYS, "stat of a missing file: FileMissing"),
        RetriesTakenNames: (_STAYS, "put(CREATE) of a taken name"),
        RetriesLongNames: (_STAYS, "put under a name of 5,000 characters"),
    }
)
