"""The REST server against Java's reference server with the same tables: loading, listing, commits.

Each is over SQLite, or with ``--over postgresql`` over a database of one PostgreSQL. ``--tables`` and ``--snapshots``
set the numbers of both; the floors hold for the default numbers.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
from harness import compare, main
from sqlalchemy import create_engine, text

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/support"))

from rest_kit import reference_server
from servers.postgres import new_database, serve_postgres
from servers.process import answers, free_port, running

CLIENTS, COMMITS = 8, 5
SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}
_SERVE = """
import sys, uvicorn
from icefield import load_catalog
from icefield_rest_server import app
folder, database, port = sys.argv[1:]
catalog = load_catalog("served", type="sql", uri=database, warehouse=f"file://{folder}/w")
uvicorn.run(app(catalog), port=int(port), log_level="warning", access_log=False)
"""


class Server:
    """A running server and clients of it."""

    def __init__(self, uri: str, database: str, tables: int, snapshots: int) -> None:
        self.database, self.tables, self.snapshots = database, tables, snapshots
        self.clients = [httpx.Client(base_url=f"{uri}/v1/", timeout=300) for _ in range(CLIENTS)]
        self.one = self.clients[0]
        self.number = 0

    def ask(self, client: httpx.Client, method: str, path: str, body: Any = None) -> Any:
        answer = client.request(method, path, json=body)
        assert answer.status_code < 300, answer.text[:500]
        return answer.json() if answer.content else None

    def fill(self) -> None:
        """A table with many snapshots, a namespace of many tables, and a table for each client."""
        for name in ("db", "many"):
            self.ask(self.one, "POST", "namespaces", {"namespace": [name]})
        for name in ("long", *(f"c{number}" for number in range(CLIENTS))):
            self.ask(self.one, "POST", "namespaces/db/tables", {"name": name, "schema": SCHEMA})
        location = self.ask(self.one, "GET", "namespaces/db/tables/long")["metadata"]["location"]
        self.ask(
            self.one, "POST", "namespaces/db/tables/long", {"requirements": [], "updates": self._history(location)}
        )
        engine = create_engine(self.database)
        with engine.begin() as database:
            (catalog,) = database.execute(text("SELECT DISTINCT catalog_name FROM iceberg_tables")).one()
            columns = "catalog_name, table_namespace, table_name, metadata_location, iceberg_type"
            row = text(f"INSERT INTO iceberg_tables ({columns}) VALUES (:catalog, 'many', :name, :location, 'TABLE')")
            names = (f"t{number:05}" for number in range(self.tables))
            given = [{"catalog": catalog, "name": name, "location": f"{location}/x.json"} for name in names]
            database.execute(row, given)
        engine.dispose()

    def load(self) -> None:
        found = self.ask(self.one, "GET", "namespaces/db/tables/long")
        assert len(found["metadata"]["snapshots"]) == self.snapshots

    def list(self) -> None:
        assert len(self.ask(self.one, "GET", "namespaces/many/tables")["identifiers"]) == self.tables

    def commit(self) -> None:
        def change(number: int) -> None:
            for _ in range(COMMITS):
                self.number += 1
                update = {"action": "set-properties", "updates": {"n": str(self.number)}}
                body = {"requirements": [], "updates": [update]}
                self.ask(self.clients[number], "POST", f"namespaces/db/tables/c{number}", body)

        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(change, range(CLIENTS)))

    def _history(self, location: str) -> list[dict[str, Any]]:
        updates: list[dict[str, Any]] = []
        now = 1_790_000_000_000
        for number in range(1, self.snapshots + 1):
            snapshot = {
                "snapshot-id": number,
                "sequence-number": number,
                "timestamp-ms": now + number,
                "summary": {"operation": "append", "added-records": "1", "total-records": str(number)},
                "manifest-list": f"{location}/metadata/snap-{number}-1-2a3b0d2e-6d4e-4c35-8a1c-111111111111.avro",
                "schema-id": 0,
            }
            updates.append({"action": "add-snapshot", "snapshot": snapshot})
        return [
            *updates,
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": self.snapshots},
        ]


@contextmanager
def ours(folder: Path, database: str | None) -> Iterator[str]:
    port = free_port()
    command = [sys.executable, "-c", _SERVE, str(folder), database or _sqlite(folder), str(port)]
    with running(command, lambda: answers(f"http://127.0.0.1:{port}/v1/config"), seconds=120):
        yield f"http://127.0.0.1:{port}"


def _sqlite(folder: Path) -> str:
    return f"sqlite:///{folder}/catalog.db"


def run() -> None:
    """Each workload, in turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--over", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--tables", type=int, default=10_000)
    parser.add_argument("--snapshots", type=int, default=1_000)
    chosen = parser.parse_args()
    with ExitStack() as stack, tempfile.TemporaryDirectory() as base:
        postgres = stack.enter_context(serve_postgres()) if chosen.over == "postgresql" else None
        servers = []
        for name, start in (("ours", ours), ("theirs", reference_server)):
            folder = Path(base) / name
            folder.mkdir()
            database = None if postgres is None else new_database(postgres)
            uri = stack.enter_context(start(folder, database))
            servers.append(Server(uri, database or _sqlite(folder), chosen.tables, chosen.snapshots))
            servers[-1].fill()
        mine, java = servers
        for _ in range(3):  # Java compiles code that runs often
            java.load(), java.list(), java.commit()
        compare(f"load a table with {chosen.snapshots:,} snapshots", mine.load, java.load, runs=9, floor=1.0)
        compare(f"list {chosen.tables:,} tables", mine.list, java.list, runs=9, floor=1.0)
        compare(f"{CLIENTS * COMMITS} commits of {CLIENTS} clients", mine.commit, java.commit, runs=7, floor=1.0)


if __name__ == "__main__":
    main(run)
