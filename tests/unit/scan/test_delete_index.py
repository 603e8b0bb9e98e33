"""Which delete files apply to which data files, by the rules of the specification."""

from __future__ import annotations

import math
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.engine import DeleteIndex
from icefield.errors import InvalidMetadata
from icefield.manifest import DataFile, DataFileContent, clear_caches
from icefield.manifest.cache import CACHE_ENABLED
from icefield.partitioning.spec import normalised_key
from icefield.plugins import Plugins
from icefield.scan.deletes.index import DELETE_INDEXES
from icefield.types.reserved import DELETE_FILE_PATH
from planned_tables import CountingIO, PlannedTable, name_of, spec
from vectors import VECTORS

BY_ID = spec((1, "identity", "id"), spec_id=1)
SPECS = (spec(), BY_ID, spec((4, "identity", "score"), spec_id=2, first_id=1001))
POSITION, EQUALITY = DataFileContent.POSITION_DELETES, DataFileContent.EQUALITY_DELETES


@pytest.fixture(autouse=True)
def _no_index_of_others() -> None:
    clear_caches()


def deletes_of(table: PlannedTable, row_filter: str = "true") -> dict[str, list[str]]:
    """The names of the delete files of each data file."""
    tasks = table.scan(row_filter).plan_files()
    return {name_of(task.file.file_path): sorted(name_of(d.file_path) for d in task.delete_files) for task in tasks}


def delete_file(table: PlannedTable, kind: str, name: str = "deletes", **given: Any) -> DataFile:
    if kind == "equality":
        return table.file(name, content=EQUALITY, **{"equality_ids": (1,), **given})
    if kind == "dv":
        return table.file(
            name, content=POSITION, file_format="puffin", content_offset=4, content_size_in_bytes=20, **given
        )
    return table.file(name, content=POSITION, **given)


@pytest.mark.spec("SCAN-31", "SCAN-32", "SCAN-33", "SCAN-34", "SCAN-35", "SCAN-36", "DEL-27", "DEL-02")
@pytest.mark.parametrize("row", VECTORS["delete_scope"])
def test_a_delete_file_applies_where_the_specification_says(row: dict[str, Any]) -> None:
    table = PlannedTable(specs=SPECS, format_version=3)
    data = table.file("data", (5,), spec_id=1)
    table.add([data], data_sequence_number=row["data_seq"])
    unpartitioned = row.get("delete_spec_unpartitioned", False)
    partition = () if unpartitioned else (5,) if row["same_partition"] else (6,)
    given: dict[str, Any] = {"partition": partition, "spec_id": 0 if unpartitioned else 1}
    if "referenced_data_file" in row:
        same = row["referenced_data_file"] == "self"
        given["referenced_data_file"] = data.file_path if same else table.path("data/other.parquet")
    table.add([delete_file(table, row["kind"], **given)], data_sequence_number=row["delete_seq"])
    if row.get("dv_exists"):
        vector = delete_file(table, "dv", "vector", partition=(5,), spec_id=1, referenced_data_file=data.file_path)
        table.add([vector], data_sequence_number=9)
    table.commit()
    expected = ["deletes"] if row["applies"] else ["vector"] if row.get("dv_exists") else []
    assert deletes_of(table) == {"data": expected}


@pytest.mark.spec("SCAN-36", "MAN-10")
def test_deletes_of_the_same_commit_apply_by_position_and_not_by_equality() -> None:
    table = PlannedTable()
    table.add([table.file("old")])
    table.commit()
    table.add([table.file("new")])
    table.add([delete_file(table, "equality", "eq"), delete_file(table, "position", "pos")])
    table.commit()
    table.add([table.file("newer")])
    table.commit()
    assert deletes_of(table) == {"old": ["eq", "pos"], "new": ["pos"], "newer": []}


