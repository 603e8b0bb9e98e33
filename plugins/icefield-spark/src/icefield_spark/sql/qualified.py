"""Columns that a statement names through their table, as Spark resolves them.

A table without an alias is known by every end of its whole name: ``t``, ``db.t`` and ``catalog.db.t``. One with an
alias is known by the alias alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from icefield.errors import InvalidArgument
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from icefield_spark.quoting import quoted
from icefield_spark.sql.naming import parts_of
from icefield_spark.sql.parsing import Cursor
from icefield_spark.sql.scopes import Fold
from icefield_spark.sql.sources import METADATA_COLUMNS, Names

_BEFORE = "SELECT "
_INNER = (exp.Query, exp.Values)
_RELATIONS = (exp.Table, exp.Subquery, exp.UDTF, exp.Lateral)


def names_table(qualifier: Sequence[str], whole: Sequence[str], fold: Fold) -> bool:
    """Whether what stands before a column names a table: it is the table's whole name, or an end of it."""
    size = len(qualifier)
    return 0 < size <= len(whole) and list(map(fold, qualifier)) == list(map(fold, whole[-size:]))


def whole_name(names: Names, parts: tuple[str, ...]) -> tuple[str, ...]:
    """The name of a table with its namespace and its catalog; a table of Spark's keeps the name as it is written."""
    is_ours = names.find(parts) is not None or names.view(parts) is not None
    return (names.catalog_name, *names.local(parts)) if is_ours else parts


@dataclass(frozen=True)
class Relation:
    """A table of a statement, as its columns are named."""

    name: tuple[str, ...]
    """Its alias, or its whole name where it has none."""
    columns: Sequence[str]
    alias: str
    """What the queries call it that are made of the statement."""

    def qualifier(self, names: Sequence[str], fold: Fold) -> int:
        """How many of the parts of a column's name are the table's, the most that can be, as Spark takes them."""
        columns = {fold(name) for name in (*self.columns, *METADATA_COLUMNS)}
        for size in range(min(len(self.name), len(names) - 1), 0, -1):
            if names_table(names[:size], self.name, fold) and fold(names[size]) in columns:
                return size
        return 0


def take_name(names: Names, cursor: Cursor, parts: tuple[str, ...], end: str) -> tuple[tuple[str, ...], str]:
    """Take the alias after a table's name, if any: what the table is known by, and what queries are to call it."""
    if not cursor.takes("AS") and (cursor.is_over or cursor.sees(end)):
        return whole_name(names, parts), parts[-1]
    alias = cursor.name("an alias")
    return (alias,), alias


