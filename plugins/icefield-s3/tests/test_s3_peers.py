"""Who knows PyIceberg gives the same properties, and reads the same tables."""

from __future__ import annotations

from uuid import uuid4

import pyarrow as pa
import pytest
from icefield import load_catalog
from servers.s3 import S3

pytest.importorskip("pyiceberg")
from pyiceberg.table import StaticTable


@pytest.mark.parametrize("io", ["fsspec.FsspecFileIO", "pyarrow.PyArrowFileIO"])
def test_pyiceberg_reads_a_table_with_the_same_properties(s3: S3, io: str) -> None:
    warehouse = f"s3://{s3.bucket}/{uuid4().hex}"
    with load_catalog("test", type="directory", warehouse=warehouse, commit="create", **s3.properties) as catalog:
        catalog.create_namespace("db")
        rows = pa.table({"n": [1, 2, 3], "kind": ["a", "b", "a"]})
        table = catalog.create_table("db.t", rows.schema, partition_spec="kind")
        table.append(rows)
        found = StaticTable.from_metadata(
            table.metadata_location, {**s3.properties, "py-io-impl": f"pyiceberg.io.{io}"}
        )
        assert sorted(found.scan(row_filter="kind = 'a'").to_arrow().column("n").to_pylist()) == [1, 3]
