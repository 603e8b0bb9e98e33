"""Iceberg's Java library reads the encrypted tables that Icefield writes, and Icefield those of the library."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from golden_encryption import GOLDEN, LEFT, read, written
from icefield import Plugins, load_catalog
from icefield.abc import FileKey
from icefield.catalog import Catalog, Table
from icefield.engine import open_statistics
from icefield.schema import schema_to_json
from icefield.storage import FileIO
from icefield.toolkit import BytesInput
from icefield_encryption.key_metadata import decode, encode
from icefield_encryption.local_keystore import add_key
from icefield_encryption.streams import BLOCK, DecryptingFile, EncryptingStream, stored_size
from icefield_maintenance.puffin_reader import PuffinReader
from peer_tables import EVERY_TYPE, every_type_rows
from plain_rows import comparable, plain_rows
from servers.java_iceberg import JavaIceberg, JavaTable

FORMATS = pytest.mark.parametrize("file_format", ["parquet", "avro"])  # Java encrypts no ORC files
PROPERTIES = {"format-version": "3", "encryption.key-id": "master"}
MERGE_ON_READ = {**PROPERTIES, "write.delete.mode": "merge-on-read"}
SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])


@pytest.fixture
def keystore(tmp_path: Path) -> Path:
    add_key(tmp_path / "keys.json", "master")
    return tmp_path / "keys.json"


@pytest.fixture
def catalog(tmp_path: Path, keystore: Path) -> Iterator[Catalog]:
    given = {"encryption.kms-type": "local", "encryption.local.keystore": str(keystore)}
    opened = load_catalog("test", type="directory", warehouse=str(tmp_path / "warehouse"), commit="rename", **given)
    with opened:
        opened.create_namespace("db")
        yield opened


def ours(table: Table) -> list[str]:
    return comparable(plain_rows(table.scan().to_arrow(), table.schema()), table.schema())


def theirs(java: JavaTable, table: Table) -> list[str]:
    return comparable(java.read(), table.schema())


def test_each_side_parses_the_key_metadata_of_the_other(java_iceberg: JavaIceberg) -> None:
    for length in (16, 24, 32):
        key = FileKey(os.urandom(length), os.urandom(16), 5)
        answer = java_iceberg.ask(do="keyMetadata", data=encode(key).hex(), length=2**40, bytes=length)
        assert answer["again"] == encode(replace(key, length=2**40)).hex()
        own = decode(bytes.fromhex(answer["own"]), "there")
        assert own == FileKey(bytes.fromhex(answer["key"]), bytes.fromhex(answer["prefix"]))
        assert encode(own).hex() == answer["own"]


@pytest.mark.spec("ENC-03", "ENC-04")
@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7])
def test_each_side_reads_the_streams_of_the_other(java_iceberg: JavaIceberg, tmp_path: Path, size: int) -> None:
    data, path = random.Random(size).randbytes(size), tmp_path / "theirs"
    key = FileKey(os.urandom(16), os.urandom(16))
    given = {"key": key.key.hex(), "prefix": key.aad_prefix.hex()}
    java_iceberg.ask(do="encrypt", path=str(path), data=data.hex(), **given)
    stored = path.read_bytes()
    assert len(stored) == stored_size(size)
    assert DecryptingFile(BytesInput(stored), replace(key, length=len(stored)), "theirs").read() == data

    sink = EncryptingStream(FileIO(Plugins.installed()).open_output(f"file://{tmp_path}/ours"), key)
    for start in range(0, size, 300_000):
        sink.write(data[start : start + 300_000])
    sink.close()
    asked = {"do": "decrypt", "path": str(tmp_path / "ours"), "length": stored_size(size), **given}
    assert java_iceberg.ask(**asked)["data"] == data.hex()
    assert java_iceberg.ask(**asked, **{"from": size // 2})["data"] == data[size // 2 :].hex()


def test_java_writes_the_stored_files_again(tmp_path: Path, java_iceberg: JavaIceberg) -> None:
    folder = tmp_path if GOLDEN.exists() else GOLDEN  # deleted files are replaced
    folder.mkdir(exist_ok=True)
    written(folder, java_iceberg)
    assert read(folder) == LEFT


@FORMATS
def test_java_reads_every_type(catalog: Catalog, keystore: Path, java_iceberg: JavaIceberg, file_format: str) -> None:
    table = catalog.create_table("db.t", EVERY_TYPE, properties={**PROPERTIES, "write.format.default": file_format})
    table.append(every_type_rows())
    java = java_iceberg.table(table.location(), keystore)
    assert theirs(java, table) == ours(table)
    assert len(ours(table)) == 4


@FORMATS
def test_icefield_reads_every_type(
    catalog: Catalog, keystore: Path, java_iceberg: JavaIceberg, file_format: str
) -> None:
    source = catalog.create_table("db.source", EVERY_TYPE)
    source.append(every_type_rows())
    location = source.location().replace("/source", "/t")
    java = java_iceberg.table(location, keystore)
    java.create(schema_to_json(EVERY_TYPE), properties=PROPERTIES)
    java.append(file_format, plain_rows(source.scan().to_arrow(), source.schema()))
    table = catalog.load_table("db.t")
    assert ours(table) == theirs(java, table) == ours(source)


def test_java_keeps_the_keys_of_statistics_and_computes_its_own(
    catalog: Catalog, keystore: Path, java_iceberg: JavaIceberg
) -> None:
    table = catalog.create_table("db.t", SCHEMA, partition_spec=["text"], properties=PROPERTIES)
    table.append(pa.table({"id": [1, 2], "text": ["a", "b"]}, schema=SCHEMA))
    table.maintenance.compute_table_stats()
    table.maintenance.compute_partition_stats()
    java = java_iceberg.table(table.location(), keystore)
    java.append("parquet", [{"id": 3, "text": "b"}])
    first = table.refresh().snapshots()[0].snapshot_id
    (sketches,) = table.metadata.statistics
    with PuffinReader(open_statistics(table.io, table.metadata, sketches.statistics_path), "sketches") as reader:
        assert [blob.fields for blob in reader.blobs] == [(1,), (2,)]
    found = table.inspect.partition_statistics(first)
    assert found is not None
    assert found.column("data_record_count").to_pylist() == [1, 1]
    rows = java.partition_stats(compute=True)  # from the manifests: it cannot read the encrypted file
    assert [row["data_record_count"] for row in rows] == [1, 2]
    theirs_plain = table.refresh().inspect.partition_statistics()
    assert theirs_plain is not None
    assert theirs_plain.column("data_record_count").to_pylist() == [1, 2]
    assert table.encryption.status().plain_statistics == 1


@FORMATS
def test_both_sides_commit_by_turns(
    catalog: Catalog, keystore: Path, java_iceberg: JavaIceberg, file_format: str
) -> None:
    table = catalog.create_table("db.t", SCHEMA, properties={**MERGE_ON_READ, "write.format.default": file_format})
    take_turns(table, java_iceberg.table(table.location(), keystore), file_format)


def test_both_sides_commit_by_turns_to_a_hive_metastore(
    tmp_path: Path, keystore: Path, java_iceberg: JavaIceberg, hive: str
) -> None:
    given = {"encryption.kms-type": "local", "encryption.local.keystore": str(keystore)}
    with load_catalog("hive", type="hive", uri=hive, warehouse=f"file://{tmp_path}/warehouse", **given) as opened:
        opened.create_namespace("turns")
        table = opened.create_table("turns.t", SCHEMA, properties=MERGE_ON_READ)
        take_turns(table, java_iceberg.hive_table(hive, "turns.t", keystore), "parquet")
        theirs_first = java_iceberg.hive_table(hive, "turns.u", keystore)
        theirs_first.create(schema_to_json(table.schema()), properties=MERGE_ON_READ)
        take_turns(opened.load_table("turns.u"), theirs_first, "avro")


def take_turns(table: Table, java: JavaTable, file_format: str) -> None:
    """Twenty commits, with all rows compared after each."""
    known: dict[int, str] = {}
    for turn in range(20):
        new = {turn * 10 + each: f"{turn}-{each}" for each in range(10)}
        gone = random.Random(turn).sample(sorted(known), min(2, len(known)))
        if turn % 2:
            table.append(pa.table({"id": [*new], "text": [*new.values()]}, schema=table.schema().to_arrow()))
            table.delete(f"id in ({', '.join(map(str, gone))})")
        else:
            java.append(file_format, [{"id": each, "text": text} for each, text in new.items()])
            if turn % 4 and gone:
                java.delete_equal(file_format, ["id"], [{"id": each} for each in gone])
            elif gone:
                java.delete(_places(table.refresh(), gone))
        known = {each: text for each, text in {**known, **new}.items() if each not in gone}
        table.refresh()
        if turn == 11:
            java.rewrite_manifests()
            table.refresh()
        if turn == 15:
            table.maintenance.rewrite_data_files(rewrite_all=True)
            table.refresh()
        found = {row["id"]: row["text"] for row in table.scan().to_arrow().to_pylist()}
        assert found == known == {row["id"]: row["text"] for row in java.read()}, turn
    assert all(snapshot.key_id for snapshot in table.metadata.snapshots)


def _places(table: Table, ids: list[int]) -> dict[str, list[int]]:
    """The positions of rows, by the location of their file, with deleted rows counted."""
    found: dict[str, list[int]] = {}
    scan = table.scan(f"id in ({', '.join(map(str, ids))})").select("_file", "_pos")
    for row in scan.to_arrow().to_pylist():
        found.setdefault(row["_file"], []).append(row["_pos"])
    return found
