"""A catalog for the pages of the explorer: a table with everything that is shown, hostile names, and little."""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
import random
import sqlite3
import time
from dataclasses import replace
from decimal import Decimal
from functools import partial
from html.parser import HTMLParser
from typing import Any
from uuid import uuid4

import icefield
import pyarrow as pa
from icefield import Catalog, Plugins, Table, hookimpl
from icefield.manifest import DataFile
from icefield.types import DateType, LongType, StringType
from icefield.types.values import value_to_bytes
from icefield_explorer import show
from icefield_maintenance.tend import Policy, TendedOperation
from icefield_report import ReportSection, SectionContext
from icefield_rest_server import Settings, app
from local_client import LocalClient
from tended_tables import add_to_record

MARK = "owned-by-a-name"
HOSTILE = f"<img src=x onerror=document['title']='{MARK}'>\"'&amp;"
"""Markup that no page may take for its own, without a slash: names of tables have none."""

SCRIPT = f"</textarea></code><script>document['title']='{MARK}'</script>{{{{7*7}}}}{HOSTILE}"

ORDERS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("at", pa.timestamp("us")),
        pa.field("country", pa.string(), metadata={"doc": "ISO code of the country"}),
        ("amount", pa.decimal128(12, 2)),
        ("tags", pa.list_(pa.string())),
        ("address", pa.struct([("city", pa.string()), ("zip", pa.string())])),
    ]
)
MERGE_ON_READ = {
    "format-version": "2",
    "write.delete.mode": "merge-on-read",
    "commit.manifest-merge.enabled": "false",
    "comment": "All orders since 2023",
}
TABLE_PAGES = ("table", "schema", "snapshots", "diff", "branches", "files", "health", "maintenance", "plan", "rows")


class TendingPlugin:
    """A plugin with a section of the page about a table: it says what it did."""

    @hookimpl(optionalhook=True)
    def icefield_report_sections(self) -> list[ReportSection]:
        return [ReportSection("tending", "Tending", "explored:tended")]


def tended(context: SectionContext) -> str:
    return f"Nothing was done to {'.'.join(context.table.name())} <b>yet</b>."


def explored_catalog() -> Catalog:
    """The catalog: ``sales.orders``, a view, an empty table, and a namespace of hostile names."""
    plugins = Plugins.installed(extra=[TendingPlugin()])
    place = {"uri": "sqlite://", "warehouse": f"memory://{uuid4().hex}"}
    catalog = icefield.load_catalog("lake", type="sql", plugins=plugins, **place)
    for name in (("sales",), ("web",), (HOSTILE,)):
        catalog.create_namespace(name, {"owner": "data team", HOSTILE: SCRIPT})
    catalog.create_namespace(("sales", "eu"))
    table = catalog.create_table(
        "sales.orders", ORDERS, partition_spec=["month(at)", "country"], properties=MERGE_ON_READ
    )
    numbers = random.Random(3)
    for _ in range(4):
        table.append(orders(numbers, 60))
    table.delete("id < 300000 and country = 'DE'")
    with table.update_schema() as change:
        change.add_column("note", "string", doc="free text")
        change.rename_column("amount", "total")
    head = table.metadata.current_snapshot_id
    assert head is not None
    table.manage_snapshots().create_tag(head, "audit-2023").create_branch(head, "dev").commit()
    table.overwrite(table.scan("country = 'FR'").to_arrow(), overwrite_filter="country = 'FR'")
    catalog.create_table("web.empty", ORDERS)
    catalog.create_table("web.clicks", pa.schema([("id", pa.int64())])).append(pa.table({"id": [1, 2, 3]}))
    queries = {"spark": "SELECT country,\n  count(*) AS n\nFROM sales.orders\nGROUP BY country"}
    catalog.create_view("sales.by_country", pa.schema([("country", pa.string()), ("n", pa.int64())]), queries)
    _add_hostile(catalog)
    return catalog


POLICY = Policy.from_mapping(
    {
        "record": "ops.tend",
        "rules": [{"tables": "*", "preset": "upsert-heavy"}, {"tables": "sales.*", "files-per-scan": 2}],
        "budget": {"bytes-per-day": "1 kB"},
    }
)
"""The policy of the pages about maintenance."""


def with_record(catalog: Catalog) -> Catalog:
    """Add a record of maintenance to the catalog, with texts that are hostile."""
    began = dt.datetime.now(dt.UTC) - dt.timedelta(days=2)
    done = TendedOperation(
        at=began,
        table="sales.orders",
        operation="rewrite_data_files",
        outcome="done",
        reason="48 data files in 12 partitions become about 12",
        planned_requests=36,
        planned_bytes=5000,
        planned_rewrite=150_000,
        measured_requests=35,
        measured_bytes=-300,
        rewritten_bytes=150_000,
        seconds=3.25,
        owner="host:1",
    )
    lost = replace(done, at=began + dt.timedelta(hours=1), outcome="lost", message="others commit faster")
    hostile = {"table": f"{HOSTILE}.{HOSTILE}", "operation": SCRIPT, "message": SCRIPT, "reason": SCRIPT}
    failed = replace(done, outcome="failed", **hostile)  # type: ignore[arg-type]
    add_to_record(catalog, str(POLICY.record), done, lost, failed)
    return catalog