@pytest.mark.spec("SCAN-35")
def test_a_compacted_file_keeps_its_old_data_sequence_number() -> None:
    table = PlannedTable()
    for _ in range(3):
        table.commit()
    table.add([delete_file(table, "equality", "eq")])
    table.commit()
    table.add([table.file("compacted")], data_sequence_number=2)
    table.add([table.file("later")])
    table.commit()
    assert deletes_of(table) == {"compacted": ["eq"], "later": []}


@pytest.mark.spec("SCAN-38", "PART-24")
def test_float_partitions_are_equal_when_their_bits_are_with_one_nan() -> None:
    table = PlannedTable(specs=SPECS)
    values = {"zero": 0.0, "minus": -0.0, "nan": math.nan, "null": None}
    table.add([table.file(name, (value,), spec_id=2) for name, value in values.items()])
    table.commit()
    other_nan = -math.nan
    for name, value in {**values, "nan": other_nan}.items():
        table.add([delete_file(table, "equality", f"for-{name}", partition=(value,), spec_id=2)])
    table.commit()
    assert deletes_of(table) == {name: [f"for-{name}"] for name in values}


@pytest.mark.spec("SCAN-39", "DEL-18", "SCAN-33")
def test_a_position_delete_file_applies_to_all_files_that_its_bounds_admit() -> None:
    table = PlannedTable()
    table.add([table.file(name) for name in ("a", "b", "c")])
    table.commit()

    def bounds(low: str, high: str) -> dict[str, Any]:
        path = DELETE_FILE_PATH.field_id
        return {
            "lower_bounds": {path: table.path(f"data/{low}").encode()},
            "upper_bounds": {path: table.path(f"data/{high}").encode()},
        }

    table.add(
        [
            delete_file(table, "position", "all"),
            delete_file(table, "position", "ab", **bounds("a.parquet", "b.parquet")),
            delete_file(table, "position", "only-c", **bounds("c.parquet", "c.parquet")),
            delete_file(table, "position", "none", **bounds("d", "e")),
            delete_file(table, "position", "named", referenced_data_file=table.path("data/b.parquet")),
        ]
    )
    table.commit()
    assert deletes_of(table) == {"a": ["ab", "all"], "b": ["ab", "all", "named"], "c": ["all", "only-c"]}


@pytest.mark.parametrize(("low", "high"), [("file:///z", "file:///a"), ("", ""), (None, "")])
def test_a_position_delete_file_whose_bounds_no_path_is_between_still_deletes(low: str | None, high: str) -> None:
    table = PlannedTable()
    table.add([table.file("a")])
    table.commit()
    path = DELETE_FILE_PATH.field_id
    lower = {} if low is None else {path: low.encode()}
    wrong = {"lower_bounds": lower, "upper_bounds": {path: high.encode()}}
    unnamed = delete_file(table, "position", "unnamed", referenced_data_file="")
    table.add([delete_file(table, "position", "wrong", **wrong), unnamed])
    table.commit()
    assert deletes_of(table) == {"a": ["unnamed", "wrong"]}


def test_a_deletion_vector_that_names_no_file_is_refused() -> None:
    table = PlannedTable(format_version=3)
    table.add([table.file("data")])
    table.add([delete_file(table, "dv", "v", referenced_data_file="")])
    table.commit()
    with pytest.raises(InvalidMetadata, match="names no data file"):
        deletes_of(table)


@pytest.mark.spec("SCAN-37")
def test_equality_deletes_of_rows_that_the_filter_rejects_are_left_out() -> None:
    table = PlannedTable()
    table.add([table.file("data", bounds={"id": (0, 20)})])
    table.commit()
    low, high = (
        delete_file(table, "equality", "x", bounds={"id": (1, 4)}),
        delete_file(table, "equality", "y", bounds={"id": (8, 9)}),
    )
    # Its key is another column, so its bounds of id exclude no data file.
    other = delete_file(table, "equality", "z", equality_ids=(2,), bounds={"id": (1, 4)})
    table.add([low, high, other, delete_file(table, "position", "p")])
    table.commit()
    assert deletes_of(table, "id = 9") == {"data": ["p", "y", "z"]}
    assert deletes_of(table) == {"data": ["p", "x", "y", "z"]}


