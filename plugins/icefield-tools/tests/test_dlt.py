"""Pipelines of dlt that load into Icefield, beside the same pipelines into dlt's own destinations."""

from __future__ import annotations

import datetime as dt
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import dlt
import duckdb
import icefield as ice
import pyarrow as pa
import pytest
from dlt.common import json as dlt_json
from dlt.common.destination.exceptions import DestinationTransientException
from dlt.load.load import Load
from dlt.pipeline.exceptions import PipelineStepFailed
from engines import DuckDBEngine
from fenced import Page, run_page
from icefield.errors import NotSupportedByCatalog
from icefield_tools.dlt import icefield, icefield_adapter
from icefield_tools.dlt.client import IcefieldClient
from pyiceberg.catalog.sql import SqlCatalog

Rows = list[dict[str, Any]]


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without settings of dlt, no telemetry, and a loader that looks at its jobs often."""
    made = Load.__init__

    def busy(self: Any, *args: Any, **options: Any) -> None:
        made(self, *args, **options)
        self._run_loop_sleep_duration = 0.02

    monkeypatch.setattr(Load, "__init__", busy)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUNTIME__DLTHUB_TELEMETRY", "false")
    monkeypatch.setenv("DLT_PROJECT_DIR", str(tmp_path))
    monkeypatch.setenv("DLT_DATA_DIR", str(tmp_path / "dlt"))


def sql_catalog(folder: Path) -> ice.Catalog:
    return ice.load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/lake.db", warehouse=f"file://{folder}/lake")


def directory_catalog(folder: Path) -> ice.Catalog:
    """A catalog that changes one table in a step."""
    return ice.load_catalog("lake", type="directory", warehouse=f"file://{folder}/lake")


@pytest.fixture(params=[sql_catalog, directory_catalog], ids=["sql", "directory"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ice.Catalog]:
    made = request.param(tmp_path)
    yield made
    made.close()


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[ice.Catalog]:
    made = sql_catalog(tmp_path)
    yield made
    made.close()


def pipeline(destination: Any, name: str = "shop") -> Any:
    return dlt.pipeline(name, destination=destination, dataset_name="shop")


def rows_of(catalog: ice.Catalog, table: str, *columns: str) -> list[tuple[Any, ...]]:
    found = catalog.load_table(("shop", table)).scan().select(*columns).to_arrow()
    rows = (tuple(row.values()) for row in found.to_pylist())
    return sorted(rows, key=lambda row: [(value is not None, value) for value in row])


LAST_ID = dlt.sources.incremental("id", initial_value=0)
ORDERS = [
    {"id": 1, "state": "new", "lines": [{"item": "a", "n": 1}, {"item": "b", "n": 2}]},
    {"id": 2, "state": "new", "lines": [{"item": "c", "n": 3}]},
    {"id": 3, "state": "new", "lines": []},
]
LATER = [
    {"id": 2, "state": "sent", "lines": [{"item": "c", "n": 4}, {"item": "d", "n": 5}]},
    {"id": 4, "state": "new", "lines": [{"item": "e", "n": 6}]},
]


def run_twice(destination: Any, name: str = "shop", later: Rows = LATER, **hints: Any) -> Any:
    made = pipeline(destination, name)
    for rows in (ORDERS, later):
        made.run(dlt.resource(rows, name="orders", **hints))
    return made


@pytest.mark.parametrize(
    ("disposition", "orders", "items"),
    [
        ("append", [(1, "new"), (2, "new"), (2, "sent"), (3, "new"), (4, "new")], "abccde"),
        ("replace", [(2, "sent"), (4, "new")], "cde"),
        ("merge", [(1, "new"), (2, "sent"), (3, "new"), (4, "new")], "abcde"),
        ({"disposition": "merge", "strategy": "upsert"}, [(1, "new"), (2, "sent"), (3, "new"), (4, "new")], "abcde"),
        ({"disposition": "merge", "strategy": "insert-only"}, [(1, "new"), (2, "new"), (3, "new"), (4, "new")], None),
    ],
    ids=["append", "replace", "delete-insert", "upsert", "insert-only"],
)
def test_each_write_disposition_gives_the_rows_that_dlt_gives_in_duckdb(
    catalog: ice.Catalog, tmp_path: Path, disposition: Any, orders: list[tuple[int, str]], items: str | None
) -> None:
    hints = {"write_disposition": disposition, "primary_key": "id"}
    run_twice(icefield(catalog), **hints)
    run_twice(dlt.destinations.duckdb(str(tmp_path / "peer.db")), "peer", **hints)
    assert rows_of(catalog, "orders", "id", "state") == orders
    with duckdb.connect(str(tmp_path / "peer.db")) as peer:
        columns = ("id", "state"), ("item", "n", "_dlt_list_idx")
        for table, names in zip(("orders", "orders__lines"), columns, strict=True):
            expected = sorted(peer.sql(f"SELECT {', '.join(names)} FROM shop.{table}").fetchall())
            assert rows_of(catalog, table, *names) == expected
    if items is not None:
        assert "".join(item for (item,) in rows_of(catalog, "orders__lines", "item")) == items
    lines = catalog.load_table("shop.orders__lines").scan().to_arrow()
    parents = catalog.load_table("shop.orders").scan().to_arrow()["_dlt_id"].to_pylist()
    assert set(lines["_dlt_parent_id"].to_pylist()) <= set(parents)


@pytest.mark.parametrize("disposition", ["append", "replace", {"disposition": "merge", "strategy": "upsert"}])
def test_the_rows_are_those_of_dlts_own_iceberg_tables_and_other_readers_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disposition: Any
) -> None:
    catalog = sql_catalog(tmp_path)
    hints = {"write_disposition": disposition, "primary_key": "id"}
    run_twice(icefield(catalog), **hints)
    monkeypatch.setenv("ICEBERG_CATALOG__ICEBERG_CATALOG_NAME", "peer")
    peer_uri = f"sqlite:///{tmp_path}/peer.db"
    config = dlt_json.dumps({"type": "sql", "uri": peer_uri, "warehouse": f"file://{tmp_path}/peer"})
    monkeypatch.setenv("ICEBERG_CATALOG__ICEBERG_CATALOG_CONFIG", config)
    run_twice(dlt.destinations.filesystem(f"file://{tmp_path}/peer"), "peer", table_format="iceberg", **hints)

    duck = DuckDBEngine()
    theirs = SqlCatalog("peer", uri=peer_uri)
    ours = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/lake.db")
    for table, columns in (("orders", ("id", "state")), ("orders__lines", ("item", "n"))):
        expected = rows_of(catalog, table, *columns)
        for read in (theirs, ours):
            found = read.load_table(("shop", table)).scan(selected_fields=columns).to_arrow().select(columns)
            assert sorted(tuple(row.values()) for row in found.to_pylist()) == expected
        location = catalog.load_table(("shop", table)).metadata_location
        query = f"SELECT {', '.join(columns)} FROM iceberg_scan('{location}')"
        assert sorted(duck.execute(query).fetchall()) == expected
        # dlt's own replaces nothing in one commit: it has more snapshots for the same rows.
        snapshots = len(catalog.load_table(("shop", table)).snapshots())
        assert snapshots <= len(theirs.load_table(("shop", table)).snapshots())


def test_replacing_is_one_snapshot_and_empties_the_nested_tables_without_rows(lake: ice.Catalog) -> None:
    run_twice(icefield(lake), later=[{"id": 9, "state": "new"}], write_disposition="replace")
    assert rows_of(lake, "orders", "id") == [(9,)]
    assert rows_of(lake, "orders__lines", "item") == []
    assert [each.summary["operation"] for each in lake.load_table("shop.orders").snapshots()] == [
        "append",
        "overwrite",
    ]


def test_hard_deletes_remove_rows_and_the_rows_below_them(catalog: ice.Catalog) -> None:
    gone = [{"id": 1, "gone": True}, {"id": 5, "gone": True}, {"id": 2, "state": "kept", "gone": False, "lines": []}]
    for strategy in ("delete-insert", "upsert"):
        made = run_twice(
            icefield(catalog),
            strategy.replace("-", "_"),
            later=gone,
            write_disposition={"disposition": "merge", "strategy": strategy},
            primary_key="id",
            columns={"gone": {"data_type": "bool", "hard_delete": True}},
        )
        assert rows_of(catalog, "orders", "id", "state") == [(2, "kept"), (3, "new")], strategy
        assert rows_of(catalog, "orders__lines", "item") == [], strategy
        with made.destination_client() as client:
            client.drop_storage()


def test_a_merge_keeps_the_newest_row_of_a_key_and_replaces_the_rows_of_a_merge_key(lake: ice.Catalog) -> None:
    made = pipeline(icefield(lake))
    day = {"disposition": "merge", "strategy": "delete-insert"}

    def load(rows: Rows) -> None:
        made.run(
            dlt.resource(
                rows,
                name="visits",
                write_disposition=day,
                primary_key="id",
                merge_key="day",
                columns={"seen": {"dedup_sort": "desc"}},
            )
        )

    load([{"id": n, "day": n % 2, "seen": 0} for n in range(6)])
    load([{"id": 1, "day": 1, "seen": 2}, {"id": 1, "day": 1, "seen": 1}, {"id": 8, "day": 1, "seen": 0}])
    assert rows_of(lake, "visits", "id", "seen") == [(0, 0), (1, 2), (2, 0), (4, 0), (8, 0)]


def test_new_columns_types_and_tables_are_added(lake: ice.Catalog) -> None:
    made = pipeline(icefield(lake))
    made.run([{"id": 1, "n": 1}], table_name="things")
    made.run([{"id": 2, "n": "two", "at": {"x": 1.5}, "tags": ["a"]}], table_name="things")
    assert rows_of(lake, "things", "id", "n", "n__v_text", "at__x") == [(1, 1, None, None), (2, None, "two", 1.5)]
    assert rows_of(lake, "things__tags", "value") == [("a",)]
    optional = dlt.resource(lambda: [{"id": None}], name="things", columns={"id": {"nullable": True}})
    required = dlt.resource(lambda: [{"id": 1}], name="others", columns={"id": {"nullable": False}})
    made.run([required()])
    assert lake.load_table("shop.others").schema().find_field("id").required
    made.run(optional().apply_hints(table_name="others"))
    assert not lake.load_table("shop.others").schema().find_field("id").required
    assert rows_of(lake, "others", "id") == [(None,), (1,)]


def test_values_of_every_type_come_back(lake: ice.Catalog) -> None:
    value = {
        "text": "ä",
        "double": 0.5,
        "flag": True,
        "at": dt.datetime(2024, 1, 2, 3, 4, 5, 678901, dt.UTC),
        "big": 2**62,
        "raw": b"\x00\xff",
        "money": Decimal("12.340000000"),
        "wei": Decimal(10**30),
        "day": dt.date(2024, 1, 2),
        "time": dt.time(1, 2, 3, 4),
        "doc": {"a": [1]},
    }
    columns = {"doc": {"data_type": "json"}, "wei": {"data_type": "wei"}, "day": {"partition": True}}
    pipeline(icefield(lake)).run(dlt.resource([value], name="kinds", columns=columns))
    (found,) = lake.load_table("shop.kinds").scan().to_arrow().to_pylist()
    assert {name: found[name] for name in value} == {**value, "doc": '{"a":[1]}'}
    assert [field.name for field in lake.load_table("shop.kinds").metadata.spec().fields] == ["day"]


def test_frames_of_arrow_are_loaded_and_nested_types_stay(lake: ice.Catalog) -> None:
    frame = pa.table(
        {
            "id": pa.array([1, 2], pa.int16()),
            "kind": pa.array(["a", "b"]).dictionary_encode(),
            "at": pa.array([0, 1], pa.timestamp("ms")),
            "place": [{"x": 1, "y": [1.5]}, None],
        }
    )
    pipeline(icefield(lake)).run(frame, table_name="frames")
    found = lake.load_table("shop.frames").scan().to_arrow()
    assert found.select(["id", "kind", "place"]).to_pylist() == frame.select(["id", "kind", "place"]).to_pylist()
    assert [at.replace(tzinfo=None) for at in found["at"].to_pylist()] == frame["at"].to_pylist()


def test_a_table_is_made_with_the_partitions_and_properties_of_the_adapter(lake: ice.Catalog) -> None:
    rows = dlt.resource([{"id": 1, "at": dt.datetime(2024, 1, 2, tzinfo=dt.UTC)}], name="events")
    adapted = icefield_adapter(
        rows, partition_spec=["day(at)", "bucket[4](id)"], properties={"write.delete.mode": "merge-on-read"}
    )
    pipeline(icefield(lake, table_properties={"format-version": 3})).run(adapted)
    table = lake.load_table("shop.events")
    assert [str(field.transform) for field in table.metadata.spec().fields] == ["day", "bucket[4]"]
    assert (table.format_version, table.properties["write.delete.mode"]) == (3, "merge-on-read")


def test_the_state_of_a_pipeline_comes_back_from_the_destination(lake: ice.Catalog, tmp_path: Path) -> None:
    asked: list[int] = []

    @dlt.resource(name="numbers", write_disposition="append")
    def numbers(last: Any = LAST_ID) -> Iterator[Rows]:
        asked.append(last.last_value)
        yield [{"id": n} for n in range(1, 4 if len(asked) == 1 else 6)]

    pipeline(icefield(lake)).run(numbers())
    pipeline(icefield(lake)).drop()
    fresh = pipeline(icefield(lake))
    fresh.run(numbers())
    assert asked == [0, 3]
    assert rows_of(lake, "numbers", "id") == [(n,) for n in range(1, 6)]
    assert fresh.default_schema_name in {name for (name,) in rows_of(lake, "_dlt_version", "schema_name")}


def lost_reply(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let each first commit of a load succeed and its reply be lost; the list grows with each commit."""
    commits: list[int] = []
    commit: Callable[..., None] = IcefieldClient._commit

    def failing(self: IcefieldClient, changes: Any) -> None:
        commit(self, changes)
        commits.append(len(changes))
        if len(commits) == 1:
            raise DestinationTransientException("the reply was lost")

    monkeypatch.setattr(IcefieldClient, "_commit", failing)
    return commits


