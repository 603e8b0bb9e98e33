"""Files that were written elsewhere, taken into a table."""

from __future__ import annotations

import datetime as dt
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from icefield import MemoryFileSystem
from icefield.engine import to_internal
from icefield.errors import FileMissing, InvalidArgument, InvalidFile
from icefield.toolkit import value_from_bytes
from tables import ids, new_table, rows, stored_files

SCHEMA = pa.schema([("id", pa.int64()), ("kind", pa.string()), ("ts", pa.timestamp("us"))])


def put(location: str, data: pa.Table) -> str:
    sink = io.BytesIO()
    pq.write_table(data, sink)
    MemoryFileSystem.files[location] = (sink.getvalue(), 0)
    return location


def foreign(numbers: list[int], kind: str | None = "a", day: int = 1, **more) -> pa.Table:
    count = len(numbers)
    table = pa.table({"id": numbers, "kind": [kind] * count, "ts": [dt.datetime(2024, 1, day)] * count}, schema=SCHEMA)
    for name, value in more.items():
        table = table.append_column(name, pa.array([value] * count))
    return table


@pytest.mark.spec("META-21")
def test_a_file_without_ids_is_read_by_the_name_mapping_that_is_stored_with_it():
    table = new_table(schema=SCHEMA)
    table.append(foreign([1]))
    location = put(f"memory://elsewhere/{table.metadata.table_uuid}/f.parquet", foreign([2, 3], extra=1))
    table.add_files([location])
    assert ids(table) == [1, 2, 3]
    assert table.name_mapping().find("kind").field_id == 2
    (file,) = [t.file for t in table.scan().plan_files(include_stats=True) if t.file.file_path == location]
    assert (file.record_count, file.file_format) == (2, "parquet")
    assert file.file_size_in_bytes == len(MemoryFileSystem.files[location][0])
    kind = table.schema().find_type("id")
    assert [value_from_bytes(kind, bound) for bound in (file.lower_bounds[1], file.upper_bounds[1])] == [2, 3]
    assert file.null_value_counts[2] == 0
    table.update_schema().rename_column("kind", "sort").commit()
    assert table.scan("id = 2").to_arrow()["sort"].to_pylist() == ["a"]
    assert len(table.snapshots()) == 2


@pytest.mark.spec("META-21")
@pytest.mark.parametrize("has_ids", [False, True])
def test_bounds_of_a_file_with_narrower_types_are_values_of_the_tables_types(has_ids: bool):
    table = new_table(schema=SCHEMA)
    days = [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 3)]
    data = pa.table({"id": pa.array([2, 3], pa.int32()), "kind": ["a", "b"], "ts": pa.array(days, pa.timestamp("ms"))})
    if has_ids:
        fields = [field.with_metadata({"PARQUET:field_id": str(at)}) for at, field in enumerate(data.schema, 1)]
        data = data.cast(pa.schema(fields))
    location = put(f"memory://elsewhere/{table.metadata.table_uuid}/narrow.parquet", data)
    table.add_files(location)
    file = next(table.scan().plan_files(include_stats=True)).file
    for number, (name, ends) in enumerate((("id", [2, 3]), ("kind", ["a", "b"]), ("ts", days)), 1):
        kind = table.schema().find_type(name)
        stored = [value_from_bytes(kind, bounds[number]) for bounds in (file.lower_bounds, file.upper_bounds)]
        assert stored == [to_internal(kind, end) for end in ends]
    assert ids(table, "ts > '2024-01-02' and id = 3") == [3]


def test_a_file_with_ids_is_described_by_its_footer():
    source = new_table(schema=SCHEMA)
    source.append(foreign([5, 6]))
    location = next(source.scan().plan_files()).file.file_path
    table = new_table(schema=SCHEMA)
    table.add_files(location)
    assert ids(table) == [5, 6]
    assert table.name_mapping() is None
    assert ids(table, "id > 100") == []
    assert list(table.scan("id > 100").plan_files()) == []


@pytest.mark.spec("PART-03", "PART-04", "PART-26")
def test_the_partition_is_stated_by_the_rows_and_never_by_the_path():
    table = new_table(["kind", ("ts", "day"), "bucket[4](id)"], schema=SCHEMA)
    one = put("memory://elsewhere/kind=zzz/ts_day=1999-01-01/a.parquet", foreign([7, 7], "a", 3))
    table.add_files([one])
    file = next(table.scan().plan_files()).file
    assert file.partition[:2] == ("a", (dt.date(2024, 1, 3) - dt.date(1970, 1, 1)).days)
    assert ids(table, "kind = 'a' and ts >= '2024-01-03' and id = 7") == [7, 7]
    assert ids(table, "kind = 'zzz'") == []
    mixed = put("memory://elsewhere/mixed.parquet", pa.concat_tables([foreign([1], "a"), foreign([1], "b")]))
    with pytest.raises(InvalidArgument, match="several partitions"):
        table.add_files([mixed])
    nulls = put("memory://elsewhere/nulls.parquet", foreign([7], None, 3))
    table.add_files([nulls])
    assert ids(table, "kind is null") == [7]


@pytest.mark.spec("MAN-23")
def test_a_file_is_added_once():
    table = new_table(schema=SCHEMA)
    location = put(f"memory://elsewhere/{table.metadata.table_uuid}/once.parquet", foreign([1]))
    with pytest.raises(InvalidArgument, match="twice"):
        table.add_files([location, location])
    table.add_files([location], snapshot_properties={"from": "elsewhere"})
    assert table.current_snapshot().summary["from"] == "elsewhere"
    with pytest.raises(InvalidArgument, match="in the table already"):
        table.add_files([location])
    assert ids(table) == [1]
    # A failed commit never deletes an added file.
    assert location in MemoryFileSystem.files


