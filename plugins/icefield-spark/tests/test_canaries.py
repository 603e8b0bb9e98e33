"""Hostile text in names, comments, defaults, properties, values and views is in every statement, and is not run."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import icefield
import pytest
from canaries import NAME, PIECES, Texts, hostile_table
from icefield.errors import IcefieldError
from pyspark.errors import PySparkException

pytestmark = pytest.mark.slow

SEEDS = 12 if os.environ.get("ICEFIELD_SOAK") else 2
RUN = "reflect('java.lang.System', 'setProperty', 'icefield.canary', 'yes')"
ENDS = [
    *(f"', {RUN}, '", f"', {RUN}) -- ", f"' || {RUN} || '", f'", {RUN}, "', f"`, {RUN}, `", f"` AS a, {RUN} AS `b"),
    *(f"a:int>) AS junk, ({RUN}", f"a:int>) END, CASE WHEN true THEN ({RUN}", f"*/ {RUN} /*", f"\n{RUN}\n--"),
    *(
        "${system:line.separator}" + f" {RUN} ",
        f"\\' , {RUN}, \\'",
        f"{RUN}",
        f") OR ({RUN}) IS NOT NULL OR (",
        "''",
        "``",
    ),
]
"""Text that ends a string, a name, a type or a comment, and then sets a property of the JVM."""


PLAIN = "v" + NAME.replace("$", "").replace(";", "")


def name(text: str) -> str:
    """A name in a statement. Spark puts a dollar for the variable, and looks for no variables in the result."""
    return "`" + text.replace("`", "``").replace("$", "${dollar}") + "`"


def string(text: str) -> str:
    """A string in a statement."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("$", "${dollar}") + "'"


@pytest.fixture
def canary(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], bool]]:
    """Whether a program ran: it would set a property of the JVM, or make a file."""
    monkeypatch.chdir(tmp_path)
    system = spark._jvm.java.lang.System
    spark.conf.set("dollar", "$")
    yield lambda: system.getProperty("icefield.canary") is not None or (tmp_path / "canary").exists()
    system.clearProperty("icefield.canary")
    spark.conf.unset("dollar")