@pytest.mark.parametrize("disposition", ["append", "replace", "merge"])
def test_a_job_that_is_repeated_after_a_lost_reply_adds_nothing_twice(
    catalog: ice.Catalog, monkeypatch: pytest.MonkeyPatch, disposition: str
) -> None:
    commits = lost_reply(monkeypatch)
    made = pipeline(icefield(catalog))
    made.run(dlt.resource(ORDERS, name="orders", write_disposition=disposition, primary_key="id"))
    assert sorted(commits)[0] == 0 or 0 in commits, "the repeated job found its chain committed"
    assert rows_of(catalog, "orders", "id") == [(1,), (2,), (3,)]
    assert rows_of(catalog, "orders__lines", "item") == [("a",), ("b",), ("c",)]
    assert all(len(catalog.load_table(name).snapshots()) == 1 for name in ("shop.orders", "shop.orders__lines"))


KILLED = """
import os, sys, dlt, icefield as ice
from icefield_tools.dlt import icefield
from icefield_tools.dlt.client import IcefieldClient
commit = IcefieldClient._commit
def killed(self, changes):
    commit(self, changes)
    if "orders" in changes:
        os._exit(9)
IcefieldClient._commit = killed
catalog = ice.load_catalog("lake", type="sql", uri=sys.argv[1], warehouse=sys.argv[2])
pipeline = dlt.pipeline("shop", destination=icefield(catalog), dataset_name="shop")
pipeline.run([{"id": 1}, {"id": 2}], table_name="orders")
"""


