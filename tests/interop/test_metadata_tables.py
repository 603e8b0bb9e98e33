"""Metadata tables, compared with those of Iceberg's Java runtime for Spark over one table: columns, types and rows."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from icefield.catalog import Table
from icefield.schema import Schema
from icefield.types.arrow.types import from_arrow_fields
from metadata_tables import NAMES, described
from plain_rows import plain_rows
from shared_with_spark import Shared, properties_of

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("part", pa.string()),
        ("value", pa.float64()),
        ("day", pa.date32()),
        ("s", pa.struct([("n", pa.int32())])),
        ("l", pa.list_(pa.int32())),
        ("m", pa.map_(pa.string(), pa.int32())),
    ]
)
MAPS = (
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
    "summary",
)


def rows(ids: range, part: str | None) -> pa.Table:
    made = [{"id": i, "part": part, "value": i / 2, "day": i, "s": {"n": i}, "l": [i], "m": [("a", i)]} for i in ids]
    return pa.Table.from_pylist(made, schema=SCHEMA)


def changed_by_both(shared: Shared, version: int) -> Table:
    """Two specs, position and equality deletes, rewritten files, a tag: some of it by Spark."""
    table = shared.catalog.create_table(
        "db.t", SCHEMA, partition_spec=["part"], properties=properties_of(version, "parquet", "merge-on-read")
    )
    table.append(rows(range(8), "a"))
    table.append(rows(range(8, 16), "b"))
    table.delete("id = 3")
    table.delete_by_equality(pa.table({"id": [4], "part": ["a"]}), ["id", "part"])
    table.update_spec().remove_field("part").add_field("day", "month").add_field("id", "bucket[2]").commit()
    table.append(rows(range(16, 20), None))
    shared.sql("DELETE FROM {t} WHERE id = 17")
    shared.sql("ALTER TABLE {t} CREATE TAG before")
    table.refresh()
    table.delete("part = 'b'")
    return table


def ours(table: Table, name: str, **given: Any) -> list[str]:
    found = table.inspect.scan(name, **given).to_arrow()
    schema = Schema(*from_arrow_fields(list(found.schema), count(1).__next__))
    return comparable(plain_rows(found, schema))


def comparable(found: list[dict[str, Any]]) -> list[str]:
    """Rows as strings in one order. Java writes a bound that is not there as the string ``null``."""
    return sorted(json.dumps(settled(row), sort_keys=True) for row in found)


def settled(value: Any, name: str = "") -> Any:
    match value:
        case dict():
            return {key: settled(held, key) for key, held in value.items()}
        case list():
            return sorted(map(settled, value), key=repr) if name in MAPS else [settled(one) for one in value]
        case "null" if name in ("lower_bound", "upper_bound"):
            return None
        case str() if name == "file":  # Hadoop writes the one that it has found itself with one slash
            return value.replace("file:///", "file:/")
    return value


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.spec("VER-13")
def test_each_metadata_table_is_that_of_java(shared: Shared, version: int) -> None:
    table = changed_by_both(shared, version)
    for name in NAMES:
        columns = {}
        for row in shared.spark.sql(f"DESCRIBE {shared.name}.{name}"):
            if row["col_name"].startswith("#"):
                break
            columns[row["col_name"]] = row["data_type"]
        assert described(table.inspect.scan(name).schema) == columns, name
        assert ours(table, name) == comparable(shared.spark.sql(f"SELECT * FROM {shared.name}.{name}")), name
    for name, filtered in (
        ("files", "partition.part = 'a'"),
        ("files", "content = 1 AND record_count < 10"),
        ("all_entries", "data_file.partition.day_month IS NULL AND status <> 2"),
        ("partitions", "partition.id_bucket_2 = 1 OR file_count = 1"),
        ("manifests", "content = 0"),
    ):
        theirs = comparable(shared.spark.sql(f"SELECT * FROM {shared.name}.{name} WHERE {filtered}"))
        assert ours(table, name, row_filter=filtered) == theirs, (name, filtered)
    tagged = comparable(shared.spark.sql(f"SELECT * FROM {shared.name}.files VERSION AS OF 'before'"))
    assert ours(table, "files", ref="before") == tagged
