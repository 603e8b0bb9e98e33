"""Listeners are told when an operation starts, finishes and fails, with names, changed properties and configuration."""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from icefield import Catalog, Plugins, hookimpl, load_catalog
from icefield.abc import (
    CommitMade,
    Event,
    OperationEvent,
    OperationFailed,
    OperationFinished,
    OperationProgress,
    OperationStarted,
    ScanPlanned,
)
from icefield.errors import (
    InvalidMetadata,
    NamespaceExists,
    NoSuchNamespace,
    NoSuchTable,
    NoSuchView,
    TableExists,
    ViewExists,
)
from icefield.metadata import SetProperties
from icefield.plugins import Listeners
from tables import Listener, memory_catalog, new_table, rows

ROWS = pa.table({"id": [1, 2]})


class Heard(Listener):
    """A listener with the operations in short."""

    def told(self) -> list[str]:
        """Each operation event since the last call, such as ``commit db.t finished``."""
        words = {OperationStarted: "started", OperationFinished: "finished", OperationFailed: "failed"}
        operations = self.of(OperationEvent)
        self.events.clear()
        return [f"{each.operation} {'.'.join(each.name)} {words[type(each)]}" for each in operations]

    def ends(self) -> list[str]:
        """The operations that have ended since the last call."""
        return [each for each in self.told() if not each.endswith("started")]

    def last(self, kind: type = OperationFinished) -> Any:
        """The last event of a kind."""
        return self.of(kind)[-1]


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def catalog(tmp_path: Path, heard: Heard) -> Catalog:
    return load_catalog(
        "test",
        plugins=Plugins.installed(extra=[heard]),
        type="sql",
        uri=f"sqlite:///{tmp_path}/c.db",
        warehouse=f"file://{tmp_path}/wh",
    )


def test_namespaces_are_told_with_the_properties_that_changed(catalog: Catalog, heard: Heard) -> None:
    catalog.create_namespace("db", {"owner": "a", "zone": "b"})
    assert heard.last().updates == {"owner": "a", "zone": "b"}
    assert heard.told() == ["create-namespace db started", "create-namespace db finished"]
    catalog.update_namespace_properties("db", iter(["zone", "none"]), {"owner": "c", "more": "d"})
    made = heard.last()
    assert (made.updates, made.removals) == ({"owner": "c", "more": "d"}, ("zone",))
    assert heard.told() == ["update-namespace db started", "update-namespace db finished"]
    with pytest.raises(NamespaceExists):
        catalog.create_namespace("db")
    assert isinstance(heard.last(OperationFailed).error, NamespaceExists)
    assert heard.ends() == ["create-namespace db failed"]
    catalog.drop_namespace("db")
    with pytest.raises(NoSuchNamespace):
        catalog.drop_namespace(("db",))
    assert heard.ends() == ["drop-namespace db finished", "drop-namespace db failed"]


