"""The locations that new tables may have, and maintenance that deletes no file of another table."""

from __future__ import annotations

import os
import time
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pyarrow as pa
import pytest
from catalogs import open_catalog
from icefield import Catalog, LocalFileSystem, load_catalog
from icefield.errors import InvalidArgument, LocationInUse, LocationWarning
from icefield.storage.neighbours import check_location
from icefield_maintenance.doctor.findings import Result
from icefield_maintenance.doctor.overlaps import examine_locations

SCHEMA = pa.schema([("id", pa.int64())])
LATER = 2**60


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    made = open_catalog("sql", tmp_path)
    made.create_namespace("db")
    return made


def rows(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


def ids(catalog: Catalog, name: str) -> list[int]:
    return sorted(catalog.load_table(name).scan().to_arrow()["id"].to_pylist())


def age(folder: Path) -> None:
    then = time.time() - 10 * 86_400
    for each in folder.rglob("*"):
        if each.is_file() and each.suffix != ".db":
            os.utime(each, (then, then))


def twins(catalog: Catalog) -> Any:
    table = catalog.create_table("db.t", SCHEMA)
    table.append(rows(1))
    with pytest.warns(LocationWarning, match="registered twice"):
        copy = catalog.register_table("db.copy", table.metadata_location)
    table.append(rows(2))
    copy.append(rows(3))
    return table, copy


def test_a_new_table_of_a_renamed_tables_name_has_a_location_of_its_own(catalog, tmp_path):
    catalog.create_table("db.t", SCHEMA).append(rows(1, 2))
    catalog.rename_table("db.t", "db.backup")
    new = catalog.create_table("db.t", SCHEMA)
    new.append(rows(9))
    assert new.location() != catalog.load_table("db.backup").location()
    age(tmp_path)
    for name in ("db.t", "db.backup"):
        assert catalog.load_table(name).maintenance.remove_orphan_files(dry_run=False).files == 0
    assert (ids(catalog, "db.t"), ids(catalog, "db.backup")) == ([9], [1, 2])


def test_a_first_table_has_the_default_location(catalog, tmp_path):
    assert catalog.create_table("db.t", SCHEMA).location() == f"file://{tmp_path}/warehouse/db/t"


def test_a_view_of_a_renamed_tables_name_is_beside_the_table(catalog):
    table = catalog.create_table("db.t", SCHEMA)
    catalog.rename_table("db.t", "db.backup")
    view = catalog.create_view("db.t", SCHEMA, {"spark": "SELECT 1 AS id"})
    assert view.metadata.location != table.location()


@pytest.mark.parametrize("place", ["", "/", "/data", "/data/inner", "/metadata"])
def test_another_tables_location_is_refused(catalog, place):
    table = catalog.create_table("db.t", SCHEMA)
    taken = table.location() + place
    with pytest.raises(LocationInUse, match=r"db\.t"):
        catalog.create_table("db.u", SCHEMA, location=taken)
    other = catalog.create_table("db.u", SCHEMA)
    with pytest.raises(LocationInUse, match=r"db\.t"):
        catalog.replace_table_transaction("db.u", SCHEMA, location=taken)
    with pytest.raises(LocationInUse, match=r"db\.t"), other.transaction() as tx:
        tx.update_location(taken)


@pytest.mark.parametrize("inner", ["db/t", "db/data", "db/data/deep/t", "db/metadata/t"])
@pytest.mark.parametrize("outer", ["db", "db/", ""])
def test_a_location_around_another_tables_is_refused(catalog, tmp_path, inner, outer):
    place, taken = f"file://{tmp_path}/lake/{inner}", f"file://{tmp_path}/lake/{outer}"
    catalog.create_table("db.t", SCHEMA, location=place).append(rows(1))
    for changing in (
        lambda: catalog.create_table("db.u", SCHEMA, location=taken),
        lambda: catalog.replace_table_transaction("db.v", SCHEMA, location=taken),
        lambda: catalog.load_table("db.v").transaction().update_location(taken),
    ):
        catalog.create_table_if_not_exists("db.v", SCHEMA)
        with pytest.raises(LocationInUse, match=r"db\.t"):
            changing()


def test_a_table_may_move_around_its_own_place_and_beside_others(catalog, tmp_path):
    table = catalog.create_table("db.t", SCHEMA, location=f"file://{tmp_path}/lake/db/t")
    catalog.create_table("db.u", SCHEMA, location=f"file://{tmp_path}/lake/db-2/t").append(rows(2))
    table.append(rows(1))
    with table.transaction() as tx:
        tx.update_location(f"file://{tmp_path}/lake/db")
    table.append(rows(3))
    assert (ids(catalog, "db.t"), ids(catalog, "db.u")) == ([1, 3], [2])


def test_a_location_where_nothing_is_costs_one_listing(tmp_path, monkeypatch):
    catalog = open_catalog("sql", tmp_path)
    catalog.create_namespace("db")
    for number in range(3):
        catalog.create_table(f"db.t{number}", SCHEMA)
    asked = []
    for name in ("list_files", "open_input"):
        real = getattr(LocalFileSystem, name)

        def counted(self, *given, name=name, real=real, **more):
            asked.append(name)
            return real(self, *given, **more)

        monkeypatch.setattr(LocalFileSystem, name, counted)
    check_location(catalog.io, catalog.backend.strategy(("db", "new")), f"file://{tmp_path}/lake/new")
    assert asked == ["list_files"]


def test_a_location_of_a_dropped_table_gives_a_warning(catalog):
    place = catalog.create_table("db.t", SCHEMA).location()
    catalog.drop_table("db.t")
    with pytest.warns(LocationWarning, match="was dropped"):
        catalog.create_table("db.u", SCHEMA, location=place)


def test_two_creators_of_two_tables_at_one_location_do_not_both_win(catalog, tmp_path):
    for number in range(10):
        place, gate, made = f"file://{tmp_path}/shared{number}", Barrier(2), []

        def create(name: str, place: str = place, gate: Barrier = gate, made: list[str] = made) -> None:
            gate.wait()
            try:
                catalog.create_table(name, SCHEMA, location=place)
                made.append(name)
            except LocationInUse:
                pass

        racers = [Thread(target=create, args=(f"db.{name}{number}",)) for name in "ab"]
        for racer in racers:
            racer.start()
        for racer in racers:
            racer.join()
        assert len(made) == 1


@pytest.mark.parametrize("name", ["db.t", "db.copy"])
def test_a_table_that_is_registered_twice_keeps_its_files_until_one_name_is_dropped(catalog, tmp_path, name):
    twins(catalog)
    age(tmp_path)
    table = catalog.load_table(name)
    for change in (
        lambda: catalog.drop_table(name, purge=True),
        lambda: table.maintenance.remove_orphan_files(dry_run=False),
        lambda: table.maintenance.expire_snapshots(LATER, retain_last=1),
        lambda: table.transaction().update_location(f"file://{tmp_path}/moved"),
    ):
        with pytest.raises(InvalidArgument, match="registered under both names"):
            change()
    assert (ids(catalog, "db.t"), ids(catalog, "db.copy")) == ([1, 2], [1, 3])
    catalog.drop_table("db.copy" if name == "db.t" else "db.t")
    catalog.load_table(name).maintenance.expire_snapshots(LATER, retain_last=1)
    catalog.drop_table(name, purge=True)


def test_a_commit_under_one_name_keeps_the_metadata_file_of_the_other_name(catalog):
    freeing = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
    table = catalog.create_table("db.t", SCHEMA, properties=freeing)
    table.append(rows(1))
    with pytest.warns(LocationWarning, match="registered twice"):
        copy = catalog.register_table("db.copy", table.metadata_location)
    for value in (2, 3, 4):
        copy.append(rows(value))
    assert (ids(catalog, "db.t"), ids(catalog, "db.copy")) == ([1], [1, 2, 3, 4])
    catalog.drop_table("db.t")
    for value in (5, 6):
        copy.append(rows(value))
    assert len(copy.inspect.metadata_log_entries()) == 2
    assert ids(catalog, "db.copy") == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("stated", [True, False])
def test_files_of_a_table_that_writes_below_anothers_location_stay(catalog, tmp_path, stated):
    shared = f"file://{tmp_path}/lake/shared"
    around = {"write.data.path": shared} if stated else {}
    table = catalog.create_table("db.t", SCHEMA, location=f"file://{tmp_path}/lake", properties=around)
    victim = catalog.create_table("db.victim", SCHEMA, properties={"write.data.path": shared})
    victim.append(rows(41, 42))
    files = victim.inspect.files()["file_path"].to_pylist()
    if stated:  # later nobody could tell the files of the two tables apart
        with pytest.raises(InvalidArgument, match="other tables may use"):
            table.add_files(files)
    else:
        table.add_files(files)
    table.overwrite(rows(1))
    table.maintenance.expire_snapshots(LATER, retain_last=1)
    assert ids(catalog, "db.victim") == [41, 42]


def test_metadata_of_another_table_in_the_folder_stops_the_removal_of_orphans(catalog, tmp_path):
    table = catalog.create_table("db.t", SCHEMA)
    table.append(rows(1))
    other = load_catalog("other", type="sql", uri=f"sqlite:///{tmp_path}/other.db", warehouse=f"file://{tmp_path}/o")
    other.create_namespace("db")
    with pytest.warns(LocationWarning):
        other.create_table("db.u", SCHEMA, location=table.location()).append(rows(2))
    age(tmp_path)
    with pytest.raises(InvalidArgument, match="exclusive=True"):
        table.maintenance.remove_orphan_files(dry_run=False)
    assert ids(other, "db.u") == [2]
    assert table.maintenance.remove_orphan_files(dry_run=False, exclusive=True).files > 0


def test_orphans_of_a_shared_folder_of_data_are_removed_on_demand_only(catalog, tmp_path):
    shared = f"file://{tmp_path}/shared"
    table, other = (
        catalog.create_table(name, SCHEMA, properties={"write.data.path": shared}) for name in ("db.t", "db.u")
    )
    table.append(rows(1))
    other.append(rows(2))
    age(tmp_path)
    with pytest.raises(InvalidArgument, match="exclusive=True"):
        table.maintenance.remove_orphan_files(location=shared, dry_run=False)
    assert ids(catalog, "db.u") == [2]


@pytest.mark.parametrize("way", ["expiry", "compaction", "purge"])
def test_files_of_another_table_stay(catalog, way):
    victim = catalog.create_table("db.victim", SCHEMA)
    victim.append(rows(41, 42))
    table = catalog.create_table("db.t", SCHEMA)
    table.append(rows(1))
    table.add_files(victim.inspect.files()["file_path"].to_pylist())
    if way == "purge":
        catalog.drop_table("db.t", purge=True)
    else:
        if way == "expiry":
            table.delete("id > 0")
        else:
            table.maintenance.rewrite_data_files(rewrite_all=True)
        done = table.maintenance.expire_snapshots(LATER, retain_last=1)
        assert (done.kept_files, done.data_files) == (1, 1)
        assert done.kept_folders == (f"{victim.location()}/data/",)
    assert ids(catalog, "db.victim") == [41, 42]


@pytest.mark.parametrize(("properties", "gone"), [({}, 1), ({"maintenance.owned-only": "true"}, 0)])
def test_files_outside_of_the_tables_folders_go_where_the_user_says_so(tmp_path, properties, gone):
    catalog = load_catalog(
        "c",
        **{
            "type": "sql",
            "uri": f"sqlite:///{tmp_path}/c.db",
            "warehouse": f"file://{tmp_path}/w",
            "location.owned-only": "false",
        },
    )
    catalog.create_namespace("db")
    victim, table = (catalog.create_table(name, SCHEMA, properties=properties) for name in ("db.v", "db.t"))
    victim.append(rows(1))
    table.add_files(victim.inspect.files()["file_path"].to_pylist())
    table.delete("id > 0")
    assert table.maintenance.expire_snapshots(LATER, retain_last=1).data_files == gone


def test_a_purge_leaves_the_files_of_others_where_the_table_says_so(tmp_path):
    given = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"file://{tmp_path}/w"}
    catalog = load_catalog("c", **given, **{"location.owned-only": "false"})
    catalog.create_namespace("db")
    victim, table = (catalog.create_table(name, SCHEMA) for name in ("db.v", "db.t"))
    victim.append(rows(1))
    table.add_files(victim.inspect.files()["file_path"].to_pylist())
    table.set_properties({"maintenance.owned-only": True})
    catalog.purge_table("db.t")
    assert ids(catalog, "db.v") == [1]


