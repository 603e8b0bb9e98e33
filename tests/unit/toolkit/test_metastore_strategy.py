"""Check-and-put of a pointer: the fate of the metadata file when the swap does not return."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from icefield import Schema
from icefield.abc import Committed, Conflict, Pointer, Proposal
from icefield.builtin.memory import MemoryFileSystem
from icefield.errors import AccessDenied, CommitStateUnknown, StorageError
from icefield.metadata import (
    TableMetadata,
    apply_updates,
    decode_metadata,
    encode_metadata,
    new_table_metadata,
    with_metadata_log,
)
from icefield.metadata.updates.table import SetProperties
from icefield.toolkit import MetastoreStrategy
from icefield.types import LongType, NestedField


class Interrupted(MetastoreStrategy):
    """A pointer in memory, whose swap happens and then does not return."""

    pointer: str | None = None
    error: BaseException | None = None
    swaps = True

    def read_pointer(self) -> str | None:
        return self.pointer

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        if self.swaps:
            self.pointer = new
        if self.error is not None:
            raise self.error
        return True

    def drop(self) -> None:
        self.pointer = None


def made() -> tuple[Interrupted, TableMetadata, Committed]:
    location = f"memory://interrupted/{uuid4().hex}"
    metadata = new_table_metadata(Schema(NestedField(1, "id", LongType())), location=location, properties={})
    strategy = Interrupted(("db", "t"), location, MemoryFileSystem())
    outcome = strategy.commit(None, Proposal(metadata))
    assert isinstance(outcome, Committed)
    return strategy, apply_updates(metadata, [SetProperties({"mine": "1"})]), outcome


@pytest.mark.spec("COMMIT-18")
@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit()], ids=repr)
def test_an_interrupt_after_the_swap_leaves_a_table_that_opens(error: BaseException) -> None:
    strategy, changed, created = made()
    strategy.error = error
    with pytest.raises(type(error)):
        strategy.commit(created.pointer, Proposal(changed))
    current = strategy.read_pointer()
    assert current is not None
    data = strategy.file_system.open_input(current).read()
    assert decode_metadata(data, current).properties["mine"] == "1"


@pytest.mark.spec("COMMIT-05")
def test_an_error_that_says_that_nothing_changed_leaves_no_file() -> None:
    strategy, changed, created = made()
    strategy.error, strategy.swaps = ValueError("refused"), False
    with pytest.raises(ValueError, match="refused"):
        strategy.commit(created.pointer, Proposal(changed))
    assert [info.location for info in strategy.file_system.list_files(strategy.location)] == [created.pointer.location]


class Clashing(MetastoreStrategy):
    """An author's strategy, whose own private names are obvious choices."""

    pointer: str | None = None

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        for name in ("log", "write", "settle", "chain", "delete_old", "fallen_out", "version", "location", "commit"):
            setattr(self, f"_{name}", object())

    def read_pointer(self) -> str | None:
        return self.pointer

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        self.pointer = new
        return True

    def drop(self) -> None:
        self.pointer = None


CLEANING = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}


def committed_often(strategy: MetastoreStrategy, times: int) -> list[Committed | Conflict]:
    """Commits one after another, in a table that deletes its old metadata files."""
    metadata = new_table_metadata(
        Schema(NestedField(1, "id", LongType())), location=strategy.location, properties=CLEANING
    )
    outcomes = [strategy.commit(None, Proposal(metadata))]
    for number in range(times):
        base = outcomes[-1]
        assert isinstance(base, Committed)
        metadata = with_metadata_log(
            apply_updates(metadata, [SetProperties({"n": str(number)})]), base.pointer.location, number + 1
        )
        outcomes.append(strategy.commit(base.pointer, Proposal(metadata)))
    return outcomes


@pytest.mark.spec("COMMIT-18")
def test_private_names_of_a_subclass_are_its_own() -> None:
    strategy = Clashing(("db", "t"), f"memory://clashing/{uuid4().hex}", MemoryFileSystem())
    assert all(isinstance(outcome, Committed) for outcome in committed_often(strategy, 4))
    assert len(list(strategy.file_system.list_files(strategy.location))) == 2, "old metadata files are deleted"


class FailsAfterTheSwap(MemoryFileSystem):
    """Raises an error that no file system should raise, after the pointer is swapped."""

    swapped = False

    def open_input(self, location: str) -> Any:
        if self.swapped:
            raise RuntimeError("burst")
        return super().open_input(location)

    def delete_many(self, locations: Any) -> None:
        if self.swapped:
            raise RuntimeError("burst")
        super().delete_many(locations)


@pytest.mark.parametrize("spared", ["nothing", "reading"])
def test_whatever_fails_after_the_swap_a_commit_is_a_commit(spared: str) -> None:
    class Swapping(Clashing):
        def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
            self.file_system.swapped = True  # type: ignore[attr-defined]
            return super().swap_pointer(old, new, proposal)

        def commit(self, base: Pointer | None, proposal: Proposal) -> Committed | Conflict:
            self.file_system.swapped = False  # type: ignore[attr-defined]
            return super().commit(base, proposal)

    system = FailsAfterTheSwap()
    if spared == "reading":
        system.open_input = MemoryFileSystem().open_input  # type: ignore[method-assign]
    strategy = Swapping(("db", "t"), f"memory://burst/{uuid4().hex}", system)
    assert all(isinstance(outcome, Committed) for outcome in committed_often(strategy, 3))


@pytest.mark.parametrize("error", [KeyError("bug"), StorageError("the lock could not be given back")], ids=repr)
def test_an_error_that_comes_after_the_swap_costs_no_file_and_is_no_failure(error: Exception) -> None:
    strategy, changed, created = made()
    strategy.error = error
    outcome = strategy.commit(created.pointer, Proposal(changed))
    assert isinstance(outcome, Committed)
    assert strategy.read_pointer() == outcome.pointer.location
    data = strategy.file_system.open_input(outcome.pointer.location).read()
    assert decode_metadata(data, outcome.pointer.location).properties["mine"] == "1"


ERRORS = [KeyError("bug"), StorageError("reset", retryable=True), StorageError("bad"), AccessDenied("no")]


@pytest.mark.parametrize("swaps", [True, False])
@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_an_error_after_which_the_pointer_cannot_be_read_costs_no_file(
    error: Exception, swaps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    strategy, changed, created = made()
    strategy.error, strategy.swaps = error, swaps

    def refuse() -> str | None:
        raise StorageError("down", retryable=True)

    monkeypatch.setattr(strategy, "read_pointer", refuse)
    with pytest.raises(CommitStateUnknown) as unknown:
        strategy.commit(created.pointer, Proposal(changed))
    assert unknown.value.__cause__ is error
    assert strategy.pointer is not None
    strategy.file_system.stat(strategy.pointer)
    assert len(list(strategy.file_system.list_files(strategy.location))) == 2


def test_an_error_after_which_the_log_no_longer_reaches_the_base_is_no_failure() -> None:
    strategy, changed, created = made()

    class Overtaken(Interrupted):
        def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
            # The swap happens, and so many commits follow that the log begins after ours.
            later = f"{strategy.location}/metadata/00009-{uuid4()}.metadata.json"
            with self.file_system.open_output(later) as sink:
                sink.write(encode_metadata(proposal.metadata))
            self.pointer = later
            raise StorageError("reset")

    overtaken = Overtaken(strategy.table, strategy.location, strategy.file_system)
    overtaken.pointer = strategy.pointer
    with pytest.raises(CommitStateUnknown):
        overtaken.commit(created.pointer, Proposal(changed))
    assert len(list(strategy.file_system.list_files(strategy.location))) == 3
