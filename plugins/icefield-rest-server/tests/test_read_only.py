"""A server with --read-only: each route that changes something is refused, and all others answer."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from icefield import Catalog, load_catalog
from icefield_rest_server import app
from icefield_rest_server.routes import ENDPOINTS, Endpoint
from icefield_rest_server.serving import Options, check
from local_client import LocalClient
from rest_bodies import SCHEMA, VIEW_VERSION

TABLE = {"namespace": ["db"], "name": "t"}
RENAMED = {"source": TABLE, "destination": {"namespace": ["db"], "name": "new"}}
SET = [{"action": "set-properties", "updates": {"a": "b"}}]
REPORT = {
    **{"report-type": "commit-report", "table-name": "t", "snapshot-id": 1, "sequence-number": 1},
    **{"operation": "append", "metrics": {}},
}
VIEW = {"name": "new", "schema": SCHEMA, "view-version": VIEW_VERSION, "properties": {}}

CHANGES: dict[str, Any] = {
    "createNamespace": {"namespace": ["new"]},
    "dropNamespace": None,
    "updateProperties": {"updates": {"a": "b"}},
    "createTable": {"name": "new", "schema": SCHEMA},
    "updateTable": {"requirements": [], "updates": SET},
    "dropTable": None,
    "unregisterTable": {},
    "registerTable": {"name": "new", "metadata-location": "METADATA"},
    "renameTable": RENAMED,
    "commitTransaction": {"table-changes": [{"identifier": TABLE, "requirements": [], "updates": SET}]},
    "createView": VIEW,
    "replaceView": {"requirements": [], "updates": SET},
    "dropView": None,
    "renameView": {"source": {**TABLE, "name": "v"}, "destination": {**TABLE, "name": "new"}},
    "registerView": {"name": "new", "metadata-location": "METADATA"},
}
"""The bodies of the requests that change something."""

READS: dict[str, Any] = {
    **dict.fromkeys(["listNamespaces", "loadNamespaceMetadata", "namespaceExists", "listTables", "loadTable"]),
    **dict.fromkeys(["tableExists", "loadCredentials", "listViews", "loadView", "viewExists"]),
    **dict.fromkeys(["fetchPlanningResult", "cancelPlanning"]),
    "planTableScan": {},
    "fetchScanTasks": {"plan-task": "none"},
    "reportMetrics": REPORT,
    "signRequest": {"region": "r", "uri": "https://s3/b/k", "method": "PUT", "headers": {}},
}


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    place = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    with load_catalog("served", type="sql", **place) as made:
        made.create_namespace("db")
        made.create_table("db.t", pa.schema([("id", pa.int64())])).append(pa.table({"id": [1]}))
        made.create_view("db.v", pa.schema([("id", pa.int64())]), {"spark": "SELECT 1 AS id"})
        yield made


def state_of(folder: Path) -> dict[str, str]:
    """The hash of each file, the catalog's database among them."""
    files = (each for each in folder.rglob("*") if each.is_file())
    return {str(each.relative_to(folder)): hashlib.sha256(each.read_bytes()).hexdigest() for each in files}


def asked(client: LocalClient, endpoint: Endpoint, body: Any, query: str = "") -> int:
    path = endpoint.template.replace("/{prefix}", "")
    for name, value in {"namespace": "db", "table": "t", "view": "v", "plan-id": "none"}.items():
        path = path.replace(f"{{{name}}}", value)
    given = {} if body is None else {"json": body}
    status: int = client.request(endpoint.method, f"{path}{query}", **given).status_code
    return status


def test_each_route_either_changes_something_or_reads() -> None:
    assert sorted(each.operation for each in ENDPOINTS) == sorted([*CHANGES, *READS])


@pytest.mark.parametrize("operation", CHANGES)
def test_a_route_that_changes_something_is_refused(catalog: Catalog, tmp_path: Path, operation: str) -> None:
    before = state_of(tmp_path)
    body = CHANGES[operation]
    if body is not None and "metadata-location" in body:
        source = catalog.load_view("db.v") if "View" in operation else catalog.load_table("db.t")
        body = {**body, "metadata-location": source.metadata_location}
    [endpoint] = [each for each in ENDPOINTS if each.operation == operation]
    client = LocalClient(app(catalog, check(Options(read_only=True))))
    queries = ["", "?purgeRequested=true"] if operation == "dropTable" else [""]
    assert [asked(client, endpoint, body, query) for query in queries] == [403] * len(queries)
    if operation == "createTable":
        assert asked(client, endpoint, {**body, "stage-create": True}) == 403
    assert state_of(tmp_path) == before
    # A server without the option carries out the same request.
    if operation != "dropNamespace":
        assert asked(LocalClient(app(catalog)), endpoint, body) in (200, 204)


def test_a_route_that_reads_answers_and_changes_nothing(catalog: Catalog, tmp_path: Path) -> None:
    before = state_of(tmp_path)
    client = LocalClient(app(catalog, check(Options(read_only=True))))
    found = {
        each.operation: asked(client, each, READS[each.operation]) for each in ENDPOINTS if each.operation in READS
    }
    assert 403 not in found.values()
    missing = {"fetchPlanningResult", "cancelPlanning", "fetchScanTasks", "signRequest"}
    assert {name for name, status in found.items() if status not in (200, 204)} <= missing
    assert state_of(tmp_path) == before
