"""Statistics of the partitions of a table: computed, written in each format, carried on and read."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from icefield import Table
from icefield.errors import InvalidArgument, NoSuchSnapshot
from icefield.manifest import DataFileContent, EntryStatus
from icefield.metadata import PartitionStatisticsFile
from icefield_maintenance import MaintenanceTable, partition_stats
from pickling_runner import PicklingRunner
from tables import again, entries, manifests, new_table, orphans, rows

FORMATS = pytest.mark.parametrize("file_format", ["parquet", "avro", "orc"])
MERGE_ON_READ = {f"write.{change}.mode": "merge-on-read" for change in ("delete", "update", "merge")}
COLUMNS = [
    "partition",
    "spec_id",
    "data_record_count",
    "data_file_count",
    "total_data_file_size_in_bytes",
    "position_delete_record_count",
    "position_delete_file_count",
    "dv_count",
    "equality_delete_record_count",
    "equality_delete_file_count",
    "total_record_count",
    "last_updated_at",
    "last_updated_snapshot_id",
]


def stats(table: Table, snapshot_id: int | None = None) -> list[dict[str, Any]]:
    found = table.inspect.partition_statistics(snapshot_id)
    assert found is not None
    return found.to_pylist()


def naive(table: Table) -> list[dict[str, Any]]:
    """The same, from each live file by itself."""
    found: dict[Any, dict[str, Any]] = {}
    times = {each.snapshot_id: each.timestamp_ms for each in table.snapshots()}
    names = ["kind"] if len(table.specs()) == 1 else ["kind", "id_bucket"]
    everywhere = False
    for manifest in manifests(table):
        read = entries(table, manifest)
        ids, status = read.column(1).to_pylist(), read.status().tolist()
        for file, snapshot_id, state in zip(read.data_files(), ids, status, strict=True):
            own = [each.name for each in table.specs()[file.spec_id].fields]
            partition = dict.fromkeys(names) | dict(zip(own, file.partition, strict=True))
            row = found.setdefault(
                (file.spec_id, *partition.values()),
                {
                    "partition": partition,
                    "spec_id": file.spec_id,
                    **dict.fromkeys(COLUMNS[2:-3], 0),
                    "last": (-1, None),
                },
            )
            row["last"] = max(row["last"], (times.get(snapshot_id, -1), snapshot_id))
            if state == EntryStatus.DELETED:
                continue
            match file.content:
                case DataFileContent.DATA:
                    row["total_data_file_size_in_bytes"] += file.file_size_in_bytes
                    kind = "data"
                case DataFileContent.POSITION_DELETES:
                    kind = "position_delete"
                case DataFileContent.EQUALITY_DELETES:
                    kind = "equality_delete"
                    everywhere |= not file.partition
            row[f"{kind}_record_count"] += file.record_count
            row["dv_count" if file.file_format == "puffin" else f"{kind}_file_count"] += 1
    made = []
    for row in found.values():
        last = row.pop("last")
        if not any(value for name, value in row.items() if name.endswith("file_count")):
            continue
        deletes = [value for name, value in row.items() if "delete" in name]
        row["total_record_count"] = None if any(deletes) or everywhere else row["data_record_count"]
        row["last_updated_at"], row["last_updated_snapshot_id"] = last
        if table.format_version < 3:
            del row["dv_count"]
        made.append(row)
    return sorted(made, key=lambda row: [*((v is not None, v) for v in row["partition"].values()), row["spec_id"]])


def counts(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without when: a partition's last change may have left no trace but in statistics."""
    return [{name: value for name, value in row.items() if not name.startswith("last")} for row in found]


