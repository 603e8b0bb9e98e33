"""Spark's own reader of Parquet finds in shredded variants what it finds in whole ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from icefield.schema import Schema
from icefield.types import NestedField, StructType, VariantType
from parquet_files import write_rows
from variant_bytes import PRIMITIVES, variant

pytestmark = [pytest.mark.slow, pytest.mark.spark]

SCHEMA = Schema(
    NestedField(1, "n", "int"),
    NestedField(2, "v", VariantType()),
    NestedField(3, "s", StructType(NestedField(4, "w", VariantType(), required=True))),
)
UNKNOWN_TO_SPARK = {"time", "timestamptz_ns", "timestamp_ns", "uuid"}
"""Primitives that Spark does not read from columns of their own."""

KNOWN = {name: value for name, value in PRIMITIVES.items() if name not in UNKNOWN_TO_SPARK}
VALUES = [
    {"a": 1, "b": "x", "c": [1, 2], "d": {"e": 1.5, "f": None}}, {"a": 300, "b": None, "c": [], "zz": {"a": [1, "y"]}},
    {"a": "no", "d": 7, "c": [1, "two", None, [3]]}, {}, {"b": "z" * 90, "d": {}}, None, 5, [1, 2], KNOWN, KNOWN,
]  # fmt: skip


@pytest.mark.spec("PARQ-13")
def test_spark_reads_shredded_variants_as_it_reads_whole_ones(spark: Any, tmp_path: Path) -> None:
    if tuple(map(int, spark.version.split(".")[:2])) < (4, 1):
        pytest.skip("Spark reads the annotation of variants from 4.1 on")
    rows = [{"n": n, "v": variant(value), "s": {"w": variant(value)}} for n, value in enumerate(VALUES)]
    rows.append({"n": len(rows), "v": None, "s": None})
    found = []
    for name, shreds in (("shredded", "true"), ("whole", "false")):
        data, _ = write_rows(SCHEMA, rows, properties={"write.parquet.shred-variants": shreds})
        assert (b"typed_value" in data) == (shreds == "true")
        (tmp_path / name).write_bytes(data)
        read = spark.read.schema("n int, v variant, s struct<w: variant>").parquet(f"file://{tmp_path / name}")
        typed = ["try_variant_get(v, '$.a', 'bigint')", "try_variant_get(v, '$.c[0]', 'string')"]
        shown = ["to_json(v)", "schema_of_variant(v)", "to_json(s.w)", "v is null"]
        found.append([tuple(row) for row in read.selectExpr("n", *shown, *typed).orderBy("n").collect()])
    assert found[0] == found[1]
    assert found[0][0][1:2] == ('{"a":1,"b":"x","c":[1,2],"d":{"e":1.5,"f":null}}',)
    assert [row[5] for row in found[0][:3]] == [1, 300, None]
