"""The directory catalog passes the kit, with each strategy."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from icefield import Plugins
from icefield.abc import CatalogBackend
from icefield.builtin.directory import DirectoryBackend
from icefield.errors import InvalidArgument
from icefield.storage import FileIO
from icefield_testing import CatalogSuite


def backend_at(warehouse: str, **more: str) -> DirectoryBackend:
    properties = {"warehouse": warehouse, **more}
    return DirectoryBackend("test", properties, FileIO(Plugins.installed(), properties))


class TestDirectoryWithCreate(CatalogSuite):
    @pytest.fixture
    def backend(self, tmp_path: Path) -> CatalogBackend:
        return backend_at(f"file://{tmp_path}/warehouse", commit="create")


class TestDirectoryWithRename(CatalogSuite):
    @pytest.fixture
    def backend(self, tmp_path: Path) -> CatalogBackend:
        return backend_at(f"file://{tmp_path}/warehouse", commit="rename")


class TestDirectoryInMemory(CatalogSuite):
    @pytest.fixture
    def backend(self) -> CatalogBackend:
        return backend_at(f"memory://kit/{uuid4().hex}")


@pytest.mark.parametrize("name", ["..", ".", "a/b", "a\\b", ".icefield", ".hidden"])
def test_a_name_that_leaves_the_warehouse_is_refused(tmp_path: Path, name: str) -> None:
    backend = backend_at(f"file://{tmp_path}/warehouse")
    with pytest.raises(InvalidArgument):
        backend.create_namespace((name,), {})
    with pytest.raises(InvalidArgument):
        backend.strategy(("a", name))
    assert not (tmp_path / "warehouse").exists()


def test_a_warehouse_is_needed() -> None:
    with pytest.raises(InvalidArgument, match="warehouse"):
        DirectoryBackend("test", {}, FileIO(Plugins.installed(), {}))
