"""Processes that tend the tables of a catalog, and the invariants of their record."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from icefield import Catalog, load_catalog
from icefield_maintenance.tend import Policy, TendedOperation, Tending
from icefield_maintenance.tend.record import TendRecord

RECORD = "ops.tend"


def policy_of(lease: str = "1s", record: str = RECORD, tables: str = "db.*", **goals: Any) -> Policy:
    """A policy for the tables of ``db``, with leases that end soon, and with a record."""
    return Policy.from_mapping({**_given(goals, tables), "record": record, "lease": lease})


def _given(goals: Mapping[str, Any], tables: str = "db.*") -> dict[str, Any]:
    rule = {"tables": tables, **{name.replace("_", "-"): value for name, value in goals.items()}}
    return {"lease": "1s", "rules": [rule]}


def tend_until(given: Mapping[str, str], goals: Mapping[str, Any], until: float, lease: str = "1s") -> None:
    """Tend again and again until a time, and once at least: the main function of a process."""
    tending = Tending(load_catalog("test", **given), policy_of(lease, **goals))
    while True:
        failed = [each for each in tending.run() if each.outcome == "failed"]
        assert not failed, failed
        if time.time() > until:
            return
        time.sleep(0.1)


def tended_to_the_end(given: Mapping[str, str], goals: Mapping[str, Any], seconds: float = 90.0) -> None:
    """Tend until nothing is left to do, and no dead process has a lease; without the record, which asks for pauses."""
    tending = Tending(load_catalog("test", **given), Policy.from_mapping(_given(goals)))
    end = time.monotonic() + seconds
    while (found := [each for each in tending.run() if each.outcome != "done"]) or is_leased(tending.catalog):
        assert time.monotonic() < end, f"the work does not come to its end: {found}"
        time.sleep(0.2)


def is_leased(catalog: Catalog) -> bool:
    """Whether a table of ``db`` has a lease."""
    return any("tend.lease" in catalog.load_table(name).properties for name in catalog.list_tables("db"))


def add_to_record(catalog: Catalog, name: str, *operations: TendedOperation) -> None:
    """Add operations to a record, as a run does."""
    record = TendRecord(catalog, name, lambda: time.time_ns() // 1_000_000)
    for each in operations:
        record.add(each)
    assert record.flush(60)


def overlapping(given: Mapping[str, str], record: str = RECORD) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The operations in the record that two owners did on one table at one time."""
    catalog = load_catalog("test", **given)
    if not catalog.table_exists(record):
        return []
    rows = catalog.load_table(record).scan().to_arrow().sort_by("at").to_pylist()
    ends: dict[str, dict[str, Any]] = {}
    found = []
    for each in rows:
        last = ends.get(each["table"])
        is_others = last is not None and last["owner"] != each["owner"]
        if is_others and each["at"] < last["at"] + timedelta(seconds=last["seconds"]):
            found.append((last, each))
        ends[each["table"]] = each
    return found
