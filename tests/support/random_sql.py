"""Random queries, conditions and changes in Spark's SQL over two tables of known columns."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

COLUMNS: Final[dict[str, str]] = {
    "id": "bigint",
    "k": "int",
    "s": "string",
    "f": "double",
    "d": "date",
    "at": "timestamp",
    "n": "decimal(9, 2)",
    "b": "boolean",
    "home": "struct<city: string, zip: int>",
}
"""The columns of both tables, with their types in Spark."""

ROWS: Final = (
    "SELECT id, CAST(id % 5 AS INT) AS k, "
    "CASE WHEN id % 7 = 0 THEN NULL WHEN id % 3 = 0 THEN concat('a', id % 4) ELSE concat('B%_', id % 6) END AS s, "
    "CASE WHEN id % 11 = 0 THEN double('NaN') WHEN id % 13 = 0 THEN NULL WHEN id % 8 = 0 THEN -0.0D "
    "ELSE id * 0.5D - 20 END AS f, "
    "CASE WHEN id % 9 = 0 THEN NULL ELSE date_add(DATE'2024-02-25', CAST(id % 10 AS INT)) END AS d, "
    "timestamp_micros(1709000000000000 + id * 3600000001) AS at, "
    "CAST(id % 17 * 1.25 AS DECIMAL(9, 2)) AS n, "
    "CASE WHEN id % 6 = 0 THEN NULL ELSE id % 2 = 0 END AS b, "
    "CASE WHEN id % 10 = 0 THEN NULL ELSE named_struct('city', concat('c', id % 3), 'zip', CAST(id % 4 AS INT)) END "
    "AS home FROM range({start}, {end}, 1, 1)"
)
"""A query that gives rows of these columns, the same ones each time."""

_CONSTANTS: Final[dict[str, Sequence[str]]] = {
    "id": ("0", "3", "17", "-1", "41L", "7.5", "'12'", "1 + 2", "NULL", "9999999999"),
    "k": ("0", "2", "4", "2L", "1.0", "'3'", "-7", "NULL", "5000000000"),
    "s": ("'a1'", "'B%_2'", "''", "'zz'", "upper('a') || '1'", "NULL", "3"),
    "f": ("0", "-0.0D", "1.5", "double('NaN')", "-12.5D", "float(3)", "NULL", "'2'"),
    "d": ("DATE'2024-03-01'", "DATE'2024-02-25'", "'2024-03-02'", "date_sub(DATE'2024-03-05', 3)", "NULL",
          "TIMESTAMP'2024-03-01 10:00:00'"),
    "at": ("TIMESTAMP'2024-02-28 00:00:00'", "TIMESTAMP'2024-02-27 03:13:20.000001'", "'2024-02-28'",
           "DATE'2024-02-28'", "TIMESTAMP'2024-02-28 00:00:00' + INTERVAL 5 HOURS", "NULL"),
    "n": ("1.25", "0", "10", "3.75BD", "CAST(5 AS DECIMAL(20, 4))", "2.5D", "NULL"),
    "b": ("true", "false", "NULL"),
    "home.city": ("'c1'", "'c0'", "NULL", "lower('C2')"),
    "home.zip": ("0", "3", "2L", "NULL"),
}  # fmt: skip
_NUMBERS: Final = ("id", "k", "f", "n", "home.zip")
_COMPARED: Final = ("=", "<>", "<", "<=", ">", ">=", "<=>")


Clause = tuple[str, dict[str, str] | None]
"""A condition of MERGE, and the values that rows get by it; None where they are deleted."""


class RandomSql:
    """Statements that a seed decides."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def condition(self, alias: str = "", depth: int = 2) -> str:
        """A condition on the columns of a table: comparisons, lists, patterns and functions, joined and negated."""
        draw = self.random.random()
        if depth and draw < 0.25:
            word = self.random.choice(("AND", "OR"))
            return f"({self.condition(alias, depth - 1)} {word} {self.condition(alias, depth - 1)})"
        if depth and draw < 0.35:
            return f"NOT ({self.condition(alias, depth - 1)})"
        return self._simple(alias)

    def _simple(self, alias: str) -> str:
        choose, name = self.random.choice, self.random.choice(list(_CONSTANTS))
        column, constants = f"{alias}{name}", _CONSTANTS[name]
        kind = self.random.randrange(12)
        if kind == 0:
            return f"{column} IS {choose(('', 'NOT '))}NULL"
        if kind == 1:
            listed = ", ".join(self.random.sample(list(constants), self.random.randint(1, min(4, len(constants)))))
            return f"{column} {choose(('', 'NOT '))}IN ({listed})"
        if kind == 2 and name != "b":
            return f"{column} {choose(('', 'NOT '))}BETWEEN {choose(constants)} AND {choose(constants)}"
        if kind == 3:
            pattern = choose(("'a%'", "'%1'", "'B%'", "'B\\\\%\\\\_2'", "'_1'", "''"))
            return f"{alias}s {choose(('', 'NOT '))}LIKE {pattern}"
        if kind == 4:
            number = choose(_NUMBERS)
            function, limit = choose(("abs", "floor", "-", "sqrt")), choose(("1", "2", "0.5"))
            return f"{function}({alias}{number}) {choose(_COMPARED)} {limit}"
        if kind == 5:
            return f"{alias}{choose(_NUMBERS)} {choose(_COMPARED)} {alias}{choose(_NUMBERS)} + 1"
        if kind == 6:
            return choose((f"year({alias}at) = 2024", f"month({alias}d) = 3", f"hour({alias}at) < 7", f"{alias}b",
                           f"NOT {alias}b", f"isnan({alias}f)", f"length({alias}s) > 2", f"{alias}home IS NULL",
                           f"coalesce({alias}k, 1) = 1", f"CAST({alias}at AS DATE) = DATE'2024-02-28'",
                           f"CAST({alias}id AS STRING) LIKE '1%'", f"{alias}id % 3 = 1", f"left({alias}s, 1) = 'a'",
                           f"trunc({alias}d, 'MM') = DATE'2024-03-01'", f"nvl({alias}s, 'a1') = 'a1'",
                           f"CASE WHEN {alias}k > 2 THEN {alias}b ELSE {alias}id > 20 END"))  # fmt: skip
        left, right = column, choose(constants)
        if kind == 7:
            left, right = right, left
        return f"{left} {choose(_COMPARED)} {right}"

    def query(self, tables: tuple[str, str]) -> str:
        """A query on one or both of the tables; its result does not depend on an order of rows."""
        shape = self.random.choice((self._plain, self._joined, self._grouped, self._nested, self._united, self._ranked))
        found = shape(tables)
        if self.random.random() < 0.15:
            found = f"SELECT * FROM ({found}) AS whole"
        return found

    def _from(self, tables: tuple[str, str], name: str) -> str:
        """A table, or some of its rows, under a name."""
        table = self.random.choice(tables)
        if self.random.random() < 0.3:
            return f"(SELECT * FROM {table} WHERE {self.condition()}) AS {name}"
        return f"{table} AS {name}"

    def _columns(self, *names: str) -> str:
        columns = self.random.sample(list(COLUMNS), self.random.randint(1, 4))
        found = [f"{self.random.choice(names)}.{column} AS c{at}" for at, column in enumerate(columns)]
        if self.random.random() < 0.4:
            found.append(f"CAST({self.random.choice(names)}.{self.random.choice(_NUMBERS)} AS STRING) AS text")
        return ", ".join(found)

    def _plain(self, tables: tuple[str, str]) -> str:
        distinct = "DISTINCT " if self.random.random() < 0.2 else ""
        query = f"SELECT {distinct}{self._columns('x')} FROM {self._from(tables, 'x')} WHERE {self.condition('x.', 3)}"
        if self.random.random() < 0.3:
            inner = self._from(tables, "y")
            key = self.random.choice(("id", "k", "s", "d", "home.zip"))
            within = self.random.choice(
                (
                    f"x.{key} IN (SELECT y.{key} FROM {inner} WHERE {self.condition('y.')})",
                    f"EXISTS (SELECT 1 FROM {inner} WHERE y.{key} = x.{key} AND {self.condition('y.')})",
                    f"NOT EXISTS (SELECT 1 FROM {inner} WHERE y.{key} = x.{key} AND {self.condition('y.')})",
                    f"x.id > (SELECT max(y.k) FROM {inner} WHERE {self.condition('y.')})",
                    f"x.k = (SELECT count(*) % 5 FROM {inner} WHERE y.k = x.k AND {self.condition('y.')})",
                    f"x.{key} NOT IN (SELECT y.{key} FROM {inner} WHERE y.k = 2 AND {self.condition('y.')})",
                )
            )
            query += f" {self.random.choice(('AND', 'OR') if 'SELECT max' in within else ('AND',))} {within}"
        return query

    def _joined(self, tables: tuple[str, str]) -> str:
        kind = self.random.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"))
        key = self.random.choice(("id", "k", "d", "s", "home.zip"))
        shown = self._columns("x") if "SEMI" in kind or "ANTI" in kind else self._columns("x", "y")
        on = f"x.{key} = y.{key}" + (f" AND {self.condition('y.')}" if self.random.random() < 0.5 else "")
        if self.random.random() < 0.3:
            on += f" AND {self.condition('x.')}"
        return (
            f"SELECT {shown} FROM {self._from(tables, 'x')} {kind} {self._from(tables, 'y')} ON {on} "
            f"WHERE {self.condition('x.')}"
        )

    def _grouped(self, tables: tuple[str, str]) -> str:
        keys = self.random.sample(("x.k", "x.s", "x.d", "x.b", "x.home.city", "x.id % 3", "year(x.at)"), 2)
        counted = self.random.sample(
            ("count(*)", "count(x.f)", "sum(x.id)", "min(x.s)", "max(x.d)", "count(DISTINCT x.k)", "sum(x.n)",
             "max(x.f)", "min(x.at)", "bool_or(x.b)", "sum(x.k) FILTER (WHERE x.id > 10)", "count(DISTINCT 1)"), 3
        )  # fmt: skip
        named = ", ".join(f"{each} AS a{at}" for at, each in enumerate(counted))
        where = f"FROM {self._from(tables, 'x')} WHERE {self.condition('x.')}"
        if self.random.random() < 0.3:
            return f"SELECT {named} {where if self.random.random() < 0.6 else where[: where.rindex(' WHERE ')]}"
        having = f" HAVING count(*) > {self.random.randint(0, 4)}" if self.random.random() < 0.4 else ""
        sets = self.random.choice(("", "", " WITH ROLLUP"))
        return f"SELECT {keys[0]} AS g, {keys[1]} AS h, {named} {where} GROUP BY {keys[0]}, {keys[1]}{sets}{having}"

    def _nested(self, tables: tuple[str, str]) -> str:
        return (
            f"WITH one AS (SELECT id, k, s, d FROM {self.random.choice(tables)} WHERE {self.condition()}), "
            f"two AS (SELECT one.k, max(one.id) AS id, count(*) AS c FROM one WHERE one.k IS NOT NULL GROUP BY one.k) "
            f"SELECT one.*, two.c FROM one {self.random.choice(('', 'LEFT '))}JOIN two ON one.k = two.k "
            f"AND one.id <= two.id - {self.random.randint(0, 9)}"
        )

    def _united(self, tables: tuple[str, str]) -> str:
        word = self.random.choice(("UNION ALL", "UNION", "INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL"))
        columns = ", ".join(self.random.sample(list(COLUMNS), 3))
        parts = [f"SELECT {columns} FROM {self.random.choice(tables)} WHERE {self.condition()}" for _ in range(2)]
        return f" {word} ".join(parts)

    def _ranked(self, tables: tuple[str, str]) -> str:
        over = f"PARTITION BY x.{self.random.choice(('k', 'd', 'b'))} ORDER BY x.id"
        ranked = f"SELECT x.id, x.k, row_number() OVER ({over}) AS r, sum(x.n) OVER ({over}) AS t, x.s"
        inner = f"{ranked} FROM {self._from(tables, 'x')} WHERE {self.condition('x.')}"
        return f"SELECT * FROM ({inner}) WHERE r <= {self.random.randint(1, 6)} {self.random.choice(('', 'AND k > 1'))}"

    def change(self) -> tuple[str, str]:
        """A DELETE, UPDATE or MERGE of ``{table}``, and a query that computes its result from ``{model}``."""
        return self.random.choice((self._delete, self._update, self._merge, self._merge))()

    def _delete(self) -> tuple[str, str]:
        where = self.condition()
        return f"DELETE FROM {{table}} WHERE {where}", f"SELECT * FROM {{model}} WHERE NOT coalesce({where}, false)"

    def _update(self) -> tuple[str, str]:
        where, values = self.condition(), self._values("")
        changed = ", ".join(f"{name} = {value}" for name, value in values.items())
        made = _columns_of(
            "", {name: f"CASE WHEN {where} THEN {value} ELSE {name} END" for name, value in values.items()}
        )
        return f"UPDATE {{table}} SET {changed} WHERE {where}", f"SELECT {made} FROM {{model}}"

    def _merge(self) -> tuple[str, str]:
        source = f"(SELECT * FROM (SELECT id + {self.random.randint(0, 9)} AS id, k, s, f, d, at, n, b, home FROM two) "
        source += f"AS shifted WHERE {self.condition()})"
        both, mine, theirs = self._clauses(("t.", "s.")), self._clauses(("t.",)), self.condition("s.", 1)
        statement = f"MERGE INTO {{table}} t USING {source} s ON t.id = s.id" + _written("MATCHED", both)
        parts = [
            f"SELECT {_by_clause(both)} FROM {{model}} t JOIN {source} s ON t.id = s.id WHERE {_kept(both)}",
            f"SELECT {_by_clause(mine)} FROM {{model}} t LEFT ANTI JOIN {source} s ON t.id = s.id WHERE {_kept(mine)}",
        ]
        if not (both or mine) or self.random.random() < 0.7:
            statement += f" WHEN NOT MATCHED AND {theirs} THEN INSERT *"
            parts.append(f"SELECT s.* FROM {source} s LEFT ANTI JOIN {{model}} t ON t.id = s.id WHERE {theirs}")
        statement += _written("NOT MATCHED BY SOURCE", mine)
        return statement, " UNION ALL ".join(parts)

    def _clauses(self, aliases: Sequence[str]) -> list[Clause]:
        """Pairs of a condition and the new values of a row; the values are None for a deletion."""
        found: list[Clause] = []
        for _ in range(self.random.randint(0, 2)):
            where = self.condition(self.random.choice(aliases), 1)
            found.append((where, None if self.random.random() < 0.4 else self._values(self.random.choice(aliases))))
        return found

    def _values(self, alias: str) -> dict[str, str]:
        names = self.random.sample(list(_VALUES), self.random.randint(1, 3))
        return {name: self.random.choice(_VALUES[name]).format(alias) for name in names}


