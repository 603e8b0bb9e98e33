"""Encrypted tables for tests: a keystore, a catalog with it, and rows whose values are easy to find in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from icefield import Plugins, load_catalog
from icefield.catalog import Catalog, Table
from icefield.engine import open_statistics as open_statistics
from icefield.manifest import ManifestFile, read_manifest_list
from icefield.manifest import clear_caches as clear_caches
from icefield.metadata import Snapshot
from icefield.storage import FileIO
from icefield_encryption.local_keystore import add_key

MASTER = "master-1"
SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string()), ("part", pa.string())])
FORMATS = ("parquet", "avro", "orc")


def keystore(folder: Path) -> Path:
    """A keystore in a folder, with the master key."""
    path = folder / "keys.json"
    if not path.exists():
        add_key(path, MASTER)
    return path


def catalog_in(folder: Path, **properties: str) -> Catalog:
    """A catalog of tables below a folder."""
    own = {"encryption.kms-type": "local", "encryption.local.keystore": str(keystore(folder))}
    return load_catalog("test", **{"type": "directory", "warehouse": str(folder / "warehouse"), **own, **properties})


def rows(first: int, count: int = 100) -> pa.Table:
    """Rows with ids from ``first`` on."""
    ids = range(first, first + count)
    texts, parts = [f"confidential-{each}" for each in ids], [f"region-{each % 3}" for each in ids]
    return pa.table([[*ids], texts, parts], schema=SCHEMA)


def new_table(catalog: Catalog, name: str = "db.t", **properties: Any) -> Table:
    """An encrypted table, partitioned by ``part``."""
    if not catalog.namespace_exists(name.split(".")[0]):
        catalog.create_namespace(name.split(".")[0])
    given = {"encryption.key-id": MASTER, **{key.replace("_", "."): value for key, value in properties.items()}}
    return catalog.create_table(name, SCHEMA, partition_spec=["part"], properties=given)


def ids(table: Table, row_filter: str | None = None) -> list[int]:
    """The ids that a scan without caches finds, ascending."""
    clear_caches()
    scan = table.scan() if row_filter is None else table.scan(row_filter)
    return sorted(scan.to_arrow().column("id").to_pylist())


def manifests_of(table: Table, snapshot: Snapshot | None = None) -> tuple[ManifestFile, ...]:
    """The manifests of a snapshot, by default of the current one."""
    snapshot = snapshot or table.current_snapshot()
    return () if snapshot is None else read_manifest_list(table.io, snapshot, table.metadata).manifests


def files_of(folder: Path) -> list[Path]:
    """Every file below a folder."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def memory_io() -> FileIO:
    """A file IO for files in memory."""
    return FileIO(Plugins.installed())