@FORMATS
@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.spec("PUF-11")
def test_a_partition_has_a_row_in_the_columns_of_the_specification(file_format: str, version: int) -> None:
    table = new_table(["kind"], properties={"format-version": str(version), "write.format.default": file_format})
    for kind in ("b", None, "a"):
        table.append(rows(range(3), kind))
    table.append(rows([7], "a"))
    made = table.maintenance.compute_partition_stats()
    assert made is not None
    assert made.statistics_path.endswith(f".{file_format}")
    assert made.file_size_in_bytes == table.io.stat(made.statistics_path).size
    assert [*again(table).refresh().metadata.partition_statistics] == [made]
    found = table.inspect.partition_statistics()
    assert found is not None
    assert found.column_names == [name for name in COLUMNS if version == 3 or name != "dv_count"]
    with table.io.file_format(file_format).open_reader(table.io.open_input(made.statistics_path), "s") as reader:
        ids = [int(field.metadata[b"PARQUET:field_id"]) for field in reader.schema]
    assert ids == [1, 2, 3, 4, 5, 6, 7, *([13] if version == 3 else []), 8, 9, 10, 11, 12]
    assert [row["partition"]["kind"] for row in found.to_pylist()] == [None, "a", "b"]
    assert found.to_pylist() == naive(table)
    assert [row["data_record_count"] for row in found.to_pylist()] == [3, 4, 3]
    assert not orphans(table) - {made.statistics_path}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_statistics_that_are_carried_on_equal_those_of_the_whole(version: int, seed: int, monkeypatch: Any) -> None:
    draw, runner = random.Random(seed), PicklingRunner()
    table = new_table(["kind"], properties={"format-version": str(version), **MERGE_ON_READ})
    table.append(rows(range(100), "a"))
    carried = []
    kept = partition_stats.computed_from

    def heard(*given: Any) -> Any:
        carried.append(kept(*given))
        return carried[-1]

    monkeypatch.setattr("icefield_maintenance.computing_stats.computed_from", heard)

    def maintenance() -> MaintenanceTable:
        return table.maintenance.on(runner) if seed % 2 else table.maintenance

    maintenance().compute_partition_stats()
    for step in range(8):
        for _ in range(draw.randint(1, 3)):
            some = sorted({draw.randrange(400) for _ in range(5)})
            match draw.randrange(6):
                case 0 | 1:
                    table.append(rows(range(100 * step, 100 * step + 20), draw.choice(["a", "b", None])))
                case 2:
                    table.delete(f"id in ({', '.join(map(str, some))})")
                case 3:
                    table.delete(f"kind = '{draw.choice('ab')}'")
                case 4:
                    table.delete_by_equality(rows(some, "a").select(["id", "kind"]), ["id", "kind"])
                case 5:
                    table.update(f"id > {draw.randrange(300)}", {"value": float(step)})
        if step == 4:
            with table.update_spec() as update:
                update.add_field("id", "bucket[2]", "id_bucket")
        maintenance().compute_partition_stats(file_format=draw.choice(["parquet", "avro", "orc"]))
        assert counts(stats(table)) == counts(naive(table))
    assert len(carried) > 4  # some steps change nothing
    assert None not in carried
    before = stats(table)
    maintenance().compute_partition_stats(incremental=False)
    assert stats(table) == naive(table)
    assert counts(before) == counts(stats(table))
    assert (runner.items > 8) == bool(seed % 2)


def test_a_rewrite_of_manifests_changes_no_statistics() -> None:
    table = new_table(["kind"], properties={"commit.manifest.min-count-to-merge": "2"})
    for number in range(2):
        table.append(rows([number], "a"))
    table.maintenance.compute_partition_stats()
    for number in range(4):
        table.append(rows([number], "b"))
    table.maintenance.compute_partition_stats()
    assert stats(table) == naive(table)


def test_the_last_change_of_a_partition_is_the_snapshot_that_touched_it() -> None:
    table = new_table(["kind"])
    table.append(rows([1, 2], "a"))
    table.append(rows([3], "b"))
    first, second = table.snapshots()
    table.maintenance.compute_partition_stats(first.snapshot_id)
    table.maintenance.compute_partition_stats(second.snapshot_id)
    assert [row["last_updated_snapshot_id"] for row in stats(table)] == [first.snapshot_id, second.snapshot_id]
    assert [row["last_updated_at"] for row in stats(table)] == [first.timestamp_ms, second.timestamp_ms]
    assert [row["partition"] for row in stats(table, first.snapshot_id)] == [{"kind": "a"}]