def test_a_load_that_a_killed_process_began_is_finished_without_rows_twice(tmp_path: Path) -> None:
    catalog = sql_catalog(tmp_path)
    uri, warehouse = catalog.properties["uri"], catalog.properties["warehouse"]
    ran = subprocess.run([sys.executable, "-c", KILLED, uri, warehouse], check=False, capture_output=True, text=True)
    assert ran.returncode == 9, ran.stderr
    assert rows_of(catalog, "_dlt_loads", "load_id") == []
    pipeline(icefield(catalog)).load()
    assert rows_of(catalog, "orders", "id") == [(1,), (2,)]
    assert len(rows_of(catalog, "_dlt_loads", "load_id")) == 1


def test_a_merge_that_stops_between_two_tables_is_completed_by_the_next_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = directory_catalog(tmp_path)
    made = pipeline(icefield(catalog))
    hints = {"name": "orders", "write_disposition": "merge", "primary_key": "id"}
    made.run(dlt.resource(ORDERS, **hints))
    begin, begun = ice.Table.transaction, []

    def failing(table: ice.Table) -> Any:
        begun.append(table.name()[-1])
        if begun.count("orders") == 1 and begun[-1] == "orders":
            raise DestinationTransientException("between two tables")
        return begin(table)

    monkeypatch.setattr(ice.Table, "transaction", failing)
    made.run(dlt.resource(LATER, **hints))
    assert begun[:2] == ["orders__lines", "orders"]
    assert rows_of(catalog, "orders", "id", "state") == [(1, "new"), (2, "sent"), (3, "new"), (4, "new")]
    assert "".join(item for (item,) in rows_of(catalog, "orders__lines", "item")) == "abcde"


