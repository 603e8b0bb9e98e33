"""Maintenance whose work executors do: what it gives, and what attempts leave that do not win."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield.abc import Attempt, AttemptFiles, Work
from icefield.errors import InvalidFile, StorageError
from icefield_maintenance.tend import Policy, Tending
from icefield_spark.executors import dumps
from icefield_spark.maintenance import SparkRunner
from py4j.protocol import Py4JJavaError
from pyspark import cloudpickle
from pyspark.errors import PySparkException

SECRET_NAMES = ("uri", "token", "hive.password", "rest.auth.secret")


def rows(ids: range, kind: str) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "kind": [kind] * len(ids), "name": [f"n{i}" for i in ids]})


def lived(catalog: icefield.Catalog, name: str, version: int) -> icefield.Table:
    """A table with many small files in two partitions, and deletes of every kind of its version."""
    table = catalog.create_table(
        name,
        pa.schema([("id", pa.int64()), ("kind", pa.string()), ("name", pa.string())]),
        partition_spec=["kind"],
        properties={"format-version": str(version), "write.delete.mode": "merge-on-read"},
    )
    for step in range(6):
        table.append(rows(range(10 * step, 10 * step + 10), "ab"[step % 2]))
    for gone in (3, 14, 25, 36, 47, 58, 1, 22):
        table.delete(f"id = {gone}")
    table.delete_by_equality(pa.table({"id": pa.array([7, 31], pa.int64()), "kind": ["a", "b"]}), ["id", "kind"])
    return table


def content(table: icefield.Table) -> list[dict[str, Any]]:
    lineage = ("_row_id",) if table.format_version >= 3 else ()
    found = table.refresh().scan(selected_fields=("id", "kind", "name", *lineage)).to_arrow()
    return found.sort_by("id").to_pylist()


def counted(result: Any) -> dict[str, Any]:
    """A result without what no two runs have alike."""
    found = {name: value for name, value in asdict(result).items() if not name.endswith(("bytes", "snapshot_id"))}
    found.pop("snapshot_ids", None)
    for group in found.get("groups", ()):
        del group["rewritten_bytes"], group["added_bytes"]
    return found


def orphans(table: icefield.Table) -> list[str]:
    found = table.refresh().maintenance.remove_orphan_files("2100-01-01", allow_recent=True)
    return [location for location in found.orphans["location"].to_pylist() if "/data/" in location]


MaintenanceCall = Callable[[Any], Any]

MAINTENANCE: dict[str, MaintenanceCall] = {
    "binpack": lambda maintenance: maintenance.rewrite_data_files(rewrite_all=True, remove_dangling_deletes=True),
    "sort": lambda maintenance: maintenance.rewrite_data_files("sort", "name desc", rewrite_all=True),
    "zorder": lambda maintenance: maintenance.rewrite_data_files(
        "zorder", zorder_columns=("id", "name"), rewrite_all=True
    ),
    "deletes": lambda maintenance: maintenance.rewrite_position_delete_files(rewrite_all=True),
    "convert": lambda maintenance: maintenance.convert_equality_deletes(),
    "manifests": lambda maintenance: maintenance.rewrite_manifests(),
}


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("version", [pytest.param(2, marks=pytest.mark.soak), 3])
@pytest.mark.parametrize("kind", MAINTENANCE)
def test_executors_leave_the_table_as_this_process_does(
    ice: Any, catalog: icefield.Catalog, version: int, kind: str
) -> None:
    here, there = (lived(catalog, f"db.{name}", version) for name in ("here", "there"))
    before = content(there)
    local, remote = MAINTENANCE[kind](here.maintenance), MAINTENANCE[kind](ice.maintenance("db.there"))
    assert counted(remote) == counted(local)
    assert content(there) == content(here) == before
    assert orphans(there) == []


@pytest.mark.spark
def test_values_are_counted_by_executors_as_by_this_process(ice: Any, catalog: icefield.Catalog) -> None:
    lived(catalog, "db.t", 2)
    remote = ice.maintenance("db.t").compute_table_stats()
    local = catalog.load_table("db.t").maintenance.compute_table_stats()
    assert [dict(blob.properties) for blob in remote.blob_metadata] == [
        dict(blob.properties) for blob in local.blob_metadata
    ]


@pytest.mark.spark
def test_a_policy_gives_its_work_to_executors(spark: Any, catalog: icefield.Catalog) -> None:
    table = lived(catalog, "db.t", 2)
    before = content(table)
    goals = {"tables": "db.*", "files-per-scan": 1, "delete-files": 1, "deleted-rows": 0.1}
    tending = Tending(catalog, Policy.from_mapping({"rules": [goals]}), runner=SparkRunner(spark))
    assert {each.outcome for each in tending.run()} == {"done"}
    assert content(table) == before
    assert len(table.inspect.data_files()) == 2
    assert [*tending.run()] == []


@pytest.mark.slow
@pytest.mark.spark
def test_a_group_that_cannot_be_read_ends_the_rewrite_and_leaves_no_file(ice: Any, catalog: icefield.Catalog) -> None:
    table = lived(catalog, "db.t", 2)
    damage(table, "a")
    with pytest.raises(InvalidFile):
        ice.maintenance("db.t").rewrite_data_files(rewrite_all=True)
    assert orphans(table) == []


@pytest.mark.spark
def test_with_partial_progress_the_other_groups_are_committed(ice: Any, catalog: icefield.Catalog) -> None:
    table = lived(catalog, "db.t", 2)
    damage(table, "a")
    found = ice.maintenance("db.t").rewrite_data_files(rewrite_all=True, partial_progress=True)
    assert (found.failed_groups, [group.partition for group in found.groups]) == (1, ["kind=b"])
    assert orphans(table) == []


def damage(table: icefield.Table, kind: str) -> None:
    files = table.inspect.data_files().to_pylist()
    location = next(file["file_path"] for file in files if file["partition"]["kind"] == kind)
    path = Path(location.removeprefix("file://"))
    path.write_bytes(bytes(path.stat().st_size))


@dataclass(frozen=True)
class Losing(Work[int, str]):
    """Writes a file, and is killed at its first attempt, or at each."""

    io: icefield.FileIO
    folder: str
    always: bool

    def do(self, item: int, attempt: Attempt) -> str:
        location = f"{self.folder}/{item}-{attempt.number}-marked.txt"
        sink = self.io.open_output(location)
        sink.write(b"whatever")
        sink.close()
        seen = Path(f"{self.folder.removeprefix('file://')}/../seen-{item}")
        if item == 1 and (self.always or not seen.exists()):
            seen.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return location

    def files(self, result: str) -> list[str]:
        return [result]

    @property
    def traces(self) -> AttemptFiles:
        return AttemptFiles(self.io, self.folder, "-marked")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("always", [False, True], ids=["once", "always"])
def test_what_a_killed_worker_wrote_is_deleted(spark: Any, tmp_path: Path, always: bool) -> None:
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # executors do not have this module
    try:
        folder = tmp_path / "files"
        folder.mkdir()
        (folder / "of-another.txt").touch()
        io = icefield.load_catalog("test", type="directory", warehouse=f"file://{tmp_path}").io
        work, kept, calls = Losing(io, f"file://{folder}", always), [], []
        runner = SparkRunner(spark)
        if always:
            with pytest.raises((PySparkException, Py4JJavaError), match="crashed"):
                runner.run(work, [0, 1], kept.append)
        else:
            found = runner.run(work, [0, 1], kept.append, done=lambda: calls.append(time.monotonic()))
            assert found == kept
            assert len(calls) == 2
        there = {f"file://{path}" for path in folder.iterdir()}
        assert there == {*kept, f"file://{folder}/of-another.txt"}
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def test_work_travels_without_what_only_the_driver_needs(tmp_path: Path) -> None:
    with icefield.load_catalog("test", type="directory", warehouse=f"file://{tmp_path}") as catalog:
        io = icefield.FileIO(catalog.io.plugins, dict.fromkeys(SECRET_NAMES, "PLANTED"))
    sent = dumps({"nested": [io], "error": StorageError("no")})
    assert b"PLANTED" not in sent
    assert str(pickle.loads(sent)["error"]) == "no"
