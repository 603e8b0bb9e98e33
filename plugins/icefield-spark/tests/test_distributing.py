"""Rows go to the tasks that write them as the table asks for."""

from __future__ import annotations

from typing import Any

import icefield
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from icefield.errors import InvalidArgument
from icefield.schema import Schema
from icefield.types import NestedField, VariantType
from icefield_spark.arrow import from_spark_batch, spark_arrow_schema
from icefield_spark.distributing import MODE, mode_of
from icefield_spark.writing import ChunkWriter, spark_write_context
from pyspark.sql import types as spark

SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("name", pa.string())])
ROWS = "id", "timestamp_seconds(id * 3600) AS at", "concat('n', id % 7) AS name"


@pytest.mark.parametrize(
    ("options", "mode"),
    [
        ({}, "none"),
        ({"partition_spec": ["id"]}, "hash"),
        ({"sort_order": ["id"]}, "range"),
        ({"partition_spec": ["id"], "properties": {MODE: "none"}}, "none"),
        ({"properties": {MODE: "RANGE"}}, "range"),
    ],
    ids=str,
)
def test_without_the_property_the_mode_suits_the_partitions_and_the_order(
    catalog: icefield.Catalog, options: dict[str, Any], mode: str
) -> None:
    metadata = catalog.create_table("db.t", SCHEMA, **options).metadata
    assert mode_of(metadata) == mode
    assert mode_of(metadata, "hash") == "hash"
    with pytest.raises(InvalidArgument, match="is none, hash or range, not 'hsah'"):
        mode_of(metadata, "hsah")


@pytest.mark.slow
@pytest.mark.spark
def test_a_partition_gets_one_file_where_each_task_had_rows_of_it(ice: Any, catalog: icefield.Catalog) -> None:
    """Transforms of a long, of an instant (in a session that is not in UTC) and of a string."""
    spec = ["bucket[4](id)", "day(at)", "truncate[1](name)"]
    catalog.create_table("db.t", SCHEMA, partition_spec=spec, sort_order=["name", "bucket[2](id) desc"])
    frame = ice.spark.range(0, 72, 1, 4).selectExpr(*ROWS)
    ice.append(frame, "db.t", distribution="hash")
    table = ice.catalog.load_table("db.t")
    files = table.inspect.data_files()
    assert len(files) == len({str(each) for each in files["partition"].to_pylist()}) == 12
    assert set(files["sort_order_id"].to_pylist()) == {table.sort_order().order_id}
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [*range(72)]
    for path in files["file_path"].to_pylist():
        names = pq.read_table(path.removeprefix("file://"), partitioning=None)["name"].to_pylist()
        assert names == sorted(names)


def test_variants_come_from_spark_turned_round_and_some_of_them_null(catalog: icefield.Catalog) -> None:
    schema = Schema(NestedField(1, "id", "long"), NestedField(2, "v", VariantType()))
    table = catalog.create_table("db.v", schema, properties={"format-version": "3"})
    columns = spark.StructType([spark.StructField("id", spark.LongType()), spark.StructField("v", spark.VariantType())])
    form = spark_arrow_schema(columns).field("v").type
    v = pa.array([{"value": b"\x0c\x05", "metadata": b"\x01\x00\x00"}, None], form)
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2]), v], names=["id", "v"])
    made = from_spark_batch(batch, schema)
    assert made.column("v").to_pylist() == [{"metadata": b"\x01\x00\x00", "value": b"\x0c\x05"}, None]
    (file,) = ChunkWriter(spark_write_context(table)).write(iter([batch])).files
    assert file.record_count == 2


@pytest.mark.slow
@pytest.mark.spark
def test_variants_are_written_and_read_by_spark(ice: Any, catalog: icefield.Catalog) -> None:
    frame = ice.spark.sql(
        """SELECT * FROM VALUES (1L, parse_json('{"a": 1, "b": [true, "x"]}'), named_struct('w', parse_json('5'))),
        (2L, NULL, NULL), (3L, parse_json('null'), named_struct('w', NULL)) AS t(id, v, s)"""
    )
    ice.create_table("db.v", frame, properties={"format-version": "3"})
    ice.append(frame, "db.v")
    shown = ["id", "to_json(v)", "v is null", "to_json(s.w)", "s is null"]
    found = ice.table("db.v").selectExpr(*shown).orderBy("id").collect()
    assert found == frame.selectExpr(*shown).orderBy("id").collect()
    assert found[0][1] == '{"a":1,"b":[true,"x"]}'
