"""The strategy of a directory catalog: which strategies it accepts, and that nothing bypasses its strategy."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import ClassVar
from uuid import uuid4

import pyarrow as pa
import pytest
from icefield import Plugins, Provider, hookimpl, load_catalog
from icefield.abc import Pointer, Proposal, PutMode
from icefield.catalog import Catalog
from icefield.errors import InvalidArgument, NamespaceExists
from icefield.toolkit import MetastoreStrategy, VersionedStrategy

SCHEMA = pa.schema([("id", pa.int64())])


class KeepsPointers(MetastoreStrategy):
    """A strategy with its own names of metadata files, so a directory catalog cannot list its tables."""

    pointers: ClassVar[dict[str, str]] = {}

    def read_pointer(self) -> str | None:
        return self.pointers.get(self.location)

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        self.pointers[self.location] = new
        return True

    def drop(self) -> None:
        del self.pointers[self.location]


class Register(VersionedStrategy):
    """A strategy with two methods, which claim names in a register that all processes share, and release them."""

    claimed: ClassVar[set[str]] = set()
    lock: ClassVar[threading.Lock] = threading.Lock()

    def publish(self, target: str, data: bytes) -> Pointer | None:
        with self.lock:
            if target in self.claimed:
                return None
            self.claimed.add(target)
            self.file_system.put(target, data, PutMode.OVERWRITE)
            return self.pointer_to(target)

    def forget(self, targets: Iterable[str]) -> None:
        with self.lock:
            doomed = list(targets)
            super().forget(doomed)
            self.claimed.difference_update(doomed)


class Offer:
    """A plugin that provides both strategies."""

    @hookimpl
    def icefield_commit_strategies(self) -> list[Provider]:
        return [Provider(("pointers",), f"{__name__}:KeepsPointers"), Provider(("register",), f"{__name__}:Register")]


def catalog(commit: str) -> Catalog:
    plugins = Plugins(["icefield.builtin.hooks", "icefield_parquet.hooks", "icefield_avro.hooks", Offer()])
    return load_catalog("test", plugins=plugins, type="directory", warehouse=f"memory://{uuid4().hex}", commit=commit)


def test_a_strategy_whose_tables_cannot_be_found_by_their_folders_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"KeepsPointers is no subclass of .*VersionedStrategy"):
        catalog("pointers")


def test_two_methods_make_a_strategy_of_a_directory_catalog() -> None:
    with catalog("register") as made:
        made.create_namespace("db", {"owner": "me"})
        table = made.create_table("db.t", SCHEMA)
        table.append(pa.table({"id": [1, 2]}))
        assert made.list_tables("db") == [("db", "t")]
        made.purge_table("db.t")
        assert made.list_tables("db") == []
        made.create_table("db.t", SCHEMA)
        assert made.load_table("db.t").scan().count() == 0
        made.purge_table("db.t")
        made.drop_namespace("db")
        assert Register.claimed == set()


def test_markers_of_a_namespace_are_freed_by_the_strategy_that_published_them() -> None:
    with catalog("register") as made:
        for turn in range(3):
            made.create_namespace("db", {"turn": str(turn)})
            made.update_namespace_properties("db", updates={"more": "1"})
            with pytest.raises(NamespaceExists):
                made.create_namespace("db")
            assert made.load_namespace_properties("db") == {"turn": str(turn), "more": "1"}
            assert {target.rpartition("/")[2] for target in Register.claimed} == {
                "namespace-v1.json",
                "namespace-v2.json",
            }
            made.drop_namespace("db")
            assert not made.namespace_exists("db")
            assert Register.claimed == set()


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Register, "claimed", set())