def orders(numbers: random.Random, count: int) -> pa.Table:
    """Orders of a year in two countries."""
    start = dt.datetime(2023, 1, 1)
    columns = {
        "id": [numbers.randrange(10**6) for _ in range(count)],
        "at": [start + dt.timedelta(days=numbers.randrange(360)) for _ in range(count)],
        "country": [numbers.choice(["DE", "FR"]) for _ in range(count)],
        "amount": [Decimal(numbers.randrange(10**5)) / 100 for _ in range(count)],
        "tags": [["a", "b"]] * count,
        "address": [{"city": "Köln", "zip": "50667"}] * count,
    }
    return pa.table(columns, schema=ORDERS)


def _add_hostile(catalog: Catalog) -> None:
    """A table and a view in which every text is hostile."""
    schema = pa.schema([("id", pa.int64()), pa.field(SCRIPT, pa.string(), metadata={"doc": SCRIPT})])
    table = catalog.create_table((HOSTILE, HOSTILE), schema, partition_spec=[SCRIPT], properties={SCRIPT: SCRIPT})
    rows = pa.table([[1, 2], [SCRIPT, HOSTILE]], schema=schema)
    table.append(rows, snapshot_properties={SCRIPT: SCRIPT, "engine-name": SCRIPT, "user": HOSTILE})
    table.append(rows)
    head = table.metadata.current_snapshot_id
    assert head is not None
    table.manage_snapshots().create_tag(head, SCRIPT).commit()
    catalog.create_view((HOSTILE, f"v{HOSTILE}"), schema, {SCRIPT: SCRIPT}, properties={SCRIPT: SCRIPT})


def many_tables(catalog: Catalog, count: int) -> None:
    """Tables of one namespace in a catalog over a file of SQLite: names for one table's metadata file."""
    location = catalog.create_table("db.t", pa.schema([("id", pa.int64())])).metadata_location
    with (
        contextlib.closing(sqlite3.connect(catalog.properties["uri"].removeprefix("sqlite:///"))) as database,
        database,
    ):
        rows = [(catalog.name, "db", f"table_{number:05}", location) for number in range(count)]
        insert = "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location) "
        database.executemany(f"{insert} VALUES (?, ?, ?, ?)", rows)


def table_of_many_files(catalog: Catalog, count: int, commits: int = 50) -> Table:
    """A table whose manifests name files that nobody wrote, in 365 partitions."""
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("name", pa.string())])
    table = catalog.create_table("db.many", schema, partition_spec=["day"])
    sizes = random.Random(1)
    numbers = itertools.count()
    for _ in range(commits):
        with table.transaction() as tx, tx.update_snapshot().fast_append() as append:
            for number in itertools.islice(numbers, count // commits):
                append.append_file(_unwritten(table, number, int(sizes.lognormvariate(16, 1))))
    return table


def append_location(table: Table, location: str) -> None:
    """Append a file that nobody wrote to a table without partitions."""
    file = DataFile(file_path=location, file_format="parquet", partition=(), record_count=1, file_size_in_bytes=9)
    with table.transaction() as tx, tx.update_snapshot().fast_append() as append:
        append.append_file(file)


def _unwritten(table: Table, number: int, size: int) -> DataFile:
    day = 19_000 + number % 365
    low, high = (
        {
            1: value_to_bytes(LongType(), first),
            2: value_to_bytes(DateType(), day),
            3: value_to_bytes(StringType(), name),
        }
        for first, name in ((number, "a"), (number + 999, "z"))
    )
    return DataFile(
        file_path=f"{table.location()}/data/day={day}/{number:06}.parquet",
        file_format="parquet",
        partition=(day,),
        record_count=1000,
        file_size_in_bytes=size,
        lower_bounds=low,
        upper_bounds=high,
        value_counts=dict.fromkeys(low, 1000),
        null_value_counts=dict.fromkeys(low, number % 7),
        column_sizes=dict.fromkeys(low, 5000),
    )


class ExploredPage(HTMLParser):
    """The text of a page, the names of its elements with their attributes, and its links."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        self.text = " ".join(self.text.split())
        self.links = [each["href"] or "" for tag, each in self.elements if tag == "a" and "href" in each]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += f"{data} "


def explorer_client(catalog: Catalog, **settings: Any) -> LocalClient:
    """A client of a server with the explorer."""
    return LocalClient(app(catalog, Settings(pages={"ui": partial(show, policy=POLICY)}, **settings)))


def settled(client: LocalClient, path: str, **more: Any) -> Any:
    """The answer of a page, asked again as a browser would until nothing is under way."""
    for _ in range(200):
        answer = client.get(path, **more)
        if "refresh" not in answer.headers:
            return answer
        time.sleep(0.05)
    raise AssertionError(f"{path} did not end")