def test_the_life_of_a_table_is_told(catalog: Catalog, heard: Heard) -> None:
    catalog.create_namespace("db")
    heard.events.clear()
    table = catalog.create_table("db.t", ROWS.schema, properties={"x": "1"})
    assert heard.last().updates == {"x": "1"}
    assert [type(each) for each in heard.events] == [OperationStarted, CommitMade, OperationFinished]
    assert heard.told() == ["create-table db.t started", "create-table db.t finished"]
    with pytest.raises(TableExists):
        catalog.create_table("db.t", ROWS.schema)
    assert heard.told() == ["create-table db.t started", "create-table db.t failed"]
    table.append(ROWS)
    assert heard.told() == ["commit db.t started", "commit db.t finished"]
    with table.transaction() as tx:
        tx.set_properties({"x": "2", "y": "3"})
    assert heard.last().updates == {"x": "2", "y": "3"}
    table.remove_properties("y")
    assert (heard.last().updates, heard.last().removals) == ({}, ("y",))
    heard.events.clear()
    assert catalog.load_table("db.t").scan().count() == 2
    assert [type(each) for each in heard.events[-3:]] == [OperationStarted, ScanPlanned, OperationFinished]
    assert heard.ends() == ["load-table db.t finished", "plan-scan db.t finished"]
    table.refresh()
    assert heard.ends() == ["load-table db.t finished"]
    catalog.rename_table("db.t", to_identifier=iter(["db", "u"]))
    started, *_, finished = heard.of(OperationEvent)
    assert (started.new_name, finished.new_name, finished.name) == (("db", "u"), ("db", "u"), ("db", "t"))
    assert heard.ends() == ["load-table db.u finished", "rename-table db.t finished"]
    location = catalog.load_table("db.u").metadata_location
    catalog.drop_table("db.u")
    with pytest.raises(NoSuchTable):
        catalog.drop_table(identifier="db.u")
    with pytest.raises(NoSuchTable):
        catalog.load_table("db.u")
    catalog.register_table("db.v", location)
    catalog.purge_table("db.v")
    assert heard.ends() == [
        "load-table db.u finished",
        "drop-table db.u finished",
        "drop-table db.u failed",
        "load-table db.u failed",
        "load-table db.v finished",
        "register-table db.v finished",
        "load-table db.v finished",
        "drop-table db.v finished",
    ]


def test_a_staged_creation_is_told_when_it_commits(catalog: Catalog, heard: Heard) -> None:
    catalog.create_namespace("db")
    heard.events.clear()
    with catalog.create_table_transaction("db.t", ROWS.schema, properties={"x": "1"}) as tx:
        assert heard.told() == []
        tx.append(ROWS)
    assert heard.last().updates == {"x": "1"}
    assert heard.told() == ["create-table db.t started", "create-table db.t finished"]


def test_views_are_told(catalog: Catalog, heard: Heard) -> None:
    catalog.create_namespace("db")
    heard.events.clear()
    view = catalog.create_view("db.v", ROWS.schema, {"spark": "SELECT 1"}, properties={"a": "1", "b": "2"})
    assert heard.last().updates == {"a": "1", "b": "2"}
    with pytest.raises(ViewExists):
        catalog.create_view("db.v", ROWS.schema, {"spark": "SELECT 1"})
    view.set_properties({"a": "3"}, removals=["b"])
    assert (heard.last().updates, heard.last().removals) == ({"a": "3"}, ("b",))
    catalog.rename_view("db.v", "db.w")
    catalog.drop_view("db.w")
    with pytest.raises(NoSuchView):
        catalog.load_view("db.w")
    assert heard.ends() == [
        "create-view db.v finished",
        "create-view db.v failed",
        "commit-view db.v finished",
        "load-view db.w finished",
        "rename-view db.v finished",
        "drop-view db.w finished",
        "load-view db.w failed",
    ]


def test_each_of_several_tables_is_told(catalog: Catalog, heard: Heard) -> None:
    catalog.create_namespace("db")
    for name in "ab":
        catalog.create_table(f"db.{name}", ROWS.schema)
    with catalog.transaction() as tx:
        for name in "ab":
            tx.table(f"db.{name}").append(ROWS)
            tx.table(f"db.{name}").set_properties({"by": name})
        heard.events.clear()
    assert [each.table for each in heard.of(CommitMade)] == [("db", "a"), ("db", "b")]
    assert [each.updates for each in heard.of(OperationFinished)] == [{"by": "b"}, {"by": "a"}]
    assert heard.ends() == ["commit db.b finished", "commit db.a finished"]
    catalog.commit_tables([("db.a", [], []), ("db.b", [SetProperties({"x": "1"})], [])])
    assert [each.table for each in heard.of(CommitMade)] == [("db", "b")]
    assert sorted(heard.ends()) == [
        "commit db.a finished",
        "commit db.b finished",
        "load-table db.a finished",
        "load-table db.b finished",
    ]


