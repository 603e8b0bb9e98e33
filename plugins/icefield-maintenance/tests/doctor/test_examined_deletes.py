"""A doctor for tables looks at delete files, and at what entries say, as readers use them: no miss, no false alarm."""

from __future__ import annotations

import decimal
import math
import struct
import uuid
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from icefield import Table
from icefield.manifest import clear_caches
from icefield_maintenance.doctor import Result, examine_table
from icefield_maintenance.doctor.tables import delete_checks
from icefield_maintenance.puffin_reader import PuffinReader
from planted_breaches import PATHS, POSITIONS, bound, move_deletes, name_another_file, of_column
from planted_faults import Planted

MAINTENANCE = {"delete-debt", "small-files", "small-manifests"}


def found(table: Table) -> dict[str, list[str]]:
    """What is said of each rule that a table breaks, but for those of maintenance."""
    clear_caches()
    said: dict[str, list[str]] = {}
    for group in examine_table(icefield.open_table(table.metadata_location), whole=True):
        for finding in group.findings:
            if finding.result not in (Result.OK, Result.SKIPPED) and finding.check not in MAINTENANCE:
                said.setdefault(finding.check, []).append(f"{finding.location}: {finding.found}")
    return said


def new_table(folder: Path, schema: pa.Schema, **options: Any) -> Table:
    catalog = icefield.load_catalog("examined", type="directory", warehouse=f"file://{folder}")
    catalog.create_namespace("db")
    return catalog.create_table("db.t", schema, **options)


@pytest.mark.parametrize("format_version", [2, 3])
def test_a_delete_file_of_another_data_file_breaks_one_rule_and_is_not_dangling(format_version, tmp_path):
    planted = Planted.sound(tmp_path, format_version)
    name_another_file(planted)
    assert set(found(planted.table)) == {"delete-references"}


@pytest.mark.parametrize("format_version", [2, 3])
def test_a_delete_file_of_another_partition_fails_and_is_not_called_dangling(format_version, tmp_path):
    planted = Planted.sound(tmp_path, format_version)
    rows = planted.table.scan().count()
    move_deletes(planted)
    said = found(planted.table)
    assert set(said) == {"delete-partitions"}
    assert planted.again().scan().count() == rows + 1
    assert planted.table.inspect.delete_files()["file_path"][0].as_py() in said["delete-partitions"][0]


def test_a_position_delete_file_of_another_partition_fails_where_bounds_alone_name_its_data_file(tmp_path):
    planted = Planted.sound(tmp_path)
    move_deletes(planted)
    planted.edit_files(lambda record: record.update(referenced_data_file=None), content=1)
    assert set(found(planted.table)) == {"delete-partitions"}


def test_a_position_delete_file_that_readers_pass_over_by_wrong_bounds_of_its_paths_fails(tmp_path):
    planted = Planted.sound(tmp_path)
    rows = planted.table.scan().count()

    def edit(record: dict[str, Any]) -> None:
        record["referenced_data_file"] = None
        of_column(PATHS, b"file:///a")(record["lower_bounds"])
        of_column(PATHS, b"file:///b")(record["upper_bounds"])

    planted.edit_files(edit, content=1)
    said = found(planted.table)
    assert planted.again().scan().count() == rows + 1
    assert len(said["delete-metrics"]) == 1
    assert "column 'file_path'" in said["delete-metrics"][0]


def test_truncated_bounds_of_paths_and_wider_ones_of_positions_are_sound(tmp_path):
    planted = Planted.sound(tmp_path)

    def edit(record: dict[str, Any]) -> None:
        of_column(PATHS, b"file:///")(record["lower_bounds"])
        of_column(PATHS, b"file:///\xef\xbf\xbd")(record["upper_bounds"])
        of_column(POSITIONS, struct.pack("<q", 0))(record["lower_bounds"])

    planted.edit_files(edit, content=1)
    assert found(planted.table) == {}


def test_a_position_delete_file_of_many_data_files_is_sound(tmp_path):
    planted = Planted.sound(tmp_path)
    planted.table.set_properties({"write.delete.granularity": "partition"})
    planted.table.delete("id in (1, 4, 5, 11, 16, 19)")
    assert None in planted.table.inspect.delete_files()["referenced_data_file"].to_pylist()
    assert found(planted.table) == {}


def many_vectors(planted: Planted) -> None:
    planted.table.maintenance.rewrite_data_files(rewrite_all=True, remove_dangling_deletes=True)
    planted.table.maintenance.rewrite_manifests()
    planted.table.delete("id in (4, 5)")
    assert planted.table.inspect.delete_files()["file_path"].to_pylist() == [f"file://{planted.delete_file()}"] * 2


def test_the_footer_of_a_file_of_many_vectors_is_read_once_an_examination(tmp_path, monkeypatch):
    planted = Planted.sound(tmp_path, 3)
    many_vectors(planted)
    opened = []

    class Counting(PuffinReader):
        def __init__(self, source: Any, location: str) -> None:
            opened.append(location)
            super().__init__(source, location)

    monkeypatch.setattr(delete_checks, "PuffinReader", Counting)
    assert found(planted.table) == {}
    assert len(opened) == 1
    assert found(planted.table) == {}
    assert len(opened) == 2


def test_a_puffin_file_whose_footer_is_damaged_is_said_to_be_once(tmp_path):
    planted = Planted.sound(tmp_path, 3)
    many_vectors(planted)
    path = planted.delete_file()
    content = path.read_bytes()
    path.write_bytes(content[:-4] + b"PFA2")
    assert {name: len(said) for name, said in found(planted.table).items()} == {"vectors-damaged": 1}


