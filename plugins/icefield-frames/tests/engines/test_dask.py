"""Frames of Dask: workers read the files of a scan, and write files that one commit adds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from engine_tables import directory_table, leftovers, row_set
from frame_tables import files_planned, frame_table
from icefield.abc import ScanPlanned
from icefield_frames.parts import ScanPart

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
pandas = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    table, heard = frame_table(f"file://{tmp_path_factory.mktemp('dask')}")
    return table, heard


@pytest.fixture(scope="module")
def client() -> Any:
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "host": "127.0.0.1"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as made:
        yield made


def as_arrow(frame: Any) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False)


@pytest.mark.parametrize("scheduler", ["threads", "distributed"])
def test_all_rows_and_types_are_read(made: Any, scheduler: str, request: pytest.FixtureRequest) -> None:
    table, _ = made
    if scheduler == "distributed":
        request.getfixturevalue("client")
    frame = table.scan().to_dask()
    with dask.config.set(scheduler=None if scheduler == "distributed" else scheduler):
        found = as_arrow(frame.compute())
    expected = table.scan().to_arrow()
    assert row_set(found) == row_set(as_arrow(expected.to_pandas(types_mapper=pandas.ArrowDtype)))
    assert all(str(kind).endswith("[pyarrow]") for kind in frame.dtypes)


def test_only_the_columns_of_a_computation_are_read(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table, heard = made
    frame = table.scan("id >= 120").to_dask()
    assert files_planned(heard) == 6
    read: list[Any] = []
    table_of = ScanPart.table
    monkeypatch.setattr(ScanPart, "table", lambda self, columns=None: read.append(columns) or table_of(self, columns))
    with dask.config.set(scheduler="sync"):
        assert frame["id"].sum().compute() == sum(range(120, 160))
        assert set(read) == {("id",)}
        read.clear()
        assert frame[frame["name"] == "a"]["id"].compute().min() >= 120
        assert set(read) == {("id", "name")}
    assert len(frame) == 40


def test_other_types_of_columns_and_scans(made: Any) -> None:
    table, heard = made
    assert str(table.scan().to_dask(dtype_backend="numpy_nullable").dtypes["id"]) == "Int64"
    assert len(table.scan(limit=5).to_dask()) == 5
    assert len(table.scan("id < -5").to_dask().compute()) == 0
    assert heard.of(ScanPlanned)


@pytest.mark.parametrize("scheduler", ["threads", "distributed"])
def test_partitions_are_written_and_committed_once(
    tmp_path: Path, scheduler: str, request: pytest.FixtureRequest
) -> None:
    if scheduler == "distributed":
        request.getfixturevalue("client")
    table = directory_table(tmp_path, partition_spec=["kind"])
    frame = dd.from_dict({"id": range(1_000), "kind": [number % 3 for number in range(1_000)]}, npartitions=4)
    with dask.config.set(scheduler=None if scheduler == "distributed" else scheduler):
        result = table.write_on_workers(frame, snapshot_properties={"why": "test"})
        assert (result.rows_inserted, result.files_added, len(table.history())) == (1_000, 12, 1)
        assert table.current_snapshot().summary["why"] == "test"
        table.write_on_workers(table.scan("kind = 1").to_dask(), True)
    assert (table.scan("kind = 1").count(), table.scan().count()) == (333, 333)


def test_a_failed_partition_leaves_nothing(tmp_path: Path, client: Any) -> None:
    def fail(frame: Any) -> Any:
        if (frame["id"] == 900).any():
            raise ValueError("not today")
        return frame

    table = directory_table(tmp_path)
    frame = dd.from_dict({"id": range(1_000), "kind": range(1_000)}, npartitions=4)
    with pytest.raises(ValueError, match="not today"):
        table.write_on_workers(frame.map_partitions(fail, meta=frame._meta))
    with pytest.raises(ValueError, match="other"):
        table.write_on_workers(frame.rename(columns={"kind": "other"}))
    assert table.refresh().current_snapshot() is None
    assert leftovers(table) == set()


def test_a_killed_worker_is_replaced_and_its_files_are_deleted(
    tmp_path: Path, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import icefield_frames.worker_writes as writes

    flag, table = tmp_path / "killed", directory_table(tmp_path)
    own = writes.PartWriter

    class Killed(own):  # type: ignore[misc, valid-type]
        def write(self, batches: Any) -> Any:
            found = super().write(batches)
            if not flag.exists():
                flag.touch()
                os._exit(1)  # after its files are written, and before Dask hears of them
            return found

    monkeypatch.setattr(writes, "PartWriter", Killed)
    frame = dd.from_dict({"id": range(100), "kind": range(100)}, npartitions=1)
    table.write_on_workers(frame)
    assert flag.exists()
    assert table.scan().count() == 100
    assert leftovers(table) == set()
