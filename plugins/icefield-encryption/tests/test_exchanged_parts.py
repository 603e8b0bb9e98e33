"""Parts of encrypted tables in each other's place, and keys that were changed: one typed error, and no row."""

from __future__ import annotations

import base64
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from encrypted_tables import FORMATS, MASTER, SCHEMA, catalog_in, clear_caches, ids, manifests_of, new_table, rows
from icefield.errors import DecryptionFailed, InvalidMetadata
from icefield_encryption.key_metadata import decode, encode

MERGE_ON_READ = {f"write.{each}.mode": "merge-on-read" for each in ("delete", "update", "merge")}


def path_of(location):
    return Path(location.removeprefix("file://"))


def parts(table):
    """The locations of a table's current files by kind, each kind in the order of the plan."""
    snapshot = table.current_snapshot()
    manifests = manifests_of(table)
    tasks = list(table.scan().plan_files())
    return {
        "list": [snapshot.manifest_list],
        "manifest": [each.manifest_path for each in manifests],
        "data": [task.file.file_path for task in tasks],
        "deletes": sorted({file.file_path for task in tasks for file in task.delete_files}),
    }


def assert_refused(table, location, data):
    """A file with other content gives an error of one type, and the table is well with its own content again."""
    path = path_of(location)
    whole = path.read_bytes()
    assert whole != data
    path.write_bytes(data)
    try:
        clear_caches()
        with pytest.raises(DecryptionFailed):
            table.scan().to_arrow()
    finally:
        path.write_bytes(whole)
    clear_caches()


@pytest.fixture(params=FORMATS)
def made(request, tmp_path):
    """A table with deletes in two partitions, and another one under the same master key with the same rows."""
    catalog = catalog_in(tmp_path)
    given = {**MERGE_ON_READ, "write.format.default": request.param}
    found = [new_table(catalog, name, **given) for name in ("db.t", "db.u")]
    plain = catalog.create_table(
        "db.plain", SCHEMA, partition_spec=["part"], properties={**given, "format-version": "3"}
    )
    found.append(plain)
    for table in found:
        table.append(rows(0))
        table.append(rows(100))
        table.delete("id = 1")
        table.delete("id = 102")
        table.refresh()
    return found


@pytest.mark.slow
def test_a_file_of_another_table_or_a_plain_one_is_refused(made):
    table, other, plain = made
    expected = ids(table)
    own, others, plains = parts(table), parts(other), parts(plain)
    for kind in own:
        for location in own[kind]:
            for foreign in (*others[kind], *plains[kind], *own[kind]):
                if foreign != location:
                    assert_refused(table, location, path_of(foreign).read_bytes())
    assert ids(table) == expected


def test_an_older_list_does_not_stand_in_for_the_present_one(made):
    table, *_ = made
    present = table.current_snapshot().manifest_list
    for snapshot in table.snapshots()[:-1]:
        assert_refused(table, present, path_of(snapshot.manifest_list).read_bytes())


def test_the_footer_of_one_parquet_file_does_not_fit_another(tmp_path):
    table = new_table(catalog_in(tmp_path))
    table.append(rows(0))
    table.append(rows(0))
    places = [task.file.file_path for task in table.scan().plan_files()]
    footers = []
    for place in places:
        data = path_of(place).read_bytes()
        footers.append(int.from_bytes(data[-8:-4], "little") + 8)
    for one, size in zip(places, footers, strict=True):
        for other, other_size in zip(places, footers, strict=True):
            if one != other:
                body, foot = path_of(one).read_bytes()[:-size], path_of(other).read_bytes()[-other_size:]
                assert_refused(table, one, body + foot)


@pytest.mark.parametrize("file_format", FORMATS)
def test_key_metadata_with_another_length_prefix_or_key_opens_nothing(tmp_path, file_format):
    table = new_table(catalog_in(tmp_path), **{"write.format.default": file_format})
    table.append(rows(0))
    table.delete("id = 1")
    task = next(iter(table.scan().plan_files()))
    manifest = manifests_of(table)[0]
    files = [(task.file.file_path, task.file.key_metadata), (manifest.manifest_path, manifest.key_metadata)]
    for location, key_metadata in files:
        native = location.endswith(".parquet")
        key = decode(key_metadata, location)
        changed = [
            replace(key, aad_prefix=os.urandom(16)),
            replace(key, aad_prefix=b""),
            replace(key, key=os.urandom(len(key.key))),
            replace(key, key=key.key + key.key),
        ]
        if not native:  # a Parquet file authenticates its own end
            changed += [replace(key, length=key.length + step) for step in (-30, -1, 1, 30, -key.length, 2**40)]
        for each in changed:
            with pytest.raises(DecryptionFailed):
                read_whole(table.io, location, encode(each), native)


