"""A lease admits one process to a table, ends by itself, and is taken over by one of several rivals."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from icefield import Catalog
from icefield.errors import IcefieldError
from icefield_maintenance.tend import Policy, Tending, lease, runner
from icefield_maintenance.tend.lease import SECOND_LOOK, LeasedTable, LeaseHeld, TableLease, new_owner
from tables import memory_catalog, new_table, rows


def leased(catalog: Catalog, owner: str, duration_ms: int = 60_000) -> LeasedTable:
    return LeasedTable(catalog.load_table("db.t"), owner, duration_ms, is_compared=True)


@pytest.fixture
def catalog() -> Catalog:
    made = memory_catalog()
    new_table(catalog=made).append(rows([1]))
    return made


def test_a_second_owner_is_refused_until_the_first_gives_up(catalog: Catalog) -> None:
    refused = pytest.raises(LeaseHeld, match="a maintains the table: its lease ends in")
    with leased(catalog, "a"), refused, leased(catalog, "b"):
        pass
    with leased(catalog, "b") as second:
        assert not second.was_abandoned
    assert "tend.lease" not in catalog.load_table("db.t").properties


def test_an_abandoned_lease_is_taken_over_when_it_ends(catalog: Catalog) -> None:
    table = catalog.load_table("db.t")
    table.set_properties({"tend.lease": f"dead {time.time_ns() // 1_000_000 - 1}"})
    with leased(catalog, "b") as taken:
        assert taken.was_abandoned
        assert not taken.is_lost()


def test_a_lease_is_renewed_while_the_work_goes_on(catalog: Catalog) -> None:
    with leased(catalog, "a", 1000):
        first = TableLease.of(catalog.load_table("db.t").metadata)
        assert first is not None
        end = time.monotonic() + 60
        while TableLease.of(catalog.load_table("db.t").metadata) == first:
            assert time.monotonic() < end
            time.sleep(0.02)
        later = TableLease.of(catalog.load_table("db.t").metadata)
    assert later is not None
    assert (later.owner, later.until_ms > first.until_ms) == ("a", True)


def test_a_lease_that_another_process_took_is_lost_and_stays_with_it(catalog: Catalog) -> None:
    with leased(catalog, "a") as first:
        catalog.load_table("db.t").set_properties({"tend.lease": "b 9999999999999"})
        assert first.is_lost()
    assert catalog.load_table("db.t").properties["tend.lease"] == "b 9999999999999"


@pytest.mark.parametrize("damaged", ["", "x", "a b", "a -5", "a " + "9" * 30])
def test_a_damaged_lease_is_none(catalog: Catalog, damaged: str) -> None:
    catalog.load_table("db.t").set_properties({"tend.lease": damaged})
    with leased(catalog, "b"):
        pass


def test_one_of_many_takers_wins(catalog: Catalog) -> None:
    barrier = Barrier(8)

    def take(number: int) -> bool:
        held = leased(catalog, f"{number}")
        barrier.wait()
        try:
            held.__enter__()
        except LeaseHeld:
            return False
        return True

    for _ in range(5):
        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(take, range(8))) == 1
        catalog.load_table("db.t").remove_properties("tend.lease")


def test_the_lease_of_a_dead_process_is_removed_when_it_ends_even_without_other_work(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.load_table("db.t").set_properties({"tend.lease": f"dead {time.time_ns() // 1_000_000 + 3_600_000}"})
    tending = Tending(catalog, Policy.from_mapping({"rules": [{"tables": "*", "files-per-scan": 2}]}))
    assert [*tending.run()] == []
    for module in (lease, runner):
        monkeypatch.setattr(module, "_now_ms", lambda: time.time_ns() // 1_000_000 + 3_600_001)
    (finished,) = tending.run()
    assert (finished.operation, finished.outcome) == ("expire_snapshots", "done")
    assert "tend.lease" not in catalog.load_table("db.t").properties


def test_a_service_that_compares_no_properties_is_looked_at_again(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.load_table("db.t")

    def overwritten(seconds: float) -> None:
        assert seconds == SECOND_LOOK
        table.set_properties({"tend.lease": "b 9999999999999"})

    monkeypatch.setattr("icefield_maintenance.tend.lease.time.sleep", overwritten)
    refused = pytest.raises(LeaseHeld, match="b took the table at the same time")
    with refused, LeasedTable(catalog.load_table("db.t"), "a", 60_000, is_compared=False):
        pass
    assert table.refresh().properties["tend.lease"] == "b 9999999999999"


def test_owners_have_different_names() -> None:
    assert new_owner() != new_owner()


def test_a_held_table_is_left_to_its_owner(catalog: Catalog) -> None:
    for number in range(6):
        catalog.load_table("db.t").append(rows([number]))
    policy = Policy.from_mapping({"rules": [{"tables": "*", "files-per-scan": 2}]})
    with leased(catalog, "another"):
        (found,) = Tending(catalog, policy).run()
    assert found.outcome == "held"
    assert isinstance(found.message, str)
    assert "another maintains" in found.message
    assert issubclass(LeaseHeld, IcefieldError)
    (done,) = Tending(catalog, policy).run()
    assert done.outcome == "done"
