"""Tables on a file system: the files that a drop leaves, and the outcome for writers that were at work."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import icefield
import icefield.toolkit.versioned_strategy
import pytest
from icefield.abc import CommitStrategy, Committed, Conflict, FileInfo, InputFile, Pointer, Proposal, PutMode
from icefield.builtin.memory import MemoryFileSystem
from icefield.builtin.strategies import CreateStrategy, RenameStrategy
from icefield.errors import CommitFailed, InvalidMetadata, NoSuchTable, StorageError, UnsupportedFeature
from icefield.metadata import apply_updates, decode_metadata, encode_metadata, new_table_metadata
from icefield.metadata.properties import FrozenDict
from icefield.metadata.updates.table import SetProperties
from icefield.schema import Schema
from icefield.toolkit import BytesInput, VersionedStrategy, read_whole
from icefield.types import LongType, NestedField
from icefield_testing import FaultyFileSystem
from tables import SCHEMA, again, ids, memory_catalog, rows, stored_files

SYSTEM = MemoryFileSystem()


@pytest.fixture(params=[CreateStrategy, RenameStrategy])
def strategy(request: pytest.FixtureRequest) -> VersionedStrategy:
    return request.param(("db", "t"), f"memory://versioned/{request.node.name}", SYSTEM)


def create(strategy: CommitStrategy) -> Pointer:
    metadata = new_table_metadata(Schema(NestedField(1, "id", LongType())), location=strategy.location)
    return committed(strategy.commit(None, Proposal(metadata)))


def commit(strategy: CommitStrategy, base: Pointer) -> Committed | Conflict:
    metadata = decode_metadata(read_whole(SYSTEM, base.location), base.location)
    return strategy.commit(base, Proposal(apply_updates(metadata, [SetProperties({"a": uuid4().hex})])))


def committed(outcome: Committed | Conflict) -> Pointer:
    assert isinstance(outcome, Committed)
    return outcome.pointer


@pytest.mark.spec("FS-09", "COMMIT-03")
def test_a_drop_is_a_version_of_its_own_and_frees_no_name(strategy: VersionedStrategy) -> None:
    first = create(strategy)
    second = committed(commit(strategy, first))
    strategy.drop()
    assert strategy.load() is None
    assert [version for version, _ in sorted(strategy.listed())] == [1, 2, 3]
    for base in (first, second):  # writers that were at work
        assert isinstance(commit(strategy, base), Conflict)
    assert strategy.load() is None
    with pytest.raises(NoSuchTable):
        strategy.drop()
    new = create(strategy)
    assert new.version == 4
    assert strategy.load() == new
    assert isinstance(commit(strategy, second), Conflict)
    strategy.drop()
    assert (strategy.load(), create(strategy).version) == (None, 6)


@pytest.mark.parametrize(
    "hint",
    [
        "v9", "v9.metadata.json", "../../other/metadata/v9.metadata.json", "/etc/passwd", "9/../../other", "9\0",
        "memory://elsewhere/metadata/v9.metadata.json", "http://127.0.0.1:1/v9.metadata.json", "9\n/etc/passwd",
    ],
)  # fmt: skip
def test_a_hint_that_names_a_path_leads_nowhere(strategy: VersionedStrategy, hint: str) -> None:
    new = committed(commit(strategy, create(strategy)))
    elsewhere = "memory://elsewhere/metadata/v9.metadata.json"
    SYSTEM.put(elsewhere, read_whole(SYSTEM, new.location), PutMode.OVERWRITE)
    SYSTEM.put(f"{strategy.folder}/version-hint.text", hint.encode(), PutMode.OVERWRITE)
    assert strategy.hint() is None
    assert strategy.load() == new
    assert committed(commit(strategy, new)).version == 3


@pytest.mark.parametrize("hint", [None, "1", "2", "99", "x"])
def test_a_dropped_table_is_gone_whatever_the_hint_says(strategy: VersionedStrategy, hint: str | None) -> None:
    committed(commit(strategy, create(strategy)))
    strategy.drop()
    location = f"{strategy.folder}/version-hint.text"
    SYSTEM.delete_many([location])
    if hint is not None:
        SYSTEM.put(location, hint.encode(), PutMode.OVERWRITE)
    assert strategy.load() is None
    assert create(strategy).version == 4


def test_what_other_engines_find_is_no_version_and_says_what_happened(strategy: VersionedStrategy) -> None:
    first = create(strategy)
    strategy.drop()
    location = f"{strategy.folder}/v2.metadata.json"
    found = json.loads(read_whole(SYSTEM, location))
    assert "dropped" in found["format-version"]
    assert found["table-uuid"] == decode_metadata(read_whole(SYSTEM, first.location), "v1").table_uuid
    with pytest.raises(InvalidMetadata):
        decode_metadata(read_whole(SYSTEM, location), location)


def test_metadata_as_small_as_a_tombstone_is_no_tombstone(strategy: VersionedStrategy) -> None:
    small = {"format-version": 1, "location": "memory://x", "last-updated-ms": 1, "last-column-id": 0}
    small |= {"schema": {"type": "struct", "fields": []}, "partition-spec": []}
    for data in (json.dumps(small).encode(), b"", b"{", b"[]", b'{"format-version": "2"}', b"\xff"):
        SYSTEM.put(f"{strategy.folder}/v1.metadata.json", data, PutMode.OVERWRITE)
        found = strategy.load()
        assert found is not None
        assert found.version == 1


def test_a_drop_goes_after_whatever_others_commit_meanwhile(strategy: VersionedStrategy) -> None:
    base = create(strategy)
    publish, late = strategy.publish, []

    def after_another(target: str, data: bytes) -> bool:
        if len(late) < 3:
            late.append(target)
            other = type(strategy)(("db", "t"), strategy.location, SYSTEM)
            committed(commit(other, other.load() or base))
        return publish(target, data)

    strategy.publish = after_another  # type: ignore[method-assign]
    strategy.drop()
    assert strategy.load() is None
    assert max(version for version, _ in strategy.listed()) == 5
    create(strategy)
    strategy.publish = lambda target, data: None  # type: ignore[method-assign]
    with pytest.raises(CommitFailed, match="not dropped"):
        strategy.drop()
    assert strategy.load() is not None


def test_a_version_that_another_engine_compressed_is_not_dropped_over(strategy: VersionedStrategy) -> None:
    first = create(strategy)
    data = encode_metadata(decode_metadata(read_whole(SYSTEM, first.location), "v1"), compress=True)
    SYSTEM.put(f"{strategy.folder}/v2.gz.metadata.json", data, PutMode.CREATE)
    strategy.drop()
    assert strategy.load() is None
    assert max(strategy.listed())[0] == 3


def test_a_table_that_cannot_be_read_can_be_dropped(strategy: VersionedStrategy) -> None:
    first = create(strategy)
    SYSTEM.put(first.location, b"{" + b" " * 600, PutMode.OVERWRITE)
    strategy.drop()
    assert strategy.load() is None
    assert create(strategy).version == 3


def test_purging_spares_the_table_that_was_created_in_the_place(strategy: VersionedStrategy) -> None:
    create(strategy)
    strategy.drop()
    new = create(strategy)
    strategy.purge()
    assert strategy.load() == new
    strategy.drop()
    strategy.purge()
    assert strategy.listed() == []
    assert create(strategy).version == 1


# -- tables


def test_a_dropped_table_can_be_brought_back_from_its_last_version() -> None:
    catalog = memory_catalog()
    table = catalog.create_table("db.t", SCHEMA)
    table.append(rows([3]))
    catalog.drop_table("db.t")
    assert catalog.list_tables("db") == []
    catalog.drop_namespace("db")
    catalog.create_namespace("db")
    back = catalog.register_table("db.t", table.metadata_location)
    assert ids(back) == [3]
    assert back.metadata.table_uuid == table.metadata.table_uuid
    back.append(rows([4]))
    assert ids(catalog.load_table("db.t")) == [3, 4]


def test_a_table_whose_versions_cannot_be_deleted_is_dropped_all_the_same(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    catalog = memory_catalog()
    catalog.create_table("db.t", SCHEMA)

    def fail(self: MemoryFileSystem, locations: Iterable[str]) -> None:
        raise StorageError("no right to delete", location="x")

    with monkeypatch.context() as patch:
        patch.setattr(MemoryFileSystem, "delete_many", fail)
        catalog.purge_table("db.t")
    assert "could not delete every version of a dropped table: no right to delete" in caplog.text
    assert not catalog.table_exists("db.t")
    assert catalog.create_table("db.t", SCHEMA).metadata_location.endswith("/v3.metadata.json")


def test_whoever_opens_a_tombstone_is_stated_what_it_is() -> None:
    catalog = memory_catalog()
    table = catalog.create_table("db.t", SCHEMA)
    catalog.drop_table("db.t")
    tombstone = f"{table.location()}/metadata/v2.metadata.json"
    for call in (icefield.open_table, lambda location: catalog.register_table("db.u", location)):
        with pytest.raises(NoSuchTable, match=r"v2\.metadata\.json marks that the table was dropped"):
            call(tombstone)
    assert not catalog.table_exists("db.u")


@pytest.mark.parametrize("kind", ["directory", "sql"])
def test_a_holder_of_a_table_that_was_dropped_and_created_again_is_reported(kind: str, tmp_path: Path) -> None:
    given = {"uri": f"sqlite:///{tmp_path}/c.db"} if kind == "sql" else {}
    catalog = icefield.load_catalog("x", type=kind, warehouse=f"memory://{tmp_path.name}-{kind}", **given)
    catalog.create_namespace("db")
    for purge in (False, True):  # purged, a table on a file system begins with version 1 again
        holder = catalog.create_table("db.t", SCHEMA)
        holder.refresh()
        catalog.drop_table("db.t", purge=purge)
        new = catalog.create_table("db.t", SCHEMA)
        for call in (lambda held: held.refresh(), lambda held: held.append(rows([1]))):
            with pytest.raises(InvalidMetadata, match=r"is not the table that was loaded.*load the table again"):
                call(again(holder))
        assert ids(catalog.load_table("db.t")) == []
        assert new.refresh().metadata.table_uuid == new.metadata.table_uuid
        catalog.purge_table("db.t")


def test_refreshing_shows_what_was_put_under_the_same_name_of_a_version() -> None:
    """The same table at the same version, with other contents: purged, and registered from an older version."""
    catalog = memory_catalog()
    table = catalog.create_table("db.t", SCHEMA, properties={"a": "1"})
    old = catalog.io.read(table.metadata_location)
    table.set_properties(a="2")
    catalog.drop_table("db.t")
    backup = f"memory://backup/{table.metadata.table_uuid}/v1.metadata.json"
    catalog.io.put(backup, old, PutMode.CREATE)
    catalog.io.delete_many(stored_files(table))
    catalog.register_table("db.t", backup).set_properties(a="3")
    assert table.metadata_location.endswith("/v2.metadata.json")
    assert table.refresh().properties["a"] == "3"


def test_refreshing_a_table_that_did_not_change_reads_its_metadata_once(monkeypatch: pytest.MonkeyPatch) -> None:
    table = memory_catalog().create_table("db.t", SCHEMA)
    table.append(rows([1]))
    read: list[str] = []
    opened = MemoryFileSystem.open_input

    def counted(self: MemoryFileSystem, location: str) -> InputFile:
        read.append(location)
        return opened(self, location)

    monkeypatch.setattr(MemoryFileSystem, "open_input", counted)
    for _ in range(3):
        table.refresh()
    # A very recent file may have replaced another within one tick of the store's clock.
    assert read.count(table.metadata_location) == 3
    monkeypatch.setattr(icefield.toolkit.versioned_strategy, "time", SimpleNamespace(time=lambda: time.time() + 120))
    read.clear()
    for _ in range(3):
        table.refresh()
    assert read.count(table.metadata_location) == 1


class Tagging(MemoryFileSystem):
    """A store that gives entity tags and no times."""

    def stat(self, location: str) -> FileInfo:
        data, _ = self._get(location)
        return FileInfo(location, len(data), None, hashlib.md5(data, usedforsecurity=False).hexdigest())


def test_versions_are_distinguished_by_their_entity_tags_where_the_store_gives_them() -> None:
    strategy = CreateStrategy(("db", "t"), f"memory://versioned/{uuid4().hex}", Tagging())
    first = create(strategy)
    loaded, once_more = strategy.load(), strategy.load()
    assert loaded is not None
    assert once_more is not None
    assert loaded.stamp is not None, "a file is distinguished from another however young it is"
    assert loaded.stamp == once_more.stamp
    data = read_whole(SYSTEM, first.location)
    SYSTEM.put(first.location, data.replace(b'"format-version":2', b'"format-version":1'), PutMode.OVERWRITE)
    other = strategy.load()
    assert other is not None
    assert other.stamp != loaded.stamp, "another file of the same size is in its place"


class Clashing(CreateStrategy):
    """An author's strategy, whose own private names are obvious choices."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        for name in ("uuid", "version", "names", "plain", "write_hint", "still_there", "file_of", "hint", "log"):
            setattr(self, f"_{name}", object())