class Hostile:
    """A hostile table, and statements about it: names and strings in them are quoted, so that all can run."""

    def __init__(self, table: icefield.Table, text: Texts) -> None:
        fields = table.schema().fields
        self.table, self.text = table, text
        self.column, self.extra = fields[1].name, name(fields[4].name)
        self.it, self.kind = f"db.{name(NAME)}", name(self.column)
        (inner,) = table.schema().find_field("s").field_type.fields
        self.inner = f"s.{name(inner.name)}"

    @property
    def said(self) -> str:
        """A new text, as a string of a statement."""
        return string(self.text())

    @property
    def plain(self) -> str:
        """A new text without variables, which views refuse."""
        return self.text().replace("$", "")

    def queries(self) -> Iterator[str]:
        """Statements that change nothing."""
        it, kind, (branch, *_) = self.it, self.kind, sorted(set(self.table.metadata.refs) - {"main"})
        yield f"SELECT * FROM {it}"
        yield f"SELECT {kind}, {self.inner}, m, {self.extra} FROM {it} WHERE {kind} > ''"
        yield f"SELECT {kind}, count(*) FROM {it} GROUP BY {kind} ORDER BY {kind}"
        yield f"SELECT t.* FROM {it} t JOIN {it} u ON t.{kind} = u.{kind}"
        yield f"SELECT id FROM {it} WHERE {self.inner} = {self.said}"
        yield f"SELECT * FROM {it} VERSION AS OF {string(branch)}"
        yield from (f"SELECT * FROM {it}.{each}" for each in ("files", "partitions", "snapshots", "refs", "entries"))
        yield from (f"DESCRIBE {it}", f"DESCRIBE EXTENDED {it}", f"DESCRIBE {it} {kind}", f"SHOW CREATE TABLE {it}")
        yield from (f"SHOW TBLPROPERTIES {it}", f"SHOW COLUMNS IN {it}", "SHOW TABLES IN db")
        yield from ("SHOW NAMESPACES", f"DESCRIBE NAMESPACE test.{name(NAME)}")

    def changes(self) -> Iterator[str]:
        """Statements that change rows."""
        it, kind = self.it, self.kind
        yield f"INSERT INTO {it} (id, {kind}) VALUES (5, {self.said})"
        yield f"INSERT INTO {it} SELECT id + 10, {kind}, s, m, {self.extra} FROM {it}"
        yield f"INSERT INTO {it} BY NAME SELECT 7L AS id, {self.said} AS {kind}"
        yield f"INSERT OVERWRITE {it} PARTITION ({kind} = {self.said}) (id) VALUES (6)"
        yield f"UPDATE {it} SET {kind} = {self.said}, {self.inner} = {self.said} WHERE id = 5"
        yield f"UPDATE {it} SET {self.extra} = DEFAULT WHERE id > 5"
        source = f"(SELECT 1L AS id, {self.said} AS {kind} UNION ALL SELECT 20L, {self.said}) u"
        yield (
            f"MERGE INTO {it} t USING {source} ON t.id = u.id WHEN MATCHED THEN UPDATE SET t.{kind} = u.{kind} "
            f"WHEN NOT MATCHED THEN INSERT (id, {kind}) VALUES (u.id, u.{kind})"
        )
        yield (
            f"MERGE INTO {it} t USING {source} ON t.{kind} = u.{kind} WHEN MATCHED THEN DELETE "
            f"WHEN NOT MATCHED BY SOURCE AND t.id = 99 THEN UPDATE SET {self.inner} = 'x'"
        )
        yield f"DELETE FROM {it} WHERE {kind} = {self.said} OR id = 20"

    def procedures(self) -> Iterator[str]:
        """The procedures."""
        quoted = "`" + NAME.replace("`", "``") + "`"
        called, where = string(f"db.{quoted}"), string("id > 0")
        for procedure, more in (
            ("rewrite_data_files", f", where => {where}, options => map('rewrite-all', 'true')"),
            ("rewrite_manifests", ""),
            ("rewrite_position_delete_files", ""),
            ("expire_snapshots", ", retain_last => 1"),
            ("compute_table_stats", ""),
            ("compute_partition_stats", ""),
            ("remove_orphan_files", ", dry_run => true"),
            ("create_changelog_view", f", changelog_view => 'c', identifier_columns => array({string(self.column)})"),
        ):
            yield f"CALL test.system.{procedure}(table => {called}{more})"

    def definitions(self) -> Iterator[str]:
        """Statements that define tables, views and their parts; those at the end rename and drop."""
        it, kind, alter = self.it, self.kind, f"ALTER TABLE {self.it}"
        yield f"{alter} ADD COLUMN {name(self.text())} string COMMENT {self.said} AFTER {kind}"
        yield f"{alter} ADD COLUMN {name(self.text())} string DEFAULT {self.said}"
        yield f"{alter} ADD COLUMN s.{name(self.text())} int"
        yield f"{alter} ALTER COLUMN {kind} COMMENT {self.said}"
        key = self.said
        yield f"{alter} SET TBLPROPERTIES ({key} = {self.said})"
        yield f"{alter} UNSET TBLPROPERTIES ({key})"
        yield f"{alter} ADD PARTITION FIELD truncate(3, {kind}) AS {name(self.text())}"
        yield f"{alter} WRITE ORDERED BY {kind}, {self.extra}"
        branch = name(self.text())
        yield from (f"{alter} CREATE BRANCH {branch}", f"{alter} DROP BRANCH {branch}")
        yield f"COMMENT ON TABLE {it} IS {self.said}"
        yield f"COMMENT ON NAMESPACE test.{name(NAME)} IS {self.said}"
        yield f"CREATE TABLE db.copied PARTITIONED BY ({kind}) COMMENT {self.said} AS SELECT id, {kind}, s FROM {it}"
        yield f"CREATE OR REPLACE TABLE db.copied AS SELECT {kind}, m FROM {it}"
        view, seen = f"db.{name(PLAIN)}", self.plain
        yield f"CREATE TABLE db.seen AS SELECT id, {kind} AS {name(seen)} FROM {it}"
        columns = f"id, {name(self.plain)} COMMENT {string(self.plain)}"
        yield f"CREATE VIEW {view} ({columns}) COMMENT {string(self.plain)} AS SELECT id, {name(seen)} FROM db.seen"
        yield from (f"SELECT * FROM {view}", f"DESCRIBE {view}", f"SHOW CREATE TABLE {view}", "SHOW VIEWS IN db")
        yield f"{alter} RENAME COLUMN {kind} TO {name(self.text())}"
        other = f"db.{name('other' + NAME)}"
        yield from (f"{alter} RENAME TO {other}", f"TRUNCATE TABLE {other}", f"DROP TABLE {other} PURGE")

    def methods(self, ice: Any, spark: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
        """The methods of a session."""
        it = f"db.{NAME}"
        rows = spark.createDataFrame([(1, self.text()), (30, self.text())], ["id", "c"])
        rows = rows.withColumnRenamed("c", self.column)
        yield "table", lambda: ice.table(it, columns=["id", self.column], where="id > 0").collect()
        yield "count", lambda: ice.count(it, "id > 0")
        yield "explain", lambda: str(ice.explain(it))
        yield "append", lambda: ice.append(rows, it)
        yield "overwrite_partitions", lambda: ice.overwrite_partitions(rows, it)
        yield "upsert", lambda: ice.upsert(ice.table(it), it, [self.column])
        given = {"id": "source.id", self.column: f"source.{self.kind}"}
        merge = ice.merge(rows, it, [self.column]).when_not_matched_insert(given)
        yield "merge", lambda: merge.when_matched_update({"id": f"-length(source.{self.kind})"}).commit()
        yield "update", lambda: ice.update(it, {"id": f"length({self.kind})"}, where=f"{self.kind} > ''")


@pytest.mark.counted
@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_statement_runs_what_a_table_says(
    ice: Any, spark: Any, catalog: icefield.Catalog, canary: Callable[[], bool], seed: int
) -> None:
    text = Texts(random.Random(seed), [*PIECES, *ENDS, *ENDS])
    catalog.create_namespace((NAME,), {"comment": text()})
    hostile = Hostile(hostile_table(catalog, text, ("db", NAME)), text)
    refused = []

    def tried(what: str, work: Callable[[], Any]) -> None:
        try:
            work()
        except (IcefieldError, PySparkException) as error:
            refused.append(f"{what}\n    {type(error).__name__}: {str(error)[:300]}")
        assert not canary(), what

    for what, work in hostile.methods(ice, spark):
        tried(what, work)
    for part in (hostile.queries, hostile.changes, hostile.procedures, hostile.definitions):
        for statement in part():
            tried(statement, lambda statement=statement: ice.sql(statement).collect())  # type: ignore[misc]
    assert not refused, "\n".join(refused)
