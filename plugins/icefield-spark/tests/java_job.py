"""A job for Iceberg's Java runtime: bronze by streams, silver by MERGE, gold by overwriting partitions.

Run as a process of its own: ``java_job.py SETTINGS.json FOLDER``. It prints a line of JSON for each step. Only the
settings say whose catalog ``prod`` is; ``test_java_job.py`` compares what the two print.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

SETTINGS, FOLDER = json.loads(Path(sys.argv[1]).read_text("utf-8")), Path(sys.argv[2])
EVENTS = "event_id BIGINT, user_id BIGINT, kind STRING, amount DECIMAL(10, 2), ts TIMESTAMP"
NEWEST = "(SELECT *, row_number() OVER (PARTITION BY event_id ORDER BY ts DESC) AS nth FROM {0}) WHERE nth = 1"
MERGE = """
MERGE INTO prod.db.silver t USING (SELECT event_id, user_id, kind, amount, ts FROM {0}) s ON t.event_id = s.event_id
WHEN MATCHED AND s.kind = 'void' THEN DELETE
WHEN MATCHED AND s.ts > t.ts THEN UPDATE SET *
WHEN NOT MATCHED AND s.kind <> 'void' THEN INSERT *
"""


def say(step: str, value: Any) -> None:
    """Print what a step gives; of a frame its rows in order."""
    if isinstance(value, DataFrame):
        value = sorted((list(map(plain, row)) for row in value.collect()), key=repr)
    print(json.dumps({step: value}), flush=True)


def plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def refused(step: str, run: Callable[[], Any]) -> None:
    """Print whether Spark refuses a step."""
    try:
        run()
    except Exception:
        say(step, "refused")
    else:
        say(step, "runs")


def land(name: str, rows: list[tuple[int, int, str, str, str]]) -> None:
    """Leave a file of events where the stream looks for them."""
    keys = ("event_id", "user_id", "kind", "amount", "ts")
    lines = (json.dumps(dict(zip(keys, row, strict=True))) for row in rows)
    (FOLDER / "landing").mkdir(exist_ok=True)
    (FOLDER / "landing" / f"{name}.json").write_text("\n".join(lines), "utf-8")


def ingest(spark: SparkSession) -> None:
    """Take what has landed since into the bronze table."""
    stream = spark.readStream.schema(EVENTS).json(str(FOLDER / "landing"))
    query = (
        stream.writeStream.format("iceberg")
        .outputMode("append")
        .option("checkpointLocation", str(FOLDER / "checkpoints" / "bronze"))
        .option("fanout-enabled", "true")
        .trigger(availableNow=True)
        .toTable("prod.db.bronze")
    )
    query.awaitTermination()


def newest(spark: SparkSession, table: str) -> int:
    """The id of a table's newest snapshot."""
    found = spark.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at DESC LIMIT 1").first()
    assert found is not None
    return int(found[0])


def bronze(spark: SparkSession) -> None:
    spark.sql("CREATE NAMESPACE IF NOT EXISTS prod.db")
    spark.sql(f"CREATE TABLE prod.db.bronze ({EVENTS}) USING iceberg PARTITIONED BY (days(ts))")
    first = [(n, n % 3, "buy", f"{n}.50", f"2026-03-0{1 + n % 4} 10:00:00") for n in range(12)]
    land("a", first)
    ingest(spark)
    say("bronze after one file", spark.table("prod.db.bronze").count())
    changed = [(n, n % 3, "void" if n == 3 else "fix", f"{n}.75", "2026-03-05 08:00:00") for n in (1, 3, 5)]
    land("b", [*first[:4], *changed, (100, 7, "buy", "9.00", "2026-03-05 09:00:00")])
    ingest(spark)  # as a new query that goes on from the checkpoint
    ingest(spark)  # nothing has landed
    say("bronze after another", spark.sql("SELECT kind, count(*), sum(amount) FROM prod.db.bronze GROUP BY kind"))
    say("bronze commits", spark.table("prod.db.bronze.snapshots").where("operation = 'append'").count())
    days = spark.table("prod.db.bronze.partitions").select("partition.ts_day", "record_count", "spec_id")
    say("bronze partitions", days)