def test_statistics_that_do_not_add_up_or_cannot_be_read_are_computed_anew() -> None:
    table = new_table(["kind"], properties={"format-version": "2"})
    table.append(rows(range(5), "a"))
    good = table.maintenance.compute_partition_stats()
    assert good is not None
    first = table.current_snapshot()
    assert first is not None
    table.append(rows(range(5), "b"))
    damaged = f"{table.location()}/metadata/damaged.parquet"
    with table.io.open_output(damaged) as sink:
        sink.write(b"PAR1 no file PAR1")
        sink.close()
    for location in (damaged, f"{table.location()}/metadata/gone.parquet"):
        false = PartitionStatisticsFile(first.snapshot_id, location, 17)
        table.update_statistics().set_partition_statistics(false).commit()
        table.maintenance.compute_partition_stats()
        assert stats(table) == naive(table)
        now = table.current_snapshot()
        assert now is not None
        table.update_statistics().remove_partition_statistics(now.snapshot_id).commit()
    table.update_statistics().set_partition_statistics(good).commit()
    table.delete("kind = 'a'")
    empty = new_table(["kind"])
    empty.append(rows([1], "z"))
    other = empty.maintenance.compute_partition_stats()
    assert other is not None
    false = PartitionStatisticsFile(first.snapshot_id, other.statistics_path, other.file_size_in_bytes)
    table.update_statistics().set_partition_statistics(false).commit()
    table.maintenance.compute_partition_stats()
    assert stats(table) == naive(table)


@pytest.mark.parametrize("column", ["partition", "spec_id", "data_record_count", "data_file_count", "more files"])
def test_a_file_of_statistics_with_nulls_or_numbers_that_cannot_be_is_left_aside(column: str) -> None:
    table = new_table(["kind"], properties={"format-version": "3"})
    table.append(rows([1], "a"))
    first = table.current_snapshot()
    assert first is not None
    table.maintenance.compute_partition_stats()
    found = table.inspect.partition_statistics()
    assert found is not None
    name, value = ("data_file_count", 2**31 - 1) if column == "more files" else (column, None)
    at = found.column_names.index(name)
    kind = found.schema.field(at).with_nullable(True)
    sink = pa.BufferOutputStream()
    pq.write_table(found.set_column(at, kind, pa.array([value], kind.type)), sink)
    location = f"{table.location()}/metadata/hostile.parquet"
    with table.io.open_output(location) as stream:
        stream.write(sink.getvalue().to_pybytes())
        stream.close()
    hostile = PartitionStatisticsFile(first.snapshot_id, location, table.io.stat(location).size)
    table.update_statistics().set_partition_statistics(hostile).commit()
    table.append(rows([2], "a"))
    table.maintenance.compute_partition_stats()
    assert stats(table) == naive(table)


@pytest.mark.spec("META-21")
def test_statistics_stay_through_other_commits_and_are_removed_by_name() -> None:
    table = new_table(["kind"])
    table.append(rows([1], "a"))
    made = table.maintenance.compute_partition_stats()
    assert made is not None
    table.append(rows([2], "b"))
    table.set_properties({"a": "b"})
    assert [*again(table).refresh().metadata.partition_statistics] == [made]
    assert table.maintenance.compute_partition_stats(made.snapshot_id) == made
    table.update_statistics().remove_partition_statistics(made.snapshot_id).commit()
    assert not [*table.metadata.partition_statistics]
    assert table.inspect.partition_statistics(made.snapshot_id) is None


def test_what_has_no_partition_statistics_is_refused_or_none() -> None:
    plain = new_table()
    plain.append(rows([1]))
    with pytest.raises(InvalidArgument, match="compute_table_stats"):
        plain.maintenance.compute_partition_stats()
    table = new_table(["kind"])
    assert table.maintenance.compute_partition_stats() is None
    with pytest.raises(NoSuchSnapshot):
        table.maintenance.compute_partition_stats(5)


def test_partitions_of_floats_and_of_bytes_are_in_order() -> None:
    schema = pa.schema([("x", pa.float64()), ("y", pa.binary())])
    table = new_table(["x", "y"], schema=schema)
    values = [float("nan"), 1.5, -0.0, 0.0, -2.0, None, float("inf")]
    table.append(pa.table({"x": values, "y": [b"\xff"] * len(values)}, schema=schema))
    table.maintenance.compute_partition_stats()
    assert str([row["partition"]["x"] for row in stats(table)]) == "[None, -2.0, -0.0, 0.0, 1.5, inf, nan]"