class Qualifiers:
    """Rewrites conditions and values of a statement for the queries that are made of it."""

    def __init__(self, names: Names, fold: Fold, before: str, relations: Sequence[Relation]) -> None:
        """``before``: the WITH clause in front of the statement. ``relations``: the tables that it is about."""
        self._names = names
        self._fold = fold
        self._relations = relations
        self._before = _ctes(parse_one(f"{before}SELECT 1", read="spark")) if before else frozenset()

    def applied(self, string: str, only: Relation | None = None) -> str:
        """A condition or value in which columns are named through the aliases that the queries give.

        ``only``: the table that bare names are of. Raises ``InvalidArgument`` for what is no single expression, and
        for a name that would be another's in the queries.
        """
        tree = _expression(string)
        ctes = {self._fold(name) for name in self._before | _ctes(tree)}
        edits: dict[tuple[int, int], str] = {}
        for column in tree.find_all(exp.Column):
            edit = self._edit(tree, column, only, ctes)
            if edit is not None:
                edits[edit[:2]] = edit[2]
        for (start, end), new in sorted(edits.items(), reverse=True):
            string = string[:start] + new + string[end:]
        return string

    def _edit(
        self, tree: exp.Expr, column: exp.Column, only: Relation | None, ctes: set[str]
    ) -> tuple[int, int, str] | None:
        """What is to be put in which place, for a column to be found by its table's alias."""
        chain = parts_of(column)
        if not chain or isinstance(column.this, exp.Star):
            return None
        is_own = _is_outermost(tree, column)
        names = [part.name for part in chain]
        size, found = self._found(names)
        if found is None:
            if is_own and only is not None and self._fold(names[0]) in map(self._fold, only.columns):
                return _place(chain[0])[0], _place(chain[0])[0], f"{quoted(only.alias)}."
            return None
        if size == 1 and self._fold(found.alias) == self._fold(names[0]):
            return None
        if not is_own and self._is_inner(tree, column, names[:size], found, ctes):
            return None
        return _place(chain[0])[0], _place(chain[size - 1])[1], quoted(found.alias)

    def _found(self, names: Sequence[str]) -> tuple[int, Relation | None]:
        sizes = [each.qualifier(names, self._fold) for each in self._relations]
        most = max(sizes)
        if not most:
            return 0, None
        if sizes.count(most) > 1:
            raise InvalidArgument(f"'{'.'.join(names)}' may be of both tables of the statement: give them aliases")
        return most, self._relations[sizes.index(most)]

    def _is_inner(
        self, tree: exp.Expr, column: exp.Column, qualifier: Sequence[str], found: Relation, ctes: set[str]
    ) -> bool:
        """Whether a table of a subquery is meant. Raises ``InvalidArgument`` where one hides that of the statement."""
        for relation in _around(tree, column):
            if self._is_meant(relation, qualifier, ctes):
                return True
            if self._fold(relation.alias_or_name) == self._fold(found.alias):
                raise InvalidArgument(
                    f"'{'.'.join(qualifier)}' is a table outside of a subquery which has another "
                    f"'{relation.alias_or_name}': give one of them an alias"
                )
        return False

    def _is_meant(self, relation: exp.Expr, qualifier: Sequence[str], ctes: set[str]) -> bool:
        if relation.alias or not isinstance(relation, exp.Table):
            return names_table(qualifier, (relation.alias,), self._fold)
        parts = tuple(part.name for part in relation.parts)
        if len(parts) == 1 and self._fold(parts[0]) in ctes:
            return names_table(qualifier, parts, self._fold)
        return names_table(qualifier, whole_name(self._names, parts), self._fold)


def _expression(string: str) -> exp.Select:
    """The tree of a query that gives a condition or value, and does nothing else."""
    try:
        tree = parse_one(_BEFORE + string, read="spark")
    except SqlglotError as error:
        message = str(error).splitlines()[0].rstrip(".")
        raise InvalidArgument(f"the expression cannot be understood: {string:.200}: {message}") from error
    more = [name for name, value in tree.args.items() if value and name != "expressions"]
    if not isinstance(tree, exp.Select) or more or len(tree.expressions) != 1:
        raise InvalidArgument(f"one expression was expected, and nothing after it: {string:.200}")
    if isinstance(tree.expressions[0], exp.Alias):
        raise InvalidArgument(f"an expression has no name here: {string:.200}")
    if any(_is_outermost(tree, star) for star in tree.find_all(exp.Star)):
        raise InvalidArgument(f"name the columns in place of '*': {string:.200}")
    return tree


def has_query(string: str) -> bool:
    """Whether a condition or value asks other tables."""
    return next(_expression(string).expressions[0].find_all(exp.Query), None) is not None


def _is_outermost(tree: exp.Expr, node: exp.Expr) -> bool:
    """Whether what stands in an expression stands in no query of it."""
    around: object = node.find_ancestor(*_INNER)
    return around is tree


def _ctes(tree: exp.Expr) -> frozenset[str]:
    return frozenset(cte.alias for cte in tree.find_all(exp.CTE))


def _place(part: exp.Expr) -> tuple[int, int]:
    """Where a name begins, and where the string goes on after it."""
    start, end = part.meta.get("start"), part.meta.get("end")
    if start is None or end is None:
        raise InvalidArgument(f"the place of '{part.name}' in the statement was not found")
    return int(start) - len(_BEFORE), int(end) + 1 - len(_BEFORE)


def _around(tree: exp.Expr, column: exp.Column) -> Iterator[exp.Expr]:
    """The tables of the subqueries that a column stands in, those of the innermost first."""
    select = column.find_ancestor(exp.Select)
    while select is not None and select is not tree:
        yield from (each for each in select.find_all(*_RELATIONS) if each.find_ancestor(exp.Select) is select)
        select = select.find_ancestor(exp.Select)
