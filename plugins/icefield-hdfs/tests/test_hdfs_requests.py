"""How often HDFS is asked."""

from __future__ import annotations

from collections import Counter
from uuid import uuid4

import pyarrow as pa
import pytest
from icefield import clear_caches, load_catalog
from icefield.abc import PutMode
from icefield_hdfs.hdfs_file_system import HdfsFileSystem
from icefield_hdfs.native import NativeClient
from servers.hdfs import Hdfs

STEPS = ("open", "create", "status", "children", "delete", "make_folder", "rename", "replace")
SCHEMA = pa.schema([("n", pa.int64()), ("kind", pa.string())])

Asked = list[tuple[str, str]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Each step that a client was asked for, with its path."""
    seen: Asked = []
    for name in STEPS:
        step = getattr(NativeClient, name)

        def noted(self: NativeClient, path: str, *more: str, name: str = name, step: object = step) -> object:
            seen.append((name, path))
            return step(self, path, *more)  # type: ignore[operator]

        monkeypatch.setattr(NativeClient, name, noted)
    return seen


def test_a_table_opens_and_plans_with_no_more_requests_than_files(hdfs: Hdfs, asked: Asked) -> None:
    given = {"type": "directory", "warehouse": f"{hdfs.url}/{uuid4().hex}", "commit": "rename"}
    made = load_catalog("test", **given)
    made.create_namespace("db")
    properties = {"commit.manifest-merge.enabled": "false"}
    table = made.create_table("db.t", SCHEMA, partition_spec="kind", properties=properties)
    for number in range(6):
        table.append(pa.table({"n": [number], "kind": [f"k{number % 3}"]}, schema=SCHEMA))
    clear_caches()
    assert len(list(made.load_table("db.t").scan().plan_files())) == 6  # from here on data nodes have reported all
    clear_caches()
    asked.clear()
    found = list(load_catalog("test", **given).load_table("db.t").scan("kind = 'k1'").plan_files())
    assert len(found) == 2
    # The manifest list and the two manifests of six that a file of this kind may be in, once each.
    files = Counter(path for step, path in asked if step == "open" and path.endswith(".avro"))
    assert len(files) == 3
    assert set(files.values()) == {1}
    # The pointer is the hint, whether its version is there, and whether the next is under any of its names.
    pointer, metadata = 5, 1
    assert len(asked) <= pointer + metadata + len(files)
    assert {step for step, _ in asked} == {"open", "status"}


def test_a_file_is_written_aside_and_renamed_and_read_by_one_step(hdfs: Hdfs, asked: Asked) -> None:
    system, location = HdfsFileSystem(), f"{hdfs.url}/{uuid4().hex}"
    with system.open_output(location) as sink:
        sink.write(b"x" * 3_000)
    assert [step for step, _ in asked] == ["create", "rename"]
    system.put(f"{location}-hint", b"7", PutMode.OVERWRITE)
    assert [step for step, _ in asked[2:]] == ["create", "replace"]
    asked.clear()
    source = system.open_input(location)
    assert source.seek(0, 2) == 3_000
    source.seek(0)
    assert len(source.read()) == 3_000
    # Before a data node has reported it, a file is asked for again.
    assert {step for step, _ in asked} <= {"open", "status"}
    asked.clear()
    assert len(system.open_input(location).read()) == 3_000
    assert [step for step, _ in asked] == ["open"]
