"""Deleted rows that Spark's own reader leaves out, by a bit for each."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import icefield
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from delete_files import commit, data_files, deletion_vectors, equality_deletes, position_deletes
from icefield_spark.roads.deleted import GroupDeletes, _bits

SCHEMA = pa.schema([("id", pa.int64()), ("word", pa.string())])
ROWS = 700


def table_of(catalog: icefield.Catalog, version: int) -> icefield.Table:
    """Five files in row groups of few rows. Two of them are the same."""
    properties = {"format-version": str(version), "write.parquet.row-group-size-bytes": "2048"}
    table = catalog.create_table("db.marked", SCHEMA, properties=properties)
    for start in range(0, 4 * ROWS, ROWS):
        words = [f"w{n % (7 + start // ROWS)}" for n in range(ROWS)]
        table.append(pa.table({"id": range(start, start + ROWS), "word": words}, SCHEMA))
    twin = data_files(table)[0].file_path.removeprefix("file://")
    copy = twin.replace(".parquet", "-twin.parquet")
    shutil.copy(twin, copy)
    table.add_files([f"file://{copy}"])
    return table


def mark(table: icefield.Table, version: int, places: dict[str, list[int]]) -> None:
    if version == 3:
        commit(table, *deletion_vectors(table, {file: places[file.file_path] for file in data_files(table)[:-1]}))
    else:
        commit(table, position_deletes(table, sorted((path, at) for path, all_ in places.items() for at in all_)))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("version", [2, 3])
def test_sparks_reader_leaves_out_what_is_deleted_by_position(
    catalog: icefield.Catalog, ice: Any, version: int
) -> None:
    table = table_of(catalog, version)
    files = data_files(table)
    few = [0, 63, 64, 65, 200, ROWS - 1]
    mark(table, version, {file.file_path: few[at:] for at, file in enumerate(files[:-1])})
    found = ice.explain("db.marked")
    assert found.count_by_road() == {"spark": 5}, found
    for where in (None, "id > 600 and word = 'w3'", "id in (0, 63, 200, 763, 764)"):
        expected = table.scan(*([] if where is None else [where])).to_arrow().sort_by("id")["id"].to_pylist()
        for road in ("spark", "auto"):
            asked = ice.table("db.marked", where=where, columns=["id", "_pos", "_file"], road=road)
            assert sorted(row.id for row in asked.collect()) == expected
        later = ice.table("db.marked") if where is None else ice.table("db.marked").where(where)
        assert sorted(row.id for row in later.select("id").collect()) == expected
    assert ice.table("db.marked").where("id < 70").count() == 66 + 70  # the twin is whole
    shown = [each for each in ice.explain("db.marked", columns=["id", "_deleted"]).files if each.deletes]
    assert {str(each.road) for each in shown} == {"arrow"}
    commit(table, equality_deletes(table, ["id"], [{"id": 5}]))
    assert ice.explain("db.marked").count_by_road() == {"arrow": 5}


@pytest.mark.spark
def test_few_columns_under_deletes_and_a_filter_are_read_in_arrow(catalog: icefield.Catalog, ice: Any) -> None:
    columns = [*"abcde"]
    rows = pa.table({name: range(100) for name in columns})
    table = catalog.create_table("db.few", rows.schema, properties={"format-version": "3"})
    table.append(rows)
    table.append(rows.slice(0, 10))
    files = sorted(data_files(table), key=lambda file: file.record_count)
    commit(table, *deletion_vectors(table, {files[1]: [1, 99]}))

    def roads(where: str | None, columns: list[str]) -> list[str]:
        found = ice.explain("db.few", where=where, columns=columns).files
        return [str(each.road) for each in sorted(found, key=lambda each: each.rows)]

    assert roads("a > 3", columns[:4]) == roads("e > 3", columns[:3]) == ["spark", "arrow"]
    assert roads("a > 3", columns) == roads("e > 3", columns[:4]) == ["spark", "spark"]
    assert roads(None, columns[:1]) == ["spark", "spark"]
    (reason,) = {each.reason for each in ice.explain("db.few", "a > 3", ["a"]).files} - {""}
    assert reason == "1 delete files apply to it, and few columns under a filter are read faster so"
    for road in ("auto", "spark", "arrow"):
        found = ice.table("db.few", "a > 3", ["a", "b"], road=road).collect()
        assert sorted(row.b for row in found) == sorted([*range(4, 99), *range(4, 10)])


def test_a_bit_is_that_of_its_row_and_none_is_beyond_the_last() -> None:
    positions = np.array([0, 1, 63, 64, 127, 128, 129, 1000])
    words = _bits(130, positions)
    assert len(words) == 3
    assert [at for at in range(192) if words[at >> 6] >> (at & 63) & 1] == [0, 1, 63, 64, 127, 128, 129]


@pytest.mark.slow
def test_a_file_with_more_rows_than_the_table_says_is_an_error_and_never_rows(spark: Any, tmp_path: Path) -> None:
    place = tmp_path / "some.parquet"
    pq.write_table(pa.table({"id": range(100)}), place)
    deleted, others = GroupDeletes(), GroupDeletes()
    deleted.note("some", 100, np.array([0, 70]))
    others.note("some", 10, np.array([0]))
    frame = spark.read.parquet(f"file://{place}")
    assert frame.where(deleted.is_kept(spark, "0")).count() == 98
    with pytest.raises(Exception, match="a data file has more rows than the table says"):
        frame.where(others.is_kept(spark, "0")).collect()
