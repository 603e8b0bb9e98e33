"""Which table a name in a query means, by the places where the names of a query are visible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import takewhile, zip_longest
from operator import is_not

from icefield.errors import InvalidArgument
from sqlglot import exp

from icefield_spark.sql.scopes import Fold

Name = tuple[str, ...]


def is_common(table: exp.Table, fold: Fold) -> bool:
    """Whether a name means a common table expression: one of a WITH around it, before its place in the list.

    In its own query an expression is visible under ``WITH RECURSIVE`` alone.
    """
    if len(table.parts) != 1:
        return False
    name = fold(table.name)
    below: exp.Expr = table
    while below.parent is not None:
        node = below.parent
        if isinstance(node, exp.With):
            visible = [*takewhile(partial(is_not, below), node.expressions), *([below] if node.recursive else [])]
            assert node.parent is not None
            node = node.parent  # whose WITH this is
        else:
            clause = node.args.get("with_")
            visible = [] if clause is None else clause.expressions
        if any(fold(each.alias) == name for each in visible):
            return True
        below = node
    return False


def qualifiers(tree: exp.Expr, found: Mapping[int, Name], fold: Fold) -> Iterator[list[exp.Expr]]:
    """The names of tables with a namespace, or the catalog, before columns: the parts of each, the last one included.

    ``found``: the whole names of tables, with the catalog, by the ``id`` of their nodes; any end of it of two parts or
    more is the table's name. In the tree the last part alone is left before the column. Raises ``InvalidArgument``
    where another table is known by that part as well.
    """
    sources: dict[int, list[tuple[str, Name]]] = {}
    for source in tree.find_all(exp.Table, exp.Subquery, exp.Values, exp.Lateral, exp.Unnest):
        name = () if source.alias else tuple(map(fold, found.get(id(source), ())))
        known = fold(source.alias_or_name) if not name else name[-1]
        sources.setdefault(id(source.find_ancestor(exp.Select)), []).append((known, name))
    for column in list(tree.find_all(exp.Column)):
        parts = parts_of(column)
        names = tuple(fold(part.name) for part in parts[:-1])
        length = _qualifier_length(column, names, sources)
        if length:
            if length < len(column.parts):
                _shorten(column, length)
            yield parts[:length]


def parts_of(column: exp.Column) -> list[exp.Expr]:
    """The parts of a column's name, those of the fields inside of it as well; none where it is a function's name."""
    parts: list[exp.Expr] = list(column.parts)
    node: exp.Expr = column
    while isinstance(node.parent, exp.Dot) and node.arg_key == "this":
        node = node.parent
        if isinstance(node.expression, exp.Func):
            return []
        if not isinstance(node.expression, exp.Identifier | exp.Star):
            break
        parts.append(node.expression)
    return parts


def _qualifier_length(column: exp.Column, names: Name, sources: Mapping[int, list[tuple[str, Name]]]) -> int:
    """How many parts at the start of a column's name are that of a table in the nearest query that has it."""
    if len(names) < 2:
        return 0
    between: set[str] = set()
    select: exp.Expr | None = column
    while select is not None:
        select = select.find_ancestor(exp.Select)
        here = sources.get(id(select), [])
        for length in range(len(names), 1, -1):
            given = names[:length]
            if not any(name[-length:] == given for _, name in here):
                continue
            if given[-1] in between or [known for known, _ in here].count(given[-1]) > 1:
                raise InvalidArgument(
                    f"another table is called '{given[-1]}' where {'.'.join(given)} is: name it by AS"
                )
            return length
        between |= {known for known, _ in here}
    return 0


def _shorten(column: exp.Column, length: int) -> None:
    parts = [*column.parts[length - 1 :]]
    for key, part in zip_longest(("this", "table", "db", "catalog"), reversed(parts)):
        column.set(key, part)