def test_private_names_of_a_subclass_are_its_own() -> None:
    strategy = Clashing(("db", "t"), f"memory://versioned/{uuid4().hex}", SYSTEM)
    second = committed(commit(strategy, create(strategy)))
    assert strategy.load() == second
    strategy.drop()
    strategy.purge()
    assert list(SYSTEM.list_files(strategy.location)) == []


class Bursting(MemoryFileSystem):
    """Raises an error that no file system should raise, from the publication of a version on."""

    published = False

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        self._burst()
        super().put(location, data, mode)
        self.published = mode is PutMode.CREATE
        if self.published and self.reply_is_lost:
            self._burst()

    def rename(self, source: str, target: str) -> None:
        super().rename(source, target)
        self.published = True

    def open_input(self, location: str) -> InputFile:
        if not self.reply_is_lost:
            self._burst()
        return super().open_input(location)

    def stat(self, location: str) -> FileInfo:
        self._burst()
        return super().stat(location)

    def delete_many(self, locations: Iterable[str]) -> None:
        self._burst()
        super().delete_many(locations)

    reply_is_lost = False

    def _burst(self) -> None:
        if self.published:
            raise RuntimeError("burst")


class LosesReplies(Bursting):
    reply_is_lost = True


@pytest.mark.spec("COMMIT-18")
@pytest.mark.parametrize(
    ("kind", "system"),
    [(CreateStrategy, Bursting), (RenameStrategy, Bursting), (CreateStrategy, LosesReplies)],
    ids=lambda kind: kind.__name__,
)
def test_whatever_fails_after_the_atomic_step_a_commit_is_a_commit(
    kind: type[VersionedStrategy], system: type[Bursting]
) -> None:
    location = f"memory://versioned/{uuid4().hex}"
    first = create(kind(("db", "t"), location, SYSTEM))
    second = committed(commit(kind(("db", "t"), location, system()), first))
    assert kind(("db", "t"), location, SYSTEM).load() == second
    kind(("db", "t"), location, system()).drop()
    assert kind(("db", "t"), location, SYSTEM).load() is None


