"""MERGE, DELETE and UPDATE on Spark, next to Iceberg's Java runtime on a copy of the same table.

    python benchmarks/bench_spark_rows.py [--rows 10000000] [--runs 3] [PART ...]

``merge`` brings rows into a table (of 1 million unless given), one for each hundred: half of them are there already,
all over the table. ``delete`` and ``update`` change 1 % of the rows, all over the table. Each runs by
``copy-on-write``, by position deletes (``positions``, version 2) and by deletion vectors (``vectors``, version 3), on
a table of ten files that Java wrote, and the table is rolled back after it. The clocks stop before that. After each
kind of change both tables must hold the same.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from spark_peers import Asked, asked, compare, on_the_runtimes_spark, rows, session

KINDS = ("merge", "delete", "update")
MODES = {"copy-on-write": ("copy-on-write", 2), "positions": ("merge-on-read", 2), "vectors": ("merge-on-read", 3)}
NO_SLOWER = 1.0


def run(given: Asked) -> bool:
    good, count = True, given.rows
    with tempfile.TemporaryDirectory() as folder:
        spark, ice = session(Path(folder) / "warehouse")
        try:
            source = f"{folder}/source"
            keys = spark.range(0, count // 100).selectExpr(f"IF(id % 2 = 0, id * 100 + 7, {count} + id) AS id")
            rows(spark, 2 * count).join(keys, "id", "left_semi").coalesce(2).write.parquet(source)
            spark.read.parquet(source).createOrReplaceTempView("given")
            rows(spark, count).write.parquet(f"{folder}/rows")
            for name in given.among(list(MODES)):
                good &= _mode(spark, ice, Path(folder), name, given)
        finally:
            spark.stop()
    return good


def _mode(spark: Any, ice: Any, folder: Path, name: str, given: Asked) -> bool:
    good = True
    mode, version = MODES[name]
    made = {}
    for who in ("ours", "java"):
        table = f"{who}_{name.replace('-', '_')}"
        properties = {"format-version": version, **{f"write.{kind}.mode": mode for kind in KINDS}}
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        spark.read.parquet(f"{folder}/rows").limit(0).writeTo(f"java.db.{table}").using("iceberg").create()
        spark.sql(f"ALTER TABLE java.db.{table} SET TBLPROPERTIES ({listed})")
        spark.read.parquet(f"{folder}/rows").writeTo(f"java.db.{table}").append()
        made[who] = table
    for kind in given.among(KINDS):
        works = {
            "icefield": _Work(ice, kind, f"db.{made['ours']}"),
            "java": _Work(spark, kind, f"java.db.{made['java']}"),
        }
        works["icefield"].undo_by = works["java"].undo_by = spark
        good &= compare(f"{kind}, {name}", given.runs, works, {"icefield": NO_SLOWER})
        held = [spark.sql(f"SELECT count(*), sum(hash(*)) FROM java.db.{table}").first() for table in made.values()]
        assert held[0] == held[1], f"the tables differ after {kind}, {name}: {held}"
    return good


class _Work:
    """One statement on one table. Before each run what the one before it did is taken back."""

    def __init__(self, runner: Any, kind: str, table: str) -> None:
        self._runner, self._kind, self._table = runner, kind, table
        self.undo_by: Any = None
        self._first: int | None = None

    def before(self) -> None:
        whole = f"java.{self._table.removeprefix('java.')}"
        head = self.undo_by.sql(f"SELECT snapshot_id FROM {whole}.refs WHERE name = 'main'").collect()[0][0]
        if self._first is None:
            self._first = head
        elif head != self._first:
            name = whole.removeprefix("java.")
            self.undo_by.sql(f"CALL java.system.rollback_to_snapshot('{name}', {self._first})").collect()

    def __call__(self) -> None:
        statement = {
            "merge": f"MERGE INTO {self._table} t USING given s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            "delete": f"DELETE FROM {self._table} WHERE pmod(number, 100) = 3",
            "update": f"UPDATE {self._table} SET price = price + 1, state = 'paid' WHERE pmod(number, 100) = 5",
        }[self._kind]
        self._runner.sql(statement).collect()


if __name__ == "__main__":
    on_the_runtimes_spark()
    if not run(asked(__doc__ or "", [*KINDS, *MODES], 1_000_000)):
        sys.exit("slower than Iceberg's Java runtime")
