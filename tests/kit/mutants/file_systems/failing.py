"""File systems that report failures of a store wrongly, and a correct one behind an SDK."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, Final

from icefield.abc import FileInfo, InputFile, OutputStream, PutMode
from icefield.builtin.local import LocalFileSystem
from icefield.builtin.memory import MemoryFileSystem
from icefield.errors import FileExists, FileMissing, InvalidFile, StorageError
from icefield.storage import local_path
from icefield.toolkit import FetchedRange, RangedInput

from mutants import Mutant, of

_PAGE: Final = 50


class SwallowsWhatCloseSays(LocalFileSystem):
    """Closes without an error, even if closing fails."""

    def open_output(self, location: str) -> OutputStream:
        stream = super().open_output(location)
        write, close = stream.write, stream.close
        kept = io.BytesIO()

        def write_and_close() -> None:
            with suppress(Exception):
                write(kept.getvalue())
                close()

        stream.write, stream.tell = kept.write, kept.tell  # type: ignore[method-assign]
        stream.close = write_and_close  # type: ignore[method-assign]
        return stream


class CallsALostReplyAFailure(LocalFileSystem):
    """Creates by a hard link, and treats every error of the link as a failure."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        if mode is not PutMode.CREATE:
            return super().put(location, data, mode)
        target = local_path(location)
        temporary, _ = self._write_temporary(target, data)
        try:
            os.link(temporary, target)
        except FileExistsError as error:
            raise FileExists("taken", location=location) from error
        except OSError as error:
            raise StorageError("cannot create", location=location) from error
        finally:
            os.unlink(temporary)


class LetsErrorsThrough(LocalFileSystem):
    """Translates the error for a missing file, and no other error."""

    def open_input(self, location: str) -> InputFile:
        self.stat(location)
        return open(local_path(location), "rb")


class ListsNothing(LocalFileSystem):
    """Treats a folder that cannot be listed as empty."""

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        with suppress(StorageError):
            yield from super().list_files(prefix, shallow=shallow)


class ServiceError(Exception):
    """An error of an SDK."""


class Remote(MemoryFileSystem):
    """A store behind an SDK with messages that repeat the credentials."""

    up = True

    def call(self, location: str, step: Callable[[], Any]) -> Any:
        try:
            if not type(self).up:
                raise ServiceError(f"cannot reach the store as {self.properties}")
            return step()
        except ServiceError:
            # The SDK's error is not the cause, because its message shows credentials.
            raise self.failed(location) from None

    def failed(self, location: str) -> Exception:
        return StorageError(f"the store did not answer for {location}", retryable=True, location=location)

    def open_input(self, location: str) -> InputFile:
        return _RemoteInput(self, location).open()

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        self.call(location, lambda: MemoryFileSystem.put(self, location, data, mode))

    def _publish(self, location: str, data: bytes, *, replace: bool) -> None:
        self.call(location, lambda: MemoryFileSystem._publish(self, location, data, replace=replace))

    def stat(self, location: str) -> FileInfo:
        return self.call(location, lambda: MemoryFileSystem.stat(self, location))

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        names = self.call(prefix, lambda: [*MemoryFileSystem.list_files(self, prefix, shallow=shallow)])
        for start in range(0, len(names), _PAGE):
            yield from self.call(prefix, lambda start=start: names[start : start + _PAGE])

    def delete_many(self, locations: Iterable[str]) -> None:
        doomed = [*locations]
        self.call(doomed[0] if doomed else "", lambda: MemoryFileSystem.delete_many(self, doomed))

    def rename(self, source: str, target: str) -> None:
        self.call(source, lambda: MemoryFileSystem.rename(self, source, target))


class _RemoteInput(RangedInput):
    def __init__(self, owner: Remote, location: str) -> None:
        super().__init__(location)
        self.owner = owner

    def fetch(self, start: int, end: int) -> FetchedRange:
        data = self.owner.call(self.location, lambda: self.owner._get(self.location)[0])
        return FetchedRange(start, data[start:end], len(data))

    def fetch_first(self) -> FetchedRange:
        return self.fetch(0, 65_536)


class RepeatsTheSdk(Remote):
    """Repeats the SDK's message in its own."""

    def failed(self, location: str) -> Exception:
        return StorageError(f"{location}: {sys.exception()}", retryable=True, location=location)


class RaisesFromTheSdk(Remote):
    """Shows the SDK's error as the cause."""

    def call(self, location: str, step: Callable[[], Any]) -> Any:
        try:
            return super().call(location, step)
        except StorageError as error:
            if error.retryable:
                raise error from ServiceError(str(self.properties))
            raise


class TakesAnOutageForMissing(Remote):
    """Reports an outage as a missing file."""

    def failed(self, location: str) -> Exception:
        return FileMissing(f"no file {location}", location=location)


class LetsTheSdkThrough(Remote):
    """Raises the SDK's own error."""

    def failed(self, location: str) -> Exception:
        return ServiceError("no answer")


class CallsTheFileInvalid(Remote):
    """Reports a failed read as a damaged file."""

    def open_input(self, location: str) -> InputFile:
        return _Blaming(self, location).open()


class _Blaming(_RemoteInput):
    def fetch(self, start: int, end: int) -> FetchedRange:
        try:
            return super().fetch(start, end)
        except FileMissing:
            raise
        except StorageError:
            raise InvalidFile(f"{self.location} ends early", location=self.location) from None


class EndsEarly(Remote):
    """Treats a failed read as the end of the file."""

    def open_input(self, location: str) -> InputFile:
        source = super().open_input(location)
        read = source.read

        def read_some(size: int = -1, /) -> bytes:
            try:
                return read(size)
            except StorageError:
                return b""

        source.read = read_some  # type: ignore[method-assign]
        return source


MUTANTS: list[Mutant] = of(
    {
        CallsALostReplyAFailure: (
            "test_a_step_that_was_done_and_failed_is_not_called_a_failure",
            "the error that is raised says that nothing happened",
        ),
        SwallowsWhatCloseSays: ("test_a_stream_that_cannot_be_written_says_so", "swallows what the store said"),
        LetsErrorsThrough: ("test_a_store_that_fails_is_a_storage_error", "translate each error"),
        LetsTheSdkThrough: ("test_a_store_that_fails_is_a_storage_error", "an error of the SDK"),
        ListsNothing: ("test_a_store_that_fails_is_a_storage_error", "list_files says nothing"),
        TakesAnOutageForMissing: ("test_a_store_that_fails_is_a_storage_error", "passes for a file that is"),
        CallsTheFileInvalid: ("test_a_read_that_fails_blames_the_store_and_not_the_file", "calls the file invalid"),
        EndsEarly: ("test_a_read_that_fails_blames_the_store_and_not_the_file", "a read ends early"),
        RepeatsTheSdk: ("test_no_credential_is_in_an_error", "what an SDK said that repeats one"),
        RaisesFromTheSdk: ("test_no_credential_is_in_an_error", "the secret of a property is in"),
    }
)
