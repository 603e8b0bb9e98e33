"""The catalogs of ``spark-defaults.conf``, without Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from icefield import load_catalog
from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield_spark.defaults_file import catalogs

ICEBERG = "org.apache.iceberg.spark.SparkCatalog"
FILE = f"""
# of the cluster
spark.executor.memory      4g
spark.sql.catalog.lake     {ICEBERG}
spark.sql.catalog.lake.type=hadoop
spark.sql.catalog.lake.warehouse : file\\:///data/lake
spark.sql.catalog.lake.io-impl   org.apache.iceberg.hadoop.HadoopFileIO
spark.sql.catalog.hms {ICEBERG}
spark.sql.catalog.hms.catalog-impl org.apache.iceberg.hive.HiveCatalog
spark.sql.catalog.hms.uri \\
    thrift://host:9083
spark.sql.catalog.aws {ICEBERG}
spark.sql.catalog.aws.catalog-impl org.apache.iceberg.aws.glue.GlueCatalog
spark.sql.catalog.aws.warehouse s3://lake/wh
spark.sql.catalog.jdbc {ICEBERG}
spark.sql.catalog.jdbc.type jdbc
spark.sql.catalog.jdbc.uri jdbc:postgresql://host/db
spark.sql.catalog.jdbc.jdbc.user me
spark.sql.catalog.locked {ICEBERG}
spark.sql.catalog.locked.type glue
spark.sql.catalog.locked.lock-impl org.apache.iceberg.aws.dynamodb.DynamoDbLockManager
spark.sql.catalog.nessie {ICEBERG}
spark.sql.catalog.nessie.type nessie
spark.sql.catalog.delta org.apache.spark.sql.delta.catalog.DeltaCatalog
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(FILE)
    return tmp_path / "conf"


def test_the_iceberg_catalogs_of_the_file_are_translated(folder: Path) -> None:
    found = catalogs({"SPARK_CONF_DIR": str(folder)})
    assert set(found) == {"lake", "hms", "aws", "jdbc", "locked", "nessie"}
    assert found["lake"]() == {"type": "directory", "warehouse": "file:///data/lake"}
    assert found["hms"]() == {"type": "hive", "uri": "thrift://host:9083"}
    assert found["aws"]() == {"type": "glue", "warehouse": "s3://lake/wh"}
    assert found["jdbc"]() == {"type": "sql", "uri": "postgresql+psycopg://me@host/db"}


def test_a_property_that_cannot_be_honoured_is_refused_by_name(folder: Path) -> None:
    found = catalogs({"SPARK_HOME": str(folder.parent)})
    with pytest.raises(UnsupportedFeature, match="lock-impl"):
        found["locked"]()
    with pytest.raises(InvalidArgument, match="REST catalog"):
        found["nessie"]()


@pytest.mark.parametrize("environment", [{}, {"SPARK_HOME": "/no/such/place"}])
def test_without_a_file_there_is_no_catalog(environment: dict[str, str]) -> None:
    assert catalogs(environment) == {}


def test_a_catalog_of_the_file_opens_by_its_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(folder))
    monkeypatch.setenv("HOME", str(folder))
    with load_catalog("lake", warehouse=f"file://{folder}/lake", type="directory") as catalog:
        assert catalog.list_namespaces() == []
    with load_catalog("lake") as catalog:
        assert catalog.properties["warehouse"] == "file:///data/lake"


def test_the_file_is_read_without_pyspark(folder: Path) -> None:
    program = (
        "import sys; from icefield_spark.defaults_file import catalogs; "
        f"print(sorted(catalogs({{'SPARK_CONF_DIR': {str(folder)!r}}})), 'pyspark' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.strip().endswith("False")