@pytest.mark.spec("PART-19", "SCAN-38")
def test_a_value_under_an_unknown_transform_still_counts_for_equality_of_partitions() -> None:
    odd = spec((1, "zorder[3]", "odd"), spec_id=0)
    # The files are written under a known transform, and read after the table states an unknown one.
    table = PlannedTable(specs=[spec((1, "bucket[4]", "odd"))])
    table.add([table.file("one", (1,)), table.file("two", (2,))])
    table.commit()
    table.add([delete_file(table, "equality", "eq", partition=(1,))])
    table.commit()
    table.specs = [odd]
    assert deletes_of(table) == {"one": ["eq"], "two": []}
    assert deletes_of(table, "id = 7") == {"one": ["eq"], "two": []}


@pytest.mark.spec("DEL-32")
def test_two_deletion_vectors_of_one_file_are_refused() -> None:
    table = PlannedTable(format_version=3)
    data = table.file("data")
    table.add([data])
    table.add([delete_file(table, "dv", name, referenced_data_file=data.file_path) for name in ("v", "w")])
    table.commit()
    with pytest.raises(InvalidMetadata, match="two deletion vectors"):
        deletes_of(table)


@pytest.mark.spec("DEL-37")
def test_several_deletion_vectors_may_are_in_one_puffin_file() -> None:
    table = PlannedTable(format_version=3)
    files = [table.file(name) for name in "ab"]
    table.add(files)
    vectors = [delete_file(table, "dv", "shared", referenced_data_file=file.file_path) for file in files]
    table.add(vectors)
    table.commit()
    found = {task.file.file_path: task.delete_files for task in table.scan().plan_files()}
    assert found == {file.file_path: (vector,) for file, vector in zip(files, vectors, strict=True)}


def test_a_planned_delete_file_is_whole() -> None:
    table = PlannedTable()
    table.add([table.file("data")])
    table.commit()
    deletes = delete_file(table, "equality", "eq", equality_ids=(1, 2), key_metadata=b"k")
    table.add([deletes])
    table.commit()
    [task] = table.scan().plan_files()
    assert task.delete_files == (deletes,)
    assert table.scan().plan_arrow()["delete_files"].to_pylist() == [[deletes.file_path]]


PARTITIONS: dict[int, list[tuple[Any, ...]]] = {
    0: [()],
    1: [(None,), (1,), (2,)],
    2: [(None,), (0.0,), (-0.0,), (math.nan,), (1.5,)],
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[tuple[DataFile, int]], list[tuple[DataFile, int]], PlannedTable]:
    table = PlannedTable(specs=SPECS, format_version=3)

    def place() -> dict[str, Any]:
        spec_id = draw(st.sampled_from([0, 1, 2]))
        return {"spec_id": spec_id, "partition": draw(st.sampled_from(PARTITIONS[spec_id]))}

    data = [(table.file(f"d{i}", **place()), draw(st.integers(0, 4))) for i in range(draw(st.integers(1, 8)))]
    deletes: list[tuple[DataFile, int]] = []
    with_vector = set()
    names = st.one_of(st.sampled_from([f"d{i}.parquet" for i in range(8)]), st.sampled_from(["", "d", "d3", "e"]))
    for i in range(draw(st.integers(0, 8))):
        kind = draw(st.sampled_from(["equality", "position", "named", "bounded", "dv"]))
        given_ = place()
        if kind == "bounded":
            ends = sorted(draw(st.tuples(names, names)))
            for side, end in zip(("lower_bounds", "upper_bounds"), ends, strict=True):
                if draw(st.integers(0, 3)):
                    given_[side] = {DELETE_FILE_PATH.field_id: table.path(f"data/{end}").encode()}
        if kind in ("named", "dv"):
            target = draw(st.sampled_from([file.file_path for file, _ in data]))
            if kind == "dv" and target in with_vector:
                continue
            given_["referenced_data_file"] = target
        if kind == "dv":
            with_vector.add(target)
        file = delete_file(table, "position" if kind in ("named", "bounded") else kind, f"x{i}", **given_)
        deletes.append((file, draw(st.integers(0, 4))))
    return data, deletes, table


