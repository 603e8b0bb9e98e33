"""The kit rejects file systems that are broken on purpose: a check that passes them would be no check."""

from __future__ import annotations

import inspect
import io
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from icefield.abc import FileInfo, FileSystem, InputFile, OutputStream, PutMode
from icefield.builtin.local import LocalFileSystem, path_of
from icefield.errors import FileExists, FileMissing
from icefield.testing import FileSystemSuite


class ChecksThenWrites(LocalFileSystem):
    """Creates by looking first and writing then."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        if mode is PutMode.CREATE and os.path.exists(path_of(location)):
            raise FileExists("taken", location=location)
        time.sleep(0.001)
        super().put(location, data, PutMode.OVERWRITE)


class ShowsHalfFiles(LocalFileSystem):
    """Creates with O_EXCL and writes afterwards, in two steps."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        if mode is PutMode.OVERWRITE:
            super().put(location, data, mode)
            return
        path = Path(path_of(location))
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with path.open("xb") as file:
                file.write(data[: len(data) // 2])
                file.flush()
                time.sleep(0.005)
                file.write(data[len(data) // 2 :])
        except FileExistsError as error:
            raise FileExists("taken", location=location) from error


class RenameReplaces(LocalFileSystem):
    """Renames as POSIX does."""

    def rename(self, source: str, target: str) -> None:
        try:
            os.replace(path_of(source), path_of(target))
        except FileNotFoundError as error:
            raise FileMissing("gone", location=source) from error


class PublishesOnAbort(LocalFileSystem):
    """Gives up a stream by closing it."""

    def open_output(self, location: str) -> OutputStream:
        stream = super().open_output(location)
        stream.abort = stream.close  # type: ignore[method-assign]
        return stream


class WritesInPlace(LocalFileSystem):
    """Shows a file while it is being written."""

    def open_output(self, location: str) -> OutputStream:
        return _InPlace(path_of(location))


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


class ListsByPrefix(LocalFileSystem):
    """Takes a folder's name for a prefix of names."""

    def list(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        if shallow:
            yield from super().list(prefix, shallow=True)
            return
        parent = prefix.rstrip("/").rpartition("/")[0]
        yield from (info for info in super().list(parent) if info.location.startswith(prefix))


class StopsAtMissing(LocalFileSystem):
    """Fails to delete what is gone."""

    def delete_many(self, locations: Any) -> None:
        for location in locations:
            if not os.path.exists(path_of(location)):
                raise FileMissing("gone", location=location)
            os.unlink(path_of(location))


class RaisesItsOwnErrors(LocalFileSystem):
    """Lets the library's errors through."""

    def open_input(self, location: str) -> InputFile:
        return open(path_of(location), "rb")


class HoldsState(LocalFileSystem):
    """Forgets its type's promise when it is pickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalFileSystem, ()


class ShowsItsProperties(LocalFileSystem):
    """Prints credentials."""

    def __repr__(self) -> str:
        return f"LocalFileSystem({self.properties})"


class Decodes(LocalFileSystem):
    """Takes a location for a URL."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        super().put(location.replace("%20", " "), data, mode)


class ReadsToTheEnd(LocalFileSystem):
    """Ignores where it was sought to."""

    def open_input(self, location: str) -> InputFile:
        source = super().open_input(location)
        file = io.BytesIO(source.read())
        file.seek = lambda offset, whence=0: offset  # type: ignore[method-assign,assignment]
        return file


class LeavesOutWhatIsMissing(LocalFileSystem):
    """Tells of those files only that are there."""

    def stat_many(self, locations: Sequence[str]) -> list[FileInfo | None]:
        return [found for found in super().stat_many(locations) if found is not None]


BROKEN = [
    ChecksThenWrites,
    ShowsHalfFiles,
    RenameReplaces,
    PublishesOnAbort,
    WritesInPlace,
    ListsByPrefix,
    StopsAtMissing,
    RaisesItsOwnErrors,
    HoldsState,
    ShowsItsProperties,
    Decodes,
    ReadsToTheEnd,
    LeavesOutWhatIsMissing,
]


class _Suite(FileSystemSuite):
    def raw_get(self, location: str) -> bytes | None:
        path = Path(path_of(location))
        return path.read_bytes() if path.is_file() else None

    def raw_put(self, location: str, data: bytes) -> None:
        path = Path(path_of(location))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def checks() -> list[str]:
    return [name for name, _ in inspect.getmembers(FileSystemSuite, inspect.isfunction) if name.startswith("test_")]


def failures(file_system: FileSystem, root: Callable[[], str]) -> list[str]:
    """The names of the checks that the file system fails."""
    suite, found = _Suite(), []
    for name in checks():
        check = getattr(suite, name)
        given = {"file_system": file_system, "root": root()}
        try:
            check(**{key: given[key] for key in inspect.signature(check).parameters})
        except pytest.skip.Exception:
            continue
        except (Exception, pytest.fail.Exception, BaseExceptionGroup):
            found.append(name)
    return found


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_file_system_is_rejected(kind: type[FileSystem], tmp_path: Path) -> None:
    numbers = iter(range(1000))
    assert failures(kind({}), lambda: f"file://{tmp_path}/{next(numbers)}")


def test_a_right_file_system_passes_every_check(tmp_path: Path) -> None:
    numbers = iter(range(1000))
    assert failures(LocalFileSystem(), lambda: f"file://{tmp_path}/{next(numbers)}") == []


def test_every_check_tells_what_to_look_at_when_it_fails() -> None:
    for name in checks():
        assert "If this fails" in (getattr(FileSystemSuite, name).__doc__ or ""), name
