"""Writing position delete files."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from delete_files import commit, data_files
from icefield import MemoryFileSystem
from icefield.abc import ReadRequest
from icefield.catalog import Table
from icefield.errors import FileExists, InvalidArgument, StorageError, UnsupportedFeature
from icefield.manifest import DataFile, DataFileContent
from icefield.partitioning import PartitionField, PartitionSpec
from icefield.writing import DeleteContext, DeletedRows, write_position_deletes
from tables import ids, new_table, rows

PATH, POS = 2147483546, 2147483545
FORMATS = ("parquet", "avro", "orc")
BY_KIND = PartitionSpec(PartitionField(2, 1000, "identity", "kind"))


def context_of(table: Table, **properties: str) -> DeleteContext:
    given = {name.replace("__", "-").replace("_", "."): value for name, value in properties.items()}
    return DeleteContext.from_metadata(table.metadata, table.io, properties=given)


def deleted(file: DataFile, *positions: int) -> DeletedRows:
    return DeletedRows(file, np.array(positions, np.int64))


def number(bound: bytes) -> int:
    return int.from_bytes(bound, "little")


def failing(*_: Any, **__: Any) -> Any:
    raise StorageError("the disk is full")


def files_below(table: Table) -> set[str]:
    return {info.location for info in table.io.list_files(f"{table.location()}/data")}


def pairs(table: Table, file: DataFile) -> list[tuple[str, int]]:
    with table.io.file_format(file.file_format).open_reader(table.io.open_input(file.file_path), "f") as reader:
        batches = [*reader.read(ReadRequest(reader.schema))]
    read = pa.Table.from_batches(batches)
    return [*zip(read["file_path"].to_pylist(), read["pos"].to_pylist(), strict=True)]


def two_files(table: Table) -> list[DataFile]:
    table.append(rows(range(10)))
    table.append(rows(range(10, 20)))
    return data_files(table)


@pytest.mark.spec("DEL-01", "DEL-04", "DEL-10", "DEL-11", "DEL-13", "DEL-14")
@pytest.mark.parametrize("file_format", FORMATS)
def test_a_file_holds_paths_and_positions_in_order(file_format: str) -> None:
    table = new_table()
    first, second = two_files(table)
    context = context_of(table, write_delete_format_default=file_format)
    (made,) = write_position_deletes(context, [deleted(second, 0, 9), deleted(first, 3, 4)])

    expected = sorted([(first.file_path, 3), (first.file_path, 4), (second.file_path, 0), (second.file_path, 9)])
    assert pairs(table, made) == expected
    assert (made.content, made.record_count, made.file_format) == (DataFileContent.POSITION_DELETES, 4, file_format)
    assert (made.sort_order_id, made.equality_ids, made.referenced_data_file) == (None, None, None)
    assert made.file_path.endswith(f"-deletes.{file_format}")
    commit(table, made)
    assert ids(table) == sorted(set(range(20)) - {3, 4, 10, 19})


@pytest.mark.spec("DEL-10")
def test_the_columns_have_the_reserved_ids() -> None:
    table = new_table()
    first, _ = two_files(table)
    (made,) = write_position_deletes(context_of(table), [deleted(first, 1)])
    schema = pq.read_schema(pa.BufferReader(table.io.read(made.file_path)))
    assert [field.metadata[b"PARQUET:field_id"] for field in schema] == [b"2147483546", b"2147483545"]
    assert not any(field.nullable for field in schema)


@pytest.mark.spec("DEL-05")
def test_the_format_is_that_of_data_unless_one_is_named() -> None:
    table = new_table(properties={"write.format.default": "avro"})
    first, _ = two_files(table)
    assert [file.file_format for file in write_position_deletes(context_of(table), [deleted(first, 1)])] == ["avro"]
    context = context_of(table, write_delete_format_default="ORC")
    assert [file.file_format for file in write_position_deletes(context, [deleted(first, 1)])] == ["orc"]


@pytest.mark.spec("DEL-15", "DEL-18")
def test_bounds_are_whole_and_a_file_of_one_data_file_names_it() -> None:
    table = new_table()
    first, second = two_files(table)
    context = context_of(table, write_delete_granularity="file")
    both = write_position_deletes(context, [deleted(first, 2, 8), deleted(second, 5)])
    named = {made.referenced_data_file: made for made in both}
    assert named.keys() == {first.file_path, second.file_path}
    for path, low, high in ((first.file_path, 2, 8), (second.file_path, 5, 5)):
        made = named[path]
        assert made.lower_bounds == {PATH: path.encode(), POS: low.to_bytes(8, "little")}
        assert made.upper_bounds == {PATH: path.encode(), POS: high.to_bytes(8, "little")}


def test_bounds_of_several_data_files_hold_all_of_them() -> None:
    table = new_table()
    first, second = sorted(two_files(table), key=lambda file: file.file_path)
    (made,) = write_position_deletes(context_of(table), [deleted(second, 0), deleted(first, 9)])
    assert made.lower_bounds == {PATH: first.file_path.encode(), POS: bytes(8)}
    assert made.upper_bounds == {PATH: second.file_path.encode(), POS: (9).to_bytes(8, "little")}


@pytest.mark.spec("SORT-07")
def test_delete_files_of_a_sorted_table_name_no_order_and_one_that_is_named_is_ignored() -> None:
    table = new_table()
    table.update_sort_order().desc("id").commit()
    first, second = two_files(table)
    assert first.sort_order_id == table.sort_order().order_id != 0
    (made,) = write_position_deletes(context_of(table), [deleted(first, 1)])
    (other,) = write_position_deletes(context_of(table), [deleted(second, 1)])
    commit(table, made, replace(other, sort_order_id=first.sort_order_id))
    assert sorted(table.inspect.delete_files()["sort_order_id"].to_pylist(), key=str) == [1, None]
    assert len(ids(table)) == 18


def test_a_partition_has_a_file_of_its_own_spec_in_its_folder() -> None:
    table = new_table(BY_KIND)
    table.append(pa.concat_tables([rows(range(5), "a"), rows(range(5, 10), "b/c")]))
    with table.update_spec() as update:
        update.remove_field("kind")
    table.append(rows(range(10, 15)))
    files = data_files(table)
    made = write_position_deletes(context_of(table), [deleted(file, 0) for file in files])
    assert sorted((file.spec_id, file.partition) for file in made) == sorted(
        (file.spec_id, file.partition) for file in files
    )
    folders = {file.file_path.rpartition("/")[0].removeprefix(table.location()) for file in made}
    assert {"/data/kind=a", "/data/kind=b%2Fc"} < folders
    commit(table, *made)
    assert len(ids(table)) == 12


def test_a_file_ends_near_the_target_size() -> None:
    table = new_table()
    table.append(rows(range(200_000)))
    (file,) = data_files(table)
    some = np.flatnonzero(np.random.default_rng(1).random(200_000) < 0.5)
    context = context_of(table, write_delete_target__file__size__bytes="30000")
    made = write_position_deletes(context, [DeletedRows(file, some)])
    assert len(made) > 2
    assert sum(each.record_count for each in made) == len(some)
    bounds = sorted((number(each.lower_bounds[POS]), number(each.upper_bounds[POS])) for each in made)
    assert bounds[0][0] == some[0]
    assert bounds[-1][1] == some[-1]
    assert all(high < low for (_, high), (low, _) in itertools.pairwise(bounds))
    commit(table, *made)
    assert np.array_equal(ids(table), np.setdiff1d(np.arange(200_000), some))


def test_rows_of_one_data_file_that_come_twice_are_united() -> None:
    table = new_table()
    first, _ = two_files(table)
    (made,) = write_position_deletes(context_of(table), [deleted(first, 1, 3), deleted(first, 0, 3)])
    assert pairs(table, made) == [(first.file_path, 0), (first.file_path, 1), (first.file_path, 3)]


def test_no_rows_make_no_file() -> None:
    table = new_table()
    first, _ = two_files(table)
    assert write_position_deletes(context_of(table), [deleted(first)]) == []
    assert write_position_deletes(context_of(table), []) == []


@pytest.mark.spec("DEL-05")
def test_properties_of_delete_files_go_over_those_of_data_files() -> None:
    table = new_table(properties={"write.parquet.compression-codec": "gzip"})
    first, _ = two_files(table)

    def codec(**properties: str) -> str:
        (made,) = write_position_deletes(context_of(table, **properties), [deleted(first, 1)])
        return (
            pq.ParquetFile(pa.BufferReader(table.io.read(made.file_path))).metadata.row_group(0).column(0).compression
        )

    assert codec() == "GZIP"
    assert codec(write_delete_parquet_compression__codec="snappy") == "SNAPPY"


@pytest.mark.spec("DEL-16")
@pytest.mark.parametrize(("version", "reason"), [(1, "no row-level deletes"), (3, "write deletion vectors")])
def test_other_versions_take_no_position_delete_files(version: int, reason: str) -> None:
    table = new_table(properties={"format-version": str(version)})
    first, _ = two_files(table)
    with pytest.raises(UnsupportedFeature, match=reason):
        write_position_deletes(context_of(table), [deleted(first, 1)])


@pytest.mark.parametrize(
    ("positions", "reason"),
    [
        (np.array([3, 3]), "ascending and distinct"),
        (np.array([4, 3]), "ascending and distinct"),
        (np.array([-1, 3]), "none at -1"),
        (np.array([3, 10]), "none at 10"),
        (np.array([3], np.int32), "numpy array of int64"),
        ([3], "numpy array of int64"),
    ],
)
def test_positions_that_are_none_are_refused(positions: Any, reason: str) -> None:
    table = new_table()
    first, _ = two_files(table)
    before = files_below(table)
    with pytest.raises(InvalidArgument, match=reason):
        write_position_deletes(context_of(table), [DeletedRows(first, positions)])
    assert files_below(table) == before


def test_an_error_leaves_no_file_and_each_location_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table()
    first, second = two_files(table)
    before, noted = files_below(table), []
    context = context_of(table, write_delete_granularity="file")
    opening = MemoryFileSystem.open_output

    def second_fails(self: MemoryFileSystem, location: str) -> Any:
        return opening(self, location) if len(noted) == 1 else failing()

    monkeypatch.setattr(MemoryFileSystem, "open_output", second_fails)
    with pytest.raises(StorageError, match="disk is full"):
        write_position_deletes(context, [deleted(first, 1), deleted(second, 1)], note=noted.append)
    assert files_below(table) == before
    assert noted


def test_a_file_of_the_same_name_is_let_be() -> None:
    table = new_table()
    first, second = two_files(table)
    context = context_of(table)
    made = write_position_deletes(context, [deleted(first, 1)])
    with pytest.raises(FileExists):
        write_position_deletes(context, [deleted(second, 1)])
    commit(table, *made)
    assert len(ids(table)) == 19


def test_the_context_travels() -> None:
    table = new_table(BY_KIND)
    context = context_of(table)
    assert pickle.loads(pickle.dumps(context)).specs == context.specs
    first, _ = two_files(table)
    made = write_position_deletes(pickle.loads(pickle.dumps(context)), [deleted(first, 1)], task_id=7, attempt=2)
    assert f"/00007-2-{context.operation_id}-00001-deletes.parquet" in made[0].file_path


def test_a_delete_file_and_a_spec_that_is_not_there_are_refused() -> None:
    table = new_table()
    first, _ = two_files(table)
    with pytest.raises(InvalidArgument, match="no data file"):
        write_position_deletes(
            context_of(table), [deleted(replace(first, content=DataFileContent.EQUALITY_DELETES), 1)]
        )
    with pytest.raises(InvalidArgument, match="no partition spec 9"):
        write_position_deletes(context_of(table), [deleted(replace(first, spec_id=9), 1)])