def test_a_chain_of_tables_is_one_step_where_the_catalog_has_one(tmp_path: Path) -> None:
    made = run_twice(icefield(sql_catalog(tmp_path)), write_disposition="merge", primary_key="id")
    with made.destination_client() as client:
        marks = [client.table(name).current_snapshot().summary for name in ("orders", "orders__lines")]
    assert len({mark["dlt.load-id"] for mark in marks}) == 1
    assert {mark["dlt.schema"] for mark in marks} == {"shop"}
    one_by_one = directory_catalog(tmp_path / "other")
    one_by_one.create_namespace("a")
    names = [one_by_one.create_table(f"a.{name}", pa.schema([("id", pa.int64())])).name() for name in "bc"]
    with one_by_one.transaction() as transaction:
        transaction.table(names[0])
        with pytest.raises(NotSupportedByCatalog):
            transaction.table(names[1])


def test_a_dataset_is_queried_in_sql_and_sees_each_load(lake: ice.Catalog) -> None:
    made = pipeline(icefield(lake))
    made.run(dlt.resource(ORDERS, name="orders"))
    dataset = made.dataset()
    query = "SELECT item, o.id FROM orders o JOIN orders__lines l ON l._dlt_parent_id = o._dlt_id ORDER BY item"
    assert dataset(query).fetchall() == [("a", 1), ("b", 1), ("c", 2)]
    made.run(dlt.resource(LATER, name="orders"))
    assert dataset.orders.select("id").arrow()["id"].to_pylist() == [1, 2, 3, 2, 4]
    assert dict(dataset.row_counts().fetchall()) == {"orders": 5, "orders__lines": 6}


