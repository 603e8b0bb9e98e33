"""Encrypted tables: writes of plain data or manifests are refused, and changes of metadata are allowed."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest
from icefield.abc import PutMode
from icefield.errors import InvalidArgument, KeyUnavailable, UnsupportedFeature
from icefield.metadata import new_table_metadata
from icefield.metadata.updates.table import RemoveProperties
from tables import SCHEMA, ids, memory_catalog, new_table, rows, stored_files

KEY = {"key-id": "k1", "encrypted-key-metadata": "aXQgaXMgYSBrZXk="}


def by_property(document) -> None:
    document["properties"]["encryption.key-id"] = "master"


def by_keys(document) -> None:
    document["encryption-keys"] = [KEY]


def by_an_old_snapshot(document) -> None:
    document["snapshots"][0]["key-id"] = "k1"


MARKS = pytest.mark.parametrize("mark", [by_property, by_keys, by_an_old_snapshot])


@pytest.fixture
def encrypted():
    """Makes a table of three rows in two snapshots whose metadata says, in one of the ways, that it is encrypted."""

    def make(mark, version="3"):
        catalog = memory_catalog()
        plain = new_table(catalog=catalog, **{"format-version": version})
        plain.append(rows([1, 2]))
        plain.append(rows([3]))
        document = json.loads(plain.io.read(plain.metadata_location))
        mark(document)
        location = plain.location() + "/metadata/00009-encrypted.metadata.json"
        plain.io.put(location, json.dumps(document).encode(), PutMode.CREATE)
        catalog.drop_table("db.t")
        return catalog.register_table("db.t", location)

    return make


@MARKS
def test_an_encrypted_table_is_loaded_and_what_is_plain_in_it_read(encrypted, mark):
    assert ids(encrypted(mark)) == [1, 2, 3]


WRITES = {
    "append": lambda t, f: t.append(rows([4])),
    "table statistics": lambda t, f: t.maintenance.compute_table_stats(),
    "stage": lambda t, f: t.append(rows([4]), branch=None),
    "overwrite": lambda t, f: t.overwrite(rows([4])),
    "delete of whole files": lambda t, f: t.delete(),
    "delete of some rows": lambda t, f: t.delete("id = 1"),
    "dynamic overwrite": lambda t, f: t.dynamic_partition_overwrite(rows([4])),
    "upsert": lambda t, f: t.upsert(rows([1], value=9.0), ["id"]),
    "add_files": lambda t, f: t.add_files([f]),
}


@MARKS
@pytest.mark.parametrize("kind", WRITES)
def test_no_change_writes_plain_data_or_manifests_into_an_encrypted_table(encrypted, mark, kind, tmp_path):
    table = encrypted(mark)
    pq.write_table(rows([4]), tmp_path / "added.parquet")
    before = stored_files(table)
    with pytest.raises((UnsupportedFeature, KeyUnavailable), match="is encrypted"):
        WRITES[kind](table, f"file://{tmp_path}/added.parquet")
    assert stored_files(table) == before


@MARKS
def test_no_plain_file_is_opened_for_an_encrypted_table(encrypted, mark):
    table = encrypted(mark)
    for io in (table.io, table.transaction().io):
        with pytest.raises(UnsupportedFeature, match="would be plain"):
            io.open_output(f"{table.location()}/data/new")


def test_nothing_is_read_of_rows_that_cannot_be_written(encrypted):
    table = encrypted(by_property, "2")

    def batches():
        raise AssertionError("read")
        yield

    with pytest.raises(UnsupportedFeature, match="encrypted"):
        table.append(batches())


@MARKS
def test_changes_of_metadata_alone_are_made(encrypted, mark):
    table = encrypted(mark)
    first, second = (snapshot.snapshot_id for snapshot in table.snapshots())
    with table.update_schema() as update:
        update.add_column("more", "string")
    table.set_properties({"owner": "me"})
    table.manage_snapshots().create_branch(None, "dev").create_tag(first, "old").rollback_to_snapshot(first).commit()
    table.manage_snapshots().cherry_pick(second).commit()  # its parent is current: a name moves, nothing is written
    kept = json.loads(table.io.read(table.metadata_location))
    marked = json.loads(table.io.read(table.metadata_location))
    mark(marked)
    assert kept == marked  # what says that it is encrypted is still there


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_table_of_a_version_without_keys_is_not_created_as_an_encrypted_one(version):
    catalog = memory_catalog()
    given = {"format-version": version, "encryption.key-id": "master"}
    with pytest.raises(InvalidArgument, match=r"encryption\.key-id"):
        catalog.create_table("db.t", SCHEMA, properties=given)
    with pytest.raises(InvalidArgument, match=r"encryption\.key-id"):
        new_table_metadata(new_table().schema(), location="memory://x", properties=given)
    with pytest.raises(InvalidArgument, match=r"encryption\.key-id"):
        new_table(catalog=catalog, **{"format-version": version}).set_properties({"encryption.key-id": "master"})


def test_a_table_that_is_created_as_an_encrypted_one_has_version_3():
    table = memory_catalog().create_table("db.t", SCHEMA, properties={"encryption.key-id": "master"})
    assert table.format_version == 3


def test_the_master_key_of_a_table_does_not_change(encrypted):
    plain = new_table()
    table = encrypted(by_property)
    for change in (
        lambda: table.set_properties({"encryption.key-id": "other"}),
        lambda: table.set_properties({"encryption.key-id": ""}),
        lambda: table.remove_properties("encryption.key-id"),
        lambda: RemoveProperties(("encryption.key-id",)).apply(table.metadata, None),
    ):
        with pytest.raises(InvalidArgument, match=r"encryption\.key-id"):
            change()
    plain.remove_properties("encryption.key-id")  # it has none