@pytest.mark.parametrize("codec", ["gzip", "GZIP"])
def test_compressed_metadata_is_refused_since_a_version_has_one_name(strategy: VersionedStrategy, codec: str) -> None:
    first = create(strategy)
    metadata = decode_metadata(read_whole(SYSTEM, first.location), "v1")
    compressing = replace(metadata, properties=FrozenDict({"write.metadata.compression-codec": codec}))
    with pytest.raises(UnsupportedFeature, match=r"write\.metadata\.compression-codec is refused .* won twice"):
        strategy.commit(first, Proposal(compressing))
    assert strategy.load() == first
    # A table of another engine can be read, and can be changed after the property is removed.
    SYSTEM.put(f"{strategy.folder}/v2.gz.metadata.json", encode_metadata(compressing, compress=True), PutMode.CREATE)
    second = strategy.load()
    assert second is not None
    assert second.location.endswith("/v2.gz.metadata.json")
    with pytest.raises(UnsupportedFeature, match="remove it"):
        strategy.commit(second, Proposal(compressing))
    third = committed(strategy.commit(second, Proposal(metadata)))
    assert third.location.endswith("/v3.metadata.json")


def test_a_commit_does_not_read_its_base_where_a_stamp_states_that_it_is_the_one_that_was_loaded() -> None:
    """Five requests: checks of the base and of the name of a compressed version, two puts, and the base again."""
    inner = Tagging()
    strategy = CreateStrategy(("db", "t"), f"memory://versioned/{uuid4().hex}", inner)
    first = create(strategy)
    counted = FaultyFileSystem(inner)
    asking = CreateStrategy(("db", "t"), strategy.location, counted)
    loaded = asking.load()
    assert loaded == first
    counted.calls.clear()
    assert isinstance(commit(asking, loaded), Committed)
    assert [name for name, _ in counted.calls] == ["stat", "stat", "put", "stat", "put"]
    assert [at for name, at in counted.calls if name == "stat"].count(first.location) == 2
    # A file that replaced the version is read, and belongs to the same table.
    counted.calls.clear()
    current = asking.load()
    assert current is not None
    assert isinstance(commit(asking, replace(current, stamp=(1, "another"))), Committed)
    assert ("open_input", current.location) in counted.calls


