"""Assets of Dagster in tables of Icefield."""

import datetime as dt
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import dagster
import icefield as ice
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from dagster import (
    AssetIn,
    AssetKey,
    BackfillPolicy,
    DagsterInstance,
    DailyPartitionsDefinition,
    MultiPartitionKey,
    MultiPartitionsDefinition,
    RetryPolicy,
    StaticPartitionsDefinition,
    asset,
    materialize,
)
from fenced import Page, run_page
from icefield_tools.dagster import IcefieldIOManager
from pyiceberg.catalog.sql import SqlCatalog

LETTERS = StaticPartitionsDefinition(["a", "b", "c"])
DAYS = DailyPartitionsDefinition("2024-01-01", end_date="2024-01-04")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DAGSTER_DISABLE_TELEMETRY", "true")


class Lake:
    """A catalog, and runs of assets that are kept in it."""

    def __init__(self, folder: Path) -> None:
        self.uri, self.warehouse = f"sqlite:///{folder}/lake.db", f"file://{folder}/lake"
        properties = {"type": "sql", "uri": self.uri, "warehouse": self.warehouse}
        self.manager_of = partial(IcefieldIOManager, catalog="lake", properties=properties, namespace="shop")
        self.manager = self.manager_of()
        self.instance = DagsterInstance.ephemeral()

    @property
    def catalog(self) -> ice.Catalog:
        return self.manager.load_catalog()

    def run(self, *assets: Any, manager: Any = None, **options: Any) -> Any:
        resources = {"io_manager": manager or self.manager}
        done = materialize(list(assets), resources=resources, instance=self.instance, **options)
        assert done.success
        return done

    def rows(self, name: str, *columns: str, ref: str = "main") -> list[tuple[Any, ...]]:
        found = self.catalog.load_table(name).scan(ref=ref).select(*columns).to_arrow()
        return sorted(tuple(row.values()) for row in found.to_pylist())


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    made = Lake(tmp_path)
    yield made
    made.instance.dispose()


def metadata_of(done: Any, name: str) -> dict[str, Any]:
    (found,) = done.asset_materializations_for_node(name)
    return {key: value.value for key, value in found.metadata.items()}


def test_an_asset_is_a_table_that_the_next_asset_reads_as_its_type(lake: Lake) -> None:
    seen: dict[str, Any] = {}

    @asset
    def orders() -> pa.Table:
        return pa.table({"id": [1, 2], "state": ["new", "new"]})

    @asset
    def frame(orders: pl.DataFrame) -> pl.LazyFrame:
        seen["polars"] = orders.columns
        return orders.lazy().with_columns(pl.lit(1).alias("n"))

    @asset(key_prefix=["other", "place"])
    def pandas(frame: pd.DataFrame) -> pd.DataFrame:
        seen["pandas"] = list(frame.columns)
        return frame[frame["id"] == 2]

    @asset(ins={"orders": AssetIn(metadata={"columns": ["id"]})})
    def stream(orders: pa.RecordBatchReader, frame: pl.LazyFrame) -> Any:
        seen["stream"] = orders.schema.names
        seen["lazy"] = frame.collect().height
        return [{"id": 9}]

    @asset
    def table(orders: ice.Table) -> None:
        seen["table"] = orders.name()

    done = lake.run(orders, frame, pandas, stream, table)
    assert seen == {
        "polars": ["id", "state"],
        "pandas": ["id", "state", "n"],
        "stream": ["id"],
        "lazy": 2,
        "table": ("shop", "orders"),
    }
    assert lake.rows("other.place.pandas", "id", "n") == [(2, 1)]
    assert lake.rows("shop.stream", "id") == [(9,)]
    told = metadata_of(done, "orders")
    assert (told["dagster/row_count"], told["dagster/table_name"], told["rows_inserted"]) == (2, "shop.orders", 2)
    assert [column.name for column in told["dagster/column_schema"].columns] == ["id", "state"]
    summary = lake.catalog.load_table("shop.orders").current_snapshot().summary
    assert (summary["dagster.run-id"], summary["dagster.step-key"]) == (done.run_id, "orders")
    read = SqlCatalog("lake", uri=lake.uri).load_table(("shop", "orders")).scan().to_arrow()
    assert read.to_pylist() == [{"id": 1, "state": "new"}, {"id": 2, "state": "new"}]


