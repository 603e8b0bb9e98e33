"""Encrypted files that Iceberg's Java library 1.12 wrote, stored with the tests of icefield-encryption.

The judge in ``tests/interop/java`` wrote them, as ``written`` asks it to.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import icefield
from icefield.abc import FileKey
from icefield.schema import schema_to_json
from icefield.types import LongType, NestedField, StringType
from icefield_encryption.key_metadata import encode
from icefield_encryption.local_keystore import add_key
from servers.process import REPOSITORY

if TYPE_CHECKING:
    from servers.java_iceberg import JavaIceberg

GOLDEN = REPOSITORY / "plugins" / "icefield-encryption" / "tests" / "golden"
PLACE = Path("/tmp/icefield-golden-encryption")
"""Where the table was written: its metadata holds this location."""

ROWS = [{"id": number, "text": f"confidential-{number}"} for number in range(8)]
LEFT = [row for row in ROWS if row["id"] not in (2, 5)]


def written(folder: Path, java: JavaIceberg) -> None:
    """Have Java write streams and key metadata, and a table of Parquet, Avro and Puffin files."""
    streams, metadata = [], []
    for length, size in ((16, 0), (24, 1), (32, 300)):
        key, prefix = bytes(range(length)), bytes(range(100, 116))
        data = bytes(each % 251 for each in range(size))
        path = folder / f"stream-{size}"
        java.ask(do="encrypt", path=str(path), data=data.hex(), key=key.hex(), prefix=prefix.hex())
        (folder / f".{path.name}.crc").unlink(missing_ok=True)
        streams.append({"file": path.name, "key": key.hex(), "prefix": prefix.hex(), "data": data.hex()})
        made = java.ask(do="keyMetadata", data=encode(FileKey(key, prefix)).hex(), length=2**40 + size, bytes=length)
        metadata.append({**made, "length": 2**40 + size, "given": {"key": key.hex(), "prefix": prefix.hex()}})
    described = {"streams": streams, "key-metadata": metadata}
    (folder / "described.json").write_text(json.dumps(described, indent=1) + "\n")
    add_key(folder / "keys.json", "master")
    try:
        table = java.table(str(PLACE / "t"), folder / "keys.json")
        schema = icefield.Schema(NestedField(1, "id", LongType()), NestedField(2, "text", StringType()))
        table.create(schema_to_json(schema), properties={"format-version": "3", "encryption.key-id": "master"})
        table.append("parquet", ROWS[:4])
        table.append("avro", ROWS[4:])
        (first,) = (PLACE / "t" / "data").glob("*.parquet")
        table.delete({str(first): [2]})
        table.delete_equal("parquet", ["id"], [{"id": 5}])
        shutil.copytree(PLACE / "t", folder / "t", ignore=shutil.ignore_patterns(".*.crc"))
    finally:
        shutil.rmtree(PLACE, ignore_errors=True)


def read(folder: Path, **properties: str) -> list[dict[str, object]]:
    """The rows of the table in a folder."""
    given = {
        f"location.map.{PLACE}": str(folder),
        "encryption.kms-type": "local",
        "encryption.local.keystore": str(folder / "keys.json"),
        **properties,
    }
    hint = (folder / "t" / "metadata" / "version-hint.text").read_text()
    table = icefield.open_table(f"{PLACE}/t/metadata/v{hint}.metadata.json", given)
    assert {each.key_id is None for each in table.snapshots()} == {False}
    rows: list[dict[str, object]] = table.scan().to_arrow().sort_by("id").to_pylist()
    return rows
