"""Delete files of Icefield, as Iceberg's Java library, PyIceberg, DuckDB and ClickHouse read them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from delete_files import data_files
from icefield.catalog import Catalog, Table
from icefield.transaction import ChangeKind, ChangeWriter
from icefield.writing import (
    DeleteContext,
    DeletedRows,
    WriteContext,
    write_deletion_vectors,
    write_position_deletes,
)
from peers import chdb_rows, duckdb_rows, pyiceberg_catalog
from tables import ids, rows

pytest.importorskip("pyiceberg")

FORMATS = ["parquet", "avro", "orc"]
KINDS = ["position", "position of one file", "equality", "vector", "changes", "changes with vectors"]
CASES = [(kind, file_format) for kind in KINDS for file_format in FORMATS]


def written(catalog: Catalog, kind: str, file_format: str, *, partitioned: bool = False) -> Table:
    """A table of two data files a partition, of which rows were deleted."""
    version = "3" if "vector" in kind else "2"
    granularity = "file" if "one file" in kind else "partition"
    properties = {
        "format-version": version,
        "write.format.default": file_format,
        "write.delete.granularity": granularity,
    }
    spec = ["kind"] if partitioned else None
    table = catalog.create_table("db.t", rows([]).schema, partition_spec=spec, properties=properties)
    table.append(pa.concat_tables([rows(range(100), "a"), rows(range(200, 300), "b/c")]))
    table.append(rows(range(100, 200), "a"))
    if kind == "equality":
        gone = pa.concat_tables([rows(range(0, 200, 9), "a"), rows(range(200, 300, 9), "b/c")])
        table.delete_by_equality(gone, ["id"])
    elif "changes" in kind:
        moved = [("-U", rows(range(20, 30), "a")), ("+U", rows(range(20, 30), "b/c", 7.0))]
        back = [("-D", rows(range(25, 30), "b/c", 7.0)), ("+I", rows([1000], None)), ("-D", rows([1], "a"))]
        table.apply_changes([*moved, *back], ["id"])
        # A batch of another writer of changes, which inserts rows.
        table.apply_changes([("+I", rows([2000, 2001], "a"))], ["id"])
    else:
        context = DeleteContext.from_metadata(table.metadata, table.io)
        write = write_deletion_vectors if version == "3" else write_position_deletes
        made = write(context, [DeletedRows(file, np.arange(0, file.record_count, 7)) for file in data_files(table)])
        table.update_snapshot().row_delta().add_deletes(*made).commit()
    table.append(rows([0], "a"))
    return table


def with_own_rows_deleted(catalog: Catalog, version: str, file_format: str) -> Table:
    """A table that a writer of changes has written, whose rows it deleted itself by position."""
    properties = {"format-version": version, "write.format.default": file_format}
    table = catalog.create_table("db.t", rows([]).schema, partition_spec=["kind"], properties=properties)
    table.append(rows(range(100), "a"))
    context = WriteContext.from_metadata(table.metadata, table.io)
    deletes = DeleteContext.from_metadata(table.metadata, table.io)
    with ChangeWriter(context, deletes, [1]) as writer:
        for numbers, name, kind in (
            (range(100, 150), "a", ChangeKind.INSERT),
            (range(90, 110), "a", ChangeKind.DELETE),
            (range(95, 105), "b/c", ChangeKind.INSERT),
        ):
            writer.write(rows(numbers, name).to_batches()[0], kind)
        made = writer.close()
    table.update_snapshot().row_delta().add_rows(*made.data_files).add_deletes(*made.delete_files).commit()
    return table


def found(read: Callable[[], Any]) -> list[int]:
    return sorted(read()["id"].to_pylist())


@pytest.mark.spec("DEL-04", "DEL-20", "DEL-36")
@pytest.mark.parametrize(("kind", "file_format"), CASES)
@pytest.mark.parametrize("partitioned", [False, True])
def test_java_reads_the_same_rows(
    catalog: Catalog, java_iceberg: Any, kind: str, file_format: str, partitioned: bool
) -> None:
    table = written(catalog, kind, file_format, partitioned=partitioned)
    assert sorted(row["id"] for row in java_iceberg.read(table.metadata_location)) == ids(table)


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("file_format", FORMATS)
def test_java_reads_what_a_writer_of_changes_left(
    catalog: Catalog, java_iceberg: Any, version: str, file_format: str
) -> None:
    table = with_own_rows_deleted(catalog, version, file_format)
    assert ids(table) == [*range(90), *range(95, 105), *range(110, 150)]
    assert sorted(row["id"] for row in java_iceberg.read(table.metadata_location)) == ids(table)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("partitioned", [False, True])
def test_duckdb_reads_the_same_rows(catalog: Catalog, duck: Any, kind: str, partitioned: bool) -> None:
    table = written(catalog, kind, "parquet", partitioned=partitioned)
    assert found(lambda: duckdb_rows(duck, table)) == ids(table)


# ClickHouse says that it applies no deletion vectors.
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "vector"])
@pytest.mark.parametrize("partitioned", [False, True])
def test_clickhouse_reads_the_same_rows(catalog: Catalog, click: Any, kind: str, partitioned: bool) -> None:
    table = written(catalog, kind, "parquet", partitioned=partitioned)
    assert found(lambda: chdb_rows(click, table, ["id"])) == ids(table)


@pytest.mark.parametrize("kind", ["position", "position of one file", "vector"])
@pytest.mark.parametrize("partitioned", [False, True])
def test_pyiceberg_reads_the_same_rows(catalog: Catalog, tmp_path: Path, kind: str, partitioned: bool) -> None:
    table = written(catalog, kind, "parquet", partitioned=partitioned)
    with pyiceberg_catalog(tmp_path) as theirs:
        assert found(lambda: theirs.load_table(table.name()).scan().to_arrow()) == ids(table)