def test_a_run_replaces_the_rows_of_an_asset_in_one_snapshot(lake: Lake) -> None:
    made = iter([[1, 2], [3]])

    @asset
    def orders() -> pa.Table:
        return pa.table({"id": next(made)})

    lake.run(orders)
    lake.run(orders)
    assert lake.rows("shop.orders", "id") == [(3,)]
    assert len(lake.catalog.load_table("shop.orders").snapshots()) == 2


def test_a_static_partition_is_replaced_and_read_alone(lake: Lake) -> None:
    runs: list[str] = []
    seen: list[Any] = []

    @asset(partitions_def=LETTERS, metadata={"partition_expr": "kind"})
    def parts(context: dagster.AssetExecutionContext) -> pa.Table:
        runs.append(context.partition_key)
        return pa.table({"kind": [context.partition_key], "run": [len(runs)]})

    @asset(partitions_def=LETTERS)
    def copies(parts: pa.Table) -> None:
        seen.append(parts.to_pylist())

    @asset
    def total(parts: pa.Table) -> None:
        seen.append(parts.num_rows)

    for key in ("a", "b", "a"):
        lake.run(parts, copies, partition_key=key, selection=[parts, copies])
    lake.run(parts, total, selection=[total])
    assert lake.rows("shop.parts", "kind", "run") == [("a", 3), ("b", 2)]
    assert seen == [[{"kind": "a", "run": 1}], [{"kind": "b", "run": 2}], [{"kind": "a", "run": 3}], 2]
    spec = lake.catalog.load_table("shop.parts").metadata.spec()
    assert [(field.name, str(field.transform)) for field in spec.fields] == [("kind", "identity")]


@pytest.mark.parametrize(
    ("held", "transform"),
    [(pa.date32(), "day"), (pa.timestamp("us"), "day"), (pa.timestamp("us", "UTC"), "day"), (pa.string(), "identity")],
    ids=str,
)
def test_a_time_partition_is_replaced_in_columns_of_days_times_and_text(
    lake: Lake, held: pa.DataType, transform: str
) -> None:
    runs: list[str] = []

    def rows(keys: list[str]) -> pa.Table:
        texts = pa.array(keys)
        at = texts if held == pa.string() else texts.cast(pa.date32()).cast(held)
        return pa.table({"at": at, "run": [len(runs)] * len(keys)})

    @asset(partitions_def=DAYS, metadata={"partition_expr": "at"}, backfill_policy=BackfillPolicy.single_run())
    def days(context: dagster.AssetExecutionContext) -> pa.Table:
        runs.append("run")
        return rows(list(context.partition_keys))

    span = {"dagster/asset_partition_range_start": "2024-01-01", "dagster/asset_partition_range_end": "2024-01-03"}
    lake.run(days, tags=span)
    lake.run(days, partition_key="2024-01-02")
    assert [run for _, run in lake.rows("shop.days", "at", "run")] == [1, 2, 1]
    (field,) = lake.catalog.load_table("shop.days").metadata.spec().fields
    assert str(field.transform) == transform


def test_partitions_of_two_dimensions_are_replaced_one_by_one(lake: Lake) -> None:
    both = MultiPartitionsDefinition({"day": DAYS, "kind": LETTERS})
    runs: list[Any] = []

    @asset(partitions_def=both, metadata={"partition_expr": {"day": "at", "kind": "kind"}})
    def cells(context: dagster.AssetExecutionContext) -> pa.Table:
        runs.append(context.partition_key)
        key = context.partition_key.keys_by_dimension
        at = [dt.date.fromisoformat(key["day"])]
        return pa.table({"at": at, "kind": [key["kind"]], "run": [len(runs)]})

    for day, kind in (("2024-01-01", "a"), ("2024-01-01", "b"), ("2024-01-02", "a"), ("2024-01-01", "a")):
        lake.run(cells, partition_key=MultiPartitionKey({"day": day, "kind": kind}))
    assert [run for *_, run in lake.rows("shop.cells", "at", "kind", "run")] == [4, 2, 3]


