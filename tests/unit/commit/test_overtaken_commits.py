"""Commits that others overtake: appends have a bound of time, other changes a number of retries."""

from __future__ import annotations

import pytest
from icefield.abc import Conflict
from icefield.catalog import Table
from icefield.errors import CommitFailed
from tables import ids, meddled, new_table, rows, strategy_of


def overtaken(times: int, **properties: str) -> Table:
    """Return a holder of a new table that others overtake so many times."""
    table = new_table(**{"commit.retry.min-wait-ms": "0", **properties})
    table.append(rows([0]))
    return meddled(table, *[lambda other: other.append(rows([1]))] * times)


def test_an_append_is_tried_again_as_long_as_other_commits_come_first():
    loser = overtaken(12)
    loser.append(rows([2]))
    assert ids(loser) == [0, *[1] * 12, 2]


def test_an_append_that_others_overtake_gives_up_after_the_total_timeout():
    with pytest.raises(CommitFailed, match=r"commit\.retry\.total-timeout-ms' \(now 0\)") as raised:
        overtaken(12, **{"commit.retry.total-timeout-ms": "0"}).append(rows([2]))
    assert raised.value.attempts == 1


def test_a_delete_that_others_overtake_gives_up_after_the_number_of_retries():
    with pytest.raises(CommitFailed, match=r"commit\.retry\.num-retries' \(now 4\)") as raised:
        overtaken(12).delete("id = 0")
    assert raised.value.attempts == 5


def test_an_append_gives_up_after_the_number_of_retries_if_no_other_commit_comes_first(monkeypatch: pytest.MonkeyPatch):
    table = new_table(**{"commit.retry.min-wait-ms": "0"})
    monkeypatch.setattr(type(strategy_of(table)), "commit", lambda *_: Conflict())
    with pytest.raises(CommitFailed, match=r"commit\.retry\.num-retries' \(now 4\)") as raised:
        table.append(rows([2]))
    assert raised.value.attempts == 5
