"""The retry loop, and the files that it cleans up."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from icefield.abc import (
    CommitStrategy,
    Committed,
    Conflict,
    Pointer,
    Proposal,
)
from icefield.catalog import Table
from icefield.commit import RetryPolicy, TableHandle, TableState, WrittenFiles, commit_table, load_table
from icefield.errors import (
    CommitFailed,
    CommitStateUnknown,
    FileMissing,
    InvalidMetadata,
    NoSuchTable,
    NotSupportedByCatalog,
    StorageError,
    TableExists,
)
from icefield.metadata import apply_updates
from icefield.metadata.updates.table import AssignUUID
from tables import (
    EAGER,
    Around,
    again,
    around,
    handle_of,
    ids,
    live_files,
    meddled,
    memory_catalog,
    new_table,
    orphans,
    rows,
    state_of,
    stored_files,
    strategy_of,
)


def failing(error: Exception) -> Callable[[int], Any]:
    def fail(attempt: int) -> None:
        raise error

    return fail


@pytest.mark.spec("COMMIT-01", "COMMIT-03", "COMMIT-07", "META-01")
def test_a_loser_of_a_race_is_applied_again_to_what_the_winner_made():
    table = new_table()
    loser = meddled(table, lambda other: other.append(rows([1])), lambda other: other.append(rows([2])))
    loser.append(rows([3]))
    assert ids(loser) == [1, 2, 3]
    snapshots = loser.snapshots()
    assert [snapshot.parent_snapshot_id for snapshot in snapshots] == [None, *(s.snapshot_id for s in snapshots[:-1])]
    assert loser.metadata_location.endswith("v4.metadata.json")


@pytest.mark.spec("COMMIT-06")
def test_the_number_of_retries_is_a_table_property():
    def conflicts(retries: int) -> int:
        table = new_table(**{"commit.retry.num-retries": retries})
        loser = meddled(table, *[lambda other: other.append(rows([1]))] * 50)
        with pytest.raises(CommitFailed, match=r"commit\.retry\.num-retries") as raised:
            loser.append(rows([2]))
        assert raised.value.retryable
        assert ids(table.refresh()) == [1] * (retries + 1)
        return len(strategy_of(loser).proposed)

    assert [conflicts(0), conflicts(1), conflicts(4)] == [1, 2, 5]


@pytest.mark.spec("COMMIT-06")
def test_four_retries_between_100_ms_and_a_minute_for_half_an_hour_are_the_default():
    assert RetryPolicy.from_properties({}) == RetryPolicy(4, 100, 60_000, 1_800_000)
    read = RetryPolicy.from_properties(
        {
            "commit.retry.num-retries": "7",
            "commit.retry.min-wait-ms": "5",
            "commit.retry.max-wait-ms": "50",
            "commit.retry.total-timeout-ms": "9",
        }
    )
    assert read == RetryPolicy(7, 5, 50, 9)


@pytest.mark.spec("COMMIT-06")
def test_waits_double_up_to_the_longest_and_are_drawn_from_the_whole_interval():
    policy = RetryPolicy(num_retries=9, min_wait_ms=100, max_wait_ms=1_000)
    longest = [policy.wait_seconds(attempt, lambda low, high: high) for attempt in range(1, 7)]
    assert longest == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert [policy.wait_seconds(attempt, lambda low, high: low) for attempt in (1, 5)] == [0, 0]
    drawn = {policy.wait_seconds(3, random.Random(seed).uniform) for seed in range(100)}
    assert len(drawn) == 100
    assert max(drawn) > 0.35
    assert min(drawn) < 0.05
    assert policy.wait_seconds(10_000, lambda low, high: high) == 0.4


def test_no_property_of_a_table_asks_for_a_pause_of_years() -> None:
    policy = RetryPolicy(min_wait_ms=10**18, max_wait_ms=10**18)
    assert policy.wait_seconds(5, lambda low, high: high) == 600


@pytest.mark.spec("COMMIT-06")
def test_a_writer_with_bad_luck_is_not_put_to_sleep_for_a_minute():
    policy = RetryPolicy(num_retries=99)
    longest = [policy.wait_seconds(attempt, lambda low, high: high) for attempt in range(1, 30)]
    assert longest[5] == 3.2
    assert longest[:8] == sorted(longest[:8])
    # A writer waits less after many losses, but long enough that many such writers do not only conflict.
    assert longest[8:] == sorted(longest[8:], reverse=True)
    assert longest[8] == 1.6
    assert longest[28] == 0.4
    # If an attempt itself takes long, waits shorter than an attempt would not spread the writers.
    assert policy.wait_seconds(1, lambda low, high: high, attempt_seconds=2.0) == 1.0
    assert policy.wait_seconds(6, lambda low, high: high, attempt_seconds=2.0) == 32.0
    assert RetryPolicy(min_wait_ms=0).wait_seconds(9, lambda low, high: high, attempt_seconds=9) == 0


@pytest.mark.spec("COMMIT-06")
def test_no_retry_starts_after_the_total_time():
    policy = RetryPolicy(num_retries=100, total_timeout_ms=1_000)
    assert not policy.gives_up(1, 0.9)
    assert policy.gives_up(1, 1.0)
    assert policy.gives_up(101, 0)


def test_a_conflict_that_was_not_settled_names_the_commit_that_won():
    table = new_table(**{"commit.retry.num-retries": "0"})
    loser = meddled(table, lambda other: other.append(rows([1])))
    with pytest.raises(CommitFailed) as raised:
        loser.append(rows([2]))
    winner = table.refresh().current_snapshot()
    assert raised.value.snapshot_id == winner.snapshot_id
    assert f"snapshot {winner.snapshot_id} (append)" in str(raised.value)
    assert raised.value.attempts == 1


def test_one_slow_attempt_does_not_lengthen_later_pauses(monkeypatch: pytest.MonkeyPatch):
    table = new_table()
    lengths: list[float] = []

    def wait(self: RetryPolicy, attempt: int, *, attempt_seconds: float) -> float:
        lengths.append(attempt_seconds)
        return 0.0

    monkeypatch.setattr(RetryPolicy, "wait_seconds", wait)

    def before(number: int) -> None:
        time.sleep(0.3 if number == 2 else 0)
        if number < 3:
            again(table).refresh().append(rows([2]))

    around(table, before=before).append(rows([3]))
    first, second = lengths
    assert second <= first < 0.3


@pytest.mark.spec("FS-13")
def test_a_commit_that_gave_up_leaves_no_file_behind():
    table = new_table(**{"commit.retry.num-retries": "2"})
    loser = meddled(table, *[lambda other: other.append(rows([1]))] * 9)
    with pytest.raises(CommitFailed):
        loser.append(rows([2]))
    assert orphans(table) == set()


@pytest.mark.spec("FS-13")
@pytest.mark.parametrize("attempt", [1, 2])
def test_a_commit_that_failed_deletes_what_it_wrote_and_nothing_else(attempt: int):
    table = new_table()
    table.append(rows([1]))

    def before(number: int) -> None:
        if number == attempt:
            raise StorageError("the disk is full", location="x")
        again(table).refresh().append(rows([2]))

    with pytest.raises(StorageError, match="the disk is full"):
        around(table, before=before).append(rows([3]))
    assert orphans(table) == set()
    assert live_files(table) <= stored_files(table)
    assert ids(table) == [1, 2][:attempt]


@pytest.mark.spec("FS-13")
def test_after_retries_only_the_files_of_the_winning_attempt_are_there():
    table = new_table()
    meddled(table, *[lambda other: other.append(rows([1]))] * 3).append(rows([2]))
    assert orphans(table) == set()
    assert ids(table) == [1, 1, 1, 2]


@pytest.mark.spec("FS-13", "COMMIT-18")
def test_nothing_is_deleted_while_the_outcome_of_a_commit_is_unknown():
    table = new_table()
    table.append(rows([1]))
    before = stored_files(table)
    lost = around(table, before=failing(CommitStateUnknown("the reply was lost")))
    with pytest.raises(CommitStateUnknown):
        lost.append(rows([2]))
    written = stored_files(table) - before
    assert len(written) == 3  # a data file, a manifest and a list, which a late commit may still need


@pytest.mark.spec("COMMIT-18")
def test_a_commit_whose_reply_was_lost_succeeds_when_the_table_shows_its_snapshot():
    def lose(attempt: int, outcome: Any) -> Any:
        assert isinstance(outcome, Committed)
        raise CommitStateUnknown("the reply was lost")

    table = new_table()
    around(table, after=lose).append(rows([1]))
    assert ids(table.refresh()) == [1]
    assert len(table.snapshots()) == 1
    assert orphans(table) == set()


STATUS_CHECKS = {
    "commit.status-check.num-retries": "5",
    "commit.status-check.min-wait-ms": "20",
    "commit.status-check.max-wait-ms": "100",
    "commit.status-check.total-timeout-ms": "60000",
}


@pytest.mark.spec("COMMIT-18")
def test_three_looks_after_the_first_between_a_second_and_a_minute_are_the_default():
    assert RetryPolicy.of_status_checks({}) == RetryPolicy(3, 1_000, 60_000, 1_800_000)
    assert RetryPolicy.of_status_checks(STATUS_CHECKS) == RetryPolicy(5, 20, 100, 60_000)


class Lost(Around):
    """A strategy that loses its reply, and then for some loads fails or does not show the commit."""

    def __init__(self, inner: CommitStrategy, *, down: int = 0, late: int = 0) -> None:
        super().__init__(inner)
        self.looks, self._down, self._late = 0, down, late
        self._request: tuple[Any, ...] | None = None

    def load(self) -> Pointer | None:
        if self._request is not None:
            self.looks += 1
            if self.looks == self._late + 1:
                self.inner.commit(*self._request)
            if self.looks <= self._down:
                raise StorageError("the store is down", location="x")
        return self.inner.load()

    def commit(self, base: Pointer | None, proposal: Proposal) -> Committed | Conflict:
        self._request = (base, proposal)
        raise CommitStateUnknown("the reply was lost")


def lose_a_reply(properties: dict[str, str], **weather: int) -> tuple[Lost, list[float], Any]:
    """Commit with a lost reply, and return the strategy, the pauses, and the new state or the error."""
    table = new_table(properties=properties)
    lost = Lost(strategy_of(table), **weather)
    tx = Table(replace(handle_of(table), strategy=lost), state_of(table)).transaction()
    tx.append(rows([1]))
    pauses: list[float] = []
    try:
        outcome = commit_table(
            handle_of(tx), state_of(tx), tx.proposal, written=tx.context.written, sleep=pauses.append
        )
    except CommitStateUnknown as error:
        outcome = error
    return lost, pauses, outcome


@pytest.mark.spec("COMMIT-18")
@pytest.mark.parametrize("weather", [{"down": 4}, {"late": 4}])
def test_a_lost_reply_is_looked_after_as_the_table_says(weather: dict[str, int]) -> None:
    lost, pauses, outcome = lose_a_reply(STATUS_CHECKS, **weather)
    assert isinstance(outcome, TableState)
    assert (lost.looks, pauses) == (5, [0.02, 0.04, 0.08, 0.1])


@pytest.mark.spec("COMMIT-18")
@pytest.mark.parametrize(
    ("changes", "looks"),
    [
        ({}, 6),
        ({"commit.status-check.num-retries": "1"}, 2),
        ({"commit.status-check.num-retries": "0"}, 1),
        ({"commit.status-check.total-timeout-ms": "0"}, 1),
    ],
)
def test_looking_after_a_lost_reply_ends(changes: dict[str, str], looks: int) -> None:
    lost, pauses, outcome = lose_a_reply({**STATUS_CHECKS, **changes}, late=99)
    assert isinstance(outcome, CommitStateUnknown)
    assert (lost.looks, len(pauses)) == (looks, looks - 1)


@pytest.mark.spec("COMMIT-18")
def test_a_commit_that_is_said_to_have_lost_but_is_in_the_table_is_not_repeated():
    def lie(attempt: int, outcome: Any) -> Any:
        return Conflict()

    table = new_table()
    around(table, after=lie).append(rows([1]))
    assert ids(table.refresh()) == [1]
    assert orphans(table) == set()


@pytest.mark.spec("COMMIT-18")
def test_a_change_without_a_snapshot_whose_reply_was_lost_stays_unknown():
    def lose(attempt: int, outcome: Any) -> Any:
        raise CommitStateUnknown("the reply was lost")

    table = new_table()
    with pytest.raises(CommitStateUnknown):
        around(table, after=lose).set_properties(a=1)
    assert table.refresh().properties["a"] == "1"


@pytest.mark.spec("FS-13")
@pytest.mark.parametrize("error", [RuntimeError("a bug"), MemoryError(), StorageError("a plugin is wrong")])
def test_a_commit_that_a_strategy_calls_a_failure_is_found_in_the_table(error: Exception):
    def crash(attempt: int, outcome: Any) -> Any:
        raise error

    table = new_table()
    around(table, after=crash).append(rows([1]))
    assert ids(table.refresh()) == [1]


@pytest.mark.parametrize("error", [RuntimeError("a bug"), MemoryError()])
def test_an_exception_of_nobody_after_a_change_without_a_mark_leaves_its_outcome_unknown(error: Exception):
    def crash(attempt: int, outcome: Any) -> Any:
        raise error

    table = new_table()
    with pytest.raises(CommitStateUnknown, match="look for the change") as raised:
        around(table, after=crash).set_properties(a=1)
    assert raised.value.__cause__ is error
    assert table.refresh().properties["a"] == "1"


def test_an_exception_of_nobody_before_a_change_is_raised_as_it_is():
    def crash(attempt: int) -> Any:
        raise RuntimeError("a bug")

    table = new_table()
    with pytest.raises(RuntimeError, match="a bug"):
        around(table, before=crash).append(rows([1]))
    assert not orphans(table)


def test_an_interrupt_after_a_commit_deletes_nothing():
    def interrupt(attempt: int, outcome: Any) -> Any:
        raise KeyboardInterrupt

    table = new_table()
    with pytest.raises(KeyboardInterrupt):
        around(table, after=interrupt).append(rows([1]))
    assert ids(table.refresh()) == [1]


def test_a_change_that_is_visible_and_not_durable_is_not_acknowledged():
    def lose(attempt: int, outcome: Any) -> Any:
        raise CommitStateUnknown("the disk did not confirm it", visible=True)

    table = new_table()
    with pytest.raises(CommitStateUnknown, match="the disk"):
        around(table, after=lose).append(rows([1]))
    assert ids(table.refresh()) == [1]


def test_a_failure_that_may_pass_is_retried_like_a_conflict():
    def busy(attempt: int) -> None:
        if attempt < 3:
            raise StorageError("busy", retryable=True, location="x")

    table = new_table()
    holder = around(table, before=busy)
    holder.append(rows([1]))
    assert ids(holder) == [1]
    assert len(strategy_of(holder).proposed) == 3


@pytest.mark.spec("FS-13")
def test_a_failure_that_does_not_pass_leaves_no_file_behind():
    table = new_table(**{"commit.retry.num-retries": "2"})
    busy = StorageError("busy", retryable=True, location="x")
    with pytest.raises(CommitFailed):
        around(table, before=failing(busy)).append(rows([1]))
    assert orphans(table) == set()


@pytest.mark.spec("COMMIT-30")
def test_of_two_creators_of_a_table_one_wins_and_the_other_leaves_nothing():
    catalog = memory_catalog()
    first = catalog.create_table_transaction("db.t", rows([]).schema)
    second = catalog.create_table_transaction("db.t", rows([]).schema)
    second.append(rows([9]))
    first.append(rows([1]))
    table = first.commit_transaction()
    with pytest.raises(TableExists):
        second.commit_transaction()
    assert ids(table.refresh()) == [1]
    assert orphans(table) == set()


def test_a_table_that_is_dropped_while_it_is_changed_is_reported():
    catalog = memory_catalog()
    table = new_table(catalog=catalog)
    holder = around(table, before=lambda attempt: catalog.drop_table("db.t") if attempt == 1 else None)
    with pytest.raises(NoSuchTable):
        holder.append(rows([1]))
    with pytest.raises(NoSuchTable):
        table.append(rows([1]))
    assert [name for name in stored_files(table) if name.endswith((".parquet", ".avro"))] == []


class _Fixed(CommitStrategy):
    """A strategy that returns the pointers of a test."""

    def __init__(self, inner: CommitStrategy, *locations: str) -> None:
        super().__init__(inner.table, inner.location, inner.file_system)
        self.locations = list(locations)

    def load(self) -> Pointer | None:
        return Pointer(self.locations.pop(0) if len(self.locations) > 1 else self.locations[0])

    def commit(self, base: Any, proposal: Any) -> Any:
        raise AssertionError

    def drop(self) -> None:
        raise AssertionError


@pytest.mark.spec("META-03")
def test_another_table_under_the_same_name_is_noticed_on_refresh():
    one, other = new_table(), new_table()
    handle = replace(handle_of(one), strategy=_Fixed(strategy_of(one), other.metadata_location))
    with pytest.raises(InvalidMetadata, match="uuid"):
        load_table(handle, state_of(one))


def test_a_metadata_file_that_goes_between_pointer_and_file_is_looked_for_again():
    table = new_table()
    gone = table.metadata_location + ".gone"
    handle = replace(handle_of(table), strategy=_Fixed(strategy_of(table), gone, gone, table.metadata_location))
    state = load_table(handle)
    assert state is not None
    assert state.metadata.table_uuid == table.metadata.table_uuid
    with pytest.raises(FileMissing):
        load_table(replace(handle, strategy=_Fixed(strategy_of(table), gone)))


def test_a_refresh_reads_the_metadata_only_when_the_pointer_moved(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("icefield.toolkit.versioned_strategy._SETTLED_MS", -1)  # as if each file were a minute old
    table = new_table()
    state = load_table(handle_of(table))
    assert load_table(handle_of(table), state) is state
    again(table).append(rows([1]))
    assert load_table(handle_of(table), state) is not state


def test_a_table_without_a_strategy_can_only_be_read():
    table = new_table()
    handle = TableHandle(("t",), table.io)
    with pytest.raises(NotSupportedByCatalog, match="only be read"):
        handle.writable()


def test_written_files_are_kept_unless_they_are_retired():
    written = WrittenFiles()
    written.add("a", "b", "c")
    written.retire("b", "c", "foreign")
    written.add("c")
    assert written.all() == ["a", "b", "c"]
    assert written.retired() == ["b"]


def test_a_state_is_a_pointer_with_its_metadata():
    table = new_table()
    metadata = apply_updates(table.metadata, [AssignUUID(table.metadata.table_uuid)])
    state = TableState.at("memory://x", metadata)
    assert state.pointer == Pointer("memory://x")
    assert EAGER.keys() <= state.metadata.properties.keys()
