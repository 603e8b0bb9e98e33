"""Frames of Polars: lazy frames give the rows that Polars itself selects from the whole frame."""

from __future__ import annotations

import datetime as dt
import pickle
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from frame_tables import files_planned, frame_table
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield import Table
from icefield.expressions import BooleanExpression
from icefield_frames import polars_frames
from icefield_frames.filters import Translator
from icefield_frames.polars_filters import translated
from tables import Listener

pl = pytest.importorskip("polars")
from polars.testing import assert_frame_equal  # noqa: E402

NOON = dt.datetime(2024, 1, 1, 12)
VALUES: dict[str, list[Any]] = {
    "id": [0, 7, 100, -1, 2**40],
    "i": [-5, 0, 3, 2**40],
    "f": [0.0, -0.0, 1.5, 0.1, float("inf"), float("nan"), 7],
    "d": [0.0, -0.0, 1.5, 0.1, float("inf"), float("nan"), 7],
    "name": ["", "a", "ab", "ä", "zz"],
    "day": [dt.date(2024, 1, 1), dt.date(2023, 12, 30)],
    "ts": [NOON, dt.datetime(2024, 1, 3), dt.datetime(2024, 1, 1, 0, 0, 0, 1)],
    "tz": [NOON.replace(tzinfo=dt.UTC), dt.datetime(2024, 1, 3, tzinfo=dt.timezone(dt.timedelta(hours=2)))],
    "dec": [Decimal("1.5"), Decimal("0.555"), 2],
    "bin": [b"\5", b""],
    "new": [-1, 3],
}
FILTERS = [
    (pl.col("id") < 40, True),
    (pl.col("id") < 20, True),
    (pl.col("id").is_between(30, 50, closed="left"), True),
    (pl.col("id").is_in([8, 9]) & (pl.col("d") > 0), True),
    (~(pl.col("f") >= 1.5), True),
    (pl.col("name").str.starts_with("a") | pl.col("day").is_null(), True),
    (pl.col("st").struct.field("q") == 2, True),
    (~pl.col("b"), True),
    (pl.col("tz") >= NOON.replace(tzinfo=dt.UTC), True),
    (pl.col("dec") == Decimal("1.5"), True),
    (pl.col("d").is_in([0.0, 1.5]), True),
    (~pl.col("d").is_in([-0.0, float("nan")]), True),
    (pl.col("f").is_in(pl.Series([1.5, 7.0], dtype=pl.Float32).implode()), True),
    (pl.col("day") == pl.date(2024, 1, 1), True),
    (pl.col("day") >= pl.lit("2024-01-01").str.to_date(), True),
    (pl.col("day") >= pl.lit(19723).cast(pl.Date), True),
    (pl.col("ts") > pl.datetime(2024, 1, 1, 12), True),
    (pl.col("tz") < pl.datetime(2024, 1, 1, 12, time_zone="UTC"), True),
    (pl.col("f") == pl.lit(1.5, dtype=pl.Float32), True),
    (pl.lit(True) & (pl.col("id") > 3), True),
    (~pl.lit(True) | (pl.col("id") > 3), True),
    (pl.col("i") == pl.lit(None), True),
    (pl.col("f") == 0.1, False),  # no float equals it
    (pl.col("i") == 1.5, False),
    (pl.col("d").is_in([0.0, None]), False),
    (pl.col("f").is_in(pl.Series([0.1]).implode()), False),
    (pl.col("day") == pl.lit("no date").cast(pl.Date), False),
    (pl.col("i") == pl.lit(2) + pl.col("i"), False),
    (pl.col("name").str.to_uppercase() == "A", False),
    (pl.col("id") > pl.col("i"), False),
    (pl.col("id").cast(pl.Float64) > 3, False),
    (pl.col("i").eq_missing(None), False),
    (pl.col("i").is_in([1, None], nulls_equal=True), False),
    (pl.col("d") == float("nan"), False),
]


@pytest.fixture(scope="module")
def made() -> tuple[Table, Listener, Any]:
    table, heard = frame_table(f"memory://{uuid.uuid4().hex}")
    return table, heard, pl.from_arrow(table.scan().to_arrow())


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> tuple[Table, Listener, Any]:
    """A table that Polars reads itself, with the names of the other."""
    table, heard = frame_table(f"file://{tmp_path_factory.mktemp('clean')}", is_clean=True)
    with table.update_schema() as schema:
        schema.delete_column("s")
    return table, heard, pl.from_arrow(table.scan().to_arrow())


def columns() -> st.SearchStrategy[Any]:
    return st.sampled_from([pl.col(name) for name in [*VALUES, "b"]] + [pl.col("st").struct.field("q")])


