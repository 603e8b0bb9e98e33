"""A table that Icefield and Iceberg's Java runtime for Spark both commit to, next to the rows that it should have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa
from icefield.catalog import Catalog, Table
from plain_rows import comparable, plain_rows
from servers.spark_runtime import SparkRuntime

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("part", pa.string()), ("value", pa.float64())])
LINEAGE = ("_row_id", "_last_updated_sequence_number")

Rows = dict[int, tuple[str | None, float | None]]


@dataclass
class Shared:
    """A table that both libraries use, and the rows that it should have."""

    catalog: Catalog
    spark: SparkRuntime
    name: str
    rows: Rows = field(default_factory=dict)
    known: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The row id and last change of each id at the last look."""
    ours: str = "db.t"

    @property
    def table(self) -> Table:
        return self.catalog.load_table(self.ours)

    def sql(self, statement: str) -> None:
        """Run a statement of Spark's on the table, which it names ``{t}``."""
        self.spark.sql(statement.format(t=self.name))

    def expect(self, *, upgraded: bool = False) -> None:
        """Check that both read the rows, and in version 3 their lineage: ids are unique, and stay with their rows.

        A table that was just upgraded has no ids yet.
        """
        table = self.table
        there = plain_rows(table.scan().to_arrow(), table.schema())
        wanted = [{"id": id_, "part": part, "value": value} for id_, (part, value) in self.rows.items()]
        assert comparable(there, table.schema()) == comparable(wanted, table.schema())
        assert comparable(self.spark.sql(f"SELECT * FROM {self.name}"), table.schema()) == comparable(
            wanted, table.schema()
        )
        if table.format_version < 3:
            return
        read = table.scan(selected_fields=("id", *LINEAGE)).to_arrow().to_pylist()
        said = self.spark.sql(f"SELECT id, {', '.join(LINEAGE)} FROM {self.name}")
        if upgraded:
            # Spark returns a last change even then, although the specification defines none.
            assert {row["_row_id"] for row in (*read, *said)} == {None}
            return
        assert sorted(map(repr, said)) == sorted(map(repr, read))
        found = {row["id"]: (row["_row_id"], row["_last_updated_sequence_number"]) for row in read}
        assert len({row_id for row_id, _ in found.values()} - {None}) == len(found)
        for id_ in self.known.keys() & found.keys():
            assert found[id_][0] == self.known[id_][0], f"row {id_} has another id"
        self.known = found


def properties_of(version: int, file_format: str, mode: str) -> dict[str, str]:
    modes = {f"write.{change}.mode": mode for change in ("delete", "update", "merge")}
    return {"format-version": str(version), "write.format.default": file_format, **modes}


def fresh(ids: Iterable[int], value: float) -> Rows:
    return {id_: ("ab"[id_ % 2], value) for id_ in ids}


def arrow(rows: Rows) -> pa.Table:
    made = [{"id": id_, "part": part, "value": value} for id_, (part, value) in rows.items()]
    return pa.Table.from_pylist(made, schema=SCHEMA)


def values(rows: Rows) -> str:
    """Rows as Spark's VALUES."""
    return ", ".join(f"({id_}L, {part!r}, {value}D)" for id_, (part, value) in rows.items())


def source(rows: Rows) -> str:
    return f"(SELECT * FROM VALUES {values(rows)} AS v(id, part, value))"


def delete_formats(table: Table) -> set[tuple[str, str]]:
    """The contents and formats of the delete files."""
    files = table.inspect.delete_files()
    names = {1: "positions", 2: "equality"}
    return {
        (names[content], name.lower())
        for content, name in zip(files["content"].to_pylist(), files["file_format"].to_pylist(), strict=True)
    }
