"""What scans and commits did is reported to the service, and nobody waits for it or fails by it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from http_between import Answered, Asked, Between, Forward
from icefield import Catalog, load_catalog
from rest_description import check_request

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
ROWS = pa.table({"id": [1, 2], "name": ["a", "b"]}, schema=SCHEMA)


@pytest.fixture
def between(our_rest: str) -> Iterator[Between]:
    with Between(our_rest).open() as made:
        yield made


def reports(between: Between, count: int) -> list[dict[str, Any]]:
    """The reports that arrived, when there are as many or some seconds have passed."""
    for _ in range(200):
        found = [asked for asked in list(between.asked) if asked.path.endswith("/metrics")]
        if len(found) >= count:
            break
        time.sleep(0.05)
    for asked in found:
        check_request(asked.method, asked.path, asked.body)
    return [json.loads(asked.body) for asked in found]


def test_a_scan_and_a_commit_are_reported_without_the_values_of_the_filter(between: Between) -> None:
    with load_catalog("test", type="rest", uri=between.url) as catalog:
        catalog.create_namespace("db")
        table = catalog.create_table("db.t", SCHEMA)
        table.append(ROWS)
        assert table.scan("id > 1 and name in ('planted', 'b')", selected_fields=("id",)).to_arrow().num_rows == 1
        commit, scan = reports(between, 2)
    assert (commit["report-type"], commit["table-name"], commit["operation"]) == ("commit-report", "db.t", "append")
    assert commit["metrics"]["added-records"] == {"unit": "count", "value": 2}
    assert commit["sequence-number"] == 1
    assert commit["metrics"]["added-files-size-bytes"]["unit"] == "bytes"
    assert (scan["report-type"], scan["snapshot-id"]) == ("scan-report", commit["snapshot-id"])
    assert (scan["projected-field-ids"], scan["projected-field-names"]) == ([1], ["id"])
    assert scan["metrics"]["result-data-files"] == {"unit": "count", "value": 1}
    assert scan["filter"]["type"] == "and"
    assert "planted" not in json.dumps(scan)


def test_changes_of_several_tables_are_reported_for_each(between: Between) -> None:
    with load_catalog("test", type="rest", uri=between.url) as catalog:
        catalog.create_namespace("db")
        for name in ("t", "u"):
            catalog.create_table(f"db.{name}", SCHEMA)
        with catalog.transaction() as tx:
            tx.table("db.t").append(ROWS)
            tx.table("db.u").append(ROWS)
        assert {report["table-name"] for report in reports(between, 2)} == {"db.t", "db.u"}


def test_the_switch_turns_reports_off(between: Between) -> None:
    work(between, {"rest-metrics-reporting-enabled": "false"})
    assert reports(between, 0) == []


def test_a_service_that_takes_no_reports_is_sent_none(between: Between) -> None:
    def behave(asked: Asked, forward: Forward) -> Answered | None:
        found = forward(asked)
        if not asked.path.startswith("/v1/config"):
            return found
        body = json.loads(found.body)
        body["endpoints"] = [each for each in body["endpoints"] if not each.endswith("/metrics")]
        return Answered(200, {"Content-Type": "application/json"}, json.dumps(body).encode())

    between.behave = behave
    work(between, {})
    assert reports(between, 0) == []


@pytest.mark.parametrize("status", [None, 400, 401, 500, 503])
def test_a_report_that_is_lost_or_refused_fails_nothing(between: Between, status: int | None) -> None:
    def fault(asked: Asked, forward: Forward) -> Answered | None:
        return None if status is None else Answered(status)

    between.faulty(fault, lambda asked: asked.path.endswith("/metrics"), None)
    work(between, {"rest.retry.num-retries": "0"})


@pytest.mark.slow
def test_a_service_that_takes_its_time_delays_nothing_and_fills_no_memory(between: Between) -> None:
    def fault(asked: Asked, forward: Forward) -> Answered | None:
        time.sleep(30)
        return None

    between.faulty(fault, lambda asked: asked.path.endswith("/metrics"), None)
    with load_catalog("test", type="rest", uri=between.url) as catalog:
        catalog.create_namespace("db")
        table = catalog.create_table("db.t", SCHEMA)
        table.append(ROWS)
        began = time.monotonic()
        for _ in range(300):
            list(table.scan().plan_files())
        assert time.monotonic() - began < 30, "none of 300 plans waited for a report"
        waiting = catalog.backend._service._reporter._waiting.qsize()  # type: ignore[attr-defined]
        assert waiting <= 100
        began = time.monotonic()
    assert time.monotonic() - began < 15, "closing waits for a second"


def work(between: Between, properties: dict[str, str]) -> Catalog:
    with load_catalog("test", type="rest", uri=between.url, **properties) as catalog:
        catalog.create_namespace("db")
        table = catalog.create_table("db.t", SCHEMA)
        table.append(ROWS)
        assert table.scan().to_arrow().num_rows == 2
    return catalog
