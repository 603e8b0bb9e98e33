"""Metadata written by hand may name folders and files of another table: none of these files is deleted."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from icefield import Catalog, Table, load_catalog
from icefield.abc import CommitStrategy
from icefield.errors import InvalidArgument, LocationWarning
from tables import strategy_of

SCHEMA = pa.schema([("id", pa.int64())])
LATER = 2**60
CLAIMS = ("location", "data folder as location", "parent as location", "write.data.path", "write.metadata.path")


def opened(folder: Path, **properties: str) -> Catalog:
    return load_catalog("c", type="sql", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}/w", **properties)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    made = opened(tmp_path)
    made.create_namespace("db")
    return made


@pytest.fixture
def victim(catalog: Catalog) -> Table:
    table = catalog.create_table("db.victim", SCHEMA)
    table.append(pa.table({"id": [1]}))
    return table


def files_of(table: Table) -> set[Path]:
    return {each for each in Path(table.location().removeprefix("file://")).rglob("*") if each.is_file()}


def claiming(catalog: Catalog, victim: Table, folder: Path, claim: str, **more: Any) -> Table:
    """A table that is registered with the victim's snapshots, from a metadata file elsewhere."""
    location = victim.location()
    written = json.loads(Path(victim.metadata_location.removeprefix("file://")).read_bytes())
    made = {**written, "table-uuid": str(uuid4()), "location": f"file://{folder}/other", "metadata-log": [], **more}
    made["properties"] = {"maintenance.owned-only": "true", **more.get("properties", {})}
    if claim == "location":
        made["location"] = location
    elif claim == "data folder as location":
        made["location"] = f"{location}/data"
    elif claim == "parent as location":
        made["location"] = location.rpartition("/")[0]
    else:
        made["properties"][claim] = f"{location}/{claim.split('.')[1]}"
    place = folder / "other" / "metadata"
    place.mkdir(parents=True)
    (place / f"00000-{uuid4()}.metadata.json").write_text(json.dumps(made))
    return catalog.register_table("db.t", next(iter(place.iterdir())).as_uri())


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("owned_only", [True, False])
def test_expiry_keeps_the_files_of_a_claimed_table(
    catalog: Catalog, victim: Table, tmp_path: Path, claim: str, owned_only: bool
) -> None:
    before = files_of(victim)
    # The table's own property keeps the files where the catalog would have them deleted.
    with opened(tmp_path, **({} if owned_only else {"location.owned-only": "false"})) as other:
        table = claiming(other, victim, tmp_path, claim)
        table.delete("id > 0")
        assert table.maintenance.expire_snapshots(LATER, retain_last=1).snapshot_ids
    assert before <= files_of(victim)


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_purge_keeps_the_files_of_a_claimed_table(
    catalog: Catalog, victim: Table, tmp_path: Path, claim: str
) -> None:
    before = files_of(victim)
    claiming(catalog, victim, tmp_path, claim)
    catalog.purge_table("db.t")
    assert before <= files_of(victim)


@pytest.mark.parametrize("is_logged", [True, False])
def test_a_claimed_table_is_found_by_its_metadata_where_the_catalog_cannot_tell(
    catalog: Catalog, victim: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_logged: bool
) -> None:
    before = files_of(victim)
    files = [each.as_uri() for each in before if each.name.endswith(".metadata.json")] if is_logged else []
    log = [{"timestamp-ms": victim.metadata.last_updated_ms - 1, "metadata-file": each} for each in files]
    claiming(catalog, victim, tmp_path, "location", **{"metadata-log": log})
    monkeypatch.setattr(type(strategy_of(victim)), "tables_in", CommitStrategy.tables_in)
    catalog.purge_table("db.t")
    assert before <= files_of(victim)


@pytest.mark.parametrize("claim", ["location", "data folder as location", "parent as location"])
def test_a_removal_of_orphans_keeps_the_files_of_a_claimed_table(
    catalog: Catalog, victim: Table, tmp_path: Path, claim: str
) -> None:
    before = files_of(victim)
    table = claiming(catalog, victim, tmp_path, claim)
    table.delete("id > 0")
    with suppress(
        InvalidArgument
    ):  # the folder of one table alone is needed, or else other tables' folders are left out
        table.maintenance.remove_orphan_files(older_than=LATER, dry_run=False, allow_recent=True)
    assert before <= files_of(victim)


@pytest.mark.parametrize("claim", ["location", "write.metadata.path"])
@pytest.mark.parametrize("named", ["metadata file", "manifest list", "data file"])
def test_a_metadata_log_that_names_files_of_another_table_costs_none(
    catalog: Catalog, victim: Table, tmp_path: Path, claim: str, named: str
) -> None:
    before = files_of(victim)
    snapshot = victim.current_snapshot()
    assert snapshot is not None
    assert snapshot.manifest_list is not None
    file = {
        "metadata file": victim.metadata_location,
        "manifest list": snapshot.manifest_list,
        "data file": victim.inspect.files()["file_path"][0].as_py(),
    }[named]
    freeing = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
    log = [{"timestamp-ms": victim.metadata.last_updated_ms - 1, "metadata-file": file}]
    table = claiming(catalog, victim, tmp_path, claim, **{"metadata-log": log, "properties": freeing})
    for number in range(4):
        table.set_properties({"number": str(number)})
    assert before <= files_of(victim)
    assert len([*Path(victim.location().removeprefix("file://")).glob("metadata/*.json")]) == 2 + 2  # own ones go


@pytest.mark.parametrize("claim", ["location", "write.metadata.path"])
def test_a_copy_of_metadata_that_keeps_the_uuid_is_a_second_name(
    catalog: Catalog, victim: Table, tmp_path: Path, claim: str
) -> None:
    before = files_of(victim)
    freeing = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
    log = [{"timestamp-ms": victim.metadata.last_updated_ms - 1, "metadata-file": victim.metadata_location}]
    more = {"table-uuid": str(victim.metadata.table_uuid), "metadata-log": log, "properties": freeing}
    with pytest.warns(LocationWarning, match="registered twice"):
        table = claiming(catalog, victim, tmp_path, claim, **more)
    for number in range(4):
        table.set_properties({"number": str(number)})
    assert before <= files_of(victim)
    with pytest.raises(InvalidArgument, match="registered under both names"):
        catalog.purge_table("db.t")


def test_a_table_at_the_location_of_a_dropped_one_still_deletes_its_files(catalog: Catalog, victim: Table) -> None:
    location = victim.location()
    catalog.drop_table("db.victim")
    with pytest.warns(LocationWarning, match="may be in use"):
        table = catalog.create_table("db.t", SCHEMA, location=location)
    table.append(pa.table({"id": [2]}))
    table.delete("id > 0")
    done = table.maintenance.expire_snapshots(LATER, retain_last=1)
    assert (done.data_files, done.kept_files) == (1, 0)
