"""Frames of other libraries, datasets and Python values create tables, and are appended to them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from icefield import Catalog
from icefield.errors import InvalidArgument, InvalidExpression, NoSuchTable, UnsupportedFeature
from icefield.expressions import EqualTo
from tables import memory_catalog

TIMES = pd.DataFrame({"id": [1, 2], "ts": pd.to_datetime([0, 1_000], unit="ns")})

IDS: dict[str, Callable[[], Any]] = {
    "a dict of columns": lambda: {"id": [1, 2]},
    "dicts": lambda: [{"id": 1}, {"id": 2}],
    "a generator of dicts": lambda: ({"id": each} for each in (1, 2)),
    "a lazy frame": lambda: pl.LazyFrame({"id": [0, 1, 2]}).filter(pl.col("id") > 0),
    "a dataset": lambda: ds.dataset(pa.table({"id": [1, 2]})),
    "a scanner": lambda: ds.dataset(pa.table({"id": [0, 1, 2]})).scanner(filter=ds.field("id") > 0),
    "frames": lambda: (frame for frame in (pd.DataFrame({"id": [1]}), pl.DataFrame({"id": [2]}))),
    "a filtered frame of pandas": lambda: pd.DataFrame({"id": [0, 1, 2]}).query("id > 0"),
}


@pytest.fixture
def catalog() -> Catalog:
    return memory_catalog()


@pytest.mark.parametrize("rows", IDS.values(), ids=IDS.keys())
def test_rows_of_each_form_are_appended(catalog: Catalog, rows: Callable[[], Any]) -> None:
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    table.append(rows())
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2]


@pytest.mark.parametrize("rows", IDS.values(), ids=IDS.keys())
def test_rows_of_each_form_create_a_table_in_one_commit(catalog: Catalog, rows: Callable[[], Any]) -> None:
    table = catalog.create_table_as("db.t", rows(), partition_spec=["id"])
    assert table.schema().column_names == ["id"]
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2]
    assert (len(table.snapshots()), len(table.metadata.metadata_log)) == (1, 0)


@pytest.mark.parametrize("rows", IDS.values(), ids=IDS.keys())
def test_a_frame_as_the_schema_gives_its_columns_and_no_row(catalog: Catalog, rows: Callable[[], Any]) -> None:
    table = catalog.create_table("db.t", rows())
    assert (table.schema().column_names, table.current_snapshot()) == (["id"], None)


def test_a_schema_of_another_library_creates_a_table(catalog: Catalog) -> None:
    table = catalog.create_table("db.t", pl.Schema({"id": pl.Int64, "name": pl.String}))
    assert [str(field.field_type) for field in table.schema().fields] == ["long", "string"]


def test_a_lazy_frame_without_rows_states_its_columns(catalog: Catalog) -> None:
    table = catalog.create_table_as("db.t", pl.LazyFrame({"id": [1]}).filter(pl.col("id") > 5))
    assert (table.schema().column_names, table.scan().count()) == (["id"], 0)


def test_a_failed_creation_leaves_no_table_and_no_file(catalog: Catalog) -> None:
    def rows() -> Any:
        yield pa.record_batch({"id": [1]})
        raise RuntimeError("the source failed")

    with pytest.raises(RuntimeError, match="the source failed"):
        catalog.create_table_as("db.t", rows())
    with pytest.raises(NoSuchTable):
        catalog.load_table("db.t")


def test_keys_that_some_dicts_lack_are_null(catalog: Catalog) -> None:
    table = catalog.create_table_as("db.t", [{"id": 1}, {"id": 2, "name": "a"}])
    assert table.scan().to_arrow().sort_by("id").to_pylist() == [{"id": 1, "name": None}, {"id": 2, "name": "a"}]


def test_changes_are_given_as_dicts(catalog: Catalog) -> None:
    table = catalog.create_table_as("db.t", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
    changes = [{"_change_type": "DELETE", "id": 1, "name": "a"}, {"_change_type": "INSERT", "id": 3, "name": "c"}]
    table.apply_changes(changes, ["id"])
    table.upsert([{"id": 3, "name": "d"}], "id")
    table.merge({"id": [2], "name": ["e"]}, "id").when_matched_update_all().commit()
    assert table.scan().to_arrow().sort_by("id")["name"].to_pylist() == ["e", "d"]


# -- times with nanoseconds


def nested(unit: str) -> pa.Schema:
    times = pa.timestamp(unit, "UTC")
    return pa.schema(
        [
            ("a", pa.timestamp(unit)),
            ("b", pa.list_(times)),
            ("c", pa.map_(pa.string(), times)),
            ("d", pa.struct([("e", pa.time64(unit))])),
            ("f", pa.dictionary(pa.int32(), pa.timestamp(unit))),
        ]
    )


@pytest.mark.parametrize("version", [1, 2])
def test_nanoseconds_become_microseconds_below_version_3(catalog: Catalog, version: int) -> None:
    table = catalog.create_table("db.t", nested("ns"), properties={"format-version": version})
    expected = catalog.create_table("db.u", nested("us"), properties={"format-version": version})
    assert table.schema() == expected.schema()
    assert str(table.schema().find_field("a").field_type) == "timestamp"


def test_nanoseconds_stay_in_version_3(catalog: Catalog) -> None:
    schema = catalog.create_table("db.t", nested("ns"), properties={"format-version": 3}).schema()
    assert [str(schema.find_field(name).field_type) for name in ("a", "d.e")] == ["timestamp_ns", "time"]


def test_a_frame_of_pandas_with_times_goes_in_and_comes_out(catalog: Catalog) -> None:
    table = catalog.create_table_as("db.t", TIMES)
    assert table.scan().to_arrow().sort_by("id")["ts"].to_pylist()[1] == dt.datetime(1970, 1, 1, 0, 0, 0, 1)
    again = catalog.create_table("db.u", pa.Schema.from_pandas(TIMES))
    again.append(TIMES)
    assert again.scan().to_arrow().sort_by("id").equals(table.scan().to_arrow().sort_by("id"))


def test_a_lost_nanosecond_is_refused_with_the_way_to_round_it(catalog: Catalog) -> None:
    lossy = TIMES.assign(ts=TIMES["ts"] + pd.Timedelta(1, "ns"))
    with pytest.raises(InvalidArgument, match=r"'ts'.*lose data.*round the values.*version 3"):
        catalog.create_table_as("db.t", lossy)
    assert not catalog.table_exists("db.t")
    catalog.create_table_as("db.t", lossy.assign(ts=lossy["ts"].dt.floor("us")))


def test_a_column_of_nulls_in_version_2_is_refused_with_a_way_out(catalog: Catalog) -> None:
    with pytest.raises(UnsupportedFeature, match=r"'x' is of type unknown.*choose another type, or .*format-version"):
        catalog.create_table_as("db.t", {"x": [None]})


# -- rows that are none

REFUSED: dict[str, tuple[Any, str]] = {
    "values of several types": (
        {"id": [1, "a"]},
        "column 'id' cannot be written: its values have no common Arrow type",
    ),
    "one value for a column": ({"id": "abc"}, "lists of values by names of columns; see 'id'"),
    "columns of several lengths": ({"id": [1], "name": []}, "different lengths: id 1, name 0"),
    "a number among dicts": ([{"id": 1}, 2], "holds dicts only, or none; this one holds int"),
    "an object of pandas": (pd.DataFrame({"id": [1, "a"]}), "this DataFrame has no Arrow form: .*column id"),
    "a number": (5, "as dicts, not as int"),
    "a number for a column": ({"id": 5}, "lists of values by names of columns; see 'id'"),
    "two columns of one name": (pd.DataFrame([[1, 2]], columns=["id", "id"]), "no Arrow form: Duplicate column names"),
    "an integer of 70 bits": (pd.DataFrame({"id": [2**70]}), "no Arrow form: .*too large"),
    "a sparse column": (pd.DataFrame({"id": pd.arrays.SparseArray([0, 1])}), "no Arrow form: Sparse"),
    "Python objects of Polars": (
        pl.DataFrame({"id": pl.Series([object()], dtype=pl.Object)}),
        "'id' .* Python objects",
    ),
}


@pytest.mark.parametrize(("rows", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_other_rows_are_refused_in_words_of_the_user(catalog: Catalog, rows: Any, message: str) -> None:
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    with pytest.raises(InvalidArgument, match=message):
        table.append(rows)
    assert table.current_snapshot() is None


@pytest.mark.parametrize("null", [pd.NA, pd.NaT, None])
def test_a_null_of_pandas_equals_nothing(null: Any) -> None:
    with pytest.raises(InvalidExpression, match="use 'is null'"):
        EqualTo("ts", null)


def test_no_rows_create_no_table(catalog: Catalog) -> None:
    with pytest.raises(InvalidArgument, match="states the columns"):
        catalog.create_table_as("db.t", [])
