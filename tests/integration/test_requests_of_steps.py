"""The requests of each step of a table's life, counted between the client and its servers, and stated in the guide."""

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
from rest_process import serving
from servers.s3 import S3

GUIDE: Final = Path(__file__).parents[2] / "docs/guide/storage.md"
KINDS: Final = ("HEAD", "GET", "LIST", "PUT", "DELETE", "call")
CATALOGS: Final = ("sql", "directory", "rest")
ROWS: Final = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])

Steps = dict[str, Counter[str]]


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "name": [f"n{number}" for number in ids]}, schema=ROWS)


def kind_of(asked: Asked) -> str:
    """The kind of a request to the store, as its provider counts it."""
    if asked.path.endswith("?delete"):
        return "DELETE"
    return "LIST" if "list-type=2" in asked.path else asked.method


class Counting:
    """Counts the requests of each step that a process makes with one catalog."""

    def __init__(self, store: Between, service: Between | None, opened: Callable[[], Catalog]) -> None:
        self._store, self._service, self._opened = store, service, opened
        self.steps: Steps = {}

    def step(self, name: str, done: Callable[[], Any]) -> Any:
        self._taken()
        result = done()
        self.steps[name] = self._taken()
        return result

    def _taken(self) -> Counter[str]:
        found = Counter(map(kind_of, self._store.asked))
        self._store.asked.clear()
        if self._service is not None:
            found["call"] = len(self._service.asked)
            self._service.asked.clear()
        return +found

    def life(self) -> Steps:
        """All steps of the table in the guide, in order."""
        catalog = self._opened()
        catalog.create_namespace("db")
        table = self.step("create a table", lambda: catalog.create_table("db.t", ROWS))
        self.step("append to it", lambda: table.append(rows(1, 2)))
        self.step("append again", lambda: table.append(rows(3, 4)))
        self.step("fast append", lambda: table.append(rows(5), **{}))
        clear_caches()
        other = self._opened()
        table = self.step("load, first of a process", lambda: other.load_table("db.t"))
        self.step("load again", lambda: other.load_table("db.t"))
        another = self._opened()
        table = self.step("load by another catalog object", lambda: another.load_table("db.t"))
        self.step("plan a scan of three manifests", lambda: list(table.scan().plan_files()))
        self.step("plan it again", lambda: list(table.scan().plan_files()))
        self.step("read three files", lambda: table.scan().to_arrow())
        self.step("append after loading", lambda: table.append(rows(6)))
        self.step("delete a row of a file", lambda: table.delete("id = 1"))
        self.step("delete a whole file", lambda: table.delete("id = 2"))
        self.step("overwrite the rows of a filter", lambda: table.overwrite(rows(7, 8), "id in (3, 4)"))
        self.step("upsert a row", lambda: table.upsert(rows(7, 9), join_cols=["id"]))
        self.step("rewrite manifests", lambda: table.maintenance.rewrite_manifests())
        self.step("compact", lambda: table.maintenance.rewrite_data_files(min_input_files=2))
        self.step("expire all snapshots but one", lambda: table.maintenance.expire_snapshots(older_than=2**60, retain_last=1))
        self.step("expire again", lambda: table.maintenance.expire_snapshots(older_than=2**60, retain_last=1))
        self.step("drop", lambda: another.drop_table("db.t"))
        return self.steps


@pytest.fixture(scope="module")
def counted(s3: S3, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Steps]]:
    """The counted steps by catalog."""
    with ExitStack() as stack:
        store = stack.enter_context(Between(s3.url).open())
        reached = S3(store.url).properties
        found = {}
        for kind in CATALOGS:
            folder, warehouse = tmp_path_factory.mktemp(kind), f"s3://{s3.bucket}/{uuid4().hex}"
            place = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": warehouse}
            service = None
            if kind == "directory":
                place = {"type": "directory", "warehouse": warehouse}
            elif kind == "rest":
                behind = stack.enter_context(serving({**place, **s3.properties}))
                service = stack.enter_context(Between(behind).open())
                place = {"type": "rest", "uri": service.url}
            found[kind] = Counting(store, service, lambda given={**place, **reached}: load_catalog("steps", **given)).life()
        yield found


def shown(counts: Counter[str]) -> str:
    return ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind]) or "none"


def test_show(counted):
    for step in counted["sql"]:
        print(f"| {step} | " + " | ".join(shown(counted[kind][step]) for kind in CATALOGS) + " |")
    assert 0
