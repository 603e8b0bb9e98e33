"""Reports of clients, answers about metadata files that are gone or others now, and who may go on with a plan."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield import Catalog, Plugins, load_catalog
from icefield.abc import MetricsReported
from icefield_rest_server import Principal, Settings, app
from icefield_rest_server.observing import RequestMetrics
from local_client import LocalClient
from rest_description import check_answer, check_request
from tables import Listener

TABLE = "/v1/namespaces/db/tables/t"
SCHEMA = pa.schema([("id", pa.int64())])
SCAN = {
    "report-type": "scan-report",
    "table-name": "db.t",
    "snapshot-id": 7,
    "filter": True,
    "schema-id": 0,
    "projected-field-ids": [1],
    "projected-field-names": ["id"],
    "metrics": {
        "total-planning-duration": {"count": 1, "time-unit": "nanoseconds", "total-duration": 1_500_000_000},
        "result-data-files": {"unit": "count", "value": 3},
        "of-somebody": {"unit": "count", "value": 4},
    },
}
COMMIT = {
    "report-type": "commit-report",
    "table-name": "db.t",
    "snapshot-id": 8,
    "sequence-number": 2,
    "operation": "append",
    "metrics": {"attempts": {"unit": "count", "value": 2}},
}


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def catalog(tmp_path: Path, listener: Listener) -> Iterator[Catalog]:
    uri, warehouse = f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse"
    plugins = Plugins.installed(extra=[listener])
    with load_catalog("served", plugins=plugins, type="sql", uri=uri, warehouse=warehouse) as made:
        made.create_namespace("db")
        made.create_table("db.t", SCHEMA).append(pa.table({"id": [1]}, SCHEMA))
        yield made


def answered(answer: Any, status: int, kind: str | None = None) -> str:
    assert answer.status_code == status, answer.text
    check_answer(answer.request.method, str(answer.request.url), status, answer.content)
    if kind is None:
        return ""
    error = answer.json()["error"]
    assert error["type"] == kind
    message: str = error["message"]
    return message


def test_reports_reach_listeners_and_the_metrics(catalog: Catalog, listener: Listener) -> None:
    client = LocalClient(app(catalog))
    listener.events.clear()
    for report in (SCAN, SCAN, COMMIT):
        answer = client.post(f"{TABLE}/metrics", json=report)
        answered(answer, 204)
        check_request("POST", str(answer.request.url), answer.request.content)
    scan, _, commit = listener.events
    numbers = {"total-planning-duration": 1.5, "result-data-files": 3, "of-somebody": 4}
    assert scan == MetricsReported(("db", "t"), "scan", 7, None, numbers)
    assert commit == MetricsReported(("db", "t"), "commit", 8, "append", {"attempts": 2})
    said = client.get("/metrics").text
    assert 'icefield_rest_reports_total{type="scan"} 2' in said
    assert 'icefield_rest_reported_total{type="scan",metric="total-planning-duration"} 3\n' in said
    assert "of-somebody" not in said  # a client cannot make the server's metrics grow


@pytest.mark.parametrize(
    "change",
    [
        {"report-type": "other-report"},
        {"report-type": None},
        {"metrics": None},
        {"metrics": {"a": {"unit": "count"}}},
        {"metrics": {"a": {"unit": "count", "value": -1}}},
        {"metrics": {"a": {"count": 1, "time-unit": "parsec", "total-duration": 1}}},
        {"metrics": {str(number): {"unit": "count", "value": 1} for number in range(201)}},
        {"metrics": {"a" * 201: {"unit": "count", "value": 1}}},
        {"metrics": {"result-data-files": {"unit": "count", "value": 2**63}}},
        {"metrics": {"result-data-files": {"unit": "count", "value": 10**400}}},
        {"metrics": {"total-planning-duration": {"count": 1, "time-unit": "days", "total-duration": 2**62}}},
        {"metrics": {"total-planning-duration": {"count": 1, "time-unit": "nanoseconds", "total-duration": 10**400}}},
        {"snapshot-id": "7"},
        {"snapshot-id": 10**400},
        {"projected-field-ids": 1},
    ],
)
def test_a_report_that_cannot_be_is_refused(catalog: Catalog, listener: Listener, change: dict[str, Any]) -> None:
    client = LocalClient(app(catalog))
    listener.events.clear()
    answered(client.post(f"{TABLE}/metrics", json=SCAN | change), 400, "IllegalArgumentException")
    assert not listener.events
    answered(client.post("/v1/namespaces/db/tables/none/metrics", json=SCAN), 404, "NoSuchTableException")


def test_the_greatest_numbers_of_a_report_are_counted(catalog: Catalog) -> None:
    client = LocalClient(app(catalog))
    metrics = {
        "result-data-files": {"unit": "count", "value": 2**63 - 1},
        "total-planning-duration": {"count": 1, "time-unit": "nanoseconds", "total-duration": 2**63 - 1},
    }
    answered(client.post(f"{TABLE}/metrics", json=SCAN | {"metrics": metrics}), 204)
    assert 'metric="result-data-files"} 9.22337203685e+18' in client.get("/metrics").text


def test_a_request_that_cannot_be_counted_has_its_answer(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: Any) -> None:
        raise OverflowError

    monkeypatch.setattr(RequestMetrics, "ended", fails)
    answered(LocalClient(app(catalog)).get(TABLE), 200)
    assert "loadTable is not counted" in caplog.text


def test_a_table_without_its_metadata_file_is_a_fault_and_not_a_missing_table(catalog: Catalog) -> None:
    location = catalog.load_table("db.t").metadata_location
    Path(location.removeprefix("file://")).unlink()
    icefield.clear_caches()  # this process has read the file
    client = LocalClient(app(catalog))
    assert location in answered(client.get(TABLE), 500, "ServiceFailureException")
    assert location in answered(client.post(f"{TABLE}/plan", json={}), 500, "ServiceFailureException")
    # In doubt is a client that sees a status from 500 on; here it is certain that nothing was done.
    change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
    assert location in answered(client.post(TABLE, json=change), 400, "BadRequestException")
    answered(client.head(TABLE), 204)


def test_who_may_plan_a_scan_may_have_the_rest_of_the_plan(catalog: Catalog) -> None:
    asked = []

    def allows(principal: Principal | None, operation: str, target: tuple[str, ...]) -> bool:
        asked.append(operation)
        return operation == "planTableScan"

    catalog.load_table("db.t").append(pa.table({"id": [2]}, SCHEMA))
    client = LocalClient(app(catalog, Settings(authorizer=allows, max_plan_page=1)))
    first = client.post(f"{TABLE}/plan", json={}).json()
    answered(client.post(f"{TABLE}/tasks", json={"plan-task": first["plan-tasks"][0]}), 200)
    answered(client.get(f"{TABLE}/plan/{first['plan-id']}"), 200)
    answered(client.delete(f"{TABLE}/plan/{first['plan-id']}"), 204)
    answered(client.get(TABLE), 403, "ForbiddenException")
    assert set(asked) == {"planTableScan", "loadTable"}


def test_a_location_that_a_directory_catalog_uses_again_is_served_as_it_is_now(tmp_path: Path) -> None:
    place = f"file://{tmp_path}/tables"
    folders = load_catalog("folders", type="directory", warehouse=place)
    served = load_catalog("served", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=place)
    for catalog in (folders, served):
        catalog.create_namespace("db")
    client = LocalClient(app(served))
    for _ in range(2):
        table = folders.create_table("db.t", SCHEMA)
        served.register_table("db.registered", table.metadata_location)
        answer = client.get("/v1/namespaces/db/tables/registered").json()
        assert answer["metadata"]["table-uuid"] == str(table.metadata.table_uuid)
        served.drop_table("db.registered")
        folders.purge_table("db.t")
