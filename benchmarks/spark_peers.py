"""Icefield on Spark next to Iceberg's Java runtime and Spark's own Parquet, all in one session of one Spark.

The newest Spark that the Java runtime has a release for runs from an environment of its own, as in the tests; Icefield
is this checkout. Times are of everything that a job takes: driver, JVM and Python workers. CPU is the steadier figure.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SUPPORT = Path(__file__).parent.parent / "tests" / "support"
sys.path.insert(0, str(SUPPORT))

JAR = "ICEFIELD_BENCH_JAR"
_TICKS = os.sysconf("SC_CLK_TCK")
_SEEN: dict[tuple[int, int], int] = {}
"""Ticks of CPU that processes have taken, by number and time of start."""


def on_the_runtimes_spark() -> None:
    """Begin the program anew with the PySpark that the Java runtime is for, unless it runs with that already."""
    if JAR in os.environ:
        return
    from java_programs import java_17, maven_jars
    from servers import spark_runtime

    (packages,) = spark_runtime.spark_environment().glob("lib/python*/site-packages")
    (jar,) = maven_jars(spark_runtime.RUNTIME.split(":", 1)[1].replace(":", "-"), [spark_runtime.RUNTIME]).glob("*.jar")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    environment |= {
        JAR: str(jar),
        "PYTHONPATH": str(packages),
        "PYSPARK_PYTHON": sys.executable,
        "JAVA_HOME": str(Path(java_17()[0]).resolve().parent.parent),
    }
    os.execve(sys.executable, [sys.executable, *sys.argv], environment)


def session(warehouse: Path) -> tuple[Any, Any]:
    """A Spark session with the catalog ``java``, and Icefield's session over the same folder."""
    import icefield
    from icefield_spark import attach
    from pyspark.sql import SparkSession

    settings = {
        "spark.jars": os.environ[JAR],
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.java": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.java.type": "hadoop",
        "spark.sql.catalog.java.warehouse": f"file://{warehouse}",
        "spark.sql.catalog.java.cache-enabled": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "3g",
        "spark.local.dir": str(warehouse.parent / "scratch"),
        "spark.sql.warehouse.dir": str(warehouse.parent / "spark"),
        "spark.sql.session.timeZone": "UTC",
        "spark.log.level": "OFF",
    }
    builder = SparkSession.builder.master("local[2]").appName("bench")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    catalog = icefield.load_catalog("ours", type="directory", warehouse=f"file://{warehouse}", **{"file.sync": "false"})
    catalog.create_namespace("db")
    return spark, attach(spark, catalog)


def rows(spark: Any, count: int, files: int = 10) -> Any:
    """Ten columns, the same rows each time."""
    return described(spark.range(0, count, 1, files))


def described(numbers: Any) -> Any:
    """The rows of some numbers, which are in the column ``id``."""
    return numbers.selectExpr(
        "id",
        "CAST(hash(id) AS int) AS number",
        "concat('customer-', pmod(hash(id, 1), 100000)) AS customer",
        "concat('note ', hash(id, 2)) AS note",
        "elt(1 + pmod(hash(id, 3), 5), 'open', 'paid', 'sent', 'lost', 'closed') AS state",
        "CAST(pmod(hash(id, 4), 1000000) / 100 AS decimal(12, 2)) AS price",
        "pmod(hash(id, 5), 10000) / 7.0D AS weight",
        "date_add(DATE '2020-01-01', pmod(hash(id, 6), 1000)) AS day",
        "timestamp_micros(1600000000000000 + id * 1000000) AS at",
        "pmod(hash(id, 7), 100) < 50 AS flag",
    )


@dataclass(frozen=True, slots=True)
class Asked:
    """The scope of a benchmark: the number of rows, the parts, and the number of runs of each after the first."""

    rows: int
    parts: frozenset[str]
    runs: int

    def among(self, names: Sequence[str]) -> list[str]:
        """Return the names that are chosen parts, or all names if none is."""
        return [name for name in names if name in self.parts] or list(names)


def asked(description: str, parts: Sequence[str], rows: int) -> Asked:
    """Parse the command line. ``rows`` is the default of its option; an unknown part is refused."""
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(parts)}; all unless given")
    parser.add_argument("--rows", type=int, default=rows, help="of the table (%(default)s)")
    parser.add_argument("--runs", type=int, default=int(os.environ.get("RUNS", "3")), help="of each (%(default)s)")
    given = parser.parse_args()
    unknown = sorted(set(given.parts) - set(parts))
    if unknown:
        parser.error(f"no part {', '.join(unknown)}; there are {', '.join(parts)}")
    return Asked(given.rows, frozenset(given.parts), given.runs)


@dataclass(frozen=True, slots=True)
class Taken:
    """The times of a run, in seconds."""

    cpu: float
    wall: float


def compare(
    name: str, runs: int, works: Mapping[str, Callable[[], Any]], bounds: Mapping[str, float], *, by_wall: bool = False
) -> bool:
    """Time works in turns, after one turn that warms all of them, and print medians and the ratios to the peers'.

    ``bounds``: by the names of our own works, how many times Java's CPU (or wall) each may take. Whether all keep that.
    """
    found: dict[str, list[Taken]] = {which: [] for which in works}
    for turn in range(-1, runs):
        order = list(works.items())
        for which, work in order[:: 1 if turn % 2 == 0 else -1]:
            taken = timed(work)
            if turn >= 0:
                found[which].append(taken)
    medians = {
        which: Taken(statistics.median(one.cpu for one in all_), statistics.median(one.wall for one in all_))
        for which, all_ in found.items()
    }
    print(f"{name}: CPU s / wall s", flush=True)
    good = True
    for which, one in medians.items():
        ratios = [
            f"{one.cpu / peer.cpu:5.2f} /{one.wall / peer.wall:5.2f} of {who}"
            for who, peer in medians.items()
            if who not in bounds and who != which and which in bounds
        ]
        verdict = ""
        if which in bounds:
            java = medians["java"]
            ratio = one.wall / java.wall if by_wall else one.cpu / java.cpu
            good &= ratio <= bounds[which]
            verdict = f"{'PASS' if ratio <= bounds[which] else 'FAIL'} ({bounds[which]})"
        print(f"  {which:<9} {one.cpu:6.2f} /{one.wall:6.2f}  {'  '.join([*ratios, verdict])}".rstrip(), flush=True)
    return good


def timed(work: Callable[[], Any]) -> Taken:
    """Run ``work``, after its attribute ``before`` if it has one; return the time that it took."""
    before = getattr(work, "before", None)
    if before is not None:
        before()
    cpu, wall = _cpu(), time.perf_counter()
    work()
    return Taken(_cpu() - cpu, time.perf_counter() - wall)


def _cpu() -> float:
    """Return the CPU seconds of this process and of all its descendants, as far as they were seen.

    A process that ended counts with its time when it was last seen: PySpark's daemon lets the system forget its
    workers, which end when they were idle for a minute.
    """
    parents: dict[int, int] = {}
    born: dict[int, tuple[int, int]] = {}
    used: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        process = int(entry.name)
        parents[process], born[process] = int(fields[1]), (process, int(fields[19]))
        used[process] = int(fields[11]) + int(fields[12])
    mine = os.getpid()
    for process, ticks in used.items():
        at: int | None = process
        while at is not None and at != mine:
            at = parents.get(at)
        if at == mine:
            _SEEN[born[process]] = ticks
    return sum(_SEEN.values()) / _TICKS
