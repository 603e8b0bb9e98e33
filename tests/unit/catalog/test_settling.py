"""Changes of one table, of several tables and of a view use one retry loop: pauses, listeners, lost replies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from icefield import Catalog, Plugins, load_catalog
from icefield.abc import CommitConflict, Conflict
from icefield.commit import settle
from icefield.errors import CommitFailed, CommitStateUnknown, StorageError
from tables import Listener

ROWS = pa.table({"id": [1, 2]})
PROPERTIES = {
    "commit.retry.min-wait-ms": "1",
    "commit.status-check.min-wait-ms": "1",
    "commit.status-check.num-retries": "2",
}
UNKNOWN = CommitStateUnknown("the reply was lost")
Step = Callable[[int, Callable[[], Any]], Any]


class World:
    """A catalog with two tables and a view, whose changes may meet another writer or a fault."""

    def __init__(self, folder: Path) -> None:
        self.listener = Listener()
        plugins = Plugins.installed(extra=[self.listener])
        properties = {"type": "sql", "uri": f"sqlite:///{folder}/c.db", "warehouse": f"file://{folder}/wh"}
        self.catalog: Catalog = load_catalog("test", plugins=plugins, **properties)
        self.other: Catalog = load_catalog("test", **properties)
        self.catalog.create_namespace("db")
        for name in ("db.a", "db.b"):
            self.catalog.create_table(name, ROWS.schema, properties=PROPERTIES)
        self.catalog.create_view("db.v", ROWS.schema, {"spark": "SELECT 1 AS id"}, properties=PROPERTIES)
        self.tries = 0

    def around(
        self, monkeypatch: pytest.MonkeyPatch, method: str, step: Callable[[int, Callable[[], Any]], Any]
    ) -> None:
        """Replace a method of the backend by ``step``, which receives the number of the call and the original call."""
        inner = getattr(self.catalog.backend, method)

        def called(*args: Any) -> Any:
            self.tries += 1
            return step(self.tries, lambda: inner(*args))

        monkeypatch.setattr(self.catalog.backend, method, called)

    def conflicts(self) -> list[tuple[str, ...]]:
        return [event.table for event in self.listener.events if isinstance(event, CommitConflict)]

    def change_tables(self) -> None:
        with self.catalog.transaction() as tx:
            tx.table("db.a").append(ROWS)
            tx.table("db.b").set_properties({"x": "1"})

    def change_view(self) -> None:
        self.catalog.load_view("db.v").set_properties({"mine": "1"})

    def made(self, method: str) -> bool:
        if method == "commit_view":
            return self.other.load_view("db.v").properties.get("mine") == "1"
        rows = self.other.load_table("db.a").scan().count()
        assert (rows == 2) == (self.other.load_table("db.b").properties.get("x") == "1")
        assert rows in (0, 2)
        return rows == 2


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


KINDS = [("commit_tables", "change_tables"), ("commit_view", "change_view")]


@pytest.mark.parametrize(("method", "change"), KINDS)
def test_listeners_hear_of_conflicts_of_several_tables_and_of_views(
    world: World, monkeypatch: pytest.MonkeyPatch, method: str, change: str
) -> None:
    def meet(number: int, call: Callable[[], Any]) -> Any:
        if number < 3:
            return Conflict() if method == "commit_tables" else None
        return call()

    world.around(monkeypatch, method, meet)
    getattr(world, change)()
    assert world.made(method)
    each = [("db", "a"), ("db", "b")] if method == "commit_tables" else [("db", "v")]
    assert world.conflicts() == each * 2


@pytest.mark.parametrize(("method", "change"), KINDS)
def test_conflicts_of_several_tables_and_of_views_are_followed_by_pauses_and_an_end(
    world: World, monkeypatch: pytest.MonkeyPatch, method: str, change: str
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(settle, "__defaults__", (pauses.append,))
    world.around(monkeypatch, method, lambda number, call: Conflict() if method == "commit_tables" else None)
    with pytest.raises(CommitFailed, match="nothing was changed") as raised:
        getattr(world, change)()
    assert raised.value.attempts == world.tries == len(pauses) + 1
    assert len(pauses) == (4 if method == "commit_tables" else 9)
    assert all(pause > 0 for pause in pauses)
    assert not world.made(method)


@pytest.mark.parametrize(("method", "change"), KINDS)
@pytest.mark.parametrize("error", [UNKNOWN, RuntimeError("a bug"), MemoryError(), StorageError("a plugin is wrong")])
def test_a_change_whose_reply_was_lost_is_found(
    world: World, monkeypatch: pytest.MonkeyPatch, method: str, change: str, error: Exception
) -> None:
    def lose(number: int, call: Callable[[], Any]) -> Any:
        call()
        raise error

    world.around(monkeypatch, method, lose)
    getattr(world, change)()
    assert world.made(method)
    assert world.tries == 1


@pytest.mark.parametrize(("method", "change"), KINDS)
def test_a_change_that_is_not_there_after_a_lost_reply_stays_unknown(
    world: World, monkeypatch: pytest.MonkeyPatch, method: str, change: str
) -> None:
    def lose(number: int, call: Callable[[], Any]) -> Any:
        raise UNKNOWN

    world.around(monkeypatch, method, lose)
    with pytest.raises(CommitStateUnknown):
        getattr(world, change)()
    assert not world.made(method)


@pytest.mark.parametrize(("method", "change"), KINDS)
def test_a_retryable_failure_after_a_made_change_is_not_made_twice(
    world: World, monkeypatch: pytest.MonkeyPatch, method: str, change: str
) -> None:
    def lose(number: int, call: Callable[[], Any]) -> Any:
        call()
        raise StorageError("busy", retryable=True)

    world.around(monkeypatch, method, lose)
    getattr(world, change)()
    assert world.made(method)
    assert world.tries == 1


def test_a_view_that_says_how_often_is_tried_that_often(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.catalog.load_view("db.v").set_properties({"commit.retry.num-retries": "2"})
    world.around(monkeypatch, "commit_view", lambda number, call: None)
    with pytest.raises(CommitFailed, match=r"commit\.retry\.num-retries"):
        world.change_view()
    assert world.tries == 3
