"""The examination of commits distinguishes strategies that exclude other writers from strategies that do not."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from icefield import LocalFileSystem, MemoryFileSystem
from icefield.abc import CommitStrategy, Committed, Conflict, Pointer, Proposal, PutMode
from icefield.builtin.strategies import CreateStrategy, RenameStrategy
from icefield.errors import AccessDenied, CommitStateUnknown
from icefield.toolkit import VersionedStrategy
from icefield_maintenance.doctor import CommitExamination, Finding, Result
from unhealthy_stores import DeniesDeletes, Modest

PLACE = "memory://store/table"
ALL = ["create a table", "commit on an old base", "commits at once", "drop the table"]


class LooksFirst(CreateStrategy):
    """Checks, then writes."""

    def publish(self, target: str, data: bytes) -> Pointer | None:
        if self.exists(target):
            return None
        time.sleep(0.05)
        self.file_system.put(target, data, PutMode.OVERWRITE)
        return self.pointer_to(target)


class LastWins(CreateStrategy):
    """Ignores its base, and commits on the current version."""

    def commit(self, base: Pointer | None, proposal: Proposal) -> Committed | Conflict:
        current = self.load()
        return super().commit(current if base is not None else None, proposal)


class CreatesTwice(CreateStrategy):
    """Drops a table that exists already, and creates it again."""

    def commit(self, base: Pointer | None, proposal: Proposal) -> Committed | Conflict:
        if base is None and self.load() is not None:
            self.drop()
        return super().commit(base, proposal)


class SaysNo(CreateStrategy):
    """Commits, and reports a conflict."""

    def commit(self, base: Pointer | None, proposal: Proposal) -> Committed | Conflict:
        super().commit(base, proposal)
        return Conflict()


class KeepsTables(CreateStrategy):
    """Drops nothing."""

    def drop(self) -> None:
        pass


class Unsure(CreateStrategy):
    """Never knows."""

    def publish(self, target: str, data: bytes) -> Pointer | None:
        raise CommitStateUnknown("the reply was lost; load the table again")


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryFileSystem, "files", {})


def examined(kind: type[CommitStrategy], system: MemoryFileSystem | None = None) -> list[Finding]:
    used = system or MemoryFileSystem()
    return CommitExamination(lambda: kind(("d", "t"), PLACE, used, {}), used, PLACE, {}).run()


@pytest.mark.parametrize("kind", [CreateStrategy, RenameStrategy])
def test_a_safe_strategy_passes_and_leaves_nothing(kind: type[VersionedStrategy], tmp_path: Path) -> None:
    assert [(finding.check, finding.result) for finding in examined(kind)] == [(name, Result.OK) for name in ALL]
    assert MemoryFileSystem.files == {}
    place, system = f"file://{tmp_path}/t", LocalFileSystem()
    found = CommitExamination(lambda: kind(("d", "t"), place, system, {}), system, place, {}).run()
    assert {finding.result for finding in found} == {Result.OK}
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("kind", "failed"),
    [
        (LooksFirst, {"commits at once"}),
        (LastWins, {"commit on an old base", "commits at once"}),
        (CreatesTwice, {"create a table"}),
        (SaysNo, {"create a table"}),
        (KeepsTables, {"drop the table"}),
        (Unsure, {"create a table"}),
    ],
)
def test_what_a_strategy_does_wrong_is_found(kind: type[CommitStrategy], failed: set[str]) -> None:
    findings = examined(kind)
    assert {finding.check for finding in findings if finding.result is Result.FAILED} == failed
    assert all(finding.advice for finding in findings if finding.result is Result.FAILED)
    assert MemoryFileSystem.files == {}, "the table's files stay"


def test_nothing_is_left_where_nothing_can_be_listed() -> None:
    findings = examined(RenameStrategy, Modest())
    assert {finding.result for finding in findings} == {Result.OK}
    assert MemoryFileSystem.files == {}


def test_a_lost_update_says_how_many_won_and_what_that_means() -> None:
    found = next(finding for finding in examined(LooksFirst) if finding.result is Result.FAILED)
    assert found.found == "4 of 4 commits at once on one version succeeded"
    assert "commits would lose updates" in found.advice


def test_files_that_cannot_be_deleted_are_named() -> None:
    found = examined(CreateStrategy, DeniesDeletes())[-1]
    assert (found.check, found.result) == ("clean-up", Result.FAILED)
    assert PLACE in found.found
    assert "right to delete" in found.advice


def test_a_right_that_is_wanting_is_said() -> None:
    class Denied(CreateStrategy):
        def publish(self, target: str, data: bytes) -> Pointer | None:
            raise AccessDenied(f"no right to write {target}", location=target)

    found = examined(Denied)[0]
    assert found.found == f"denied: no right to write {PLACE}/metadata/v1.metadata.json"
    assert found.advice == f"give the credentials in use the right to commit to a table at {PLACE}"
