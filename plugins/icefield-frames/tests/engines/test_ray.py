"""Datasets of Ray: tasks read the files of a scan, and tasks write files that one commit adds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from engine_tables import directory_table, leftovers, row_set
from frame_tables import files_planned, frame_table
from icefield.errors import InvalidArgument

ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    table, heard = frame_table(f"file://{tmp_path_factory.mktemp('ray')}")
    return table, heard, table.scan().to_arrow()


def columns_of_ray() -> list[Any]:
    from ray.data.expressions import col

    return [
        col("id") >= 120,
        (col("i") == 3) | (col("d") > 0.5),
        ~(col("f") >= 1.5),
        col("name").is_null(),
        col("id").is_in([8, 9, 130]) & col("d").is_not_null(),
        (col("id") + 1) > 100,
        (col("id") >= 120) & ((col("id") % 2) == 0),
    ]


def arrow(dataset: Any) -> pa.Table:
    return pa.concat_tables(ray.get(dataset.to_arrow_refs()), promote_options="permissive")


@pytest.mark.parametrize("number", range(7))
def test_a_filter_gives_the_rows_of_the_whole_table(made: Any, number: int) -> None:
    table, _, whole = made
    predicate = columns_of_ray()[number]
    found = table.scan().to_ray().filter(expr=predicate).select_columns(["id", "d"])
    expected = whole.filter(predicate.to_pyarrow()).select(["id", "d"])
    assert row_set(arrow(found)) == row_set(expected)


def test_columns_and_filters_reach_the_scan(made: Any) -> None:
    from ray.data.expressions import col

    table, heard, _ = made
    found = table.scan().to_ray().filter(expr=col("id") >= 120).select_columns(["id"]).take_all()
    assert sorted(row["id"] for row in found) == list(range(120, 160))
    assert files_planned(heard) == 6 < len(list(table.scan().plan_files()))


def test_rows_are_counted_without_deleted_ones(made: Any) -> None:
    table, _, whole = made
    assert table.scan().to_ray().count() == whole.num_rows == 152
    assert table.scan(limit=10).to_ray().count() == 10
    assert table.scan("id < -5").to_ray().count() == 0
    assert table.scan("id >= 120").to_ray().select_columns(["tz"]).count() == 40


def test_all_types_are_read(made: Any) -> None:
    table, _, whole = made
    rows = arrow(table.scan("id >= 120").to_ray()).sort_by("id")
    expected = whole.filter(pc.field("id") >= 120).sort_by("id")
    assert repr(rows.to_pylist()) == repr(expected.to_pylist())


def test_tasks_write_files_and_one_commit_adds_them(tmp_path: Path) -> None:
    table = directory_table(tmp_path, partition_spec=["kind"])
    rows = ray.data.range(1_000, override_num_blocks=4).add_column("kind", lambda frame: frame["id"] // 334)
    result = table.write_on_workers(rows, snapshot_properties={"why": "test"})
    assert (result.rows_inserted, len(table.history())) == (1_000, 1)
    assert table.current_snapshot().summary["why"] == "test"
    assert table.scan("kind = 1").count() == 334
    assert leftovers(table) == set()
    table.write_on_workers(ray.data.range(10).add_column("kind", lambda frame: frame["id"] * 0 + 1), "kind = 1")
    assert (table.scan("kind = 1").count(), table.scan().count()) == (10, 676)


def test_a_dataset_of_the_table_is_written_back(tmp_path: Path) -> None:
    table = directory_table(tmp_path)
    table.append({"id": [1, 2, 3], "kind": [1, 1, 2]})
    table.write_on_workers(table.scan("kind = 1").to_ray(), True)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2]


def test_a_failed_task_leaves_nothing(tmp_path: Path) -> None:
    def fail(batch: Any) -> Any:
        if 900 in batch["id"]:
            raise ValueError("not today")
        return batch

    table = directory_table(tmp_path)
    rows = ray.data.range(1_000, override_num_blocks=4).add_column("kind", lambda frame: frame["id"])
    with pytest.raises(Exception, match="not today"):
        table.write_on_workers(rows.map_batches(fail))
    with pytest.raises(Exception, match="other"):
        table.write_on_workers(rows.rename_columns({"kind": "other"}))
    assert table.refresh().current_snapshot() is None
    assert leftovers(table) == set()


def test_a_killed_worker_is_replaced_and_its_files_are_deleted(tmp_path: Path) -> None:
    import icefield_frames.worker_writes as writes

    flag = tmp_path / "killed"

    class Killed(writes.PartWriter):
        def write(self, batches: Any) -> Any:
            import os

            found = super().write(batches)
            if not flag.exists():
                flag.touch()
                os._exit(1)  # after its files are written, and before Ray hears of them
            return found

    table = directory_table(tmp_path)
    rows = ray.data.range(100, override_num_blocks=1).add_column("kind", lambda frame: frame["id"])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(writes, "PartWriter", Killed)
        table.write_on_workers(rows)
    assert flag.exists()
    assert table.scan().count() == 100
    assert leftovers(table) == set()


def test_other_frames_are_refused(tmp_path: Path) -> None:
    table = directory_table(tmp_path)
    with pytest.raises(InvalidArgument, match=r"not Table; append takes rows of this process"):
        table.write_on_workers(pa.table({"id": [1]}))


def test_workers_get_no_credentials_of_the_catalog(made: Any) -> None:
    import pickle

    from icefield_frames.parts import parts_of
    from icefield_frames.selection import arrow_schema

    table, _, _ = made
    io = table.io
    io.properties.update({"token": "secret-1", "rest.auth": "secret-2", "s3.region": "kept-3"})
    try:
        for scan in (table.scan(), table.scan(limit=3)):
            sent = pickle.dumps(parts_of(scan, arrow_schema(scan)))
            assert (b"secret" in sent, b"kept-3" in sent) == (False, True)
    finally:
        for name in ("token", "rest.auth", "s3.region"):
            del io.properties[name]


def test_pyiceberg_through_ray_reads_the_same_files_and_rows(tmp_path: Path) -> None:
    pytest.importorskip("pyiceberg")
    from engine_tables import pyiceberg_table
    from ray.data.expressions import col

    table, heard = frame_table(f"file://{tmp_path}", is_clean=True)
    peer = pyiceberg_table(table, tmp_path)
    theirs = ray.data.read_iceberg(table_identifier="db.t", catalog_kwargs=peer).filter(expr=col("id") >= 120)
    found = table.scan().to_ray().filter(expr=col("id") >= 120)
    assert row_set(arrow(found.select_columns(["id"]))) == row_set(arrow(theirs.select_columns(["id"])))
    from pyiceberg.table import StaticTable

    tasks = list(StaticTable.from_metadata(table.metadata_location).scan("id >= 120").plan_files())
    assert files_planned(heard) == len(tasks) == 2


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Any:
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "120")  # by default 30, too few for a busy machine
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()