def applies(delete: DataFile, delete_number: int, data: DataFile, number: int) -> bool:
    """Whether a delete file applies to a data file, in the words of the specification, without deletion vectors."""
    here = (delete.spec_id, normalised_key(delete.partition)) == (data.spec_id, normalised_key(data.partition))
    if delete.content is EQUALITY:
        return number < delete_number and (here or delete.spec_id == 0)
    path, field_id = data.file_path.encode(), DELETE_FILE_PATH.field_id
    low, high = (delete.lower_bounds or {}).get(field_id, path), (delete.upper_bounds or {}).get(field_id, path)
    named = delete.referenced_data_file in (None, data.file_path) and low <= path <= high
    return number <= delete_number and here and named


@pytest.mark.slow
@pytest.mark.spec("SCAN-31", "SCAN-32", "SCAN-33", "SCAN-34", "SCAN-38")
@settings(max_examples=60, deadline=None)
@given(tables(), st.booleans())
def test_the_index_finds_what_comparing_each_pair_finds(
    made: tuple[list[tuple[DataFile, int]], list[tuple[DataFile, int]], PlannedTable], together: bool
) -> None:
    data, deletes, table = made
    for files in (data, deletes):
        manifests: dict[Any, list[DataFile]] = {}
        for file, number in files:
            manifests.setdefault((number, file.spec_id, None if together else file.file_path), []).append(file)
        for (number, *_), group in manifests.items():
            table.add(group, data_sequence_number=number)
    table.commit()
    expected = {}
    for file, number in data:
        found = [d for d, n in deletes if applies(d, n, file, number)]
        if any(d.is_deletion_vector for d in found):
            found = [d for d in found if d.is_deletion_vector or d.content is EQUALITY]
        expected[name_of(file.file_path)] = sorted(name_of(d.file_path) for d in found)
    assert deletes_of(table) == expected
    plan = table.scan().plan_arrow()
    paths = zip(plan["file_path"].to_pylist(), plan["delete_files"].to_pylist(), strict=True)
    assert {name_of(path): sorted(map(name_of, names)) for path, names in paths} == expected


def test_a_second_plan_takes_the_index_of_the_first() -> None:
    table = PlannedTable()
    for name in "ab":
        table.add([table.file(name)])
    table.add([delete_file(table, "position", referenced_data_file=table.file("a").file_path)])
    table.commit()
    first = deletes_of(table)
    with mock.patch.object(DeleteIndex, "_build", side_effect=AssertionError("the index is made anew")):
        assert first == deletes_of(table) == deletes_of(table, "id > 3") == {"a": ["deletes"], "b": []}
        # A later snapshot lists the same deletes, and a new data file to which they do not apply.
        table.add([table.file("c")])
        table.commit()
        assert deletes_of(table) == {"a": ["deletes"], "b": [], "c": []}
    assert len(DELETE_INDEXES) == 1


def test_an_index_of_the_deletes_that_a_filter_leaves_serves_no_other_scan() -> None:
    table = PlannedTable()
    table.add([table.file("data", bounds={"id": (1, 9)})])
    table.commit()
    for name, bounds in (("low", (1, 2)), ("high", (8, 9))):
        table.add([delete_file(table, "equality", name, bounds={"id": bounds})])
    table.commit()
    for _ in range(2):
        assert deletes_of(table, "id > 5") == {"data": ["high"]}
        assert deletes_of(table) == {"data": ["high", "low"]}


def test_a_catalog_without_a_cache_keeps_no_index() -> None:
    table = PlannedTable(io=CountingIO(Plugins.installed(), {CACHE_ENABLED: "false"}))
    table.add([table.file("data")])
    table.add([delete_file(table, "position")])
    table.commit()
    assert deletes_of(table) == {"data": ["deletes"]}
    assert not len(DELETE_INDEXES)