class TaggingAnswers(MemoryFileSystem):
    """Returns entity tags, also from a creation."""

    def put(self, location: str, data: bytes, mode: PutMode) -> str | None:
        super().put(location, data, mode)
        return self.stat(location).etag

    def stat(self, location: str) -> FileInfo:
        return replace(super().stat(location), etag=hashlib.sha256(self._get(location)[0]).hexdigest())


@pytest.mark.parametrize(("system", "read"), [(TaggingAnswers, 0), (MemoryFileSystem, 2)])
def test_whoever_commits_again_does_not_read_what_it_has_put_itself(system: type[MemoryFileSystem], read: int) -> None:
    counted = FaultyFileSystem(system())
    location = f"memory://tags/{uuid4().hex}"
    strategy = CreateStrategy(("db", "t"), location, counted)
    metadata = new_table_metadata(Schema(NestedField(1, "id", LongType())), location=location, properties={})
    first = strategy.commit(None, Proposal(metadata))
    assert isinstance(first, Committed)
    counted.calls.clear()
    second = strategy.commit(first.pointer, Proposal(apply_updates(metadata, [SetProperties({"a": "1"})])))
    assert isinstance(second, Committed)
    assert [name for name, _ in counted.calls].count("open_input") == read
    # A file that replaced the version is recognised by its entity tag.
    assert isinstance(second.pointer, Pointer)
    other = new_table_metadata(Schema(NestedField(1, "id", LongType())), location=location, properties={})
    MemoryFileSystem.files[second.pointer.location] = encode_metadata(other), 0
    third = Proposal(apply_updates(metadata, [SetProperties({"a": "2"})]))
    assert isinstance(strategy.commit(second.pointer, third), Conflict)