_VALUES: Final[dict[str, Sequence[str]]] = {
    "k": ("{0}k + 1", "CAST({0}id % 3 AS INT)", "NULL", "2"),
    "s": ("concat({0}s, 'x')", "NULL", "'new'", "CAST({0}id AS STRING)"),
    "f": ("{0}f * 2", "double('NaN')", "NULL", "{0}id"),
    "d": ("date_add({0}d, 1)", "NULL", "DATE'2024-03-01'"),
    "at": ("{0}at + INTERVAL 1 DAY", "{0}at"),
    "n": ("CAST({0}n + 1 AS DECIMAL(9, 2))", "NULL", "{0}k"),
    "b": ("NOT {0}b", "true", "NULL"),
    "home": ("NULL", "named_struct('city', {0}s, 'zip', {0}k)", "{0}home"),
}
"""Values that changes give to columns; the id identifies a row, and stays."""


def _written(of: str, clauses: Sequence[Clause]) -> str:
    """Clauses as MERGE has them."""
    found = ""
    for where, values in clauses:
        changed = ", ".join(f"{name} = {value}" for name, value in (values or {}).items())
        found += f" WHEN {of} AND {where} THEN {f'UPDATE SET {changed}' if values else 'DELETE'}"
    return found


def _columns_of(alias: str, values: dict[str, str]) -> str:
    """All columns of a row, some with other values."""
    return ", ".join(
        f"CAST({values[name]} AS {kind}) AS {name}" if name in values else f"{alias}{name} AS {name}"
        for name, kind in COLUMNS.items()
    )


def _by_clause(clauses: Sequence[Clause]) -> str:
    """All columns of a target row, changed by the first clause with a true condition."""
    values = {}
    for name in COLUMNS:
        cases = [
            f"WHEN {where} THEN CAST({(given or {}).get(name, f't.{name}')} AS {COLUMNS[name]})"
            for where, given in clauses
        ]
        if cases:
            values[name] = f"CASE {' '.join(cases)} ELSE t.{name} END"
    return _columns_of("t.", values)


def _kept(clauses: Sequence[Clause]) -> str:
    """The condition of the target rows that are not deleted."""
    cases = " ".join(f"WHEN {where} THEN {'false' if values is None else 'true'}" for where, values in clauses)
    return f"CASE {cases} ELSE true END" if cases else "true"