def read_whole(io, location, key_metadata, native):
    with io.open_input(location, key_metadata, native=native) as source:
        if native:
            io.file_format("parquet").open_reader(source, location, size=source.size)
        source.read_at(0, source.size)


def with_keys(table, change):
    """Change the encryption keys in the metadata file, and load the table from it."""
    path = path_of(table.metadata_location)
    document = json.loads(path.read_text())
    change(document["encryption-keys"], document)
    path.write_text(json.dumps(document))
    clear_caches()


def parent_of(keys):
    return next(key for key in keys if key["encrypted-by-id"] == MASTER)


def children_of(keys):
    return [key for key in keys if key["encrypted-by-id"] != MASTER]


def cycle_of_one(keys, document):
    for key in children_of(keys):
        key["encrypted-by-id"] = key["key-id"]


def cycle_of_two(keys, document):
    one, two = children_of(keys)[:2]
    one["encrypted-by-id"], two["encrypted-by-id"] = two["key-id"], one["key-id"]


def cycle_with_the_parent(keys, document):
    parent_of(keys)["encrypted-by-id"] = children_of(keys)[0]["key-id"]


def without_parents(keys, document):
    for key in children_of(keys):
        del key["encrypted-by-id"]


def exchanged_keys(keys, document):
    one, two = children_of(keys)[:2]
    name = "encrypted-key-metadata"
    one[name], two[name] = two[name], one[name]


def exchanged_ids(keys, document):
    one, two = document["snapshots"][:2]
    one["key-id"], two["key-id"] = two["key-id"], one["key-id"]


def duplicates(keys, document):
    keys += [{**key, "encrypted-key-metadata": base64.b64encode(os.urandom(80)).decode()} for key in children_of(keys)]


def huge_key(keys, document):
    for key in children_of(keys):
        key["encrypted-key-metadata"] = base64.b64encode(bytes(5_000_000)).decode()


def no_text(keys, document):
    for key in children_of(keys):
        key["encrypted-key-metadata"] = "§§" * 40


def cut(keys, document):
    for key in children_of(keys):
        data = base64.b64decode(key["encrypted-key-metadata"])
        key["encrypted-key-metadata"] = base64.b64encode(data[:10]).decode()


def plain_keys(keys, document):
    for key in children_of(keys):
        key["encrypted-key-metadata"] = base64.b64encode(b"\1" + b"\x20" + bytes(16) + b"\0\0").decode()


def no_time(keys, document):
    parent_of(keys)["properties"] = {}


def a_strange_time(keys, document):
    parent_of(keys)["properties"]["KEY_TIMESTAMP"] = "9" * 4000


def no_keys(keys, document):
    del keys[:]


def of_another_master_key(keys, document):
    parent_of(keys)["encrypted-by-id"] = "another-master-key"


REFUSED = [
    of_another_master_key,
    cycle_of_one, cycle_of_two, cycle_with_the_parent, without_parents, exchanged_keys, exchanged_ids, duplicates,
    huge_key, no_text, cut, plain_keys, no_time, a_strange_time, no_keys,
]  # fmt: skip


@pytest.mark.parametrize("change", REFUSED, ids=lambda change: change.__name__)
def test_changed_keys_of_a_table_give_one_error_and_no_row(tmp_path, change):
    table = new_table(catalog_in(tmp_path))
    table.append(rows(0))
    table.append(rows(100))
    with_keys(table, change)
    for number in range(2):
        with pytest.raises((DecryptionFailed, InvalidMetadata)):
            read_snapshot(tmp_path, number)


def read_snapshot(folder, number):
    table = catalog_in(folder).load_table("db.t")
    table.scan(snapshot_id=table.snapshots()[number].snapshot_id).to_arrow()


def strange_properties(keys, document):
    for key in keys:
        key.setdefault("properties", {}).update({"of-another-program": "x" * 1000})
        key["unknown-field"] = [1, 2]


def strange_keys(keys, document):
    keys += [
        {"key-id": f"strange-{number}", "encrypted-key-metadata": "AAAA", "properties": {"KEY_TIMESTAMP": "1"}}
        for number in range(20_000)
    ]


@pytest.mark.parametrize("change", [strange_properties, strange_keys], ids=lambda change: change.__name__)
def test_unknown_keys_and_properties_hinder_nobody_and_are_kept(tmp_path, change):
    table = new_table(catalog_in(tmp_path))
    table.append(rows(0))
    with_keys(table, change)
    again = catalog_in(tmp_path).load_table("db.t")
    before = {key.key_id: dict(key.properties) for key in again.metadata.encryption_keys}
    again.append(rows(100))
    assert ids(again) == [*range(200)]
    after = {key.key_id: dict(key.properties) for key in again.refresh().metadata.encryption_keys}
    assert {key_id: after.get(key_id) for key_id in before} == before