class Measuring(MemoryFileSystem):
    """Counts the bytes that are read."""

    taken = 0

    def open_input(self, location: str) -> InputFile:
        system = self

        class Measured(BytesInput):
            def read_at(self, offset: int, length: int) -> bytes:
                data = super().read_at(offset, length)
                system.taken += len(data)
                return data

        return Measured(read_whole(SYSTEM, location))


@pytest.mark.parametrize(
    ("spelt", "most"),
    [
        (lambda data: data, 512),
        (lambda data: json.dumps(json.loads(data), indent=2).encode(), 512),  # as Java writes it
        (lambda data: json.dumps(json.loads(data), sort_keys=True).encode(), 1_000_000),
        # A uuid in a nested object is not the table's uuid.
        (lambda data: b'{"a":{"format-version":2,"table-uuid":"' + b"0" * 36 + b'","b":1},' + data[1:], 1_000_000),
    ],
    ids=["ours", "indented", "sorted", "nested"],
)
def test_the_table_of_a_base_is_known_by_the_first_bytes_of_its_file(
    spelt: Callable[[bytes], bytes], most: int
) -> None:
    """A base without a stamp is checked twice, before and after publishing; its metadata has 100 kB."""
    system = Measuring()
    location = f"memory://measured/{uuid4().hex}"
    strategy = CreateStrategy(("db", "t"), location, system)
    metadata = new_table_metadata(
        Schema(NestedField(1, "id", LongType())), location=location, properties={"a": "x" * 100_000}
    )
    at = create_at(strategy, spelt(encode_metadata(metadata)))
    changed = Proposal(apply_updates(metadata, [SetProperties({"a": "1"})]))
    foreign = Proposal(replace(changed.metadata, table_uuid=str(uuid4())))
    assert isinstance(strategy.commit(at, foreign), Conflict), "the base is another table's"
    system.taken = 0
    assert isinstance(strategy.commit(at, changed), Committed)
    assert 0 < system.taken <= most


def create_at(strategy: VersionedStrategy, data: bytes) -> Pointer:
    """Another engine's first version."""
    at = f"{strategy.folder}/v1.metadata.json"
    SYSTEM.put(at, data, PutMode.CREATE)
    return Pointer(at, 1)
