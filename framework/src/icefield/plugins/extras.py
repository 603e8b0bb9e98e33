"""Which extra of icefield brings which name that a plugin provides, by kind and name.

Generated from the plugins' hooks and the extras in ``pyproject.toml`` by ``make reference``; do not edit.
"""

from __future__ import annotations

from typing import Final

_BROUGHT: Final = (
    ("hive", "catalog-uris", "thrift"),
    ("rest", "catalog-uris", "http https"),
    ("sql", "catalog-uris", " file postgresql sqlite"),
    ("glue", "catalogs", "glue"),
    ("hive", "catalogs", "hive"),
    ("rest", "catalogs", "biglake glue-rest lakekeeper nessie onelake polaris rest s3tables snowflake"),
    ("rest", "catalogs", "unity"),
    ("sql", "catalogs", "sql"),
    ("encryption", "commands", "encryption"),
    ("explorer", "commands", "ui"),
    ("frames", "commands", "sql"),
    ("import", "commands", "import"),
    ("maintenance", "commands", "branches compute-stats diff doctor erase expire-snapshots remove-orphans"),
    ("maintenance", "commands", "rewrite-data-files rewrite-deletes rewrite-manifests simulate-tend tend"),
    ("mcp", "commands", "mcp"),
    ("report", "commands", "report"),
    ("rest-server", "commands", "serve"),
    ("testing", "commands", "kit"),
    ("dynamodb", "commit-strategies", "dynamodb-lock"),
    ("encryption", "encryptions", "standard"),
    ("avro", "file-formats", "avro"),
    ("orc", "file-formats", "orc"),
    ("parquet", "file-formats", "parquet"),
    ("adls", "file-systems", "abfs abfss az wasb wasbs"),
    ("gcs", "file-systems", "gcs gs"),
    ("hdfs", "file-systems", "hdfs swebhdfs viewfs webhdfs"),
    ("s3", "file-systems", "s3 s3a s3n"),
    ("frames", "filter-services", "polars pyarrow"),
    ("encryption", "key-services", "aws azure gcp local org.apache.iceberg.aws.AwsKeyManagementClient"),
    ("encryption", "key-services", "org.apache.iceberg.azure.keymanagement.AzureKeyManagementClient"),
    ("encryption", "key-services", "org.apache.iceberg.gcp.GcpKeyManagementClient vault"),
    ("frames", "scan-services", "lazy to_daft to_dask to_datafusion to_dataset to_duckdb to_pandas to_polars"),
    ("frames", "scan-services", "to_ray"),
    ("encryption", "table-services", "encryption"),
    ("frames", "table-services", "write_on_workers"),
    ("import", "table-services", "add_files"),
    ("maintenance", "table-services", "diff maintenance rollback undo"),
    ("import", "transaction-services", "add_files"),
)
"""An extra, a kind, and the names of that kind that the extra brings, separated by blanks."""

EXTRAS: Final = {(kind, name): extra for extra, kind, names in _BROUGHT for name in names.split(" ")}
