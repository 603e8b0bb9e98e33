"""The session needs nothing that Spark 3.5 does not have; columns of its missing types are refused."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
import pyspark.sql.types as types
for name in {gone}:
    delattr(types, name)
sys.modules["pyspark.sql.datasource"] = None  # Spark 3.5 has none
from icefield import types as iceberg
from icefield.errors import UnsupportedFeature
from icefield_spark import attach, ensure_java
from icefield_spark.arrow import spark_arrow_schema
from icefield_spark.streaming import epoch_properties, is_written
from icefield_spark.types import from_spark_schema, to_spark_type
for kind in (iceberg.TimeType(), iceberg.VariantType()):
    try:
        print(to_spark_type(kind).simpleString())
    except UnsupportedFeature as error:
        print(error)
columns = types.StructType([types.StructField("id", types.LongType())])
print(from_spark_schema(columns), spark_arrow_schema(columns))
"""


def _run(gone: tuple[str, ...]) -> list[str]:
    code = CODE.replace("{gone}", repr(gone))
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", timeout=100)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def test_the_session_loads_without_the_types_and_the_data_source_of_later_sparks() -> None:
    said = _run(("TimeType", "VariantType"))
    assert said[0] == "this Spark has no type for time; leave the column out with columns=[…]"
    assert said[1] == "this Spark has no type for variant; leave the column out with columns=[…]"
    assert "id: int64" in "".join(said)


def test_with_them_they_are_used() -> None:
    assert _run(())[:2] == ["time(6)", "variant"]
