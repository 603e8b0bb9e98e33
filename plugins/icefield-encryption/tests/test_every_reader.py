"""Every way to read an encrypted table gives the rows of a plain table with the same changes."""

from __future__ import annotations

import base64
import json
import pickle
from pathlib import Path

import icefield
import pytest
from encrypted_tables import FORMATS, MASTER, SCHEMA, catalog_in, clear_caches, keystore, manifests_of, rows
from icefield_encryption.key_metadata import decode
from icefield_frames.parts import parts_of
from icefield_frames.selection import arrow_schema
from table_readers import MODES, READERS, Pair, comparable, two_tables


@pytest.fixture(scope="module", params=FORMATS)
def tables(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return two_tables(catalog_in(tmp_path_factory.mktemp("readers")), **{"write.format.default": request.param})


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_gives_the_rows_of_a_plain_table(tables: Pair, reader: str) -> None:
    clear_caches()
    found, expected = (comparable(READERS[reader](table)) for table in tables)
    assert found == expected
    assert found or "none" in reader


def secrets(table: icefield.Table, folder: Path) -> dict[str, bytes]:
    """The keys of a table by where they belong: master key, key-encryption keys, manifest lists, manifests, files."""
    held = json.loads(keystore(folder).read_text())["keys"][MASTER]["versions"]
    found = {f"master {version}": base64.b64decode(key) for version, key in held.items()}
    encryption = table.io.encryption
    for key in table.metadata.encryption_keys:
        if key.encrypted_by_id == MASTER:
            found[key.key_id] = encryption._key(table.metadata, key)
        else:
            found[key.key_id] = encryption.stored_key(table.metadata, key.key_id).key
    for snapshot in table.snapshots():
        for manifest in manifests_of(table, snapshot):
            found[manifest.manifest_path] = decode(manifest.key_metadata, "m").key
    for task in table.scan().plan_files():
        for file in (task.file, *task.delete_files):
            found[file.file_path] = decode(file.key_metadata, "f").key
    return found


def test_a_pickled_part_holds_the_keys_of_its_files_alone(tmp_path: Path) -> None:
    catalog = catalog_in(tmp_path)
    catalog.create_namespace("db")
    given = {"encryption.key-id": MASTER, **MODES, "format-version": "3"}
    table = catalog.create_table("db.t", SCHEMA, partition_spec=["part"], properties=given)
    table.append(rows(0))
    table.append(rows(100))
    table.delete("id = 3")
    known = secrets(table, tmp_path)
    assert len(known) > 12
    for scan in (table.scan(), table.scan(limit=10), table.incremental_changelog_scan()):
        sent = [(pickle.dumps(part), part) for part in parts_of(scan, arrow_schema(scan), at_least=6)]
        for data, part in sent:
            own = set(part.files) if part.files else {path for path in known if path.endswith(".parquet")}
            own |= {path for path in known if path.endswith(".puffin")}
            leaked = [place for place, key in known.items() if key in data and place not in own]
            assert leaked == []
            assert b"keys.json" not in data
