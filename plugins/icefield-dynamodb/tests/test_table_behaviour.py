"""Tables whose writers take turns under a lock behave as tables do everywhere, with a fence and without."""

from __future__ import annotations

from pathlib import Path

import pytest
from icefield import Catalog, LocalFileSystem, load_catalog
from icefield_testing import TableBehaviourSuite

from .conftest import BareFileSystem


class TestLockWithFence(TableBehaviourSuite):
    racers = 4

    @pytest.fixture
    def catalog(self, tmp_path: Path, lock_properties: dict[str, str]) -> Catalog:
        warehouse = f"file://{tmp_path}/warehouse"
        return load_catalog("test", type="directory", warehouse=warehouse, commit="dynamodb-lock", **lock_properties)


class TestLockOverBareStorage(TestLockWithFence):
    @pytest.fixture(autouse=True)
    def bare(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(LocalFileSystem, "abilities", BareFileSystem.abilities)
        monkeypatch.setattr(LocalFileSystem, "rename", BareFileSystem.rename)
