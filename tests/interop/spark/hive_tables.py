"""Spark with a Hive metastore: makes tables of Hive and of Spark, and prints their rows as lines of JSON.

Arguments: the URI of the metastore, and a folder for the tables. Timestamps with a zone are microseconds since 1970,
others strings.
"""

import json
import sys

from pyspark.sql import SparkSession

COLUMNS = """id bigint, userName varchar(10), amount decimal(9,2), small smallint, tags array<string>,
  m map<string,int>, s struct<A:int,b:timestamp>, ts timestamp, d date"""
ROWS = """SELECT * FROM VALUES
  (1L, 'x', 1.50, 3S, array('a'), map('k', 1), named_struct('A', 1, 'b', timestamp'2024-01-01 10:00:00.123456'),
   timestamp'2024-01-01 11:00:00', date'2024-01-01', date'2024-01-01', 'a b/c'),
  (2L, null, null, null, null, null, null, null, null, date'2024-01-02', null)"""


def main(uri, folder):
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.sql.catalogImplementation", "hive")
        .config("spark.hadoop.hive.metastore.uris", uri)
        .config("spark.sql.warehouse.dir", f"file://{folder}")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "America/New_York")
        .config("spark.hadoop.hive.exec.dynamic.partition.mode", "nonstrict")
        .getOrCreate()
    )
    spark.sql(f"CREATE DATABASE legacy LOCATION 'file://{folder}/legacy.db'")
    for name, stored in (("parquet", "STORED AS PARQUET"), ("orc", "STORED AS ORC"), ("spark", "USING parquet")):
        by, more = ("day, kind", ", day date, kind string") if name == "spark" else ("day date, kind string", "")
        place = f"LOCATION 'file://{folder}/{name}'"
        kind = "TABLE" if name == "spark" else "EXTERNAL TABLE"
        layout = f"{stored} PARTITIONED BY ({by})" if name == "spark" else f"PARTITIONED BY ({by}) {stored}"
        columns = COLUMNS.replace("ts timestamp,", "ts timestamp, n timestamp_ntz,") if name == "spark" else COLUMNS
        rows = ROWS.replace("11:00:00',", "11:00:00', timestamp_ntz'2024-01-01 12:00:00',")
        spark.sql(f"CREATE {kind} legacy.t_{name} ({columns}{more}) {layout} {place}")
        rows = rows.replace("null, null, date'2024-01-02'", "null, null, null, date'2024-01-02'")
        spark.sql(f"INSERT INTO legacy.t_{name} {rows if name == 'spark' else ROWS}")
        shown = "unix_micros(ts) AS ts" + (", cast(n AS string) AS n" if name == "spark" else "")
        print(
            json.dumps(
                [
                    row.asDict(recursive=True)
                    for row in spark.sql(
                        f"SELECT id, userName, cast(amount AS string) AS amount, small, tags, m, s.A AS a, {shown}, "
                        "unix_micros(s.b) AS b, cast(d AS string) AS d, cast(day AS string) AS day, kind "
                        f"FROM legacy.t_{name} ORDER BY id"
                    ).collect()
                ]
            ),
            flush=True,
        )
    spark.stop()


main(*sys.argv[1:])