def silver(spark: SparkSession) -> None:
    spark.sql(f"""
        CREATE TABLE prod.db.silver ({EVENTS}) USING iceberg PARTITIONED BY (days(ts)) TBLPROPERTIES (
            'format-version' = '2', 'write.merge.mode' = 'merge-on-read', 'write.delete.mode' = 'merge-on-read',
            'write.update.mode' = 'merge-on-read', 'write.distribution-mode' = 'hash')
    """)
    ordered = spark.table("prod.db.bronze.snapshots").orderBy("committed_at").collect()
    start, end = ordered[0].snapshot_id, ordered[-1].snapshot_id
    spark.read.option("versionAsOf", start).table("prod.db.bronze").createOrReplaceTempView("of_the_first")
    spark.sql(MERGE.format(NEWEST.format("of_the_first")))
    say("silver at first", spark.table("prod.db.silver"))
    reader = spark.read.format("iceberg").option("start-snapshot-id", start).option("end-snapshot-id", end)
    added = reader.load("prod.db.bronze")
    say("read since", added.count())
    added.createOrReplaceTempView("updates")
    spark.sql(MERGE.format(NEWEST.format("updates")))
    say("silver merged", spark.table("prod.db.silver"))

    def merge(batch: DataFrame, _: int) -> None:
        batch.createOrReplaceTempView("batch")
        batch.sparkSession.sql(MERGE.format(NEWEST.format("batch")))

    for _ in range(2):
        stream = spark.readStream.format("iceberg").load("prod.db.bronze").writeStream.foreachBatch(merge)
        place = str(FOLDER / "checkpoints" / "silver")
        stream.option("checkpointLocation", place).trigger(availableNow=True).start().awaitTermination()
    say("silver by stream", spark.table("prod.db.silver"))
    spark.sql("UPDATE prod.db.silver SET kind = 'big', amount = amount + 1 WHERE amount > (SELECT avg(amount) "
              "FROM prod.db.silver)")  # fmt: skip
    spark.sql("DELETE FROM prod.db.silver WHERE user_id NOT IN (SELECT DISTINCT user_id FROM prod.db.bronze "
              "WHERE kind <> 'void') OR event_id = 0")  # fmt: skip
    say("silver changed", spark.table("prod.db.silver"))
    refused("many rows for one", lambda: spark.sql(MERGE.format("prod.db.bronze")))
    refused("chance in a merge", lambda: spark.sql(MERGE.format("updates").replace("s.ts > t.ts", "rand() < 1")))


def gold(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    daily = spark.table("prod.db.silver").groupBy(F.to_date("ts").alias("day"))
    sums = daily.agg(F.sum("amount").alias("total"), F.count("*").alias("events"))
    sums.writeTo("prod.db.gold").using("iceberg").partitionedBy("day").tableProperty("owner-team", "sales").create()
    say("gold", spark.table("prod.db.gold"))
    spark.sql("INSERT OVERWRITE prod.db.gold SELECT DATE'2026-03-01', CAST(1 AS DECIMAL(20, 2)), 1L")
    sums.where("day = DATE'2026-03-02'").withColumn("events", F.lit(0).cast("bigint")).writeTo(
        "prod.db.gold"
    ).overwritePartitions()
    say("gold, days replaced", spark.table("prod.db.gold"))
    sums.where("day = DATE'2026-03-03'").writeTo("prod.db.gold").overwrite(F.col("day") >= "2026-03-03")
    say("gold, by filter", spark.table("prod.db.gold"))
    sums.limit(0).writeTo("prod.db.gold").append()
    sums.write.insertInto("prod.db.gold", overwrite=True)
    say("gold by insertInto", spark.table("prod.db.gold"))
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "static")
    spark.sql("INSERT OVERWRITE prod.db.gold PARTITION (day = DATE'2026-03-01') SELECT 5.00, 5")
    # Spark before 4.1 takes no INSERT without a column, whatever the catalog.
    april = (
        "(day, total) VALUES (DATE'2026-04-01', 4)" if spark.version >= "4.1" else "VALUES (DATE'2026-04-01', 4, NULL)"
    )
    spark.sql(f"INSERT INTO prod.db.gold {april}")
    say("gold, a static partition", spark.sql("SELECT * FROM prod.db.gold WHERE day < '2026-03-02' OR events IS NULL"))
    say("gold properties", spark.sql("SHOW TBLPROPERTIES prod.db.gold ('owner-team')").select("value"))
    spark.sql("CREATE OR REPLACE VIEW prod.db.best AS SELECT day, total FROM prod.db.gold WHERE total > 5")
    say("view", spark.table("prod.db.best"))


