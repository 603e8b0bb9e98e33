"""Which extra of icefield brings which name that a plugin provides, by kind and name.

Generated from the plugins' hooks and the extras in ``pyproject.toml`` by ``make reference``; do not edit.
"""

from __future__ import annotations

from typing import Final

EXTRAS: Final = {
    ("catalog-uris", ""): "sql",
    ("catalog-uris", "file"): "sql",
    ("catalog-uris", "http"): "rest",
    ("catalog-uris", "https"): "rest",
    ("catalog-uris", "postgresql"): "sql",
    ("catalog-uris", "sqlite"): "sql",
    ("catalog-uris", "thrift"): "hive",
    ("catalogs", "hive"): "hive",
    ("catalogs", "rest"): "rest",
    ("catalogs", "sql"): "sql",
    ("commands", "compute-stats"): "maintenance",
    ("commands", "doctor"): "maintenance",
    ("commands", "expire-snapshots"): "maintenance",
    ("commands", "remove-orphans"): "maintenance",
    ("commands", "report"): "report",
    ("commands", "rewrite-data-files"): "maintenance",
    ("commands", "rewrite-deletes"): "maintenance",
    ("commands", "rewrite-manifests"): "maintenance",
    ("commands", "serve"): "rest-server",
    ("commit-strategies", "dynamodb-lock"): "dynamodb",
    ("file-formats", "avro"): "avro",
    ("file-formats", "orc"): "orc",
    ("file-formats", "parquet"): "parquet",
    ("file-systems", "abfs"): "adls",
    ("file-systems", "abfss"): "adls",
    ("file-systems", "az"): "adls",
    ("file-systems", "gcs"): "gcs",
    ("file-systems", "gs"): "gcs",
    ("file-systems", "hdfs"): "hdfs",
    ("file-systems", "s3"): "s3",
    ("file-systems", "s3a"): "s3",
    ("file-systems", "s3n"): "s3",
    ("file-systems", "swebhdfs"): "hdfs",
    ("file-systems", "viewfs"): "hdfs",
    ("file-systems", "wasb"): "adls",
    ("file-systems", "wasbs"): "adls",
    ("file-systems", "webhdfs"): "hdfs",
    ("table-services", "maintenance"): "maintenance",
}
