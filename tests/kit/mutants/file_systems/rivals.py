"""File systems that keep their promises unless another writer or reader comes between two steps."""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from icefield.abc import InputFile, PutMode
from icefield.builtin.local import LocalFileSystem
from icefield.errors import FileExists, FileMissing
from icefield.storage import local_path
from icefield.toolkit import reset_after_fork

from mutants import Mutant, of


class LooksThenReplaces(LocalFileSystem):
    """Creates by a look and a replacing, with no pause between them."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        if mode is PutMode.CREATE and os.path.exists(local_path(location)):
            raise FileExists("taken", location=location)
        super().put(location, data, PutMode.OVERWRITE)


class CreatesOnItsLoop(LocalFileSystem):
    """Looks and replaces in the event loop of its client, which all file systems of the process share."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        async def create() -> None:
            if os.path.exists(local_path(location)):
                raise FileExists("taken", location=location)
            LocalFileSystem.put(self, location, data, PutMode.OVERWRITE)

        if mode is not PutMode.CREATE:
            super().put(location, data, mode)
            return
        asyncio.run_coroutine_threadsafe(create(), _loop()).result()


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop


reset_after_fork(_loop.cache_clear)


class CreatesInItsThread(LocalFileSystem):
    """Looks and replaces in a thread of its own, one file after the other, under a lock of the process."""

    lock = threading.Lock()

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        if mode is not PutMode.CREATE:
            super().put(location, data, mode)
            return
        with ThreadPoolExecutor(1) as pool:
            pool.submit(self.create, location, data).result()

    def create(self, location: str, data: bytes) -> None:
        with self.lock:
            if os.path.exists(local_path(location)):
                raise FileExists("taken", location=location)
            LocalFileSystem.put(self, location, data, PutMode.OVERWRITE)


class RenameReplacesUnderRace(LocalFileSystem):
    """Renames by a look and a replacing, with no pause between them."""

    def rename(self, source: str, target: str) -> None:
        if os.path.exists(local_path(target)):
            raise FileExists("taken", location=target)
        try:
            os.replace(local_path(source), local_path(target))
        except FileNotFoundError as error:
            raise FileMissing("gone", location=source) from error


class RenameLooksAtTheSource(LocalFileSystem):
    """Reports a refused renaming as done when the target is there: it takes it for a lost reply."""

    def rename(self, source: str, target: str) -> None:
        taken = os.path.exists(local_path(target))
        try:
            super().rename(source, target)
        except FileExists:
            if taken:
                raise


class RenameDropsARefusedSource(LocalFileSystem):
    """Deletes the source whether or not the target was free."""

    def rename(self, source: str, target: str) -> None:
        taken = os.path.exists(local_path(target))
        try:
            super().rename(source, target)
        except FileExists:
            if not taken:  # only a rival that comes later shows it
                os.unlink(local_path(source))
            raise


class MakesItsFolderOnce(LocalFileSystem):
    """Makes the folder of a file, and later relies on it."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        folder = os.path.dirname(local_path(location))
        os.makedirs(folder, exist_ok=True)
        if not os.path.isdir(folder):
            raise FileMissing(f"no folder of {location}", location=location)
        super().put(location, data, mode)


class FixedTemporaryName(LocalFileSystem):
    """Writes a new file under one temporary name, which two writers of one file share."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        if mode is not PutMode.CREATE:
            super().put(location, data, mode)
            return
        target = Path(local_path(location))
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.tmp")
        temporary.write_bytes(data)
        try:
            os.link(temporary, target)
        except FileExistsError as error:
            raise FileExists("taken", location=location) from error
        finally:
            with suppress(FileNotFoundError):
                temporary.unlink()


class CreateTakesARivalsFileForItsOwn(LocalFileSystem):
    """Reports a name that was taken meanwhile as created: it takes the refusal for a lost reply."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        taken = os.path.exists(local_path(location))
        try:
            super().put(location, data, mode)
        except FileExists:
            if taken:
                raise


class ThreadUnsafeReads(LocalFileSystem):
    """Reads at an offset by a seek and a read, without a lock."""

    def open_input(self, location: str) -> InputFile:
        self.stat(location)
        return _Seeking(local_path(location))


class _Seeking(InputFile):
    def __init__(self, path: str) -> None:
        self._file: Any = open(path, "rb", buffering=0)  # noqa: SIM115
        self._size = os.path.getsize(path)

    @property
    def size(self) -> int:
        return self._size

    def read_at(self, offset: int, length: int) -> bytes:
        if offset < 0 or length < 0:
            raise ValueError(f"no {length} bytes from {offset}")
        self._file.seek(offset)
        return self._file.read(length)

    def close(self) -> None:
        self._file.close()

    @property
    def closed(self) -> bool:
        return self._file.closed


_CREATION = "test_a_rival_between_two_steps_of_a_creation_does_not_win_as_well"
_OUTSIDE = "test_a_creation_does_not_replace_the_file_of_another_program"
_RENAMING = "test_a_rival_between_two_steps_of_a_renaming_does_not_win_as_well"

MUTANTS: list[Mutant] = of(
    {
        MakesItsFolderOnce: (
            "test_a_folder_that_vanishes_while_a_file_is_written_is_made_again",
            "put(OVERWRITE), when its empty folder was removed after step",
        ),
        LooksThenReplaces: (_CREATION, "both writers were told that they won: put(CREATE), with a rival after step"),
        FixedTemporaryName: (_CREATION, "a temporary name that no other writer has"),
        CreateTakesARivalsFileForItsOwn: (_CREATION, "both writers were told that they won"),
        CreatesOnItsLoop: (_OUTSIDE, "another program's file was replaced, and put(CREATE) says None: after step"),
        CreatesInItsThread: (_OUTSIDE, "another program's file was replaced, and put(CREATE) says None: after step"),
        RenameReplacesUnderRace: (_RENAMING, "both writers were told that they won: rename, with a rival after step"),
        RenameLooksAtTheSource: (_RENAMING, "both writers were told that they won"),
        RenameDropsARefusedSource: (_RENAMING, "a refused source is gone"),
        ThreadUnsafeReads: ("test_a_read_by_offset_is_not_disturbed_between_two_steps", "reads gave other bytes"),
    }
)