def evolve(spark: SparkSession) -> None:
    spark.sql("ALTER TABLE prod.db.silver ADD PARTITION FIELD bucket(4, user_id)")
    spark.sql("ALTER TABLE prod.db.silver WRITE ORDERED BY user_id, ts DESC")
    spark.sql("ALTER TABLE prod.db.silver ADD COLUMNS (note STRING COMMENT 'free' AFTER kind, home STRUCT<zip: INT>)")
    spark.sql("ALTER TABLE prod.db.silver RENAME COLUMN amount TO price")
    spark.sql("ALTER TABLE prod.db.silver ADD COLUMN home.city STRING")
    spark.sql("ALTER TABLE prod.db.silver ALTER COLUMN price TYPE DECIMAL(12, 2)")
    made = "event_id + 1000 AS event_id, user_id, kind, 'n' AS note, price, ts, named_struct('zip', 1, 'city', 'Rome')"
    spark.sql(f"INSERT INTO prod.db.silver SELECT {made} FROM prod.db.silver WHERE user_id = 1")
    say("evolved", spark.sql("SELECT event_id, note, price, home.city FROM prod.db.silver"))
    say("columns", [(field.name, field.dataType.simpleString()) for field in spark.table("prod.db.silver").schema])
    say("specs", spark.sql("SELECT DISTINCT spec_id FROM prod.db.silver.files WHERE content = 0"))
    spark.sql("ALTER TABLE prod.db.silver REPLACE PARTITION FIELD ts_day WITH months(ts)")
    spark.sql("DELETE FROM prod.db.silver WHERE ts < TIMESTAMP'2026-03-02 00:00:00'")
    say("old partition deleted", spark.table("prod.db.silver").select("event_id"))
    spark.sql("CALL prod.system.rewrite_data_files(table => 'db.silver', options => map('rewrite-all', 'true'))")
    say("rewritten", spark.sql("SELECT event_id, kind, price, home.zip FROM prod.db.silver"))
    left = spark.sql("SELECT DISTINCT spec_id FROM prod.db.silver.files WHERE content = 0 ORDER BY 1 DESC").collect()
    say("files left in old specs", len(left) - 1)


