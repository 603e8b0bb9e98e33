"""The requests of each step of a table's life, counted before the servers, and equal to the table in the guide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pytest
from http_between import Asked, Between
from icefield import Catalog, load_catalog
from icefield.manifest import clear_caches
from icefield.writing import write_batches
from rest_process import serving
from servers.s3 import S3

GUIDE: Final = Path(__file__).parents[2] / "docs/guide/storage.md"
KINDS: Final = ("HEAD", "GET", "LIST", "PUT", "DELETE", "CALL")
CATALOGS: Final = ("sql", "directory", "rest")
ROWS: Final = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])
ALL: Final = {"older_than": 2**60, "retain_last": 1}

REQUESTS: Final[Mapping[str, tuple[str, str, str]]] = {
    "create a table": ("2 LIST, 1 PUT", "2 HEAD, 2 GET, 3 LIST, 2 PUT", "1 CALL"),
    "append, the first time": ("4 PUT", "3 HEAD, 1 GET, 5 PUT", "3 PUT, 2 CALL"),
    "append again": ("4 PUT", "3 HEAD, 1 GET, 5 PUT", "3 PUT, 2 CALL"),
    "fast append of a written file": ("3 PUT", "3 HEAD, 1 GET, 4 PUT", "2 PUT, 2 CALL"),
    "load, the first time": ("1 GET", "4 HEAD, 2 GET", "1 CALL"),
    "load again": ("none", "4 HEAD, 1 GET", "1 CALL"),
    "load by another catalog object": ("none", "4 HEAD, 1 GET", "1 CALL"),
    "plan a scan of 3 manifests": ("4 GET", "4 GET", "4 GET"),
    "plan again": ("none", "none", "none"),
    "read 3 files": ("3 GET", "3 GET", "3 GET"),
    "append after loading": ("4 PUT", "3 HEAD, 1 GET, 5 PUT", "3 PUT, 2 CALL"),
    "delete a row of a file": ("1 GET, 5 PUT", "3 HEAD, 2 GET, 6 PUT", "1 GET, 4 PUT, 2 CALL"),
    "delete all rows of a file": ("3 PUT", "3 HEAD, 1 GET, 4 PUT", "2 PUT, 2 CALL"),
    "overwrite the rows of a file": ("1 GET, 5 PUT", "3 HEAD, 2 GET, 6 PUT", "1 GET, 4 PUT, 2 CALL"),
    "upsert a row": ("1 GET, 4 PUT", "3 HEAD, 2 GET, 5 PUT", "1 GET, 3 PUT, 2 CALL"),
    "rewrite manifests": ("3 PUT", "7 HEAD, 2 GET, 4 PUT", "2 PUT, 3 CALL"),
    "compact 4 files": ("4 GET, 5 PUT", "7 HEAD, 6 GET, 6 PUT", "4 GET, 4 PUT, 3 CALL"),
    "expire all snapshots but one": (
        "6 GET, 1 PUT, 4 DELETE",
        "7 HEAD, 8 GET, 2 PUT, 4 DELETE",
        "9 GET, 1 LIST, 4 DELETE, 3 CALL",
    ),
    "expire again": ("1 HEAD, 4 GET", "9 HEAD, 7 GET", "1 HEAD, 4 GET, 2 CALL"),
    "drop the table": ("2 GET", "9 HEAD, 5 GET, 2 PUT", "1 CALL"),
}

Steps = dict[str, str]


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "name": [f"n{number}" for number in ids]}, schema=ROWS)


def kind_of(asked: Asked) -> str:
    """The kind of a request to the store."""
    if asked.path.endswith("?delete"):
        return "DELETE"
    return "LIST" if "list-type=2" in asked.path else asked.method


def shown(counts: Counter[str]) -> str:
    return ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind]) or "none"


class Counting:
    """Counts the requests of each step with one catalog. ``store`` and ``service`` are between client and servers."""

    def __init__(self, store: Between, service: Between | None, opened: Callable[[], Catalog]) -> None:
        self._store, self._service, self._opened = store, service, opened
        self.steps: Steps = {}

    def step(self, name: str, done: Callable[[], Any]) -> Any:
        self._taken()
        result = done()
        self.steps[name] = shown(self._taken())
        return result

    def _taken(self) -> Counter[str]:
        found = Counter(map(kind_of, self._store.asked))
        self._store.asked.clear()
        if self._service is not None:  # reports of metrics are sent later
            found["CALL"] = sum(not asked.path.endswith("/metrics") for asked in self._service.asked)
            self._service.asked.clear()
        return found

    def life(self) -> Steps:
        """Each step of a small table, in order."""
        catalog = self._opened()
        catalog.create_namespace("db")
        table = self.step("create a table", lambda: catalog.create_table("db.t", ROWS))
        self.step("append, the first time", lambda: table.append(rows(1, 2)))
        self.step("append again", lambda: table.append(rows(3, 4)))
        written = write_batches(table.write_context(), rows(5).to_batches())
        (file,) = list(written)
        self.step("fast append of a written file", table.update_snapshot().fast_append().append_file(file).commit)
        clear_caches()
        catalog = self._opened()
        catalog.load_namespace_properties("db")
        self.step("load, the first time", lambda: catalog.load_table("db.t"))
        self.step("load again", lambda: catalog.load_table("db.t"))
        other = self._opened()
        other.load_namespace_properties("db")
        table = self.step("load by another catalog object", lambda: other.load_table("db.t"))
        self.step("plan a scan of 3 manifests", lambda: [*table.scan().plan_files()])
        self.step("plan again", lambda: [*table.scan().plan_files()])
        self.step("read 3 files", lambda: table.scan().to_arrow())
        self.step("append after loading", lambda: table.append(rows(6)))
        self.step("delete a row of a file", lambda: table.delete("id = 1"))
        self.step("delete all rows of a file", lambda: table.delete("id = 2"))
        self.step("overwrite the rows of a file", lambda: table.overwrite(rows(7, 8), "id in (3, 4)"))
        self.step("upsert a row", lambda: table.upsert(rows(7, 9), join_cols=["id"]))
        self.step("rewrite manifests", lambda: table.maintenance.rewrite_manifests())
        self.step("compact 4 files", lambda: table.maintenance.rewrite_data_files(min_input_files=2))
        self.step("expire all snapshots but one", lambda: table.maintenance.expire_snapshots(**ALL))
        self.step("expire again", lambda: table.maintenance.expire_snapshots(**ALL))
        self.step("drop the table", lambda: other.drop_table("db.t"))
        return self.steps


@pytest.fixture(scope="module")
def counted(s3: S3, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Steps]]:
    """The steps with their requests, by catalog."""
    with ExitStack() as stack:
        store = stack.enter_context(Between(s3.url).open())
        found = {}
        for kind in CATALOGS:
            warehouse = f"s3://{s3.bucket}/{uuid4().hex}"
            uri = f"sqlite:///{tmp_path_factory.mktemp(kind)}/catalog.db"
            place, service = {"type": kind, "uri": uri, "warehouse": warehouse}, None
            if kind == "rest":
                behind = stack.enter_context(serving({**place, "type": "sql", **s3.properties}))
                service = stack.enter_context(Between(behind).open())
                place = {"type": "rest", "uri": service.url}
            elif kind == "directory":
                del place["uri"]
            given = {**place, **S3(store.url).properties}
            found[kind] = Counting(store, service, lambda given=given: load_catalog("steps", **given)).life()
        yield found


@pytest.mark.parametrize("at", range(len(CATALOGS)), ids=CATALOGS)
def test_each_step_makes_as_many_requests_as_the_table_states(at: int, counted: Mapping[str, Steps]) -> None:
    assert counted[CATALOGS[at]] == {step: cells[at] for step, cells in REQUESTS.items()}


def test_the_guide_shows_the_same_table() -> None:
    lines = [f"| {step} | {' | '.join(cells)} |" for step, cells in REQUESTS.items()]
    assert "\n".join(lines) in GUIDE.read_text("utf-8")