def test_refreshing_drops_or_empties_the_tables(lake: ice.Catalog) -> None:
    made = pipeline(icefield(lake))

    @dlt.source(name="shop")
    def source() -> Any:
        return dlt.resource(ORDERS, name="orders")

    made.run(source())
    made.run(source(), refresh="drop_data")
    assert rows_of(lake, "orders", "id") == [(1,), (2,), (3,)]
    assert len(lake.load_table("shop.orders").snapshots()) == 3
    made.run(source(), refresh="drop_sources")
    assert rows_of(lake, "orders", "id") == [(1,), (2,), (3,)]
    assert len(lake.load_table("shop.orders").snapshots()) == 1


def test_a_destination_is_configured_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICEFIELD_CATALOG__PROD__TYPE", "sql")
    monkeypatch.setenv("ICEFIELD_CATALOG__PROD__URI", f"sqlite:///{tmp_path}/prod.db")
    monkeypatch.setenv("DESTINATION__ICEFIELD__CATALOG", "prod")
    monkeypatch.setenv("DESTINATION__ICEFIELD__PROPERTIES", dlt_json.dumps({"warehouse": f"file://{tmp_path}/prod"}))
    made = dlt.pipeline("named", destination="icefield_tools.dlt.icefield", dataset_name="shop")
    assert "prod" in str(made.run([{"id": 1}], table_name="orders"))
    stored = ice.load_catalog("prod", warehouse=f"file://{tmp_path}/prod")
    assert rows_of(stored, "orders", "id") == [(1,)]