def test_parts_name_their_operation_and_starts_and_ends_have_one_id(catalog: Catalog, heard: Heard) -> None:
    catalog.create_namespace("db")
    catalog.create_table("db.t", ROWS.schema)
    heard.events.clear()
    catalog.rename_table("db.t", "db.u")
    rename, load, load_end, rename_end = heard.of(OperationEvent)
    assert (rename.id, load.id) == (rename_end.id, load_end.id)
    assert rename.id != load.id
    assert (rename.parent, load.parent, load_end.parent) == (None, rename.id, rename.id)
    assert {each.catalog for each in (rename, load)} == {"test"}
    assert rename_end.seconds >= load_end.seconds > 0


def test_maintenance_is_told_but_no_dry_run(heard: Heard) -> None:
    table = new_table(catalog=memory_catalog(heard))
    table.append(rows([1]))
    heard.events.clear()
    table.maintenance.expire_snapshots(dry_run=True)
    table.maintenance.remove_orphan_files()
    assert not [each for each in heard.ends() if "load-table" not in each]
    table.maintenance.rewrite_manifests()
    ids = {each.operation: each.id for each in heard.of(OperationStarted)}
    assert {each.parent for each in heard.of(OperationEvent) if each.operation == "commit"} == {
        ids["rewrite-manifests"]
    }
    assert heard.ends()[-1] == "rewrite-manifests db.t finished"


def test_a_scan_that_fails_or_is_left_is_told(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table(catalog=memory_catalog(heard))
    table.append(rows([1]))
    table.append(rows([2]))
    heard.events.clear()
    plan = iter(table.scan().plan_files())
    next(plan)
    assert heard.told() == ["plan-scan db.t started"]
    plan.close()  # type: ignore[attr-defined]
    assert heard.told() == ["plan-scan db.t finished"]

    def fail(*_: Any, **__: Any) -> Any:
        raise InvalidMetadata("damaged")

    monkeypatch.setattr("icefield.scan.planning.planner.read_manifest_list", fail)
    with pytest.raises(InvalidMetadata):
        list(table.scan().plan_files())
    assert str(heard.last(OperationFailed).error) == "damaged"
    assert heard.told() == ["plan-scan db.t started", "plan-scan db.t failed"]


def test_operations_between_two_files_of_a_scan_are_no_parts_of_it(heard: Heard) -> None:
    table = new_table(catalog=memory_catalog(heard))
    table.append(rows([1]))
    plan = iter(table.scan().plan_files())
    next(plan)
    heard.events.clear()
    table.refresh()
    assert [each.parent for each in heard.of(OperationStarted)] == [None]


class Configured:
    """A listener that records its properties."""

    def __init__(self) -> None:
        self.given: list[Mapping[str, str]] = []

    @hookimpl
    def icefield_events(self, properties: Mapping[str, str], event: Event) -> None:
        self.given.append(properties)


def test_a_listener_receives_its_properties_of_the_catalog_alone() -> None:
    listener, other = Configured(), Heard()
    both = {"events.Configured.url": "http://x", "events.Configured.a.b": "1", "events.Heard.z": "2", "s3.secret": "no"}
    memory_catalog(listener, other, **both)
    assert [dict(each) for each in listener.given] == [{"url": "http://x", "a.b": "1"}] * 2
    del listener.given[:]
    memory_catalog(listener)
    assert [dict(each) for each in listener.given] == [{}, {}]
    with pytest.raises(TypeError):
        listener.given[0]["x"] = "1"  # type: ignore[index]


def test_properties_for_no_listener_give_a_warning() -> None:
    with pytest.warns(UserWarning, match="'events.configurd.url' is for no listener.*'Configured'"):
        memory_catalog(Configured(), **{"events.configurd.url": "x"})


ENDS = [ValueError("x"), SystemExit(3), GeneratorExit(), asyncio.CancelledError(), type("Own", (BaseException,), {})()]


@pytest.mark.parametrize("error", ENDS, ids=repr)
def test_no_error_of_a_listener_fails_an_operation(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    class Fails:
        @hookimpl
        def icefield_events(self, event: Event) -> None:
            raise error

    heard = Heard()
    with caplog.at_level(logging.ERROR):
        table = new_table(catalog=memory_catalog(Fails(), heard))
        table.append(rows([1]))
        assert table.scan().count() == 1
    assert "the plugin 'Fails' failed to hear OperationStarted" in caplog.text
    assert heard.ends()[-1] == "plan-scan db.t finished"


def test_the_own_operations_of_a_listener_are_not_told_to_it() -> None:
    class Audit:
        def __init__(self) -> None:
            self.heard = 0

        @hookimpl
        def icefield_events(self, event: Event) -> None:
            self.heard += not isinstance(event, OperationProgress)
            if isinstance(event, CommitMade) and event.table == ("db", "t"):
                log.append(pa.table({"id": [event.snapshot_id or 0]}))

    audit, heard = Audit(), Heard()
    catalog = memory_catalog(audit, heard)
    log = catalog.create_table("db.log", pa.schema([("id", pa.int64())]))
    table = new_table(catalog=catalog)
    heard.events.clear()
    audit.heard = 0
    table.append(rows([1]))
    assert log.scan().count() == 2
    assert audit.heard == 3 + 3  # the events of the commit, and of the scan of the log
    assert heard.ends() == ["commit db.log finished", "commit db.t finished", "plan-scan db.log finished"]


def _broken(function: Any) -> Any:
    return type("Odd", (), {"icefield_events": hookimpl(function)})()


async def _coroutine(self: Any, event: Event) -> None: ...


async def _asynchronous_generator(self: Any, event: Event) -> Any:
    yield


def _generator(self: Any, event: Event) -> Any:
    yield


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (_coroutine, "'icefield_events' is a coroutine function, and nothing would await it: define it with 'def'"),
        (_asynchronous_generator, "is a coroutine function"),
        (_generator, "'icefield_events' is a generator function, and nothing would run it"),
    ],
)
def test_a_function_whose_body_no_call_runs_breaks_its_plugin(function: Any, reason: str) -> None:
    plugins = Plugins([_broken(function)])
    assert reason in (plugins.listing()[0].error or "")
    assert plugins.listeners() == []


