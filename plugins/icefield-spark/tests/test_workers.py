"""What a Python worker does before each task."""

from __future__ import annotations

import gc
import importlib
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from zipimport import zipimporter

import pyarrow as pa
import pytest
from icefield_spark.workers import begin_task

with_archives_read_at_once = pytest.mark.skipif(
    sys.version_info >= (3, 13), reason="Python reads directories of archives when they are needed"
)


@with_archives_read_at_once
def test_importers_of_sparks_own_archives_are_dropped_and_their_modules_are_found_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, users, core = tmp_path / "spark.zip", tmp_path / "users.zip", tmp_path / "spark-core_2.13-4.1.4.jar"
    for path, name in ((own, "in_sparks_archive"), (users, "in_users_archive"), (core, "in_sparks_core")):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"{name}.py", "")
    for path in (own, core, users):
        monkeypatch.syspath_prepend(str(path))
    importlib.import_module("in_users_archive")  # each path before it is looked at, and so gets its importer
    found = {str(path): zipimporter(str(path)) for path in (own, users, core)}
    monkeypatch.setattr(sys, "path_importer_cache", found)
    spark = ModuleType("pyspark")
    spark.__loader__ = zipimporter(str(own))
    monkeypatch.setitem(sys.modules, "pyspark", spark)
    begin_task()
    assert list(sys.path_importer_cache) == [str(users)]
    assert importlib.import_module("in_sparks_archive").__file__ == str(own / "in_sparks_archive.py")
    assert importlib.import_module("in_sparks_core").__file__ == str(core / "in_sparks_core.py")


@with_archives_read_at_once
def test_between_two_tasks_no_archive_of_spark_is_read(ice: Any, tmp_path: Path) -> None:
    spark, heard = ice.spark, tmp_path / "archives"

    def first(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task()
        yield from batches
        held = {getattr(each, "archive", None) for each in sys.path_importer_cache.values()} - {None}
        with heard.open("a") as file:
            file.write(f"{sorted(held)}\n")

    for _ in range(2):
        spark.range(0, 4, 1, 4).mapInArrow(first, "id long").collect()
    assert set(heard.read_text().splitlines()) == {"[]"}


def test_between_two_tasks_no_garbage_is_looked_for_among_modules(ice: Any, tmp_path: Path) -> None:
    spark, heard = ice.spark, tmp_path / "objects"

    def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task()
        yield from batches
        with heard.open("a") as file:
            file.write(f"{len(gc.get_objects())} {gc.get_freeze_count()}\n")

    spark.range(0, 1, 1, 1).mapInArrow(counted, "id long").collect()
    spark.range(0, 4, 1, 4).mapInArrow(counted, "id long").collect()
    tasks = [tuple(map(int, line.split())) for line in heard.read_text().splitlines()]
    assert len(tasks) == 5
    assert all(looked_at < put_aside / 5 for looked_at, put_aside in tasks), tasks


def test_what_tasks_leave_behind_is_garbage_still(ice: Any, tmp_path: Path) -> None:
    spark, heard = ice.spark, tmp_path / "left"

    def leaving(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task()
        yield from batches
        circle: list[Any] = [b"left behind"]
        circle.append(circle)
        left = sum(type(each) is list and each[:1] == circle[:1] for each in gc.get_objects())
        with heard.open("a") as file:
            file.write(f"{left}\n")

    spark.range(0, 1, 1, 1).mapInArrow(leaving, "id long").collect()
    for _ in range(4):
        spark.range(0, 2, 1, 2).mapInArrow(leaving, "id long").collect()
    assert {int(line) for line in heard.read_text().splitlines()} == {1}


def test_the_driver_looks_for_garbage_as_it_did() -> None:
    before = gc.get_freeze_count()
    begin_task()
    assert gc.get_freeze_count() == before
