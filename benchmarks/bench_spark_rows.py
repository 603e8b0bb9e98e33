"""MERGE, DELETE and UPDATE on Spark, next to Iceberg's Java runtime on the same table.

    python benchmarks/bench_spark_rows.py [--rows 10000000] [--runs 3] [PART ...]

``merge`` brings rows into a table (of 1 million unless given), one for each hundred: half of them are there already,
all over the table. ``delete`` and ``update`` change 1 % of the rows, all over the table. Each runs by
``copy-on-write``, by position deletes (``positions``, version 2) and by deletion vectors (``vectors``, version 3), on
a table of ten files that Java wrote. Before each run the table is rolled back to how it was, outside of the clocks.
After each kind of change the rows that both left must be the same.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from spark_peers import Asked, asked, compare, described, on_the_runtimes_spark, rows, session

KINDS = ("merge", "delete", "update")
MODES = {"copy-on-write": ("copy-on-write", 2), "positions": ("merge-on-read", 2), "vectors": ("merge-on-read", 3)}
NO_SLOWER = 1.0


def run(given: Asked) -> bool:
    good, count = True, given.rows
    with tempfile.TemporaryDirectory() as folder:
        spark, ice = session(Path(folder) / "warehouse")
        try:
            keys = spark.range(0, count // 100).selectExpr(f"IF(id % 2 = 0, id * 100 + 7, {count} + id) AS id")
            described(keys).coalesce(2).write.parquet(f"{folder}/source")
            spark.read.parquet(f"{folder}/source").createOrReplaceTempView("given")
            tables: dict[int, _Table] = {}
            for name in given.among(list(MODES)):
                mode, version = MODES[name]
                if version not in tables:
                    tables[version] = _Table(spark, ice, version, count)
                tables[version].change_by(mode)
                for kind in given.among(KINDS):
                    works = {who: _Work(tables[version], who, kind) for who in ("icefield", "java")}
                    good &= compare(f"{kind}, {name}", given.runs, works, {"icefield": NO_SLOWER})
                    tables[version].check(f"{kind}, {name}")
        finally:
            spark.stop()
    return good


class _Table:
    """A table that Java wrote, which both change in turns, and which is rolled back in between."""

    def __init__(self, spark: Any, ice: Any, version: int, count: int) -> None:
        self._spark, self._ice = spark, ice
        self._name = f"db.version_{version}"
        rows(spark, 0).writeTo(f"java.{self._name}").using("iceberg").tableProperty(
            "format-version", str(version)
        ).create()
        rows(spark, count).writeTo(f"java.{self._name}").append()
        self._first = self._head()
        self._changed_by: str | None = None
        self._left: dict[str, int] = {}

    def change_by(self, mode: str) -> None:
        """Have rows changed by a mode from here on."""
        listed = ", ".join(f"'write.{kind}.mode' = '{mode}'" for kind in KINDS)
        self._spark.sql(f"ALTER TABLE java.{self._name} SET TBLPROPERTIES ({listed})")

    def change(self, who: str, kind: str) -> None:
        """Run one statement."""
        table = self._name if who == "icefield" else f"java.{self._name}"
        statement = {
            "merge": f"MERGE INTO {table} t USING given s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            "delete": f"DELETE FROM {table} WHERE pmod(number, 100) = 3",
            "update": f"UPDATE {table} SET price = price + 1, state = 'paid' WHERE pmod(number, 100) = 5",
        }[kind]
        (self._ice if who == "icefield" else self._spark).sql(statement).collect()

    def roll_back(self, who: str | None = None) -> None:
        """Roll back the last statement. ``who`` runs the next one."""
        if self._changed_by is not None:
            self._left[self._changed_by] = self._head()
            call = f"CALL java.system.rollback_to_snapshot('{self._name}', {self._first})"
            self._spark.sql(call).collect()
        self._changed_by = who

    def check(self, name: str) -> None:
        """Fail unless both left the same rows."""
        self.roll_back()
        held = {
            who: self._spark.sql(
                f"SELECT count(*), sum(hash(*)) FROM java.{self._name} VERSION AS OF {snapshot_id}"
            ).first()
            for who, snapshot_id in self._left.items()
        }
        assert len(set(held.values())) == 1, f"the rows differ after {name}: {held}"
        self._left = {}

    def _head(self) -> int:
        query = f"SELECT snapshot_id FROM java.{self._name}.refs WHERE name = 'main'"
        return int(self._spark.sql(query).collect()[0][0])


class _Work:
    """One statement, by one of the two."""

    def __init__(self, table: _Table, who: str, kind: str) -> None:
        self._table, self._who, self._kind = table, who, kind

    def before(self) -> None:
        self._table.roll_back(self._who)

    def __call__(self) -> None:
        self._table.change(self._who, self._kind)


if __name__ == "__main__":
    on_the_runtimes_spark()
    if not run(asked(__doc__ or "", [*KINDS, *MODES], 1_000_000)):
        sys.exit("slower than Iceberg's Java runtime")
