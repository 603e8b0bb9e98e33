"""Hostile requests: each gets an answer in bounded time, never one that blames the server, and takes nothing away."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield import Catalog, load_catalog
from icefield_rest_server import Settings, app
from outcomes import counted_outcomes
from rest_requests import Asked, HostileRequests

outcomes = counted_outcomes()

TOGETHER = 10 if os.environ.get("ICEFIELD_SOAK") else 1
MOST_SECONDS, MOST_GROWN_MIB = 20, 300
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


class Served:
    """A server in this process, with a table and a view that are made again when a request took them away."""

    def __init__(self) -> None:
        self.catalog: Catalog = load_catalog("served", type="sql", uri="sqlite://", warehouse=f"memory://{uuid4().hex}")
        self.server = app(self.catalog, Settings(max_body=8 * 1024 * 1024))

    def prepare(self) -> None:
        if not self.catalog.namespace_exists("db"):
            self.catalog.create_namespace("db")
        if not self.catalog.table_exists("db.t") and not self.catalog.view_exists("db.t"):
            table = self.catalog.create_table("db.t", SCHEMA, partition_spec=["name"])
            for number in range(2):
                table.append(pa.table({"id": [number], "name": ["a"]}, SCHEMA))
        if not self.catalog.view_exists("db.v") and not self.catalog.table_exists("db.v"):
            self.catalog.create_view("db.v", SCHEMA, {"spark": "SELECT 1"})

    def ask(self, asked: Asked) -> tuple[int, bytes]:
        return asyncio.run(_answered(self.server, asked))


async def _answered(server: Any, asked: Asked) -> tuple[int, bytes]:
    """What the application answers to a request that no library has made better."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": asked.method,
        "scheme": "http",
        "path": asked.path.decode("utf-8", "replace"),
        "raw_path": asked.path,
        "query_string": asked.query,
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in asked.headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    sent: list[dict[str, Any]] = []
    parts = [{"type": "http.request", "body": asked.body, "more_body": False}]

    async def receive() -> Any:
        return parts.pop() if parts else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await server(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


@pytest.fixture(scope="module")
def served() -> Served:
    return Served()


def resident_mib() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


@pytest.mark.slow
@settings(max_examples=1_000)
@given(seed=st.integers(0, 2**64 - 1))
def test_a_hostile_request_gets_an_error_of_the_model_in_bounded_time(served: Served, outcomes: Any, seed: int) -> None:
    requests = HostileRequests(seed)
    for _ in range(TOGETHER):
        served.prepare()
        asked = requests.one()
        before, began = resident_mib(), time.monotonic()
        status, body = served.ask(asked)
        seconds, grown = time.monotonic() - began, resident_mib() - before
        said = (
            f"{asked.method} {asked.path[:300]!r}?{asked.query[:300]!r} {asked.body[:1_500]!r}: {status} {body[:500]!r}"
        )
        assert status < 500, said
        assert seconds < MOST_SECONDS, said
        assert grown < MOST_GROWN_MIB, said
        if status >= 400 and asked.method != "HEAD":
            error = json.loads(body)["error"]
            assert error["code"] == status, said
            assert error["type"].endswith("Exception"), said
            assert len(error["message"]) < 10_000, said
        with outcomes.of("requests", _Refused):
            if status >= 400:
                raise _Refused


class _Refused(Exception):
    pass