@pytest.fixture
def prod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ice.Catalog:
    """A catalog that the environment configures by name, for programs in a folder of their own."""
    monkeypatch.setenv("DLT_DATA_DIR", str(tmp_path))
    properties = {"TYPE": "sql", "URI": f"sqlite:///{tmp_path}/prod.db", "WAREHOUSE": f"file://{tmp_path}/prod"}
    for name, value in properties.items():
        monkeypatch.setenv(f"ICEFIELD_CATALOG__PROD__{name}", value)
    return ice.load_catalog("prod")


def test_the_configuration_of_the_guide_is_read(tmp_path: Path, prod: ice.Catalog) -> None:
    [block] = (block for block in Page(Path("docs/guide/dlt.md")).blocks if block.language == "toml")
    (tmp_path / ".dlt").mkdir()
    (tmp_path / ".dlt/config.toml").write_text(block.text)
    made = 'dlt.pipeline("shop", destination="icefield_tools.dlt.icefield", dataset_name="shop")'
    program = f'import dlt; {made}.run([{{"id": 1}}], table_name="orders")'
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    assert rows_of(prod, "orders", "id") == [(1,)]
    assert prod.load_table("shop.orders").metadata.format_version == 3


def test_the_pipeline_of_the_readme_runs(prod: ice.Catalog) -> None:
    readme = Page(Path("plugins/icefield-tools/README.md"))
    [block] = (block for block in readme.blocks if "icefield_tools.dlt" in block.text)
    exec(block.text, {})
    assert rows_of(prod, "orders", "id") == [(1,)]


@pytest.mark.parametrize("strategy", ["scd2", "cdc"])
def test_the_error_for_an_unsupported_merge_strategy_names_the_supported_ones(tmp_path: Path, strategy: str) -> None:
    catalog = sql_catalog(tmp_path)
    made = pipeline(icefield(catalog))
    made.run([{"id": 1, "n": 1}], table_name="orders", primary_key="id", write_disposition="merge")
    disposition: Any = {"disposition": "merge", "strategy": strategy}
    sentences = (
        f"`{strategy}` merge strategy not supported for table `orders`. "
        "Available strategies: ['delete-insert', 'upsert', 'insert-only']"
    )
    with pytest.raises(PipelineStepFailed, match=re.escape(sentences)):
        made.run([{"id": 1, "n": 2}], table_name="orders", primary_key="id", write_disposition=disposition)
    assert rows_of(catalog, "orders", "id", "n") == [(1, 1)]


@pytest.mark.parametrize(
    ("strategy", "option", "value"),
    [
        ("upsert", "source_filter", "id > 1"),
        ("delete-insert", "destination_scope", "id > 1"),
        ("upsert", "skip_unchanged_rows", True),
    ],
)
def test_an_option_of_merges_is_refused_before_a_table_changes(
    tmp_path: Path, strategy: str, option: str, value: Any
) -> None:
    catalog = sql_catalog(tmp_path)
    disposition: Any = {"disposition": "merge", "strategy": strategy, option: value}
    rows = dlt.resource([{"id": 1}], name="orders", write_disposition=disposition, primary_key="id")
    with pytest.raises(PipelineStepFailed, match=f"table 'orders': .* no option '{option}' of merges"):
        pipeline(icefield(catalog)).run(rows)
    assert not catalog.table_exists("shop.orders")


def test_what_the_page_shows_runs(tmp_path: Path) -> None:
    run_page(Path("docs/guide/dlt.md"))