def travel(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE prod.db.t (id BIGINT, s STRING) USING iceberg")
    times, ids = [], []
    for number in range(3):
        spark.sql(f"INSERT INTO prod.db.t VALUES ({number}, 'v{number}')")
        ids.append(newest(spark, "prod.db.t"))
        time.sleep(0.05)
        times.append(datetime.now().isoformat(" "))
        time.sleep(0.05)
    say("version", spark.sql(f"SELECT id FROM prod.db.t VERSION AS OF {ids[1]}"))
    say("time", spark.sql(f"SELECT id FROM prod.db.t TIMESTAMP AS OF '{times[0]}'"))
    say("for system time", spark.sql(f"SELECT id FROM prod.db.t FOR SYSTEM_TIME AS OF '{times[1]}'"))
    say("option", spark.read.option("versionAsOf", ids[0]).table("prod.db.t"))
    say("option of time", spark.read.option("timestampAsOf", times[1]).format("iceberg").load("prod.db.t"))
    joined = f"SELECT a.id FROM prod.db.t a LEFT ANTI JOIN prod.db.t VERSION AS OF {ids[0]} b ON a.id = b.id"
    say("two versions", spark.sql(joined))
    refused("no such version", lambda: spark.sql("SELECT * FROM prod.db.t VERSION AS OF 1").collect())
    between = spark.read.option("start-snapshot-id", ids[0]).option("end-snapshot-id", ids[2])
    say("incremental", between.table("prod.db.t"))
    call = "CALL prod.system.create_changelog_view(table => 'db.t', changelog_view => 'changes', options => map("
    spark.sql("DELETE FROM prod.db.t WHERE id = 1")
    spark.sql(f"{call}'start-snapshot-id', '{ids[0]}'))")
    say("changes", spark.sql("SELECT id, s, _change_type, _change_ordinal FROM changes"))
    say("rolled back", len(spark.sql(f"CALL prod.system.rollback_to_snapshot('db.t', {ids[1]})").collect()))
    say("after rolling back", spark.table("prod.db.t"))
    spark.sql(f"CALL prod.system.set_current_snapshot('db.t', {ids[2]})")
    say("set again", spark.table("prod.db.t").count())
    branches(spark)


def branches(spark: SparkSession) -> None:
    spark.sql("ALTER TABLE prod.db.t CREATE BRANCH audit")
    spark.sql("ALTER TABLE prod.db.t CREATE TAG first RETAIN 30 DAYS")
    rows = spark.createDataFrame([(10, "audited")], "id BIGINT, s STRING")
    rows.writeTo("prod.db.t.branch_audit").append()
    spark.sql("INSERT INTO prod.db.t.branch_audit VALUES (11, 'audited')")
    spark.sql("DELETE FROM prod.db.t.branch_audit WHERE id = 0")
    say("branch", spark.read.option("versionAsOf", "audit").table("prod.db.t"))
    say("branch by name", spark.table("prod.db.t.branch_audit").count())
    say("branch as version", spark.sql("SELECT id FROM prod.db.t VERSION AS OF 'audit'"))
    say("main", spark.table("prod.db.t"))
    say("refs", spark.sql("SELECT name, type FROM prod.db.t.refs"))
    moved = spark.sql("CALL prod.system.fast_forward('db.t', 'main', 'audit')").select("branch_updated")
    say("fast forward", moved)
    say("main forward", spark.table("prod.db.t"))
    say("tag", spark.sql("SELECT id FROM prod.db.t VERSION AS OF 'first'"))
    spark.sql("ALTER TABLE prod.db.t DROP BRANCH audit")
    spark.sql("ALTER TABLE prod.db.t SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    spark.conf.set("spark.wap.id", "run-7")
    spark.sql("INSERT INTO prod.db.t VALUES (20, 'staged')")
    spark.conf.unset("spark.wap.id")
    say("not published", spark.table("prod.db.t").where("id = 20").count())
    staged = spark.sql("SELECT snapshot_id FROM prod.db.t.snapshots WHERE summary['wap.id'] = 'run-7'").first()
    assert staged is not None
    spark.sql(f"CALL prod.system.cherrypick_snapshot('db.t', {staged[0]})")
    say("published", spark.table("prod.db.t"))


def tidy(spark: SparkSession) -> None:
    """Run the procedures of maintenance."""
    orphan = Path(FOLDER, "warehouse", "db", "t", "data", "orphan.parquet")
    orphan.write_bytes(b"nothing")
    os.utime(orphan, (time.time() - 864_000,) * 2)
    call = "CALL prod.system.remove_orphan_files(table => 'db.t', dry_run => true)"
    say("orphans", [row[0].rpartition("/")[2] for row in spark.sql(call).collect()])
    say("orphan is kept", orphan.exists())
    spark.sql("CALL prod.system.rewrite_manifests('db.t')")
    spark.sql("CALL prod.system.rewrite_position_delete_files(table => 'db.silver')")
    now = datetime.now().isoformat(" ")
    spark.sql(f"CALL prod.system.expire_snapshots(table => 'db.t', older_than => TIMESTAMP '{now}', retain_last => 2)")
    say("kept", spark.table("prod.db.t.snapshots").count() <= 3)
    say("rows kept", spark.table("prod.db.t"))
    for name in ("history", "files", "entries", "manifests", "all_data_files", "all_manifests", "metadata_log_entries"):
        say(f"{name} has rows", spark.table(f"prod.db.t.{name}").count() > 0)
    say("operations", spark.sql("SELECT DISTINCT operation FROM prod.db.silver.snapshots"))
    records = "sum(record_count) FILTER (WHERE content = 0) - sum(record_count) FILTER (WHERE content = 1)"
    say("records", spark.sql(f"SELECT {records} FROM prod.db.silver.files WHERE content = 0 OR record_count < 0"))
    say("path and position", spark.sql("SELECT count(DISTINCT _file) > 0, min(_pos) FROM prod.db.silver"))


def session(spark: SparkSession) -> None:
    """Do with ``spark.catalog``, views, functions and the writer of data frames what jobs do."""
    spark.range(5).selectExpr("id", "id * 2 AS twice").write.format("iceberg").saveAsTable("prod.db.saved")
    more = spark.range(5, 7).selectExpr("id", "id AS twice").write.format("iceberg")
    more.mode("append").saveAsTable("prod.db.saved")
    spark.range(7, 8).selectExpr("id * 3 AS twice", "id").write.mode("append").saveAsTable("prod.db.saved")
    say("saved", spark.table("prod.db.saved"))
    again = spark.range(1).selectExpr("id", "id AS twice").write.format("iceberg")
    refused("saved again", lambda: again.saveAsTable("prod.db.saved"))
    again.mode("ignore").saveAsTable("prod.db.saved")
    say("left alone", spark.table("prod.db.saved").count())
    again.mode("overwrite").saveAsTable("prod.db.saved")
    say("saved over", spark.table("prod.db.saved"))
    catalog = spark.catalog
    say("exists", [catalog.tableExists("prod.db.saved"), catalog.tableExists("prod.db.nosuch")])
    say("databases", catalog.databaseExists("prod.db"))
    catalog.setCurrentCatalog("prod")
    catalog.setCurrentDatabase("db")
    say("current", [catalog.currentCatalog(), catalog.currentDatabase()])
    say("tables", sorted(each.name for each in catalog.listTables() if not each.isTemporary and each.name != "best"))
    say("listed columns", [(each.name, each.dataType) for each in catalog.listColumns("saved")])
    say("table", [catalog.getTable("saved").name, catalog.getTable("saved").namespace])
    say("bare name", spark.sql("SELECT count(*) FROM silver"))
    say("arguments", spark.sql("SELECT id FROM saved WHERE id = :x OR id = :y", args={"x": 0, "y": 9}))
    say("frames", spark.sql("SELECT s.id FROM {one} o JOIN saved s USING (id)", one=spark.range(3)))
    catalog.cacheTable("saved")
    say("cached", [catalog.isCached("saved"), spark.table("saved").count()])
    spark.sql("INSERT INTO saved VALUES (9, 9)")
    say("cached, then written", spark.table("saved").count())
    catalog.uncacheTable("saved")
    spark.udf.register("shout", lambda text: None if text is None else text.upper() + "!")
    say("function", spark.sql("SELECT DISTINCT shout(kind) FROM silver"))
    longer = F.udf(lambda text: len(text or ""), "int")
    say("function of frames", spark.table("silver").select(longer("kind").alias("n")).distinct())
    say("transforms", spark.sql("SELECT system.bucket(4, 10L), system.days(TIMESTAMP'2026-03-01 00:00:00')"))
    spark.sql("ALTER TABLE saved RENAME TO db.renamed")
    say("renamed", [catalog.tableExists("db.saved"), catalog.tableExists("db.renamed")])
    refused("a table that is not there", lambda: spark.table("prod.db.nosuch").collect())
    refused("null into nothing", lambda: spark.sql("INSERT INTO renamed VALUES ('text', 'text')"))
    spark.sql("DROP TABLE renamed PURGE")
    say("dropped", catalog.tableExists("db.renamed"))


def main() -> None:
    builder = SparkSession.builder.appName("medallion")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    if SETTINGS["spark.sql.catalog.prod"] == "icefield":
        import icefield_spark

        icefield_spark.install(spark)
    bronze(spark)
    silver(spark)
    gold(spark)
    evolve(spark)
    travel(spark)
    tidy(spark)
    session(spark)
    spark.stop()


if __name__ == "__main__":
    main()
