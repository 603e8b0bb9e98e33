"""Data sets of pyarrow: they give the rows that Arrow itself selects from the whole table."""

from __future__ import annotations

import datetime as dt
import pickle
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from frame_tables import files_planned, frame_table
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield import Table
from icefield.errors import UnsupportedFeature
from icefield_frames.arrow_filters import translated
from icefield_frames.filters import Translator
from tables import Listener

NOON = dt.datetime(2024, 1, 1, 12)
VALUES: dict[str, list[Any]] = {
    "id": [0, 7, 100, -1, 2**40],
    "i": [-5, 0, 3],
    "f": [0.0, -0.0, 1.5, 0.1, float("inf"), float("nan")],
    "d": [0.0, -0.0, 1.5, 0.1, float("inf"), float("nan")],
    "name": ["", "a", "ab", "ä", "zz"],
    "day": [dt.date(2024, 1, 1), dt.date(2023, 12, 30)],
    "ts": [NOON, dt.datetime(2024, 1, 3), dt.datetime(2024, 1, 1, 0, 0, 0, 1)],
    "tz": [NOON.replace(tzinfo=dt.UTC)],
    "dec": [Decimal("1.50"), Decimal("0.50")],
    "bin": [b"\5", b""],
    "new": [-1, 3],
}
QUOTED = "a \"quoted\" name: 'x'"


@pytest.fixture(scope="module")
def made() -> tuple[Table, Listener, pa.Table]:
    table, heard = frame_table(f"memory://{uuid.uuid4().hex}")
    return table, heard, table.scan().to_arrow()


@st.composite
def leaves(draw: Any) -> Any:
    name = draw(st.sampled_from(sorted(VALUES)))
    column, value = pc.field(name), pc.scalar(draw(st.sampled_from(VALUES[name])))
    compare = draw(st.sampled_from([pc.equal, pc.not_equal, pc.less, pc.less_equal, pc.greater, pc.greater_equal]))
    other = draw(st.sampled_from(sorted(VALUES)))
    members = draw(st.lists(st.sampled_from(VALUES[name]), min_size=1, max_size=3))
    kinds = [
        compare(column, value),
        compare(value, column),
        pc.field(other).is_null(),
        pc.field(other).is_valid(),
        pc.field("b"),
        pc.field("f").is_nan(),
        pc.field("d").is_null(nan_is_null=True),
        pc.starts_with(pc.field("name"), draw(st.sampled_from(["", "a", "ä"]))),
        pc.starts_with(pc.field("name"), "A", ignore_case=True),
        compare(pc.field("st", "q"), pc.scalar(draw(st.integers(-3, 3)))),
        pc.field("i").cast(pa.float64()) > 1.5,
        pc.greater(pc.field("id"), pc.field("i")),
        column.isin(pa.array(members, type=pa.float32() if name == "f" else None)),
        pc.field("i").isin([1, None, 3]),
    ]
    return draw(st.sampled_from(kinds))


FILTERS = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        inner.map(lambda one: ~one),
        st.tuples(inner, inner).map(lambda both: both[0] & both[1]),
        st.tuples(inner, inner).map(lambda both: both[0] | both[1]),
    ),
    max_leaves=4,
)


@given(asked=FILTERS, names=st.sampled_from([None, ["id"], ["d", "i"], [], {"x": pc.field("id") + 1}]))
@settings(max_examples=200)
def test_a_data_set_gives_the_rows_of_the_whole_table(made: Any, asked: pc.Expression, names: Any) -> None:
    table, _, whole = made
    dataset = table.scan().to_dataset()
    # In memory, pyarrow itself filters a data set.
    expected = ds.dataset(whole).to_table(columns=names, filter=asked)
    assert repr(dataset.to_table(columns=names, filter=asked).to_pylist()) == repr(expected.to_pylist())
    parts = [part.to_table(columns=names, filter=asked) for part in dataset.get_fragments(asked)]
    assert sum(part.num_rows for part in parts) == dataset.count_rows(asked) == expected.num_rows


@pytest.mark.parametrize(
    ("asked", "is_exact"),
    [
        (pc.field("id") >= 120, True),
        (pc.scalar(120) <= pc.field("id"), True),
        (~(pc.field("d") > 0), True),
        (~pc.field("id").isin([8, 9]), True),
        (pc.if_else(pc.field("id").is_valid(), pc.field("id").isin([8]), pc.scalar(pa.scalar(None, pa.bool_()))), True),
        (pc.field(("st", "q")) == 2, True),
        (pc.field("name") == 'it\'s "a"', True),
        (pc.starts_with(pc.field("name"), "a"), True),
        (pc.field("ts") < NOON, True),
        (pc.field("f") == 0.1, False),
        (pc.field("d").isin([0.0]), False),
        (pc.field("i").isin([None, 1]), True),
        (pc.field("id").cast(pa.float64()) > 1, False),
        (pc.field("ts") < pa.scalar(0, pa.timestamp("ns")), False),
        (pc.field("id") > pc.field("i"), False),
        (pc.field("no such") == 1, False),
    ],
    ids=str,
)
def test_exactly_these_filters_are_translated_whole(made: Any, asked: pc.Expression, is_exact: bool) -> None:
    schema = made[0].schema()
    found = translated(asked, Translator(schema, schema, nan_is_greatest=False))
    assert found.is_exact is is_exact
    assert (found.row_filter is None) is not is_exact