def deletes_that_apply_to_nothing(folder: Path, format_version: int) -> Table:
    """Position deletes that are left over beside newer files of their partition, with an older one in another."""
    planted = Planted.sound(folder, format_version)
    planted.table.delete_by_equality(pa.table({"id": pa.array([1], pa.int64()), "kind": ["a"]}), ["id"])
    planted.table.delete_by_equality(pa.table({"id": pa.array([2], pa.int64()), "kind": ["b"]}), ["id"])
    planted.table.maintenance.rewrite_data_files(where="kind = 'a'", rewrite_all=True)
    return planted.table


@pytest.mark.parametrize("format_version", [2, 3])
def test_what_is_called_dangling_is_what_maintenance_removes(format_version, tmp_path):
    table = deletes_that_apply_to_nothing(tmp_path, format_version)
    before = set(table.inspect.delete_files()["file_path"].to_pylist())
    said = found(table)
    assert set(said) == {"dangling-deletes"}
    table.maintenance.remove_dangling_deletes()
    removed = before - set(table.inspect.delete_files()["file_path"].to_pylist())
    assert 0 < len(removed) < len(before)
    assert {path for path in before if any(line.startswith(path) for line in said["dangling-deletes"])} == removed
    assert found(table) == {}


def test_a_position_delete_file_whose_data_files_have_vectors_instead_is_dangling(tmp_path):
    table = Planted.sound(tmp_path).table
    table.set_properties({"write.delete.granularity": "partition"})
    table.delete("id in (5, 15)")
    files = table.inspect.delete_files()
    (old,) = files.filter(pc.is_null(files["referenced_data_file"]))["file_path"].to_pylist()
    with table.transaction() as tx:
        tx.upgrade_table_version(3)
    table.delete("id = 7")
    assert found(table) == {}
    table.delete("id = 17")
    said = found(table)
    assert set(said) == {"dangling-deletes"}
    assert [line.startswith(old) for line in said["dangling-deletes"]] == [True]
    assert table.maintenance.remove_dangling_deletes().removed_position_delete_files == 1
    assert found(table) == {}


def test_equality_deletes_of_any_type_with_nulls_are_sound(tmp_path):
    rows = pa.table(
        {
            "text": ["x" * 40 + "a", "é" * 30, None],
            "price": pa.array([decimal.Decimal("-1.25"), None, decimal.Decimal("9.75")], pa.decimal128(9, 2)),
            "key": pa.array([uuid.UUID(int=9).bytes, uuid.UUID(int=1 << 127).bytes, None], pa.uuid()),
            "at": pa.array([0, -1, None], pa.timestamp("us")),
            "bits": [b"\xff" * 40, b"", None],
            "yes": [True, False, None],
        }
    )
    table = new_table(tmp_path, rows.schema, properties={"format-version": "2"})
    table.append(rows)
    for name in rows.column_names:
        table.delete_by_equality(rows.select([name]), [name])
    assert table.inspect.delete_files().num_rows == rows.num_columns
    assert found(table) == {}


def test_a_null_struct_is_no_null_of_the_required_columns_in_it(tmp_path):
    inner = pa.struct([pa.field("x", pa.int64(), nullable=False)])
    schema = pa.schema([pa.field("maybe", inner), pa.field("sure", inner, nullable=False)])
    table = new_table(tmp_path, schema)
    table.append(
        pa.Table.from_pylist([{"maybe": None, "sure": {"x": 1}}, {"maybe": {"x": 2}, "sure": {"x": 3}}], schema)
    )
    assert found(table) == {}


def test_nans_that_are_counted_are_sound_and_those_that_are_not_are_found(tmp_path):
    table = new_table(tmp_path, pa.schema([("real", pa.float32())]))
    table.append(pa.table({"real": pa.array([math.nan, 1.0, None, math.nan], pa.float32())}))
    assert found(table) == {}
    Planted(table).edit_files(lambda record: of_column(1, 0)(record["nan_value_counts"]))
    assert found(table)["nan-counts"][0].endswith("column 'real' has 2 NaNs, and its manifest says 0")


def test_entries_without_sizes_and_offsets_and_those_with_several_are_sound(tmp_path):
    planted = Planted.sound(tmp_path)
    planted.edit_files(lambda record: record.update(split_offsets=[4, 4, record["file_size_in_bytes"] - 1]))
    assert found(planted.table) == {}
    planted.edit_files(lambda record: record.update(split_offsets=[], column_sizes=[]))
    assert found(planted.table) == {}
    planted.edit_files(lambda record: record.update(split_offsets=None, column_sizes=None))
    assert found(planted.table) == {}


def test_only_the_entry_whose_offsets_descend_is_named(tmp_path):
    planted = Planted.sound(tmp_path)

    def edit(records: list[dict[str, Any]]) -> None:
        first, last = (record["data_file"] for record in records)
        first["split_offsets"], last["split_offsets"] = [4, 500], [4, 300]

    planted.edit_manifest(edit)
    assert found(planted.table) == {}
    planted.edit_manifest(lambda records: records[1]["data_file"].update(split_offsets=[300, 4]))
    said = found(planted.table)
    assert set(said) == {"split-offsets"}
    assert len(said["split-offsets"]) == 1


def test_a_wrong_bound_of_a_data_file_is_told_from_a_wrong_one_of_a_delete_file(tmp_path):
    planted = Planted.sound(tmp_path)
    planted.edit_files(lambda record: of_column(3, bound(0.25))(record["upper_bounds"]))
    assert "delete-metrics" not in found(planted.table)
    assert "bounds" in found(planted.table)
