"""Names of a package are imported when they are first used."""

from __future__ import annotations

import importlib
import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import icefield
import pytest
from icefield import lazy_names

_SOURCE = '''"""A package."""
from typing import TYPE_CHECKING
from icefield import lazy_names

if TYPE_CHECKING:
    from json import dumps, loads as parse
    from no_such_module import Missing
    from pathlib import (
        Path,
    )

__getattr__, __dir__ = lazy_names(__name__)
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    (tmp_path / "lazy_package").mkdir()
    (tmp_path / "lazy_package" / "__init__.py").write_text(_SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("lazy_package")
    del sys.modules["lazy_package"]


def test_a_name_comes_from_its_module_and_the_names_are_listed(package: ModuleType) -> None:
    assert package.dumps is json.dumps
    assert package.parse is json.loads
    assert package.Path is Path
    assert dir(package) == ["Missing", "Path", "dumps", "parse"]


def test_an_import_of_all_names_of_a_package_finds_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "whole_package.py").write_text(_SOURCE.replace("    from no_such_module import Missing\n", ""))
    monkeypatch.syspath_prepend(tmp_path)
    names: dict[str, object] = {}
    exec("from whole_package import *", names)
    assert {"dumps", "parse", "Path"} <= names.keys()
    del sys.modules["whole_package"]


def test_a_used_name_becomes_an_attribute_of_the_package(package: ModuleType) -> None:
    assert "dumps" not in vars(package)
    assert package.dumps is vars(package)["dumps"]


def test_a_package_in_an_archive_hands_its_names_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "packages.zip", "w") as archive:
        archive.writestr("zipped_package/__init__.py", _SOURCE)
    monkeypatch.syspath_prepend(tmp_path / "packages.zip")
    assert importlib.import_module("zipped_package").dumps is json.dumps
    monkeypatch.delitem(sys.modules, "zipped_package")


def test_a_module_is_imported_when_one_of_its_names_is_used(package: ModuleType) -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        _ = package.Missing


def test_an_unknown_name_is_an_error_that_names_the_package() -> None:
    with pytest.raises(AttributeError, match="module 'icefield' has no attribute 'Catalogue'"):
        _ = icefield.Catalogue


def test_a_package_without_its_source_is_an_error_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bare_package", ModuleType("bare_package"))
    with pytest.raises(ImportError, match=r"'bare_package' needs its source file __init__\.py"):
        lazy_names("bare_package")


def test_the_public_names_of_a_package_are_its_imports_without_modules_and_private_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "eager_package.py").write_text(
        "import json\n"
        "from json import dumps as dumps, loads as _loads\n"
        "from icefield.base.lazy_names import public_names\n"
        "__all__ = public_names(__name__)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert importlib.import_module("eager_package").__all__ == ["dumps"]
    del sys.modules["eager_package"]
