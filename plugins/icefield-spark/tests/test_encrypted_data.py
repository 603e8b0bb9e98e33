"""Encrypted tables in Spark: executors get the keys of their files, and Spark's own reader and writer are not used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import icefield
import pytest
from encrypted_tables import MASTER, SCHEMA, files_of, keystore, new_table, rows
from icefield.errors import UnsupportedFeature
from icefield_spark import attach

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def properties(properties: dict[str, str], tmp_path: Path) -> dict[str, str]:
    return {**properties, "encryption.kms-type": "local", "encryption.local.keystore": str(keystore(tmp_path))}


def test_sql_reads_and_changes_an_encrypted_table(
    catalog: icefield.Catalog, spark: Any, ice: Any, tmp_path: Path, options: dict[str, str]
) -> None:
    table = new_table(catalog, **{"write.merge.mode": "merge-on-read", "write.delete.mode": "merge-on-read"})
    table.append(rows(0))
    assert ice.table("db.t").where("id < 50").count() == 50
    ice.sql("INSERT INTO db.t SELECT id + 1000, text, part FROM db.t WHERE id < 10")
    ice.sql("DELETE FROM db.t WHERE id = 3")
    ice.sql("UPDATE db.t SET text = 'confidential-1' WHERE id = 4")
    spark.createDataFrame([(5000, "confidential-2", "region-1")], "id long, text string, part string").write.format(
        "icefield"
    ).options(**options).mode("append").save("db.t")
    found = sorted(row["id"] for row in ice.table("db.t").select("id").collect())
    assert found == sorted([*(n for n in range(100) if n != 3), *range(1000, 1010), 5000])
    stored = [path for path in files_of(tmp_path / "warehouse") if path.suffix in (".parquet", ".avro", ".puffin")]
    assert {path.read_bytes()[:4] for path in stored} == {b"PARE", b"AGS1"}
    assert not any(b"confidential-" in path.read_bytes() for path in files_of(tmp_path / "warehouse"))
    assert table.refresh().encryption.status().is_complete


def test_a_table_is_created_as_an_encrypted_one(catalog: icefield.Catalog, spark: Any, ice: Any) -> None:
    ice.sql(
        "CREATE TABLE db.made USING iceberg TBLPROPERTIES "
        f"('format-version' = '3', 'encryption.key-id' = '{MASTER}') AS SELECT 1 AS id, 'confidential-1' AS text"
    )
    table = catalog.load_table("db.made")
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "text": "confidential-1"}]
    assert table.encryption.status().is_complete


QUERIES = {
    "rows": "SELECT * FROM {}",
    "filter": "SELECT id FROM {} WHERE text = 'confidential-7' OR part = 'region-2'",
    "limit": "SELECT count(*) FROM (SELECT * FROM {} LIMIT 9)",
    "aggregate": "SELECT part, count(*), max(id) FROM {} GROUP BY part",
    "join": "SELECT a.id FROM {0} a JOIN {0} b ON a.id = b.id + 1 WHERE a.part = 'region-0'",
    "tag": "SELECT id FROM {} VERSION AS OF 'first'",
    "changes": "SELECT id, _change_type FROM {}.changes",
    "files": "SELECT content, record_count FROM {}.files",
}


def test_every_query_and_stream_gives_the_rows_of_a_plain_table(
    catalog: icefield.Catalog, spark: Any, tmp_path: Path
) -> None:
    attach(spark, catalog, name="prod")
    modes = {"write.merge.mode": "merge-on-read", "write.delete.mode": "merge-on-read", "format-version": "3"}
    secret = new_table(catalog, **modes)
    plain = catalog.create_table("db.plain", SCHEMA, partition_spec=["part"], properties=modes)
    for table in (secret, plain):
        table.append(rows(0))
        table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "first").commit()
        table.append(rows(100, 20))
        table.delete("id = 110")
    for name, query in QUERIES.items():
        found = [sorted(map(tuple, spark.sql(query.format(f"prod.db.{each}")).collect())) for each in ("t", "plain")]
        assert found[0] == found[1], name
        assert found[0], name
    copied = []
    for name in ("t", "plain"):
        stream = spark.readStream.option("streaming-skip-delete-snapshots", "true").table(f"prod.db.{name}")
        writer = stream.writeStream.option("checkpointLocation", str(tmp_path / f"of-{name}"))
        query = writer.trigger(availableNow=True).toTable(f"prod.db.copy_of_{name}")
        assert query.awaitTermination(120)
        copied.append(sorted(row.id for row in spark.table(f"prod.db.copy_of_{name}").collect()))
    assert copied[0] == copied[1] == [*range(120)]


def test_the_reader_of_spark_is_refused_by_name(catalog: icefield.Catalog, spark: Any, ice: Any) -> None:
    table = new_table(catalog)
    table.append(rows(0))
    with pytest.raises(UnsupportedFeature, match="encrypted"):
        ice.table("db.t", road="spark").collect()