def test_files_that_could_not_be_told_from_the_tables_own_are_not_added(catalog, tmp_path):
    shared = {"write.data.path": f"file://{tmp_path}/shared"}
    table, other = (catalog.create_table(name, SCHEMA, properties=shared) for name in ("db.t", "db.u"))
    other.append(rows(1))
    with pytest.raises(InvalidArgument, match="owned-only"):
        table.add_files(other.inspect.files()["file_path"].to_pylist())


def test_a_folder_of_data_that_is_another_tables_is_not_the_tables_own(catalog):
    victim, table = (catalog.create_table(name, SCHEMA) for name in ("db.v", "db.t"))
    victim.append(rows(1))
    table.add_files(victim.inspect.files()["file_path"].to_pylist())
    table.set_properties({"write.data.path": f"{victim.location()}/data"})
    table.delete("id > 0")
    assert table.maintenance.expire_snapshots(LATER, retain_last=1).data_files == 0
    assert ids(catalog, "db.v") == [1]


@pytest.mark.parametrize("shared_by_the_table", ["before", "after"])
def test_added_files_of_a_folder_that_is_another_tables_at_another_time_stay(catalog, tmp_path, shared_by_the_table):
    shared = {"write.data.path": f"file://{tmp_path}/shared"}
    victim = catalog.create_table("db.v", SCHEMA, properties=shared)
    victim.append(rows(1))
    ways = [shared, {"write.data.path": f"file://{tmp_path}/own"}]
    first, second = ways if shared_by_the_table == "before" else reversed(ways)
    table = catalog.create_table("db.t", SCHEMA, properties=first)
    if shared_by_the_table == "before":
        table.set_properties(second)
    table.add_files(victim.inspect.files()["file_path"].to_pylist())
    if shared_by_the_table == "after":
        table.set_properties(second)
    table.delete("id > 0")
    done = table.maintenance.expire_snapshots(LATER, retain_last=1)
    assert (done.data_files, done.kept_files) == (0, 1)
    assert ids(catalog, "db.v") == [1]