@st.composite
def leaves(draw: Any) -> Any:
    name = draw(st.sampled_from(sorted(VALUES)))
    column, value = pl.col(name), pl.lit(draw(st.sampled_from(VALUES[name])))
    operator = draw(st.sampled_from(["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"]))
    compared = getattr(column, operator)(value)
    members = draw(st.lists(st.sampled_from(VALUES[name]), min_size=1, max_size=3))
    kinds = [
        compared,
        getattr(value, operator)(column),
        draw(columns()).is_null(),
        draw(columns()).is_not_null(),
        pl.col("b"),
        pl.col("f").is_nan(),
        pl.col("d").is_not_nan(),
        pl.col("name").str.starts_with(draw(st.sampled_from(["", "a", "ä"]))),
        column.is_between(*sorted(members[:1] * 2), closed=draw(st.sampled_from(["both", "left", "right", "none"]))),
        pl.col("st").struct.field("q") > draw(st.integers(-3, 3)),
        pl.col("i").cast(pl.Float64) > 1.5,
        pl.col("id") % 3 == 0,
        pl.col("i").ne_missing(pl.lit(3)),
    ]
    if name not in ("f", "d") and len({type(member) for member in members}) == 1:
        kinds.append(column.is_in(pl.lit(members, dtype=pl.List(SCHEMA.get(name) or pl.Int64))))
    if name in ("f", "d"):
        floats = pl.Series([float(member) for member in members], dtype=pl.Float32 if name == "f" else pl.Float64)
        kinds += [column.is_in(floats.implode()), ~column.is_in(floats.implode())]
    if name == "day":
        kinds.append(getattr(column, operator)(pl.date(2024, 1, draw(st.integers(1, 3)))))
    return draw(st.sampled_from(kinds))


SCHEMA = {"name": pl.String, "day": pl.Date, "ts": pl.Datetime("us"), "tz": pl.Datetime("us", "UTC"), "bin": pl.Binary}
SCHEMA["dec"] = pl.Decimal(9, 2)
PREDICATES = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        inner.map(lambda one: ~one),
        st.tuples(inner, inner).map(lambda both: both[0] & both[1]),
        st.tuples(inner, inner).map(lambda both: both[0] | both[1]),
    ),
    max_leaves=4,
)


@given(predicate=PREDICATES, limit=st.sampled_from([None, None, 5]), names=st.sampled_from([None, ["id"], ["d", "i"]]))
@settings(max_examples=200)
def test_a_lazy_frame_gives_the_rows_of_the_whole_frame(
    made: Any, clean: Any, predicate: Any, limit: Any, names: Any
) -> None:
    check_query(*made[::2], predicate, limit, names)
    if not predicate.meta.has_multiple_outputs() and {"name", "new"}.isdisjoint(predicate.meta.root_names()):
        check_query(*clean[::2], predicate, limit, names)


def check_query(table: Table, whole: Any, predicate: Any, limit: Any, names: Any) -> None:
    def asked(frame: Any) -> Any:
        found = frame if limit is None else frame.head(limit)
        found = found.filter(predicate)
        return found if names is None else found.select(names)

    try:
        expected = asked(whole)
    except pl.exceptions.PolarsError as error:  # the types of the operands do not fit
        with pytest.raises(type(error)):
            asked(table.scan().lazy()).collect()
        return
    assert_frame_equal(asked(table.scan().lazy()).collect(), expected)
    assert_frame_equal(asked(table.scan().lazy()).collect(engine="streaming"), expected)


@pytest.mark.parametrize(("predicate", "is_exact"), FILTERS, ids=str)
def test_exactly_these_filters_are_translated_whole(made: Any, predicate: Any, is_exact: bool) -> None:
    table, _, whole = made
    schema = table.schema()
    found = translated(predicate, Translator(schema, schema, nan_is_greatest=True))
    assert found.is_exact is is_exact
    if is_exact:
        assert isinstance(found.row_filter, BooleanExpression)
        assert table.scan(found.row_filter).count() == whole.filter(predicate).height


def test_columns_filters_and_numbers_of_rows_reach_the_scan(made: Any) -> None:
    table, heard, whole = made
    every = len(list(table.scan().plan_files()))
    assert table.scan().lazy().filter(pl.col("id") >= 120).select("name").collect().height == 40
    assert files_planned(heard) == 6 < every
    # What Polars alone can filter takes nothing from the rest of the filter.
    upper = pl.col("name").str.to_uppercase() == "A"
    found = table.scan().lazy().filter((pl.col("id") >= 120) & upper).collect()
    assert_frame_equal(found, whole.filter((pl.col("id") >= 120) & upper))
    assert files_planned(heard) == 6


def reads_itself(monkeypatch: pytest.MonkeyPatch, frame: Any) -> list[bool]:
    """For each time that a lazy frame reads files, whether Polars reads them itself."""
    heard: list[bool] = []
    kernel = polars_frames.native_frame

    def spied(*args: Any) -> Any:
        found = kernel(*args)
        heard.append(found is not None)
        return found

    monkeypatch.setattr(polars_frames, "native_frame", spied)
    frame.collect()
    return heard


