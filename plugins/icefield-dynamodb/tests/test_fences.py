"""Holders that are paused past their lease, writers that die, other engines: on storage with a fence and without."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from icefield import LocalFileSystem, load_catalog
from icefield.abc import Committed, Conflict, FileSystem, OutputStream, Pointer, Proposal, PutMode
from icefield.errors import CommitStateUnknown, NamespaceExists, UnsafeCommit
from icefield.metadata import TableMetadata, decode_metadata, encode_metadata
from icefield.schema import Schema
from icefield.types import LongType, NestedField
from icefield_dynamodb.item_strategy import ItemStrategy
from icefield_dynamodb.items import ItemTable, ReplyLost
from icefield_dynamodb.lease import entity_of
from icefield_dynamodb.options import ClientOptions
from icefield_dynamodb.strategy import DynamoDbLockStrategy
from icefield_testing import CommitStrategySuite

from .conftest import BareFileSystem

KIT = CommitStrategySuite()
SYSTEMS = [LocalFileSystem, BareFileSystem]


class Bench:
    """A table at a folder, and strategies as several processes would have them."""

    def __init__(self, system: type[FileSystem], folder: Path, properties: dict[str, str]) -> None:
        self.system, self.location, self.properties = system({}), f"file://{folder}/t", properties
        self.items = ItemTable.of(ClientOptions.of(properties), properties["lock.table"])

    def strategy(self, system: FileSystem | None = None, **properties: str) -> DynamoDbLockStrategy:
        given = {**self.properties, **{f"lock.{key.replace('_', '-')}": value for key, value in properties.items()}}
        return DynamoDbLockStrategy(("db", "t"), self.location, system or self.system, given)

    def create(self) -> Pointer:
        return KIT.committed(self.strategy().commit(None, KIT.new_table(self.location)))

    def changed(self, base: Pointer, name: str) -> Proposal:
        return KIT.changed(self.system, base, name, "1")

    def read(self, pointer: Pointer) -> TableMetadata:
        return decode_metadata(self.system.open_input(pointer.location).read(), pointer.location)

    def properties_now(self) -> set[str]:
        current = self.strategy().load()
        assert current is not None
        return set(self.read(current).properties)

    def version_file(self, version: int) -> Path:
        return Path(self.location.removeprefix("file://")) / "metadata" / f"v{version}.metadata.json"


@pytest.fixture(params=SYSTEMS, ids=["fenced-by-the-store", "decided-by-items"])
def bench(request: pytest.FixtureRequest, tmp_path: Path, lock_properties: dict[str, str]) -> Bench:
    return Bench(request.param, tmp_path, lock_properties)


@pytest.fixture
def bare(tmp_path: Path, lock_properties: dict[str, str]) -> Bench:
    return Bench(BareFileSystem, tmp_path, lock_properties)


class Paused:
    """Pauses whoever comes by first, until it is asked to go on."""

    def __init__(self) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()

    def __call__(self) -> None:
        if not self.reached.is_set():
            self.reached.set()
            assert self.go_on.wait(30)


@pytest.mark.spec("COMMIT-03", "FS-11")
def test_a_holder_that_was_paused_past_its_lease_overwrites_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = bench.create()
    pause = Paused()
    slow_outcome: list[object] = []

    class PausedSystem(type(bench.system)):  # type: ignore[misc]
        def put(self, location: str, data: bytes, mode: PutMode) -> None:
            if location.endswith("/v2.metadata.json"):
                pause()
            super().put(location, data, mode)

    slow = bench.strategy(PausedSystem({}))
    late = bench.changed(base, "late")

    def commit_slowly() -> None:
        slow_outcome.append(slow.commit(base, late))

    # The whole process stops: its heartbeats too.
    monkeypatch.setattr("icefield_dynamodb.lease.Lease._beat", lambda self: None)
    thread = threading.Thread(target=commit_slowly)
    thread.start()
    assert pause.reached.wait(10)
    if isinstance(bench.system, BareFileSystem):
        # The item had decided before the pause: the paused writer has won, and the others see its version.
        assert bench.properties_now() == {"late"}
        current = bench.strategy().load()
        assert current is not None
        assert isinstance(bench.strategy().commit(base, bench.changed(base, "early")), Conflict)
        assert isinstance(bench.strategy().commit(current, bench.changed(current, "next")), Committed)
        expected, said = {"late", "next"}, Committed
    else:
        assert isinstance(bench.strategy().commit(base, bench.changed(base, "early")), Committed)
        expected, said = {"early"}, Conflict
    pause.go_on.set()
    thread.join()
    assert isinstance(slow_outcome[0], said)
    assert bench.properties_now() == expected


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_strategy_that_threads_share_takes_nobody_elses_file_for_its_own(bare: Bench, moment: str) -> None:
    """Another thread commits through the same object while one is at work: before its item is put, or after."""
    base = bare.create()
    among: list[Committed | Conflict] = []

    class Shared(BareFileSystem):
        def open_output(self, location: str) -> OutputStream:
            if moment == "before":
                self.commit_among(base, "among")
            return super().open_output(location)

        def put(self, location: str, data: bytes, mode: PutMode) -> None:
            super().put(location, data, mode)
            if moment == "after" and location.endswith("/v2.metadata.json"):
                current = bare.strategy().load()
                assert current is not None
                self.commit_among(current, "among")

        def commit_among(self, current: Pointer, name: str) -> None:
            if not among:
                among.append(Conflict())  # once only
                among[0] = strategy.commit(current, bare.changed(current, name))

    strategy = bare.strategy(Shared({}))
    outcome = strategy.commit(base, bare.changed(base, "first"))
    assert isinstance(among[0], Committed)
    assert "among" in bare.read(among[0].pointer).properties
    if moment == "before":
        assert isinstance(outcome, Conflict)
        assert bare.properties_now() == {"among"}
    else:
        assert isinstance(outcome, Committed)
        assert set(bare.read(outcome.pointer).properties) == {"first"}
        assert bare.properties_now() == {"first", "among"}


def test_a_holder_that_is_paused_before_its_item_loses(bare: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    base = bare.create()
    pause = Paused()
    outcome: list[object] = []
    decide = ItemStrategy._decide

    def slowly(self: ItemStrategy, target: str, record: dict[str, str]) -> bool:
        pause()
        return decide(self, target, record)

    monkeypatch.setattr(ItemStrategy, "_decide", slowly)
    monkeypatch.setattr("icefield_dynamodb.lease.Lease._beat", lambda self: None)
    thread = threading.Thread(target=lambda: outcome.append(bare.strategy().commit(base, bare.changed(base, "late"))))
    thread.start()
    assert pause.reached.wait(10)
    assert isinstance(bare.strategy().commit(base, bare.changed(base, "early")), Committed)
    pause.go_on.set()
    thread.join()
    assert isinstance(outcome[0], Conflict)
    assert bare.properties_now() == {"early"}


def test_a_writer_that_dies_after_its_item_has_committed(bare: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    base = bare.create()
    dying = BareFileSystem({})
    monkeypatch.setattr(dying, "put", lambda *_: (_ for _ in ()).throw(SystemExit))
    with pytest.raises(SystemExit):
        bare.strategy(dying).commit(base, bare.changed(base, "mine"))
    assert not bare.version_file(2).exists()
    assert bare.properties_now() == {"mine"}
    current = bare.strategy().load()
    assert current is not None
    assert isinstance(bare.strategy().commit(current, bare.changed(current, "next")), Committed)
    assert bare.properties_now() == {"mine", "next"}


def test_a_stalled_writer_of_a_dropped_table_leaves_nothing(bare: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    base = bare.create()
    pause = Paused()
    outcome: list[object] = []
    decide = ItemStrategy._decide

    def slowly(self: ItemStrategy, target: str, record: dict[str, str]) -> bool:
        pause()
        return decide(self, target, record)

    monkeypatch.setattr(ItemStrategy, "_decide", slowly)
    monkeypatch.setattr("icefield_dynamodb.lease.Lease._beat", lambda self: None)
    thread = threading.Thread(target=lambda: outcome.append(bare.strategy().commit(base, bare.changed(base, "late"))))
    thread.start()
    assert pause.reached.wait(10)
    bare.strategy().drop()
    again = bare.create()
    pause.go_on.set()
    thread.join()
    assert isinstance(outcome[0], Conflict)
    assert bare.strategy().load() == again
    assert bare.properties_now() == set()
    assert b"late" not in bare.version_file(2).read_bytes()


def test_what_a_stalled_writer_left_does_not_stop_the_new_table(bare: Bench) -> None:
    first = bare.create()
    old = bare.read(first)
    bare.strategy().drop()
    bare.strategy().purge()
    new = bare.create()
    target = entity_of(f"{bare.location}/metadata/v2.metadata.json")
    left = {"entityId": f"icefield-version:{target}", "metadataFile": f"{bare.location}/metadata/old.metadata.json"}
    assert bare.items.put({**left, "tableUuid": str(old.table_uuid)})
    bare.system.put(left["metadataFile"], encode_metadata(old), PutMode.OVERWRITE)
    assert bare.strategy().load() == new
    assert isinstance(bare.strategy().commit(new, bare.changed(new, "mine")), Committed)
    assert bare.properties_now() == {"mine"}


def test_a_reply_that_is_lost_is_settled_by_reading_the_item(bare: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    base = bare.create()
    put = ItemTable.put

    def lost_after(self: ItemTable, item: dict[str, str], **options: object) -> bool:
        done = put(self, item, **options)  # type: ignore[arg-type]
        if "metadataFile" in item:
            raise ReplyLost("test")
        return done

    monkeypatch.setattr(ItemTable, "put", lost_after)
    assert isinstance(bare.strategy().commit(base, bare.changed(base, "mine")), Committed)
    assert bare.properties_now() == {"mine"}


def test_a_request_that_may_still_arrive_is_unknown_and_deletes_nothing(
    bare: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = bare.create()
    put = ItemTable.put
    delayed: list[dict[str, str]] = []

    def lost_before(self: ItemTable, item: dict[str, str], **options: object) -> bool:
        if "metadataFile" in item:
            delayed.append(item)
            raise ReplyLost("test")
        return put(self, item, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(ItemTable, "put", lost_before)
    with pytest.raises(CommitStateUnknown, match="load the table again"):
        bare.strategy().commit(base, bare.changed(base, "mine"))
    monkeypatch.undo()
    assert bare.properties_now() == set()
    assert bare.items.put(delayed[0]), "the request arrives after all"
    assert bare.properties_now() == {"mine"}


def test_a_version_of_another_engine_is_refused_unless_it_is_allowed(bare: Bench) -> None:
    base = bare.create()
    foreign = bare.changed(base, "foreign")
    bare.version_file(2).write_bytes(encode_metadata(foreign.metadata))
    with pytest.raises(UnsafeCommit, match=r"lock\.foreign-writers"):
        bare.strategy().commit(base, bare.changed(base, "mine"))
    assert decode_metadata(bare.version_file(2).read_bytes(), "v2").properties == {"foreign": "1"}
    shared = bare.strategy(foreign_writers="true")
    assert isinstance(shared.commit(base, bare.changed(base, "mine")), Conflict)
    current = shared.load()
    assert current is not None
    assert bare.read(current).properties == {"foreign": "1"}
    assert isinstance(shared.commit(current, bare.changed(current, "mine")), Committed)
    assert set(bare.read(shared.load() or current).properties) == {"foreign", "mine"}


def test_other_engines_find_each_version_by_its_name(bench: Bench) -> None:
    pointer = bench.create()
    for number in range(3):
        outcome = bench.strategy().commit(pointer, bench.changed(pointer, f"n{number}"))
        assert isinstance(outcome, Committed)
        pointer = outcome.pointer
    copies = [decode_metadata(bench.version_file(v).read_bytes(), str(v)).properties for v in (1, 2, 3, 4)]
    assert [len(properties) for properties in copies] == [0, 1, 2, 3]
    assert (bench.version_file(1).parent / "version-hint.text").read_text() == "4"


def test_namespaces_of_a_directory_catalog_are_on_storage_without_a_fence(
    tmp_path: Path, lock_properties: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icefield.LocalFileSystem.abilities", BareFileSystem.abilities)
    monkeypatch.setattr("icefield.LocalFileSystem.rename", BareFileSystem.rename)
    warehouse = f"file://{tmp_path}"
    with pytest.raises(UnsafeCommit, match="dynamodb-lock"):
        load_catalog("x", type="directory", warehouse=warehouse, commit="create")
    catalog = load_catalog("x", type="directory", warehouse=warehouse, commit="dynamodb-lock", **lock_properties)
    for _ in range(2):
        catalog.create_namespace("db", {"owner": "me"})
        with pytest.raises(NamespaceExists):
            catalog.create_namespace("db")
        catalog.update_namespace_properties("db", updates={"owner": "you"})
        assert catalog.load_namespace_properties("db")["owner"] == "you"
        table = catalog.create_table("db.t", Schema(NestedField(1, "id", LongType())))
        with table.transaction() as changes:
            changes.set_properties({"a": "b"})
        assert catalog.load_table("db.t").properties["a"] == "b"
        assert "planted-secret" not in f"{catalog!r}{table!r}{table.metadata}"
        catalog.drop_table("db.t")
        items = ItemTable.of(ClientOptions.of(lock_properties), lock_properties["lock.table"])
        markers = [entity_of(f"{warehouse}/db/.icefield/namespace-v{version}.json") for version in (1, 2)]
        assert all(items.read(f"icefield-version:{marker}") for marker in markers)
        catalog.drop_namespace("db")
        assert catalog.list_namespaces() == []
        assert not any(items.read(f"icefield-version:{marker}") for marker in markers), "items outlive their markers"