def test_files_in_a_shared_folder_expire_where_their_locations_name_their_table(catalog, tmp_path):
    shared = {"write.data.path": f"file://{tmp_path}/shared", "write.object-storage.enabled": "true"}
    table, other = (catalog.create_table(name, SCHEMA, properties=shared) for name in ("db.t", "db.u"))
    for each in (table, other):
        each.append(rows(1))
        each.overwrite(rows(2))
    done = table.maintenance.expire_snapshots(LATER, retain_last=1)
    assert (done.data_files, done.kept_files) == (1, 0)
    assert ids(catalog, "db.u") == [2]
    elsewhere = load_catalog("e", type="sql", uri=f"sqlite:///{tmp_path}/e.db", warehouse=f"file://{tmp_path}/e")
    elsewhere.create_namespace("db")
    namesake = elsewhere.create_table("db.t", SCHEMA, properties=shared)
    namesake.append(rows(1))
    namesake.overwrite(rows(2))
    done = namesake.maintenance.expire_snapshots(LATER, retain_last=1)
    assert (done.data_files, done.kept_files) == (0, 1)


def test_files_of_a_table_that_moved_still_expire(catalog, tmp_path):
    table = catalog.create_table("db.t", SCHEMA)
    table.append(rows(1))
    with table.transaction() as tx:
        tx.update_location(f"file://{tmp_path}/moved")
    table = catalog.load_table("db.t")
    table.overwrite(rows(2))
    done = table.maintenance.expire_snapshots(LATER, retain_last=1)
    assert (done.data_files, done.kept_files) == (1, 0)


