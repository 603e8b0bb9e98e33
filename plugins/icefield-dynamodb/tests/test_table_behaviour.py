"""Tables whose writers take turns under a lock behave as tables do everywhere, with a fence and without."""

from __future__ import annotations

from pathlib import Path

import pytest
from icefield import Catalog, load_catalog
from icefield.builtin.local import LocalFileSystem
from icefield.errors import UnsafeCommit
from icefield.testing import TableBehaviourSuite
from icefield.testing.behaviour.base import ids, rows

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

    def test_a_table_that_was_moved_is_changed_where_it_lies_now(self, catalog: Catalog) -> None:
        """The items stay with the place where the table was: where it lies now it has versions without items."""
        table, old, new = self._moved(catalog)
        found = self.another(catalog, **{f"location.map.{old}": new}).load_table(table.name())
        with pytest.raises(UnsafeCommit, match="foreign-writers"):
            found.append(rows([3]))
        assert ids(found.refresh()) == [1, 2]
