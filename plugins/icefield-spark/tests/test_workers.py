"""What a Python worker does before each task."""

from __future__ import annotations

import importlib
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from zipimport import zipimporter

import pytest
from icefield_spark.workers import spare_archives


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="Python reads directories of archives when they are needed")
def test_importers_of_pysparks_own_archive_are_dropped_and_its_modules_are_found_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, users = tmp_path / "spark.zip", tmp_path / "users.zip"
    for path, name in ((own, "in_sparks_archive"), (users, "in_users_archive")):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"{name}.py", "")
    monkeypatch.syspath_prepend(str(own))
    monkeypatch.syspath_prepend(str(users))
    importlib.import_module("in_users_archive")  # each path before it is looked at, and so gets its importer
    monkeypatch.setattr(sys, "path_importer_cache", {str(path): zipimporter(str(path)) for path in (own, users)})
    spark = ModuleType("pyspark")
    spark.__loader__ = zipimporter(str(own))
    monkeypatch.setitem(sys.modules, "pyspark", spark)
    spare_archives()
    assert list(sys.path_importer_cache) == [str(users)]
    assert importlib.import_module("in_sparks_archive").__file__ == str(own / "in_sparks_archive.py")