def test_the_doctor_names_tables_that_overlap(catalog, tmp_path):
    (well,) = examine_locations(catalog)
    assert well.result is Result.OK
    twins(catalog)
    shared = {"write.data.path": f"file://{tmp_path}/shared"}
    for name in ("db.x", "db.y"):
        catalog.create_table(name, SCHEMA, properties=shared)
    catalog.create_table("db.inside", SCHEMA, location=f"file://{tmp_path}/shared/inside")
    said = "\n".join(each.found for each in examine_locations(catalog))
    assert "db.copy and db.t: the same table is registered under two names" in said
    assert "db.x and db.y: one folder of data or metadata for both" in said
    assert "db.x and db.inside: one is inside the folder of data or metadata of the other" in said


@pytest.mark.parametrize("path", ["write.metadata.path", "write.data.path"])
def test_a_location_of_a_table_with_a_folder_elsewhere_is_refused(catalog, tmp_path, path):
    place, elsewhere = f"file://{tmp_path}/place", f"file://{tmp_path}/elsewhere"
    properties = {path: elsewhere if path == "write.metadata.path" else f"{place}/data"}
    location = place if path == "write.metadata.path" else elsewhere
    catalog.create_table("db.first", SCHEMA, location=location, properties=properties).append(rows(1))
    with pytest.raises(LocationInUse, match=r"db\.first"):
        catalog.create_table("db.second", SCHEMA, location=place)
    catalog.drop_table("db.first")
    catalog.create_table("db.second", SCHEMA, location=place)


