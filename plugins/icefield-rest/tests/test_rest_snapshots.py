"""Tables that are loaded with the snapshots of branches and tags alone have all their snapshots all the same."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pyarrow as pa
import pytest
from http_between import Asked, Between
from icefield import Catalog, load_catalog
from icefield.errors import NoSuchTable, StorageError

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def between(our_rest: str) -> Iterator[Between]:
    with Between(our_rest).open() as made:
        yield made


@pytest.fixture
def other(our_rest: str) -> Iterator[Catalog]:
    """What someone else does, who loads all snapshots."""
    with load_catalog("other", uri=our_rest) as made:
        made.create_namespace("db")
        yield made


@pytest.fixture
def catalog(between: Between, other: Catalog) -> Iterator[Catalog]:
    with load_catalog("test", uri=between.url, **{"snapshot-loading-mode": "refs"}) as made:
        yield made


def filled(catalog: Catalog, version: str = "2", name: str = "db.t") -> list[int]:
    """A table with four snapshots, the second of which has a tag; their ids."""
    table = catalog.create_table(name, SCHEMA, properties={"format-version": version})
    for number in range(4):
        table.append(pa.table({"id": [number]}))
    ids = [each.snapshot_id for each in table.snapshots()]
    table.manage_snapshots().create_tag(ids[1], "kept").commit()
    return ids


def loads(between: Between) -> list[str]:
    """The modes of the loads so far."""
    found = [each.path.partition("?snapshots=")[2] for each in between.asked if is_load(each)]
    between.asked.clear()
    return found


def is_load(asked: Asked) -> bool:
    return asked.method == "GET" and "/tables/t?" in asked.path


@pytest.mark.parametrize("version", ["2", "3"])
def test_a_scan_wants_no_more_snapshots_and_time_travel_does(
    catalog: Catalog, other: Catalog, between: Between, version: str
) -> None:
    ids = filled(other, version)
    table = catalog.load_table("db.t")
    assert "snapshots=2" in repr(table.metadata)
    assert table.scan().count() == 4
    assert table.scan(snapshot_id=ids[1]).count() == 2
    assert loads(between) == ["refs"]
    assert table.scan(snapshot_id=ids[0]).count() == 1
    assert [each.snapshot_id for each in table.snapshots()] == ids
    assert table.metadata == other.load_table("db.t").metadata
    assert loads(between) == ["all"]
    assert [each.snapshot_id for each in pickle.loads(pickle.dumps(table.metadata)).snapshots] == ids


def test_a_table_of_version_1_is_loaded_as_a_whole(catalog: Catalog, other: Catalog, between: Between) -> None:
    ids = filled(other, "1")
    assert [each.snapshot_id for each in catalog.load_table("db.t").snapshots()] == ids
    assert loads(between) == ["refs", "all"]


def test_what_others_add_while_the_rest_is_fetched_is_of_a_later_version(catalog: Catalog, other: Catalog) -> None:
    ids = filled(other)
    table = catalog.load_table("db.t")
    other.load_table("db.t").append(pa.table({"id": [4]}))
    assert [each.snapshot_id for each in table.snapshots()] == ids
    assert len(table.refresh().snapshots()) == 5


def test_expiry_sees_every_snapshot_and_keeps_what_others_added(catalog: Catalog, other: Catalog) -> None:
    ids = filled(other)
    table = catalog.load_table("db.t")
    theirs = other.load_table("db.t")
    theirs.append(pa.table({"id": [4]}))
    table.append(pa.table({"id": [5]}))
    newest = [each.snapshot_id for each in other.load_table("db.t").snapshots()]
    assert newest[:4] == ids
    assert len(newest) == 6
    catalog.load_table("db.t").maintenance.expire_snapshots(older_than=2**62, retain_last=1)
    left = other.load_table("db.t")
    assert [each.snapshot_id for each in left.snapshots()] == [ids[1], newest[-1]]
    assert sorted(left.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 4, 5]
    assert left.scan(snapshot_id=ids[1]).count() == 2


def test_snapshots_of_a_table_that_is_gone_or_was_replaced_are_an_error(catalog: Catalog, other: Catalog) -> None:
    filled(other)
    gone, replaced = catalog.load_table("db.t"), catalog.load_table("db.t").refresh()
    other.drop_table("db.t")
    with pytest.raises(NoSuchTable):
        gone.snapshots()
    other.create_table("db.t", SCHEMA)
    with pytest.raises(StorageError, match="replaced by another"):
        replaced.snapshots()
