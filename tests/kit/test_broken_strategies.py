"""The kit rejects strategies that are broken on purpose: each is a way in which updates get lost."""

from __future__ import annotations

import inspect
import time
from pathlib import Path
from uuid import uuid4

import pytest
from icefield.abc import CommitStrategy, Committed, Conflict, FileSystem, Pointer, PutMode
from icefield.builtin.create import CreateStrategy
from icefield.builtin.local import LocalFileSystem
from icefield.builtin.rename import RenameStrategy
from icefield.errors import CommitStateUnknown, FileExists, FileMissing, NoSuchTable, StorageError
from icefield.metadata import TableMetadata
from icefield.publishing import delete_quietly
from icefield.testing import CommitStrategySuite


class ChecksThenWrites(CreateStrategy):
    """Looks whether the version is taken, and writes it when it was not."""

    def publish(self, target: str, data: bytes) -> bool:
        try:
            self.file_system.stat(target)
        except FileMissing:
            time.sleep(0.001)
            self.file_system.put(target, data, PutMode.OVERWRITE)
            return True
        return False


class RetriesBlindly(CreateStrategy):
    """Takes a lost reply for a failure, and the file that it left for another's."""

    def publish(self, target: str, data: bytes) -> bool:
        for _ in range(3):
            try:
                self.file_system.put(target, data, PutMode.CREATE)
            except FileExists:
                return False
            except StorageError:
                continue
            return True
        return False


class CleansUpAfterUnknown(RenameStrategy):
    """Deletes what it wrote when it does not know whether it happened."""

    def publish(self, target: str, data: bytes) -> bool:
        try:
            return super().publish(target, data)
        except CommitStateUnknown:
            delete_quietly(self.file_system, target)
            return False


class TakesLostForDone(CreateStrategy):
    """Takes a lost reply for a success."""

    def publish(self, target: str, data: bytes) -> bool:
        try:
            self.file_system.put(target, data, PutMode.CREATE)
        except FileExists:
            return False
        except StorageError:
            return True
        return True


class IgnoresItsBase(CreateStrategy):
    """Commits on whatever is current."""

    def commit(self, base: Pointer | None, metadata: TableMetadata) -> Committed | Conflict:
        return super().commit(self.load() if base is not None else None, metadata)


class LeavesTheLosersFile(RenameStrategy):
    """Leaves the temporary file of an attempt that lost."""

    def publish(self, target: str, data: bytes) -> bool:
        temporary = f"{self.folder}/{uuid4()}.metadata.json"
        self.file_system.put(temporary, data, PutMode.OVERWRITE)
        try:
            self.file_system.rename(temporary, target)
        except FileExists:
            return False
        return True


class TrustsTheHint(CreateStrategy):
    """Reads the hint and does not walk on."""

    def load(self) -> Pointer | None:
        version = self.hint()
        return None if version is None else Pointer(f"{self.folder}/v{version}.metadata.json", version)


class RevivesDroppedTables(CreateStrategy):
    """Frees the names of a dropped table, and does not look whether its base is still there."""

    def drop(self) -> None:
        if self.load() is None:
            raise NoSuchTable("no table")
        self.file_system.delete_many([location for _, location in self.listed()])

    def is_current_table(self, base: Pointer, metadata: TableMetadata) -> bool:
        return True


BROKEN = [
    ChecksThenWrites,
    RetriesBlindly,
    CleansUpAfterUnknown,
    TakesLostForDone,
    IgnoresItsBase,
    LeavesTheLosersFile,
    TrustsTheHint,
    RevivesDroppedTables,
]


def failures(kind: type[CommitStrategy], folder: Path) -> list[str]:
    """The names of the checks that the strategy fails."""

    class Suite(CommitStrategySuite):
        patience_seconds = 3.0

        def strategy(self, file_system: FileSystem, location: str) -> CommitStrategy:
            return kind(("db", "t"), location, file_system)

    found = []
    for name, _ in inspect.getmembers(CommitStrategySuite, inspect.isfunction):
        if not name.startswith("test_"):
            continue
        check = getattr(Suite(), name)
        given = {"file_system": LocalFileSystem({"file.sync": "false"}), "location": f"file://{folder}/{name}"}
        for verdict in ("lose-request", "lose-reply"):
            given["verdict"] = verdict
            try:
                check(**{key: given[key] for key in inspect.signature(check).parameters})
            except (Exception, pytest.fail.Exception):
                found.append(name)
            if "verdict" not in inspect.signature(check).parameters:
                break
    return found


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_strategy_is_rejected(kind: type[CommitStrategy], tmp_path: Path) -> None:
    assert failures(kind, tmp_path)


@pytest.mark.parametrize("kind", [CreateStrategy, RenameStrategy], ids=lambda kind: kind.__name__)
def test_a_right_strategy_passes_every_check(kind: type[CommitStrategy], tmp_path: Path) -> None:
    assert failures(kind, tmp_path) == []


def test_every_check_tells_what_to_look_at_when_it_fails() -> None:
    for name, check in inspect.getmembers(CommitStrategySuite, inspect.isfunction):
        if name.startswith("test_"):
            assert "If this fails" in (check.__doc__ or ""), name
