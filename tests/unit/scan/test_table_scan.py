"""The public interface of a scan: versions, columns, filters and results."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from icefield.errors import (
    FileMissing,
    IcefieldError,
    InvalidArgument,
    InvalidExpression,
    MissingPlugin,
    NoSuchSnapshot,
)
from icefield.expressions import EqualTo
from icefield.manifest import DataFileContent
from icefield.plugins import Plugins
from icefield.scan import TableScan
from icefield.scan.planning import planned_files
from icefield.scan.tasks import PlannedTask
from icefield.schema import Schema, schema_to_arrow
from icefield.storage import FileIO
from icefield.types import NestedField, StructType, parse_type
from planned_tables import SCHEMA, PlannedTable, name_of, spec
from tables import new_table, rows
from vectors import VECTORS


def planned(scan: TableScan) -> list[str]:
    return [name_of(task.file.file_path) for task in scan.plan_files()]


def history(snapshots: int = 3) -> PlannedTable:
    """Each snapshot adds one file; the second has a tag and a branch."""
    table = PlannedTable()
    for i in range(snapshots):
        table.add([table.file(str(i))])
        table.commit(timestamp_ms=1000 + 100 * i)
    for name in ("tag", "branch"):
        table.refs[name] = {"snapshot-id": 1001, "type": name}
    return table


@pytest.mark.spec("SCAN-60", "SCAN-62")
def test_a_version_is_chosen_by_snapshot_branch_or_tag() -> None:
    table = history()
    assert planned(table.scan()) == ["0", "1", "2"]
    for i in range(3):
        expected = [str(j) for j in range(i + 1)]
        assert planned(table.scan(snapshot_id=1000 + i)) == expected
        assert planned(table.scan().use_snapshot(1000 + i)) == expected
    for name in ("tag", "branch"):
        assert planned(table.scan(ref=name)) == planned(table.scan().use_ref(name)) == ["0", "1"]
    assert planned(table.scan(ref="main")) == ["0", "1", "2"]


@pytest.mark.spec("SCAN-60", "SCAN-62")
def test_a_version_that_is_not_there_is_refused() -> None:
    table = history()
    for wrong in ({"snapshot_id": 5}, {"ref": "nope"}):
        with pytest.raises(NoSuchSnapshot):
            planned(table.scan(**wrong))
    with pytest.raises(NoSuchSnapshot, match="branch, main, tag"):
        table.scan().use_ref("nope")
    with pytest.raises(InvalidArgument):
        table.scan(snapshot_id=1000, ref="main")
    with pytest.raises(InvalidArgument):
        table.scan(snapshot_id=1000).use_ref("main")
    assert planned(PlannedTable().scan(ref="main")) == []


@pytest.mark.spec("SCAN-61")
def test_a_time_is_looked_up_in_the_snapshot_log() -> None:
    vector = VECTORS["time_travel"]
    table = PlannedTable()
    for i in range(14):
        table.add([table.file(str(i))])
        table.commit()
    ids = {short: 1000 + short for _, short in vector["snapshot_log"]}
    table.log = [{"timestamp-ms": at, "snapshot-id": ids[short]} for at, short in vector["snapshot_log"]]
    for at, expected in vector["lookups"]:
        if expected == "error":
            with pytest.raises(NoSuchSnapshot):
                table.scan().as_of(at)
        else:
            assert table.scan().as_of(at).snapshot_id == ids[expected]
            assert len(planned(table.scan().as_of(at))) == expected + 1
    table.log = []
    with pytest.raises(NoSuchSnapshot):
        table.scan().as_of(1000)


@pytest.mark.spec("SCAN-63", "SCH-30")
def test_snapshots_and_tags_are_read_with_their_schema_and_branches_with_the_current_one() -> None:
    table = history()
    table.schema = Schema(*SCHEMA.fields, NestedField(5, "new", parse_type("int")), schema_id=1)
    table.schemas.append(table.schema)
    old, new = SCHEMA.column_names, table.schema.column_names
    assert table.scan().projection.column_names == new
    assert table.scan(ref="branch").projection.column_names == new
    assert table.scan(ref="tag").projection.column_names == old
    assert table.scan(snapshot_id=1002).projection.column_names == old
    with pytest.raises(InvalidExpression):
        planned(table.scan("new = 1", ref="tag"))


def test_columns_are_selected_by_name_in_the_order_of_the_table() -> None:
    table = PlannedTable(specs=[spec((1, "identity", "id"))])
    scan = table.scan()
    assert scan.projection == SCHEMA
    assert scan.select("score", "id").projection.column_names == ["id", "score"]
    assert table.scan(selected_fields="name").projection.column_names == ["name"]
    assert scan.select("SCORE").with_case_sensitive(False).projection.column_names == ["score"]
    with pytest.raises(InvalidArgument):
        _ = scan.select("SCORE").projection
    with pytest.raises(InvalidArgument):
        _ = scan.select("nope").projection
    found = scan.select("*", "_file", "_pos").projection
    assert found.column_names == [*SCHEMA.column_names, "_file", "_pos"]
    [partition] = scan.select("_partition").projection.fields
    assert isinstance(partition.field_type, StructType)
    assert [field.name for field in partition.field_type.fields] == ["id"]


def test_filters_add_up_and_may_be_string_or_objects() -> None:
    table = PlannedTable(specs=[spec((1, "identity", "id"), (2, "identity", "name"))])
    table.add([table.file(f"{i}{name}", (i, name)) for i in (1, 2) for name in "xy"])
    table.commit()
    assert planned(table.scan("id = 1").filter(EqualTo("name", "y"))) == ["1y"]
    assert planned(table.scan(EqualTo("ID", 1), case_sensitive=False)) == ["1x", "1y"]
    for wrong in ("ID = 1", "id = ", "nope = 1", "id = 'x'"):
        with pytest.raises(IcefieldError):
            planned(table.scan(wrong))
    with pytest.raises(InvalidArgument):
        table.scan(limit=-1)


class RealTable(PlannedTable):
    """A table whose data files are there."""

    def __init__(self, folder: Path, **given: Any) -> None:
        (folder / "data").mkdir(parents=True)
        (folder / "metadata").mkdir()
        super().__init__(location=f"file://{folder}", io=FileIO(Plugins.installed()), **given)
        self.folder = folder

    def data(self, name: str, ids: list[int], partition: tuple[Any, ...] = ()) -> Any:
        rows = pa.table({"id": ids, "name": [f"n{i}" for i in ids], "ts": [0] * len(ids), "score": [0.5] * len(ids)})
        path = self.folder / "data" / f"{name}.parquet"
        pq.write_table(rows.cast(schema_to_arrow(SCHEMA)), path)
        size = path.stat().st_size
        return self.file(
            name, partition, record_count=len(ids), file_size_in_bytes=size, bounds={"id": (min(ids), max(ids))}
        )


def real(tmp_path: Path) -> RealTable:
    table = RealTable(tmp_path / "t", specs=[spec((1, "truncate[10]", "id_trunc"))])
    table.add([table.data(str(low), list(range(low, low + 10)), (low,)) for low in range(0, 50, 10)])
    table.commit()
    return table


@pytest.mark.spec("SCAN-43", "SCAN-06")
def test_rows_come_out_filtered_projected_and_limited(tmp_path: Path) -> None:
    table = real(tmp_path)
    scan = table.scan("id >= 15 and id < 32", selected_fields=("id", "name"))
    rows = scan.to_arrow()
    assert rows.schema.names == ["id", "name"]
    assert sorted(rows["id"].to_pylist()) == list(range(15, 32))
    assert sum(batch.num_rows for batch in scan.to_arrow_batch_reader()) == 17
    assert rows["name"].to_pylist() == [f"n{i}" for i in rows["id"].to_pylist()]
    assert table.scan(limit=7).to_arrow().num_rows == 7
    assert table.scan(limit=0).to_arrow().num_rows == 0
    assert table.scan(limit=1000).to_arrow().num_rows == 50


@pytest.mark.parametrize("limit", ["3", 1.5, True])
def test_a_limit_is_a_whole_number(limit: Any) -> None:
    with pytest.raises(InvalidArgument, match="whole number of rows, not "):
        history().scan(limit=limit)
    assert len(planned(history().scan(limit=np.int64(3)))) == 3


def test_an_id_of_a_snapshot_that_is_strings_is_not_said_to_be_missing() -> None:
    with pytest.raises(InvalidArgument, match="which is a number, not by '1001'"):
        planned(history().scan(snapshot_id="1001"))  # type: ignore[arg-type]
    assert planned(history().scan(snapshot_id=np.int64(1001))) == planned(history().scan(snapshot_id=1001))  # type: ignore[arg-type]


def test_without_its_distribution_a_frame_says_what_to_install() -> None:
    scan = PlannedTable(io=FileIO(Plugins(["icefield.builtin.hooks"]))).scan()
    for name in ("to_pandas", "to_polars", "to_duckdb", "lazy"):
        with pytest.raises(
            MissingPlugin, match=rf'no service of scans for \'{name}\'; pip install "icefield\[frames\]"'
        ):
            getattr(scan, name)()


@pytest.mark.spec("SCAN-06")
def test_counting_reads_only_files_that_the_filter_does_not_take_whole(tmp_path: Path) -> None:
    table = real(tmp_path)
    assert table.scan().count() == 50
    assert table.scan("id >= 15 and id < 32").count() == 17
    assert table.scan("name = 'n7'").count() == 1
    assert table.scan("id = -1").count() == 0
    for limit in (0, 3, 12, 17, 99):
        assert table.scan("id >= 15 and id < 32", limit=limit).count() == min(limit, 17)
    # Files whose rows all match by their partition are not read.
    for low in (20, 30):
        (table.folder / "data" / f"{low}.parquet").unlink()
    assert table.scan("id >= 20 and id < 40").count() == 20
    assert table.scan("id >= 18 and id < 40").count() == 22


@pytest.mark.spec("SCAN-05", "SCAN-22")
def test_counting_reads_no_file_that_statistics_prove_to_match_whole(tmp_path: Path) -> None:
    table = RealTable(tmp_path / "t")
    table.add([table.data(str(low), list(range(low, low + 10))) for low in (0, 10, 20)])
    table.commit()
    for low in (10, 20):
        (table.folder / "data" / f"{low}.parquet").unlink()
    assert table.scan("id >= 5").count() == 25
    assert table.scan("id is not null and id >= 10").count() == 20
    with pytest.raises(FileMissing):
        table.scan("id >= 15").count()


@pytest.mark.spec("RSV-08")
@pytest.mark.parametrize("name", ["_change_type", "_change_ordinal", "_commit_snapshot_id"])
def test_a_scan_of_one_snapshot_has_no_columns_of_changes(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidArgument, match=f"'{name}' states changes from snapshot to snapshot"):
        real(tmp_path).scan(selected_fields=("id", name)).to_arrow()


def test_rows_are_not_read_without_their_deletes(tmp_path: Path) -> None:
    table = real(tmp_path)
    deletes = table.file("deletes", (20,), content=DataFileContent.EQUALITY_DELETES, equality_ids=(1,))
    table.add([deletes])
    table.commit()
    assert table.scan("id < 20").count() == 20
    for refused in (lambda: table.scan("id = 25").to_arrow(), lambda: table.scan().count()):
        with pytest.raises(FileMissing, match=r"deletes\.parquet"):
            refused()


@pytest.mark.spec("VER-13", "PART-07")
def test_pyiceberg_plans_the_same_files(tmp_path: Path) -> None:
    from icefield.metadata import encode_metadata
    from pyiceberg.table import StaticTable

    table = real(tmp_path)
    path = tmp_path / "t" / "metadata" / "v1.metadata.json"
    path.write_bytes(encode_metadata(table.metadata))
    theirs = StaticTable.from_metadata(str(path))
    for row_filter in ("true", "id = 25", "id >= 15 and id < 32", "id < 0", "name = 'n3'"):
        text = "id is null or id is not null" if row_filter == "true" else row_filter
        found = {name_of(task.file.file_path) for task in theirs.scan(text).plan_files()}
        assert found == set(table.planned(row_filter))
    assert theirs.scan("id >= 15 and id < 32").to_arrow().num_rows == 17


def test_a_version_is_chosen_by_a_time_in_any_form() -> None:
    table = new_table()
    table.append(rows([1]))
    table.append(rows([2]))
    first = table.snapshots()[0].timestamp_ms
    when = datetime.fromtimestamp(first / 1000, UTC)
    for given in (first, when, when.isoformat(), when.replace(tzinfo=None)):
        assert table.scan(as_of=given).count() == table.scan().as_of(given).count() == 1
        assert table.snapshot_as_of_timestamp(given) == table.snapshots()[0]
    with pytest.raises(NoSuchSnapshot, match=r"had no snapshot at .*its history begins at"):
        table.scan(as_of=first - 1)
    with pytest.raises(InvalidArgument, match="'soon' is no time in ISO form"):
        table.scan(as_of="soon")
    with pytest.raises(InvalidArgument, match="reads a certain version already"):
        table.scan(as_of=first, ref="main")


def test_a_count_makes_tasks_only_for_files_that_must_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table()
    for number in range(5):
        table.append(rows([10 * number, 10 * number + 1]))
    made: list[int] = []
    monkeypatch.setattr(planned_files, "PlannedTask", lambda files, row: made.append(row) or PlannedTask(files, row))
    assert (table.scan().count(), made) == (10, [])
    assert (table.scan("id > 10 and id < 31").count(), len(made)) == (4, 2)
