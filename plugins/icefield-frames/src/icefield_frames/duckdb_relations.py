"""Scans as tables and relations of DuckDB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icefield.types import UUIDType

from icefield_frames.datasets import ScanDataset
from icefield_frames.duckdb_queries import QueryTable
from icefield_frames.libraries import library, method_of

if TYPE_CHECKING:
    import duckdb


def to_duckdb(scan: Any, table_name: str, connection: Any = None) -> duckdb.DuckDBPyConnection:
    """Register the rows as a table of a DuckDB connection, by default a new in-memory one; return the connection.

    Nothing is read before a query. Each query hands its columns and its filter to the scan, which prunes manifests,
    files and row groups. Raises ``MissingPlugin`` if DuckDB is not installed.
    """
    used = library("duckdb", "to_duckdb").connect() if connection is None else connection
    found: duckdb.DuckDBPyConnection = used.register(table_name, ScanDataset(scan, nan_is_greatest=True))
    return found


def query_table(scan: Any) -> QueryTable:
    """A scan as a table of queries."""
    uuids = [field.name for field in scan.projection.fields if isinstance(field.field_type, UUIDType)]
    return QueryTable(ScanDataset(scan, nan_is_greatest=True), uuids)


TO_DUCKDB = method_of(to_duckdb)
"""The service ``scan.to_duckdb``."""