@pytest.mark.parametrize("below", ["", "/data", "/data/deep"])
def test_orphans_of_a_table_in_whose_folder_another_writes_are_refused(catalog, tmp_path, below):
    second = catalog.create_table("db.second", SCHEMA)
    second.append(rows(2))
    first = catalog.create_table("db.first", SCHEMA)
    first.set_properties({"write.data.path": f"{second.location()}{below}"})
    first.append(rows(1))
    age(tmp_path)
    with pytest.raises(InvalidArgument, match=r"db\.first has files there"):
        second.maintenance.remove_orphan_files(dry_run=False)
    assert ids(catalog, "db.first") == [1]
    assert first.maintenance.remove_orphan_files(dry_run=False).undeleted == 0
    catalog.drop_table("db.first")
    assert second.maintenance.remove_orphan_files(dry_run=True).files > 0


def test_a_table_that_moves_in_beside_one_with_its_metadata_elsewhere_is_refused(catalog, tmp_path):
    place = f"file://{tmp_path}/place"
    elsewhere = {"write.metadata.path": f"file://{tmp_path}/elsewhere"}
    catalog.create_table("db.first", SCHEMA, location=place, properties=elsewhere).append(rows(1))
    second = catalog.create_table("db.second", SCHEMA, properties={"write.metadata.path": f"file://{tmp_path}/x"})
    with pytest.raises(LocationInUse), second.transaction() as tx:
        tx.update_location(place)
    with second.transaction() as tx:
        tx.update_location(f"file://{tmp_path}/free")
    with pytest.raises(LocationInUse, match=r"db\.second"):
        catalog.create_table("db.third", SCHEMA, location=f"file://{tmp_path}/free")


def test_a_table_that_is_found_by_another_spelling_of_its_path_is_no_second_table(tmp_path):
    (tmp_path / "warehouse").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "warehouse")
    first = load_catalog("a", type="directory", warehouse=f"file://{tmp_path}/warehouse")
    first.create_namespace("db")
    first.create_table("db.t", SCHEMA).append(rows(1))
    linked = load_catalog("b", type="directory", warehouse=f"file://{tmp_path}/linked").load_table("db.t")
    linked.append(rows(2))
    assert len(linked.maintenance.expire_snapshots(LATER, retain_last=1).snapshot_ids) == 1
    assert ids(first, "db.t") == [1, 2]


@pytest.mark.parametrize("place", ["", "/shared", "/shared/meta"])
def test_orphans_of_a_table_around_anothers_folder_of_metadata_leave_that_folder(catalog, tmp_path, place):
    root = f"file://{tmp_path}/root"
    outer = catalog.create_table("db.outer", SCHEMA, location=root)
    inner = catalog.create_table("db.inner", SCHEMA, properties={"write.metadata.path": f"{root}/shared/meta"})
    inner.append(rows(1))
    age(tmp_path)
    done = outer.maintenance.remove_orphan_files(location=f"{root}{place}", dry_run=False)
    assert (done.files, done.others) == (0, (f"{root}/shared/meta/",))
    assert ids(catalog, "db.inner") == [1]


def test_files_added_from_a_table_in_the_folder_of_metadata_stay(catalog, tmp_path):
    place = f"file://{tmp_path}/x"
    other = load_catalog("other", type="sql", uri=f"sqlite:///{tmp_path}/other.db", warehouse=f"file://{tmp_path}/o")
    other.create_namespace("db")
    inner = other.create_table("db.inner", SCHEMA, location=f"{place}/metadata")
    inner.append(rows(1))
    outer = catalog.create_table("db.outer", SCHEMA, location=place)
    outer.add_files(inner.inspect.files()["file_path"].to_pylist())
    outer.overwrite(rows(2))
    done = outer.maintenance.expire_snapshots(LATER, retain_last=1)
    assert (done.data_files, done.kept_files) == (0, 1)
    assert ids(other, "db.inner") == [1]
