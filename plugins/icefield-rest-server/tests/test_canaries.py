"""Text that others wrote goes through every endpoint, the metrics and the log as text, and is never run."""

from __future__ import annotations

import json
import logging
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pyarrow as pa
import pytest
from canaries import NAME, PRODUCT, Texts, hostile_table
from icefield import Catalog, load_catalog
from icefield_rest_server import app
from rest_bodies import SCHEMA, VIEW_VERSION
from rest_served import served

METRIC = re.compile(r'# TYPE \w+ \w+|\w+(\{\w+="[\w.+-]*"(,\w+="[\w.+-]*")*\})? [\d.e+-]+')
"""A line of Prometheus' text form whose labels are words."""


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    place = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    with load_catalog("served", type="sql", **place) as catalog:
        catalog.create_namespace((NAME,))
        yield catalog


class Client:
    """A client that looks at each answer: no browser takes one for a page, and each line of a text is printable."""

    def __init__(self, uri: str) -> None:
        self.client = httpx.Client(base_url=uri, timeout=60)
        self.answers: list[httpx.Response] = []

    def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        answer = self.client.request(method, path, json=body)
        self.answers.append(answer)
        kind = answer.headers.get("content-type", "").split(";")[0]
        assert kind == ("application/json" if answer.content else ""), (method, path, kind)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert all(value.isascii() and value.isprintable() for value in answer.headers.values())
        if answer.status_code >= 400 and answer.content:
            error = answer.json()["error"]
            assert error["code"] == answer.status_code < 500, error
            assert error["message"].isprintable(), error
        return answer


@pytest.mark.slow
def test_every_endpoint_gives_hostile_text_back_as_text(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    text = Texts(random.Random(0))
    table = hostile_table(catalog, text, (NAME, NAME))
    catalog.create_view((NAME, "v"), pa.schema([(text(), pa.string())]), {"spark": f"SELECT {text()} AS x"})
    space = f"/v1/namespaces/{quote(NAME, safe='')}"
    there, view = f"{space}/tables/{quote(NAME, safe='')}", f"{space}/views/v"
    with caplog.at_level(logging.INFO, "icefield_rest_server.access"), served(app(catalog)) as uri:
        client = Client(uri)
        for path in ("/v1/config", "/v1/namespaces", space, f"{space}/tables", f"{space}/views", there, view):
            assert client.ask("GET", path).status_code == 200
        loaded = client.ask("GET", there).json()["metadata"]
        assert loaded["properties"] == dict(table.properties)
        assert set(loaded["refs"]) == set(table.metadata.refs)
        updated = {"removals": [], "updates": {text(): text()}}
        assert client.ask("POST", f"{space}/properties", updated).status_code == 200
        planned = client.ask("POST", f"{there}/plan", {"filter": {"type": "eq", "term": "id", "value": 1}})
        assert planned.status_code == 200
        assert len(planned.json()["file-scan-tasks"]) == 1
        report = {"report-type": "commit-report", "table-name": text(), "snapshot-id": 1, "sequence-number": 1}
        metrics = {text(): {"unit": "count", "value": 1}}
        assert client.ask("POST", f"{there}/metrics", {**report, "operation": text(), "metrics": metrics}).is_success
        for piece in ["\n", "\x1b[31m", "<script>canary()</script>", *(text() for _ in range(8))]:
            told(client, space, there, view, piece)
        shown = client.client.get("/metrics")
        assert shown.headers["content-type"].startswith("text/plain")
        assert all(METRIC.fullmatch(line) for line in shown.text.splitlines()), shown.text
        assert client.client.get("/health/ready").text == "ok"
    requests = [record for record in caplog.records if record.name == "icefield_rest_server.access"]
    assert requests
    for record in requests:
        line = record.getMessage()
        assert all(each.isascii() and each.isprintable() for each in line)
        assert isinstance(json.loads(line), dict)
    assert all(PRODUCT not in answer.text for answer in client.answers)
    assert not [path for path in tmp_path.rglob("canary") if path.is_file()]


def told(client: Client, space: str, there: str, view: str, piece: str) -> None:
    """Ask with a text wherever a request has one; what is refused is refused in printable words."""
    escaped = quote(f"a{piece}", safe="")
    for path in (f"/{escaped}", f"/v1/{escaped}", f"/v1/namespaces/{escaped}", f"{space}/tables/{escaped}"):
        for method in ("GET", "HEAD", "POST", "DELETE"):
            client.ask(method, path)
    for query in ("pageToken", "parent", "pageSize"):
        client.ask("GET", f"/v1/namespaces?{query}={escaped}")
    client.ask("GET", f"{there}?snapshots={escaped}")
    client.ask("GET", f"{there}/plan/{escaped}")
    client.ask("POST", f"{there}/tasks", {"plan-task": piece})
    client.ask("POST", f"{there}/plan", {"filter": {"type": piece, "term": piece, "value": piece}})
    client.ask("POST", f"{there}/plan", {"select": [piece], "stats-fields": [piece]})
    client.ask("POST", there, {"requirements": [{"type": piece}], "updates": [{"action": piece}]})
    requirement = {"type": "assert-ref-snapshot-id", "ref": piece, "snapshot-id": 1}
    client.ask("POST", there, {"requirements": [requirement], "updates": []})
    removed = {"action": "remove-snapshot-ref", "ref-name": piece}
    client.ask("POST", there, {"requirements": [], "updates": [removed]})
    client.ask("POST", there, {"identifier": {"namespace": [piece], "name": piece}})
    client.ask("POST", f"{there}/metrics", {"report-type": piece})
    field = {"id": 1, "name": piece, "required": False, "type": piece}
    client.ask("POST", f"{space}/tables", {"name": f"n{piece}", "schema": {**SCHEMA, "fields": [field]}})
    stated = {"name": f"n{piece}", "schema": SCHEMA, "location": f"{piece}://{piece}", "properties": {piece: piece}}
    client.ask("POST", f"{space}/tables", {**stated, "stage-create": True})
    client.ask("POST", f"{space}/register", {"name": f"n{piece}", "metadata-location": f"file:///{piece}"})
    client.ask("POST", "/v1/namespaces", {"namespace": ["a", piece], "properties": {piece: piece}})
    client.ask("POST", f"{space}/properties", {"removals": [piece], "updates": {piece: piece}})
    names = {"source": {"namespace": [NAME], "name": f"a{piece}"}, "destination": {"namespace": [NAME], "name": piece}}
    client.ask("POST", "/v1/tables/rename", names)
    client.ask("POST", "/v1/views/rename", names)
    queries = [{"type": "sql", "sql": piece, "dialect": piece}] * 2
    version = {**VIEW_VERSION, "default-namespace": [piece], "representations": queries}
    client.ask("POST", f"{space}/views", {"name": f"v{piece}", "schema": SCHEMA, "view-version": version})
    client.ask("POST", view, {"requirements": [], "updates": [{"action": "add-view-version", "view-version": version}]})
