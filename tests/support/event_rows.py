"""The rows of the table ``db.events``, on which the commands are tried."""

from __future__ import annotations

import icefield
import pyarrow as pa


def rows(table: icefield.Table, *given: tuple[int, str]) -> pa.Table:
    ids_, kinds = zip(*given, strict=True)
    return pa.table({"id": ids_, "kind": kinds}, schema=table.scan().to_arrow().schema)


def ids(catalog: icefield.Catalog) -> list[int]:
    return sorted(catalog.load_table("db.events").scan().to_arrow()["id"].to_pylist())