def test_an_expression_of_great_depth_is_left_to_arrow(made: Any) -> None:
    table, _, _ = made
    asked = pc.field("id") < 0
    for number in range(7, 300):
        asked = asked | (pc.field("id") == number)
    assert table.scan().to_dataset().count_rows(asked) == table.scan().count()


def test_filters_and_columns_reach_the_scan(made: Any) -> None:
    table, heard, _ = made
    dataset = table.scan().to_dataset()
    assert dataset.to_table(columns=["name"], filter=pc.field("id") >= 120).num_rows == 40
    assert files_planned(heard) == 6 < len(dataset.files)
    upper = pc.utf8_upper(pc.field("name")) == "A"
    assert dataset.to_table(filter=(pc.field("id") >= 120) & upper).num_rows > 0
    assert files_planned(heard) == 6
    parts, every = (sum(1 for _ in dataset.get_fragments(each)) for each in (pc.field("id") >= 120, None))
    assert parts < every


def test_a_limit_of_the_scan_comes_before_the_filter(made: Any) -> None:
    table, _, whole = made
    dataset = table.scan(limit=10).to_dataset()
    assert dataset.to_table(filter=pc.field("id") > 50).num_rows == whole[:10].filter(pc.field("id") > 50).num_rows
    assert dataset.count_rows() == 10
    assert [part.count_rows() for part in dataset.get_fragments()] == [10]


def test_a_filtered_data_set_keeps_its_filter_when_pickled(made: Any) -> None:
    table, _, whole = made
    asked = pc.field("d") > 0
    dataset = pickle.loads(pickle.dumps(table.scan("id > 50").to_dataset().filter(asked)))
    expected = whole.filter(asked & (pc.field("id") > 50))
    assert dataset.to_table().num_rows == dataset.count_rows() == expected.num_rows
    assert sum(pickle.loads(pickle.dumps(part)).to_table().num_rows for part in dataset.get_fragments()) == len(
        expected
    )
    assert dataset.head(3).num_rows == 3
    assert dataset.take(pa.array([0, 2]))["id"].to_pylist() == [expected["id"][0].as_py(), expected["id"][2].as_py()]


def test_joins_and_orders_are_made_of_the_rows_of_the_table(made: Any) -> None:
    table, _, whole = made
    dataset = table.scan(selected_fields=("id", "name")).to_dataset()
    ordered = dataset.sort_by([("id", "descending")]).to_table()["id"].to_pylist()
    assert ordered == sorted(whole["id"].to_pylist(), reverse=True)
    joined = dataset.join(dataset, "id", right_suffix="_too").to_table()
    assert joined.num_rows == whole.num_rows


def test_what_reads_files_in_cpp_is_refused(made: Any) -> None:
    dataset = made[0].scan().to_dataset()
    with pytest.raises(UnsupportedFeature, match=r"Give the call scan\.to_arrow_batch_reader"):
        ds.Scanner.from_dataset(dataset).to_table()
    with pytest.raises(UnsupportedFeature, match="the schema of a scan is that of the table"):
        ds.dataset([dataset, dataset])


def test_a_data_set_is_written_to_files_of_arrow(made: Any, tmp_path: Any) -> None:
    table, _, whole = made
    ds.write_dataset(table.scan(selected_fields=("id",)).to_dataset(), tmp_path, format="parquet")
    assert sorted(pq.read_table(tmp_path)["id"].to_pylist()) == sorted(whole["id"].to_pylist())


def test_names_with_quotes_and_dots_are_columns() -> None:
    from tables import memory_catalog

    rows = pa.table({QUOTED: [1, 2], "a.b": ["x", "y"]})
    table = memory_catalog().create_table("db.t", rows.schema)
    table.append(rows)
    dataset = table.scan().to_dataset()
    assert (
        dataset.to_table(filter=(pc.field(QUOTED) == 2) & (pc.field("a.b") == "y")).to_pylist() == rows[1:].to_pylist()
    )
    assert dataset.to_table(columns=["a.b"]).to_pylist() == rows.select(["a.b"]).to_pylist()
