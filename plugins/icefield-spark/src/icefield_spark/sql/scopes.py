"""What a query asks of one of its tables: the conditions that are about it alone, and its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from icefield import Schema
from icefield.errors import InvalidArgument
from icefield.expressions import BooleanExpression
from sqlglot import exp

from icefield_spark.quoting import quoted
from icefield_spark.sql.pushdown import Pushdown, conjuncts
from icefield_spark.sql.sources import METADATA_COLUMNS, Source
from icefield_spark.sql.transform_filters import Buckets

Fold = Callable[[str], str]

_HIDDEN = frozenset({"SEMI", "ANTI"})


def renames(table: exp.Table) -> bool:
    """Whether an alias gives the columns of a table other names: ``AS q(a, b)``."""
    alias = table.args.get("alias")
    return alias is not None and bool(alias.args.get("columns"))


class Scope:
    """The SELECT in whose FROM a table stands."""

    def __init__(
        self, table: exp.Table, source: Source, schema: Schema, fold: Fold, zone: str, catalog: str = ""
    ) -> None:
        self._table = table
        self._fold = fold
        self._name = fold(table.alias or source.name[-1])
        by_name: dict[str, str | None] = {}
        for each in schema.fields:
            folded = fold(each.name)
            by_name[folded] = None if folded in by_name else each.name
        self._columns = by_name
        self._select, self._join = _place_of(table)
        self._pushdown = Pushdown(schema, self._column, zone, catalog)

    def filters(self) -> list[BooleanExpression]:
        """What every row of the table that has a part in the result matches."""
        select = self._select
        if select is None:
            return []
        absent = self._may_be_absent(select)
        found = [self._pushdown.filter(each, may_be_absent=absent) for each in self._of_where()]
        found += [self._pushdown.filter(each) for each in self._of_join()]
        return [each for each in found if each is not None]

    def buckets(self) -> list[Buckets]:
        """The buckets that every row of the table is in that has a part in the result."""
        found = map(self._pushdown.buckets, [*self._of_where(), *self._of_join()])
        return [each for each in found if each is not None]

    def _of_where(self) -> Iterator[exp.Expression]:
        """The conditions of the query, where they are about the rows of the table."""
        select = self._select
        if select is None or not self._is_plain:
            return iter(())
        if self._join is not None and self._join.kind in _HIDDEN:
            return iter(())  # what such a join looks at is not visible in WHERE, where its names are another's
        where = select.args.get("where")
        return conjuncts(where.this if where is not None else None)

    def _of_join(self) -> Iterator[exp.Expression]:
        """The conditions of the join, where a row of the table that they do not hold of has no part in the result."""
        if self._join is None or self._join.side not in ("", "LEFT"):
            return iter(())
        return conjuncts(self._join.args.get("on")) if self._is_plain else iter(())

    @property
    def _is_plain(self) -> bool:
        """Whether the rows and names of the table are those of the query."""
        return not (self._table.args.get("pivots") or self._table.args.get("sample") or renames(self._table))

    def _may_be_absent(self, select: exp.Select) -> bool:
        """Whether an outer join may put nulls in place of the table's columns."""
        joins = select.args.get("joins") or []
        mine = -1 if self._join is None else next(at for at, join in enumerate(joins) if join is self._join)
        if mine >= 0 and joins[mine].side in ("LEFT", "FULL"):
            return True
        return any(join.side in ("RIGHT", "FULL") for join in joins[mine + 1 :])

    def _column(self, column: exp.Column) -> str | None:
        """The table's column that a name means, where it can mean no other."""
        if not isinstance(column.this, exp.Identifier) or column.find_ancestor(exp.Select) is not self._select:
            return None
        name = self._columns.get(self._fold(column.name))
        if name is None:
            return None
        qualifier = column.parts[:-1]
        if qualifier:
            return name if self._fold(qualifier[-1].name) == self._name and len(qualifier) == 1 else None
        # Where another table has such a column too, Spark refuses the query.
        assert self._select is not None
        joins = self._select.args.get("joins") or []
        merged = any(join.args.get("using") or join.method == "NATURAL" for join in joins)
        return None if merged else name