def test_rows_are_added_or_updated_by_key_as_the_metadata_says(lake: Lake) -> None:
    made = iter([[(1, "new"), (2, "new")], [(2, "sent"), (3, "new")]] * 2)

    def rows() -> pa.Table:
        given = next(made)
        return pa.table({"id": [number for number, _ in given], "state": [state for _, state in given]})

    @asset(metadata={"write_mode": "upsert", "upsert_options": {"join_cols": ["id"]}})
    def upserted() -> pa.Table:
        return rows()

    @asset(metadata={"write_mode": "append"})
    def appended() -> pa.Table:
        return rows()

    for each in (upserted, appended):
        lake.run(each)
        done = lake.run(each)
    assert lake.rows("shop.upserted", "id", "state") == [(1, "new"), (2, "sent"), (3, "new")]
    assert lake.rows("shop.appended", "id") == [(1,), (2,), (2,), (3,)]
    assert metadata_of(done, "appended")["dagster/row_count"] == 4


def test_a_branch_is_made_written_and_read_and_main_stays(lake: Lake) -> None:
    seen: list[int] = []

    @asset
    def orders() -> pa.Table:
        return pa.table({"id": [1]})

    @asset(key="orders", metadata={"branch": "audit"})
    def audited() -> pa.Table:
        return pa.table({"id": [2, 3]})

    @asset(ins={"orders": AssetIn(metadata={"branch": "audit"})})
    def check(orders: pa.Table) -> None:
        seen.append(orders.num_rows)

    lake.run(orders)
    lake.run(audited, check)
    assert (lake.rows("shop.orders", "id"), lake.rows("shop.orders", "id", ref="audit")) == ([(1,)], [(2,), (3,)])
    lake.run(orders, manager=lake.manager_of(branch="dev"))
    assert lake.rows("shop.orders", "id", ref="dev") == [(1,)]
    assert seen == [2]


def test_a_step_that_is_retried_after_its_rows_were_written_adds_them_once(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits: list[int] = []
    write = IcefieldIOManager.handle_output

    def failing(self: IcefieldIOManager, context: Any, obj: Any) -> None:
        write(self, context, obj)
        commits.append(1)
        if len(commits) == 1:
            raise ConnectionError("the reply was lost")

    monkeypatch.setattr(IcefieldIOManager, "handle_output", failing)

    @asset(metadata={"write_mode": "append"}, retry_policy=RetryPolicy(max_retries=1))
    def orders() -> pa.Table:
        return pa.table({"id": [1]})

    lake.run(orders)
    assert (len(commits), lake.rows("shop.orders", "id")) == (2, [(1,)])


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"write_mode": "merge"}, "no write_mode 'merge'; there are overwrite, append, upsert"),
        ({"partitions": LETTERS}, "shop.orders has partitions: name their column"),
        ({"partitions": LETTERS, "partition_expr": "kin"}, "names the column 'kin'; the table has kind"),
    ],
    ids=["mode", "no-expression", "wrong-column"],
)
def test_metadata_that_cannot_be_followed_is_refused(lake: Lake, metadata: dict[str, Any], said: str) -> None:
    partitions = metadata.pop("partitions", None)

    @asset(metadata=metadata, partitions_def=partitions)
    def orders() -> pa.Table:
        return pa.table({"kind": ["a"]})

    with pytest.raises(dagster.DagsterInvalidDefinitionError, match=said):
        lake.run(orders, partition_key="a" if partitions else None)
    assert not lake.catalog.table_exists("shop.orders")


def test_an_asset_key_without_a_namespace_is_refused(lake: Lake) -> None:
    @asset
    def orders() -> pa.Table:
        return pa.table({"id": [1]})

    with pytest.raises(dagster.DagsterInvalidDefinitionError, match="'orders' has no namespace"):
        lake.run(orders, manager=lake.manager_of(namespace=None))
    assert orders.key == AssetKey("orders")


def test_what_the_page_shows_runs() -> None:
    run_page(Path("docs/guide/dagster.md"))


def test_the_definitions_of_the_readme_are_made() -> None:
    readme = Page(Path("plugins/icefield-tools/README.md"))
    [block] = (block for block in readme.blocks if "icefield_tools.dagster" in block.text)
    made: dict[str, Any] = {}
    exec(block.text, made)
    assert made["definitions"].resources["io_manager"].catalog == "prod"