@pytest.mark.filterwarnings("error")
def test_a_coroutine_that_a_plain_function_returns_is_closed_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    heard = Heard()
    listeners = Listeners(Plugins([_broken(lambda self, event: _coroutine(self, event)), heard]), {}, None)
    with caplog.at_level(logging.ERROR):
        listeners.tell(CommitMade(("db", "t"), "memory://t", None, None, 1, 0.0))
    assert "returned a coroutine, and nothing would await it" in caplog.text
    assert len(heard.events) == 1


def test_a_listener_cannot_change_a_snapshot(heard: Heard) -> None:
    table = new_table(catalog=memory_catalog(heard))
    table.append(rows([1]))
    heard.last(CommitMade).summary["operation"] = "changed"
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary["operation"] == "append"


def test_threads_have_operations_of_their_own(heard: Heard) -> None:
    table = new_table(catalog=memory_catalog(heard))
    heard.events.clear()
    threads = [threading.Thread(target=lambda: [table.refresh() for _ in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    by_id = itertools.groupby(sorted(heard.of(OperationEvent), key=lambda each: each.id), key=lambda each: each.id)
    kinds = [[type(each) for each in events] for _, events in by_id]
    assert kinds == [[OperationStarted, OperationFinished]] * 80


def test_listeners_are_listed_with_their_plugin() -> None:
    assert [info.listens for info in Plugins([Heard(), "icefield_avro.hooks"]).listing()] == [True, False]