def needed_columns(tree: exp.Expr, table: exp.Table, source: Source, schema: Schema, fold: Fold) -> list[str] | None:
    """The columns of a table whose names a statement spells, metadata columns included; None for all.

    A column that the statement does not spell can only be meant by a star and the like.
    """
    own = fold(table.alias or source.name[-1])
    columns = {fold(field.name) for field in schema.fields}
    others = {fold(each.alias_or_name) for each in tree.find_all(exp.Table, exp.Subquery)} - {own, ""} - columns
    spelt = {fold(each.name) for each in tree.find_all(exp.Identifier) if not _is_of(each, others, fold)}
    metadata = [name for name in METADATA_COLUMNS if name in spelt and not schema.has_field(name)]
    renamed = renames(table) or any("." in field.name for field in schema.fields)
    if renamed or _takes_all(tree, table, source, fold):
        if metadata:
            if expansions(table, source, schema, fold) is None:
                name = ".".join(source.name)
                raise InvalidArgument(f"name the columns of {name} in place of '*' where {metadata[0]} is asked for")
            return [*(field.name for field in schema.fields), *metadata]
        return None
    named = [field.name for field in schema.fields if fold(field.name) in spelt]
    if not named and not metadata:
        named = [_cheapest(schema)]
    return [*named, *metadata]


def expansions(table: exp.Table, source: Source, schema: Schema, fold: Fold) -> list[tuple[int, int, str]] | None:
    """The columns of a table in place of each ``*`` for all of them: first and last place, and what to write there.

    None where a star stands for more than them, or for fewer.
    """
    select, _ = _place_of(table)
    if select is None or renames(table) or table.args.get("pivots") or any(select.find_all(exp.Pivot)):
        return None
    alone = not select.args.get("joins") and not select.args.get("laterals")
    name = table.alias or source.name[-1]
    columns = ", ".join(quoted(name, field.name) for field in schema.fields)
    found = []
    for star in _stars(select):
        holder = star.parent
        first: exp.Expr = star
        if isinstance(holder, exp.Column):
            if fold(holder.table) != fold(name):
                continue
            first = holder.parts[0]
        elif isinstance(holder, exp.Count) and holder.this is star:
            continue
        elif not alone:
            return None
        if any(star.args.values()) or "start" not in first.meta or "end" not in star.meta:
            return None
        found.append((first.meta["start"], star.meta["end"], columns))
    return found


def _is_of(identifier: exp.Identifier, others: set[str], fold: Fold) -> bool:
    """Whether an identifier names a column of another table, by which it is qualified."""
    column = identifier.parent
    return isinstance(column, exp.Column) and column.this is identifier and fold(column.table) in others


def _takes_all(tree: exp.Expr, table: exp.Table, source: Source, fold: Fold) -> bool:
    select, _ = _place_of(table)
    if select is None or table.args.get("pivots") or any(select.find_all(exp.Pivot)):
        return True
    if any(join.method == "NATURAL" for join in select.args.get("joins") or []):
        return True
    name = fold(table.alias or source.name[-1])
    for star in _stars(select):
        holder = star.parent
        if isinstance(holder, exp.Column):
            if fold(holder.table) == name:
                return True
        elif not (isinstance(holder, exp.Count) and holder.this is star):
            return True
    return False


def _stars(select: exp.Select) -> Iterator[exp.Star]:
    for star in select.find_all(exp.Star):
        if star.find_ancestor(exp.Select) is select:
            yield star


def _place_of(table: exp.Table) -> tuple[exp.Select | None, exp.Join | None]:
    """The SELECT in whose FROM a table stands by itself, and its join where it is joined."""
    parent = table.parent
    join = parent if isinstance(parent, exp.Join) else None
    holder = parent.parent if isinstance(parent, exp.From | exp.Join) else None
    if not isinstance(holder, exp.Select) or table.args.get("joins"):
        return None, None
    return holder, join


def _cheapest(schema: Schema) -> str:
    """A column to read where none is asked for."""
    plain = [field for field in schema.fields if not field.field_type.is_nested]
    fixed = [field for field in plain if str(field.field_type) in ("boolean", "int", "date", "long")]
    return next(iter([*fixed, *plain, *schema.fields])).name
