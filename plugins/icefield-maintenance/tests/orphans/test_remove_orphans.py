"""Orphan files: what is found and removed, and, above all, what is not."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import icefield
import numpy as np
import pyarrow as pa
import pytest
from catalogs import open_catalog
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from icefield import Catalog, LocalFileSystem, Table
from icefield.errors import FileMissing, InvalidArgument, NotSupportedByCatalog, UnsupportedFeature
from icefield.schema import Schema
from icefield.storage import HashedLocations
from icefield.types import LongType, NestedField
from icefield_maintenance.orphans import clock
from icefield_maintenance.orphans.belonging import ReferencedFiles
from icefield_maintenance.orphans.prefixes import EqualPrefixes
from icefield_maintenance.orphans.result import SCHEMA as LISTED
from overlaps import move_past_guards
from pickling_runner import PicklingRunner
from tables import again

DAY = 86_400.0
SCHEMA = Schema(NestedField(1, "id", LongType()))


@pytest.fixture(params=["rename", "sql"])
def catalog(request: Any, tmp_path: Path) -> Catalog:
    made = open_catalog(request.param, tmp_path)
    made.create_namespace("db")
    return made


@pytest.fixture
def table(catalog: Catalog) -> Table:
    made = catalog.create_table("db.t", SCHEMA)
    for start in range(3):
        made.append(rows(start))
    age(folder(made), 10)
    return made


def rows(start: int) -> pa.Table:
    return pa.table({"id": np.arange(start, start + 5)})


def folder(table: Table) -> Path:
    return Path(table.location().removeprefix("file://"))


def age(place: Path, days: float) -> None:
    """Let all files below a folder, or one file, be so old."""
    then = time.time() - days * DAY
    for path in [place] if place.is_file() else [each for each in place.rglob("*") if each.is_file()]:
        os.utime(path, (then, then))


def put(place: Path, name: str, days: float = 10, data: bytes = b"orphan") -> Path:
    path = place / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    age(path, days)
    return path


def found(table: Table, **options: Any) -> set[str]:
    result = table.maintenance.remove_orphan_files(**options)
    return {Path(each.removeprefix("file://")).name for each in result.orphans.column("location").to_pylist()}


def test_a_table_without_orphans_has_none_and_every_file_stays(table):
    before = {path for path in folder(table).rglob("*") if path.is_file()}
    result = table.maintenance.remove_orphan_files(dry_run=False)
    assert (result.files, result.bytes, result.undeleted) == (0, 0, 0)
    assert {path for path in folder(table).rglob("*") if path.is_file()} == before


def test_what_no_version_refers_to_is_listed_first_and_removed_when_it_is_asked_for(table):
    orphan = put(folder(table), "data/left-over.parquet")
    other = put(folder(table), "metadata/snap-1-left.avro", data=b"1234")
    planned = table.maintenance.remove_orphan_files()
    assert planned.dry_run
    assert (planned.files, planned.bytes) == (2, 10)
    assert orphan.exists()
    done = table.maintenance.remove_orphan_files(dry_run=False)
    assert (done.files, done.bytes, done.undeleted, done.dry_run) == (2, 10, 0, False)
    assert not orphan.exists()
    assert not other.exists()
    assert table.scan().count() == 15


def test_statistics_that_others_replaced_or_that_were_removed_are_orphans_and_the_registered_ones_are_not(catalog):
    table = catalog.create_table("db.t", SCHEMA, partition_spec=["id"])
    table.append(rows(0))
    replaced = table.maintenance.compute_table_stats()
    kept = table.refresh().maintenance.compute_table_stats()
    removed = table.refresh().maintenance.compute_partition_stats()
    with table.refresh().update_statistics() as update:
        update.remove_partition_statistics(table.current_snapshot().snapshot_id)
    age(folder(table), 10)
    gone = {Path(each.statistics_path).name for each in (replaced, removed)}
    assert found(table.refresh(), dry_run=False) == gone
    left = {path.name for path in folder(table).rglob("*") if path.is_file()}
    assert Path(kept.statistics_path).name in left
    assert not gone & left


def test_a_young_file_is_no_orphan(table):
    put(folder(table), "data/yesterday.parquet", days=1)
    put(folder(table), "data/last-week.parquet", days=7)
    assert found(table) == {"last-week.parquet"}
    assert found(table, older_than=int((time.time() - 8 * DAY) * 1000)) == set()


def test_less_than_a_day_is_refused_unless_the_caller_knows_that_nobody_writes(table):
    put(folder(table), "data/now.parquet", days=0.1)
    soon = int((time.time() - 3600) * 1000)
    with pytest.raises(InvalidArgument, match="last 24 hours"):
        table.maintenance.remove_orphan_files(older_than=soon)
    assert found(table, older_than=soon, allow_recent=True) == {"now.parquet"}


def test_a_file_of_the_future_is_no_orphan(table):
    put(folder(table), "data/tomorrow.parquet", days=-1)
    assert found(table) == set()


@pytest.mark.parametrize("ahead_days", [2.5, 9, 400])
def test_no_young_file_is_removed_where_this_machines_clock_is_ahead(table, monkeypatch, ahead_days):
    young = put(folder(table), "data/young.parquet", days=2)
    old = put(folder(table), "data/old.parquet", days=4)
    real = clock.local_now_ms
    monkeypatch.setattr(clock, "local_now_ms", lambda: real() + int(ahead_days * DAY * 1000))
    table.maintenance.remove_orphan_files(dry_run=False)
    assert young.exists()
    assert not old.exists()


@pytest.mark.parametrize("behind_days", [2, 30])
def test_no_young_file_is_removed_where_this_machines_clock_is_behind(table, monkeypatch, behind_days):
    young = put(folder(table), "data/young.parquet", days=2)
    real = clock.local_now_ms
    monkeypatch.setattr(clock, "local_now_ms", lambda: real() - int(behind_days * DAY * 1000))
    table.maintenance.remove_orphan_files(dry_run=False)
    assert young.exists()


def test_the_file_that_asks_for_the_time_does_not_stay(table):
    before = {path for path in folder(table).rglob("*") if path.is_file()}
    table.maintenance.remove_orphan_files(dry_run=False)
    assert {path for path in folder(table).rglob("*") if path.is_file()} == before


def test_a_folder_that_is_not_there_is_not_made(table):
    missing = folder(table) / "elsewhere"
    result = table.maintenance.remove_orphan_files(location=f"file://{missing}", dry_run=False)
    assert (result.listed, result.files) == (0, 0)
    assert not missing.exists()


def test_what_engines_keep_for_themselves_stays_but_partitions_may_begin_alike(table):
    put(folder(table), "data/_temporary/0/part.parquet")
    put(folder(table), "data/.staging/part.parquet")
    put(folder(table), "data/_SUCCESS")
    put(folder(table), "data/_kind=a/part.parquet")
    assert found(table) == {"part.parquet"}


def test_the_versions_of_a_table_that_its_file_system_holds_all_stay(tmp_path):
    catalog = open_catalog("rename", tmp_path)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA, properties={"write.metadata.previous-versions-max": "1"})
    for start in range(4):
        table.append(rows(start))
    age(folder(table), 10)
    versions = {path.name for path in (folder(table) / "metadata").glob("*.metadata.json")}
    assert len(versions) == 5
    put(folder(table), "metadata/v99.gz.metadata.json")
    assert found(table) == set()
    assert found(table, location=f"{table.location()}/metadata") == set()


def test_a_metadata_file_of_a_metastore_that_left_the_log_is_an_orphan(tmp_path):
    catalog = open_catalog("sql", tmp_path)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA, properties={"write.metadata.previous-versions-max": "1"})
    for start in range(4):
        table.append(rows(start))
    age(folder(table), 10)
    logged = {Path(entry.metadata_file).name for entry in table.metadata.metadata_log}
    names = {path.name for path in (folder(table) / "metadata").glob("*.metadata.json")}
    assert found(table) == names - logged - {Path(table.metadata_location).name} != set()


def test_another_table_below_is_left_alone(catalog, table):
    other = icefield.load_catalog("other", type="directory", warehouse=f"file://{folder(table)}/nested")
    other.create_namespace("db")
    inner = other.create_table("db.inner", SCHEMA)
    inner.append(rows(0))
    orphan = put(folder(inner), "data/left.parquet")
    put(folder(table), "nested/stray.parquet")
    age(folder(table), 10)
    assert found(table, dry_run=False) == {"stray.parquet"}
    assert orphan.exists()
    assert inner.scan().count() == 5


def test_the_folder_of_another_table_is_no_place_for_orphans_of_this_one(catalog, table):
    other = catalog.create_table("db.other", SCHEMA)
    other.append(rows(0))
    age(folder(other), 10)
    assert found(table, location=other.location(), dry_run=False) == set()
    assert other.scan().to_arrow().num_rows == 5


def in_a_metastore(tmp_path: Path, properties: dict[str, str] | None = None) -> tuple[Catalog, Table]:
    """A catalog that does not find tables by their folders, and a table with rows."""
    catalog = open_catalog("sql", tmp_path)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA, properties=properties or {})
    table.append(rows(0))
    return catalog, table


@pytest.mark.parametrize("below", ["meta", "nested/metadata", None])
def test_orphans_are_found_beside_the_metadata_folder_that_the_table_had_before(tmp_path, below):
    """Its old versions are in it, which the log names, and those that these name."""
    _, table = in_a_metastore(tmp_path, {"write.metadata.previous-versions-max": "1"})
    moved = f"{table.location()}/{below}" if below else f"file://{tmp_path}/elsewhere"
    table.set_properties({"write.metadata.path": moved})
    table.append(rows(5))
    put(folder(table), "data/left.parquet")
    put(folder(table), "nested/left-too.parquet")
    age(folder(table), 10)
    before = table.scan().to_arrow().sort_by("id")
    lost = {each for each in found(table, dry_run=False) if not each.endswith(".metadata.json")}
    assert lost == {"left.parquet", "left-too.parquet"}
    assert again(table).scan().to_arrow().sort_by("id").equals(before)


def test_orphans_are_found_in_the_place_that_the_table_had_before(tmp_path):
    _, table = in_a_metastore(tmp_path)
    before = table.location()
    put(folder(table), "data/left.parquet")
    table.transaction().update_location(f"file://{tmp_path}/moved").commit_transaction()
    table.append(rows(5))
    age(folder(again(table)).parent, 10)
    assert found(again(table), location=before, dry_run=False) == {"left.parquet"}
    assert again(table).scan().count() == 10


def test_another_table_in_the_place_that_the_table_had_before_is_left_alone_and_named(tmp_path):
    catalog, table = in_a_metastore(tmp_path)
    before = table.location()
    table.transaction().update_location(f"file://{tmp_path}/moved").commit_transaction()
    catalog.create_table("db.other", SCHEMA)
    move_past_guards(catalog, "db.other", before)
    other = catalog.load_table("db.other")
    other.append(rows(5))
    put(folder(other), "data/left.parquet")
    age(folder(other), 10)
    result = again(table).maintenance.remove_orphan_files(location=before, dry_run=False)
    assert (result.files, result.others) == (0, (f"{before}/",))
    assert other.scan().count() == 5


def test_a_link_to_a_folder_is_no_orphan_and_its_files_belong_to_the_table(table, tmp_path):
    disk, linked = tmp_path / "disk", folder(table) / "data"
    linked.rename(disk)
    linked.symlink_to(disk)
    then = time.time() - 10 * DAY
    os.utime(disk, (then, then))
    stray = put(disk, "stray.parquet")
    assert found(table, dry_run=False) == set()
    assert linked.is_symlink()
    assert found(table, location=f"file://{disk}", dry_run=False) == {stray.name}
    assert table.scan().to_arrow().num_rows == 15


def test_what_is_reached_by_a_link_within_the_table_belongs_to_it(table):
    inside, linked = folder(table) / "moved", folder(table) / "data"
    linked.rename(inside)
    linked.symlink_to(inside)
    assert found(table, dry_run=False) == set()
    assert table.scan().to_arrow().num_rows == 15


def test_a_file_that_a_killed_writer_never_published_is_an_orphan(table):
    put(folder(table), "data/.a.parquet.0123.icefield-tmp")
    put(folder(table), "metadata/.icefield-clock-0123")
    put(folder(table), "data/.staging/.b.parquet.0123.icefield-tmp")
    assert found(table, dry_run=False) == {".a.parquet.0123.icefield-tmp", ".icefield-clock-0123"}


def test_what_a_killed_job_of_an_engines_writer_never_published_is_an_orphan(table):
    operation = "0b0e2d0c-9b1c-4b7e-8a52-0f6a3f1d2c3b"
    job = f"data/job-{operation}"
    left = {
        put(folder(table), f"{job}/{name}")
        for name in ("_SUCCESS", "_temporary/0/_temporary/attempt_1/part=2/a.parquet", "part-0.parquet")
    }
    put(folder(table), f"{job}/_other/b.parquet")
    put(folder(table), f".kept/job-{operation}/_temporary/c.parquet")
    put(folder(table), "data/job-1/_temporary/d.parquet")
    put(folder(table), "data/_temporary/0/e.parquet")
    assert table.io.exists(f"{table.location_provider().job_folder(operation)}/_SUCCESS")
    assert found(table, dry_run=False) == {path.name for path in left}
    assert not any(path.exists() for path in left)


def test_storage_that_cannot_create_atomically_has_its_orphans_removed(table, monkeypatch):
    orphan = put(folder(table), "data/left.parquet")

    def refused(*_: Any) -> None:
        raise UnsupportedFeature("it cannot create a file atomically")

    monkeypatch.setattr(LocalFileSystem, "put", refused)
    assert table.maintenance.remove_orphan_files(dry_run=False).files == 1
    assert not orphan.exists()


def test_statistics_and_files_outside_of_the_current_snapshot_belong_to_the_table(table):
    table.maintenance.compute_table_stats()
    first = table.snapshots()[0].snapshot_id
    table.manage_snapshots().create_tag(first, "kept").commit()
    table.delete("id < 3")
    age(folder(table), 10)
    assert found(table) == set()


def test_a_file_that_a_killed_expiry_left_is_an_orphan_although_a_deleted_entry_names_it(table):
    (first, *_) = sorted(each.file.file_path for each in table.scan().plan_files())
    path = Path(first.removeprefix("file://"))
    data = path.read_bytes()
    table.delete("id >= 0")
    table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "kept").commit()
    assert found(table) == set()  # an earlier version needs the files
    table.append(rows(0))
    table.maintenance.expire_snapshots(2**62)
    assert not path.exists()
    put(path.parent, path.name, data=data)
    entries = table.inspect.scan("all_entries").to_arrow().to_pylist()
    assert [each["status"] for each in entries if each["data_file"]["file_path"] == first] == [2]
    assert found(table, dry_run=False) == {path.name}
    assert not path.exists()


def test_what_is_committed_while_files_are_listed_belongs_to_the_table(table, tmp_path):
    """A file that another writer takes into the table after it was listed: it is old, and no orphan."""
    late = put(folder(table), "data/taken.parquet", data=_first_data_file(table).read_bytes())
    seen: list[str] = []
    fresh = again(table)
    listed = table.io.list_files

    def listing(prefix: str, **options: Any) -> Any:
        yield from listed(prefix, **options)
        if not seen:
            seen.append(prefix)
            fresh.add_files([f"file://{late}"], check_duplicate_files=False)

    table.io.list_files = listing  # type: ignore[method-assign]
    result = table.maintenance.remove_orphan_files(dry_run=False)
    assert seen
    assert late.exists(), result.orphans.column("location").to_pylist()
    assert fresh.scan().count() == 20


def test_a_table_whose_files_others_may_use_is_refused(table):
    table.set_properties({"gc.enabled": "false"})
    with pytest.raises(InvalidArgument, match=r"gc\.enabled"):
        table.maintenance.remove_orphan_files()


def test_nothing_is_removed_where_a_manifest_cannot_be_read(table):
    orphan = put(folder(table), "data/left.parquet")
    manifest = table.inspect.manifests()["path"][0].as_py()
    Path(manifest.removeprefix("file://")).unlink()
    icefield.clear_caches()
    with pytest.raises(FileMissing):
        table.maintenance.remove_orphan_files(dry_run=False)
    assert orphan.exists()


def test_a_table_without_a_catalog_is_only_looked_at(table):
    put(folder(table), "data/left.parquet")
    static = icefield.open_table(table.metadata_location)
    assert found(static) == {"left.parquet"}
    with pytest.raises(NotSupportedByCatalog):
        static.maintenance.remove_orphan_files(dry_run=False)


def test_a_file_that_is_named_under_another_scheme_is_in_doubt(table):
    """A listing of a location under another name than the metadata has: refused, until it is said what is equal."""

    def orphans(mismatch: Any, **equal: Any) -> int:
        held = ReferencedFiles(
            table.io, HashedLocations(table.io, "viewfs://c/t"), EqualPrefixes(**{**NOTHING, **equal})
        )
        held._note(pa.array(["viewfs://c/t/data/a.parquet"]))
        batch = pa.record_batch([["hdfs://n1/t/data/a.parquet"], [1], [1]], schema=LISTED)
        return held.orphans(batch, mismatch).num_rows

    with pytest.raises(InvalidArgument, match="equal_schemes"):
        orphans("error")
    assert orphans("ignore") == 0
    assert orphans("delete") == 1
    equal = {"equal_schemes": {"viewfs": "hdfs"}, "equal_authorities": {"n1, n2": "c"}}
    assert orphans("error", **equal) == 0


NOTHING: dict[str, Any] = {"equal_schemes": None, "equal_authorities": None}


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(st.sampled_from(["append", "delete", "overwrite", "expire", "stats", "rewrite"]), max_size=6),
    strays=st.integers(0, 4),
)
def test_any_life_of_a_table_leaves_all_files_but_the_strays(steps, strays, tmp_path_factory):
    catalog = open_catalog("rename", tmp_path_factory.mktemp("life"))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA, properties={"write.delete.mode": "merge-on-read"})
    described: set[int] = set()
    for number, step in enumerate(["append", *steps]):
        match step:
            case "append":
                table.append(rows(number))
            case "delete":
                table.delete(f"id = {number}")
            case "overwrite":
                table.overwrite(rows(number), "id > 3")
            case "expire":
                table.maintenance.expire_snapshots(older_than=int(time.time() * 1000) + 1, retain_last=1)
            case "stats" if table.current_snapshot().snapshot_id not in described:
                # Twice for one snapshot would leave the first file behind: an orphan like any other.
                described.add(table.current_snapshot().snapshot_id)
                table.maintenance.compute_table_stats()
            case "rewrite":
                table.maintenance.rewrite_manifests()
    made = {put(folder(table), f"data/stray-{number}.parquet").name for number in range(strays)}
    age(folder(table), 10)
    before, fresh = table.scan().to_arrow(), again(table)
    elsewhere = fresh.maintenance.on(PicklingRunner()).remove_orphan_files()
    assert {Path(each).name for each in elsewhere.orphans["location"].to_pylist()} == made
    assert found(fresh, dry_run=False) == made
    assert fresh.scan().to_arrow().equals(before)
    for snapshot in fresh.snapshots():
        fresh.scan(snapshot_id=snapshot.snapshot_id).to_arrow()


def _first_data_file(table: Table) -> Path:
    return Path(table.inspect.data_files()["file_path"][0].as_py().removeprefix("file://"))