def test_what_cannot_be_added_is_refused_and_nothing_is_committed():
    table = new_table(schema=pa.schema([pa.field("id", pa.int64(), nullable=False), ("kind", pa.string())]))
    wrong = put("memory://elsewhere/wrong.parquet", pa.table({"id": ["x"], "kind": ["a"]}))
    lacking = put("memory://elsewhere/lacking.parquet", pa.table({"kind": ["a"]}))
    MemoryFileSystem.files["memory://elsewhere/damaged.parquet"] = (b"PAR1 no", 0)
    for location, error in (
        (wrong, InvalidFile),
        (lacking, InvalidFile),
        ("memory://elsewhere/damaged.parquet", InvalidFile),
        ("memory://elsewhere/nowhere.parquet", FileMissing),
    ):
        with pytest.raises(error):
            table.add_files([location])
    text = "memory://elsewhere/rows.txt"
    MemoryFileSystem.files[text] = (b"id,kind\n1,a\n", 0)
    with pytest.raises(InvalidArgument, match="format"):
        table.add_files([text])
    assert table.refresh().snapshots() == []
    assert table.properties.keys() == new_table().properties.keys()


def test_a_position_delete_file_is_refused_as_a_data_file():
    source = new_table(**{"write.delete.mode": "merge-on-read"})
    source.append(rows(range(3)))
    source.delete("id = 1")
    (location,) = source.inspect.delete_files()["file_path"].to_pylist()
    table = new_table()
    with pytest.raises(InvalidArgument, match="is a position delete file"):
        table.add_files(location)
    assert not table.snapshots()


def test_files_are_added_in_a_transaction_and_to_a_branch():
    table = new_table(schema=SCHEMA)
    table.append(foreign([1]))
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "dev").commit()
    location = put(f"memory://elsewhere/{table.metadata.table_uuid}/branch.parquet", foreign([2]))
    with table.transaction() as tx:
        tx.add_files([location], branch="dev", check_duplicate_files=False)
        tx.delete("id = 1", branch="dev")
    assert (ids(table), ids(table, ref="dev")) == ([1], [2])
    assert len([name for name in stored_files(table) if name.endswith(".parquet")]) == 1


def test_columns_that_files_lack_are_stated_and_read_from_the_partition():
    table = new_table(schema=SCHEMA, partition_spec=["kind", "day(ts)"])
    first, second = (f"memory://elsewhere/{table.metadata.table_uuid}/{name}.parquet" for name in ("f", "g"))
    for location, numbers, day in ((first, [1, 2], 3), (second, [3], 4)):
        put(location, foreign(numbers, day=day).drop_columns(["kind"]))
    table.add_files([first, second], partition_values={first: {"kind": "x"}, second: {"kind": None}})
    found = {task.file.file_path: task.file for task in table.scan().plan_files(include_stats=True)}
    assert [found[each].partition for each in (first, second)] == [("x", 19725), (None, 19726)]
    assert 2 not in found[first].null_value_counts
    assert table.scan("kind = 'x'").to_arrow()["id"].to_pylist() == [1, 2]
    assert table.scan("kind is null").to_arrow()["id"].to_pylist() == [3]
    assert set(table.scan("id < 3").to_arrow()["kind"].to_pylist()) == {"x"}


def test_a_file_that_lacks_only_what_is_stated_is_in_the_partition_that_is_stated():
    table = new_table(schema=SCHEMA, partition_spec=["kind"])
    location = put(f"memory://elsewhere/{table.metadata.table_uuid}/f.parquet", foreign([1]).drop_columns(["kind"]))
    table.add_files(location, partition_values={location: {"kind": "y"}})
    assert table.scan("kind = 'y'").to_arrow()["id"].to_pylist() == [1]
    assert table.scan("kind = 'z'").to_arrow()["id"].to_pylist() == []


def test_what_a_file_has_counts_before_what_is_stated_of_it():
    table = new_table(schema=SCHEMA, partition_spec=["kind"])
    location = put(f"memory://elsewhere/{table.metadata.table_uuid}/f.parquet", foreign([1], kind="true"))
    table.add_files(location, partition_values={location: {"kind": "stated"}})
    assert table.scan("kind = 'true'").to_arrow()["id"].to_pylist() == [1]


def test_only_columns_that_the_partition_holds_as_they_are_can_be_stated():
    table = new_table(schema=SCHEMA, partition_spec=["bucket[4](kind)"])
    location = put(f"memory://elsewhere/{table.metadata.table_uuid}/f.parquet", foreign([1]).drop_columns(["kind"]))
    with pytest.raises(InvalidArgument, match="has no column 'kind'"):
        table.add_files(location, partition_values={location: {"kind": "x"}})
    assert table.snapshots() == []


def test_what_is_stated_in_error_is_refused_before_anything_is_added():
    schema = pa.schema([SCHEMA.field(0), pa.field("day", pa.date32(), nullable=False)])
    table = new_table(schema=schema, partition_spec=["day"])
    location = put(f"memory://elsewhere/{table.metadata.table_uuid}/f.parquet", pa.table({"id": [1]}))
    for values, message in (
        ({location: {"day": None}}, "column 'day' is required, and null is stated"),
        ({location: {"day": "no day"}}, "date"),
        ({location: {"days": dt.date(2024, 1, 1)}}, "days"),
        ({f"{location}x": {"day": dt.date(2024, 1, 1)}}, "none of the files that are added"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            table.add_files(location, partition_values=values)
    assert table.snapshots() == []
    table.add_files(location, partition_values={location: {"day": dt.date(2024, 1, 1)}})
    assert table.scan("day = '2024-01-01'").to_arrow()["id"].to_pylist() == [1]