def test_polars_reads_clean_local_files_itself(clean: Any, made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table, heard, whole = clean
    assert reads_itself(monkeypatch, table.scan().lazy()) == [True]
    selected = table.scan().lazy().filter(pl.col("id") >= 120).select("st")
    assert reads_itself(monkeypatch, selected) == [True]
    assert files_planned(heard) == 2 < len(list(table.scan().plan_files()))
    assert_frame_equal(selected.collect(), whole.filter(pl.col("id") >= 120).select("st"))
    for scan in (table.scan("id > 3"), table.scan(limit=3), table.scan(selected_fields=("id", "_file"))):
        assert reads_itself(monkeypatch, scan.lazy()) == [False]
    assert reads_itself(monkeypatch, made[0].scan().lazy()) == [False]


def test_the_kernel_reads_files_that_polars_would_read_wrong(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table, _ = frame_table(f"file://{tmp_path}", files=2, is_clean=True)
    first = table.current_snapshot()
    with table.update_schema() as schema:  # the new column has the old name, and no value in old files
        schema.rename_column("i", "j").add_column("i", "int")
    assert table.scan().lazy().select(pl.col("i").is_null().all()).collect().item()
    assert reads_itself(monkeypatch, table.scan().lazy().select("j")) == [False]
    assert reads_itself(monkeypatch, table.scan().lazy().select("id")) == [True]
    table.delete("id = 3")
    assert table.scan().lazy().select("id").collect().height == 79
    assert reads_itself(monkeypatch, table.scan().lazy().select("id")) == [False]
    old = table.scan(snapshot_id=first.snapshot_id).lazy().select("i")
    assert reads_itself(monkeypatch, old) == [True]


def test_a_file_with_another_number_of_rows_is_stated_by_the_kernel(tmp_path: Any) -> None:
    table, _ = frame_table(f"file://{tmp_path}", files=1, is_clean=True)
    first, second = [task.file.file_path.removeprefix("file://") for task in table.scan().plan_files()][:2]
    Path(first).write_bytes(Path(second).read_bytes())
    with pytest.raises(Exception, match="rows"):
        table.scan().lazy().collect()


def test_a_limit_of_the_scan_comes_before_the_filter_of_the_frame(made: Any) -> None:
    table, _, whole = made
    scan = table.scan(limit=10)
    assert_frame_equal(scan.lazy().filter(pl.col("id") > 50).collect(), whole.head(10).filter(pl.col("id") > 50))


def test_the_columns_and_version_of_the_scan_stay(made: Any) -> None:
    table, _, _ = made
    first = table.history()[0]
    old = table.scan(snapshot_id=first.snapshot_id)
    assert old.lazy().filter(pl.col("s") == "a").collect().height == old.filter("s = 'a'").count()
    narrow = table.scan(selected_fields=("st.q", "_file"))
    frame = narrow.lazy().filter(pl.col("_file").str.ends_with(".parquet")).select("_file", "st").collect()
    assert frame.schema["st"] == pl.Struct({"q": pl.Int64})
    assert frame.height == 152
    assert narrow.lazy().filter(pl.col("st").struct.field("q") == 2).collect().height > 0


def test_names_that_differ_in_case_alone_are_not_mixed_up(made: Any) -> None:
    from tables import memory_catalog

    rows = pl.DataFrame({"a": [1, 2], "A": [2, 1]})
    table = memory_catalog().create_table("db.t", rows.to_arrow().schema)
    table.append(rows)
    scan = table.scan(case_sensitive=False)
    assert scan.lazy().filter(pl.col("A") == 2).collect().rows() == [(1, 2)]


def test_a_frame_without_rows_has_the_columns(made: Any) -> None:
    table, _, whole = made
    frame = table.scan().lazy().filter(pl.col("id") < -5).select("tz", "id").collect()
    assert frame.is_empty()
    assert frame.schema == whole.select("tz", "id").schema
    assert table.scan("id < -5").to_polars().schema == whole.schema


def test_batches_are_as_large_as_asked(made: Any) -> None:
    from icefield_frames.polars_frames import PolarsSource

    table, _, whole = made
    source = pickle.loads(pickle.dumps(PolarsSource(table.scan())))
    frames: Iterator[Any] = source(["id"], None, 23, 5)
    sizes = [frame.height for frame in frames]
    assert sum(sizes) == 23
    assert max(sizes) <= 5
    assert_frame_equal(pl.concat(list(source(None, pl.col("d") > 0, None, None))), whole.filter(pl.col("d") > 0))


@pytest.mark.parametrize("fixture", ["made", "clean"])
def test_a_query_that_needs_no_column_has_all_rows(fixture: str, request: pytest.FixtureRequest) -> None:
    table, _, eager = request.getfixturevalue(fixture)
    lazy = table.scan().lazy()
    for query in (
        lambda frame: frame.with_row_index().select(pl.len()),
        lambda frame: frame.select(pl.len()),
        lambda frame: frame.with_row_index().filter(pl.col("id") > 20).select(pl.len()),
        lambda frame: frame.filter(pl.col("id") > 20).with_row_index().select(pl.len(), "index"),
        lambda frame: frame.filter(pl.col("id") % 2 == 0).with_row_index().select("index"),
        lambda frame: frame.with_row_index().select("index").tail(3),
    ):
        assert_frame_equal(query(lazy).collect(), query(eager.lazy()).collect())


def test_changes_are_a_lazy_frame_too(made: Any) -> None:
    table, _, _ = made
    frame = table.incremental_changelog_scan().lazy().filter(pl.col("_change_type") == "DELETE").select("id")
    assert frame.collect().height == 8
