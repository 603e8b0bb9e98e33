"""What a Python worker does before each task."""

from __future__ import annotations

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
from icefield_spark.workers import spare_archives

pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 13), reason="Python reads directories of archives when they are needed"
)


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
    spare_archives()
    assert list(sys.path_importer_cache) == [str(users)]
    assert importlib.import_module("in_sparks_archive").__file__ == str(own / "in_sparks_archive.py")
    assert importlib.import_module("in_sparks_core").__file__ == str(core / "in_sparks_core.py")


def test_between_two_tasks_no_archive_of_spark_is_read(ice: Any, tmp_path: Path) -> None:
    spark, heard = ice.spark, tmp_path / "archives"

    def first(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_archives()
        yield from batches
        held = {getattr(each, "archive", None) for each in sys.path_importer_cache.values()} - {None}
        with heard.open("a") as file:
            file.write(f"{sorted(held)}\n")

    for _ in range(2):
        spark.range(0, 4, 1, 4).mapInArrow(first, "id long").collect()
    assert set(heard.read_text().splitlines()) == {"[]"}
