"""Tables on a local disk that workers in other processes read and write."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
from icefield import Table, load_catalog

SCHEMA = pa.schema([("id", pa.int64()), ("kind", pa.int64())])


def directory_table(folder: Path, schema: pa.Schema = SCHEMA, **options: Any) -> Table:
    """An empty table."""
    catalog = load_catalog("engines", type="directory", warehouse=f"file://{folder}")
    catalog.create_namespace("db")
    return catalog.create_table("db.t", schema, **options)


def leftovers(table: Table) -> set[str]:
    """The files of data below a table that no snapshot refers to."""
    folder = Path(urlsplit(table.location()).path, "data")
    held = {urlsplit(task.file.file_path).path for task in table.scan().plan_files()}
    return {str(path) for path in folder.rglob("*.parquet")} - held


def row_set(rows: pa.Table) -> list[str]:
    """The rows of a table, in an order of their own."""
    return sorted(map(repr, rows.to_pylist()))


def pyiceberg_table(table: Table, folder: Path) -> dict[str, str]:
    """Register a table in a catalog of PyIceberg, and return the properties of the catalog."""
    from pyiceberg.catalog.sql import SqlCatalog

    properties = {"type": "sql", "uri": f"sqlite:///{folder}/peer.db", "warehouse": f"file://{folder}/peer"}
    catalog = SqlCatalog("peer", **properties)
    catalog.create_namespace("db")
    catalog.register_table("db.t", table.metadata_location)
    return {"name": "peer", **properties}
