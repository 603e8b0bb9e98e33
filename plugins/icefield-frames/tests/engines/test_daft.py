"""Frames of Daft: a query over a scan gives the rows of the same query over rows in memory."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from engine_tables import directory_table, leftovers, row_set
from frame_tables import files_planned, frame_table

daft = pytest.importorskip("daft")
col = daft.col

VALUES: dict[str, list[Any]] = {
    "id": [0, 7, 100, -1],
    "i": [-5, 0, 3],
    "f": [0.0, -0.0, 1.5, 0.1, float("nan"), float("inf")],
    "d": [0.0, -0.0, 1.5, 0.1, float("nan"), float("inf")],
    "name": ["", "a", "ab", "ä"],
    "day": [dt.date(2024, 1, 1)],
    "ts": [dt.datetime(2024, 1, 1, 12)],
    "tz": [dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)],
    "dec": [Decimal("1.50")],
    "bin": [b"\5", b""],
    "new": [-1, 3],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    table, heard = frame_table(f"file://{tmp_path_factory.mktemp('daft')}")
    return table, heard, daft.from_arrow(table.scan().to_arrow())


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Any:
    table, heard = frame_table(f"file://{tmp_path_factory.mktemp('clean')}", is_clean=True)
    return table, heard, daft.from_arrow(table.scan().to_arrow())


def condition(chance: random.Random, names: list[str], depth: int = 2) -> Any:
    if depth and chance.random() < 0.6:
        first, second = (condition(chance, names, depth - 1) for _ in range(2))
        return chance.choice([~first, first & second, first | second])
    name = chance.choice(names)
    column, first, second = col(name), *(chance.choice(VALUES[name]) for _ in range(2))
    operator = chance.choice(["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"])
    kinds = [
        getattr(column, operator)(first),
        getattr(daft.lit(first), operator)(column),
        column.is_in([first, second]),
        column.is_null(),
        column.not_null(),
        col("b"),
        col("d").is_nan(),
        col("s" if "s" in names else "name").startswith("a"),
        col("id") % 3 == 0,
    ]
    if first == first and second == second and name != "bin":
        kinds.append(column.between(min(first, second), max(first, second)))
    return chance.choice(kinds)


@pytest.mark.parametrize("seed", range(60))
def test_a_query_gives_the_rows_of_the_whole_frame(made: Any, clean: Any, seed: int) -> None:
    for (table, _, whole), names in ((made, sorted(VALUES)), (clean, [*sorted(VALUES.keys() - {"name", "new"})])):
        predicate = condition(random.Random(seed), names)

        def asked(frame: Any, predicate: Any = predicate) -> Any:
            return row_set(frame.where(predicate).select("id", "d", "ts").to_arrow())

        try:
            expected = asked(whole)
        except Exception as error:  # the types of the operands do not fit
            with pytest.raises(type(error)):
                asked(table.scan().to_daft())
            continue
        assert asked(table.scan().to_daft()) == expected, str(predicate)


def test_columns_filters_and_numbers_of_rows_reach_the_scan(made: Any, clean: Any) -> None:
    for (table, heard, _), files in ((made, 6), (clean, 2)):
        found = table.scan().to_daft().where(col("id") >= 120).select("tz").to_arrow()
        assert found.num_rows == 40
        assert files_planned(heard) == files < len(list(table.scan().plan_files()))
        assert table.scan().to_daft().limit(3).to_arrow().num_rows == 3
    assert made[0].scan(limit=10).to_daft().count_rows() == 10
    assert made[0].scan().to_daft().count_rows() == 152
    assert made[0].scan("id < -5").to_daft().to_arrow().num_rows == 0


def test_all_types_are_read(made: Any, clean: Any) -> None:
    for table, _, whole in (made, clean):
        found, expected = table.scan().to_daft(), whole
        assert found.schema() == expected.schema()
        assert row_set(found.to_arrow()) == row_set(expected.to_arrow())
    assert made[0].incremental_changelog_scan().to_daft().where(col("_change_type") == "DELETE").count_rows() == 8


def test_daft_reads_clean_local_files_itself(made: Any, clean: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from icefield_frames import daft_sources

    read: list[int] = []
    monkeypatch.setattr(daft_sources.PartTask, "__init__", lambda *_: read.append(1) or 1 / 0)
    assert clean[0].scan().to_daft().where(col("id") >= 120).count_rows() == 40
    assert read == []
    with pytest.raises(ZeroDivisionError):
        made[0].scan().to_daft().collect()


def test_a_frame_is_written_in_one_commit(tmp_path: Path) -> None:
    table = directory_table(tmp_path, partition_spec=["kind"])
    frame = daft.from_pydict({"id": list(range(1_000)), "kind": [number % 3 for number in range(1_000)]})
    result = table.write_on_workers(frame.where(col("id") >= 100))
    assert (result.rows_inserted, len(table.history())) == (900, 1)
    table.write_on_workers(table.scan().to_daft().where(col("kind") == 1), True)
    assert table.scan().count() == 300


def test_a_failed_frame_leaves_nothing(tmp_path: Path) -> None:
    @daft.func
    def fail(number: int) -> int:
        if number == 900:
            raise ValueError("not today")
        return number

    table = directory_table(tmp_path)
    frame = daft.from_pydict({"id": list(range(1_000)), "kind": list(range(1_000))})
    with pytest.raises(Exception, match="not today"):
        table.write_on_workers(frame.with_column("id", fail(col("id"))))
    with pytest.raises(Exception, match="other"):
        table.write_on_workers(frame.with_column("other", col("id")))
    assert table.refresh().current_snapshot() is None
    assert leftovers(table) == set()


def test_read_iceberg_of_daft_reads_the_same_files_and_rows(clean: Any) -> None:
    table, heard, _ = clean
    theirs = daft.read_iceberg(table.metadata_location).where(col("id") >= 120)
    found = table.scan().to_daft().where(col("id") >= 120)
    assert row_set(found.to_arrow()) == row_set(theirs.select(*found.column_names).to_arrow())
    from pyiceberg.table import StaticTable

    tasks = list(StaticTable.from_metadata(table.metadata_location).scan("id >= 120").plan_files())
    assert files_planned(heard) == len(tasks) == 2
