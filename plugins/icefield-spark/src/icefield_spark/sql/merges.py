"""``MERGE INTO``, as a join of the table and its source whose rows say what becomes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from icefield import Schema
from icefield.errors import InvalidArgument
from icefield.expressions import BooleanExpression, conjunction
from icefield.metadata import MAIN_BRANCH
from pyspark.sql import DataFrame

from icefield_spark.keys import KeyFilter
from icefield_spark.merging import add_columns
from icefield_spark.pinning import pinned
from icefield_spark.places import ROW
from icefield_spark.quoting import quoted, spelt_type
from icefield_spark.row_changes import (
    DELETE,
    INSERT,
    KEEP,
    OPERATION,
    UPDATE,
    columns_of,
    commit_changes,
    on_branch,
    optional_columns,
)
from icefield_spark.row_level import Target
from icefield_spark.sql.assigning import Path, assignments, by_column, path_of, stored
from icefield_spark.sql.columns import fold_of, is_case_sensitive
from icefield_spark.sql.context import Context
from icefield_spark.sql.defaults import constant_of, default_of
from icefield_spark.sql.dml import TARGET, queries_on, relation_of, target_of, without_rows
from icefield_spark.sql.merge_keys import Side, key_columns
from icefield_spark.sql.parsing import Cursor
from icefield_spark.sql.qualified import Qualifiers, Relation, take_name

_SOURCE = "icefield_source"
_THERE = "icefield_is_source"
_UNNAMED = "icefield_unnamed"
"""The alias of a source that is given none."""
_NONE = -1
_WHEN, _END = ("WHEN",), ("THEN",)
_MATCHED, _NEW, _LEFT = "matched", "not matched", "not matched by source"


@dataclass(frozen=True)
class _Clause:
    """One WHEN: of which rows, on which condition, and what is done with which values."""

    of: str
    condition: str
    operation: int
    values: Mapping[str, str]


@dataclass(frozen=True)
class _Sides:
    """The two sides of a merge, by their aliases and columns."""

    target: Target
    schema: Schema
    """The columns that the clauses are about."""

    mine: Relation
    given: Relation
    evolves: bool = False
    """Whether a star leaves out columns that the source does not have."""

    @property
    def alias(self) -> str:
        """What the queries call the table."""
        return self.mine.alias

    @property
    def source_alias(self) -> str:
        """What the queries call the source."""
        return self.given.alias

    @property
    def source_columns(self) -> Sequence[str]:
        """The columns of the source."""
        return self.given.columns

    def of(self, schema: Schema) -> _Sides:
        """The sides where the table has other columns."""
        return replace(self, schema=schema, mine=replace(self.mine, columns=[field.name for field in schema.fields]))

    def qualifiers(self, context: Context) -> Qualifiers:
        """What rewrites the conditions and values of the clauses."""
        return Qualifiers(context.names, fold_of(context), context.before, [self.mine, self.given])


def merge(context: Context, cursor: Cursor) -> DataFrame:
    """``MERGE``; the cursor stands after it."""
    evolves = cursor.takes("WITH", "SCHEMA", "EVOLUTION")
    cursor.expect("INTO")
    parts = cursor.names("the name of a table")
    target = target_of(context, parts, "merge")
    if target is None:
        return context.passed(cursor)
    mine = relation_of(context, cursor, parts, target.table.schema(), "USING")
    _refuse_columns(cursor)
    cursor.expect("USING")
    source, given = _source(context, cursor)
    if fold_of(context)(given.alias) == fold_of(context)(mine.alias):
        given = replace(given, alias=_UNNAMED)
    _refuse_columns(cursor)
    cursor.expect("ON")
    _check_conditions(Cursor(cursor.statement, cursor.at, cursor.end))
    sides = _Sides(target, target.table.schema(), mine, given, evolves)
    on = sides.qualifiers(context).applied(cursor.until(_WHEN))
    _stored(context, sides, source, _MATCHED, {}, on)
    if evolves and _takes_all(cursor):
        sides, clauses = _evolved(context, cursor, sides, source)
    else:
        clauses = _clauses(context, cursor, sides, source)
    if any(each.of == _LEFT for each in clauses):
        _run(context, sides, source, on, clauses, None, None)
        return context.nothing()
    # Rows of the table that cannot meet any of the source have no part in the join.
    filters = queries_on(context, target).filters_of(f"SELECT 1 FROM {TARGET} AS {quoted(sides.alias)} WHERE {on}")
    table, other = Side(sides.alias, columns_of(target).names), Side(sides.source_alias, sides.source_columns)
    compared = key_columns(target, source, on, table, other, fold_of(context))
    if compared is None:
        _run(context, sides, source, on, clauses, filters, None)
        return context.nothing()
    with pinned(source) as held:
        if held is None:  # only the join may read it then
            _run(context, sides, source, on, clauses, filters, None)
            return context.nothing()
        keys, bounds = compared.read(held)
        _run(context, sides, held, on, clauses, [*filters, *bounds], keys)
    return context.nothing()


def _run(
    context: Context,
    sides: _Sides,
    source: DataFrame,
    on: str,
    clauses: list[_Clause],
    filters: Sequence[BooleanExpression] | None,
    keys: KeyFilter | None,
) -> None:
    """Join and commit. ``filters`` and ``keys``: what rows of the table match that are read."""
    target = sides.target
    where = conjunction(filters) if filters else None
    columns = ", ".join(_columns(sides, clauses))
    inner = f"SELECT {columns} FROM {_joined(sides, on, _kind(clauses))}"
    matters = f"{OPERATION} >= {KEEP} AND ({OPERATION} > {KEEP} OR {_THERE})"
    query = f"{context.before}SELECT * FROM ({inner}) AS changes WHERE {matters}"
    frame = queries_on(context, target, where=where, keys=keys).frame(query, frames={_SOURCE: source})
    matched = [each for each in clauses if each.of == _MATCHED]
    one_delete = len(matched) == 1 and matched[0].operation == DELETE and not matched[0].condition
    commit_changes(
        context.spark,
        target,
        frame.drop(_THERE),
        concern=where,
        one_source_row=bool(matched) and not one_delete,
    )


def _takes_all(cursor: Cursor) -> bool:
    """Whether a clause that comes takes all columns of the source."""
    places = range(cursor.at, cursor.end)
    return any(cursor.statement.is_word(at, word, "*") for at in places for word in ("SET", "INSERT"))


def _evolved(context: Context, cursor: Cursor, sides: _Sides, source: DataFrame) -> tuple[_Sides, list[_Clause]]:
    """The target with the columns that its source has more, added in a commit of their own, as Spark does.

    They are added once the clauses, which know them, are understood.
    """
    target = sides.target
    with target.table.transaction() as transaction:
        add_columns(transaction, source.schema, is_case_sensitive(context))
        sides = sides.of(transaction.shape.schema())
        clauses = _clauses(context, cursor, sides, source)
    branch = None if target.branch == MAIN_BRANCH else target.branch
    made = on_branch(target.table.refresh(), branch, target.kind, target.strings)
    return replace(sides, target=made).of(made.table.schema()), clauses


def _clauses(context: Context, cursor: Cursor, sides: _Sides, source: DataFrame) -> list[_Clause]:
    """Take all that is left: one clause or more."""
    clauses = []
    while not cursor.is_over:
        clauses.append(_clause(context, cursor, sides, source))
    if not clauses:
        raise cursor.unexpected("WHEN MATCHED or WHEN NOT MATCHED")
    return clauses


def _joined(sides: _Sides, on: str, kind: str) -> str:
    source = f"(SELECT *, true AS {_THERE} FROM {_SOURCE}) AS {quoted(sides.source_alias)}"
    return f"{TARGET} AS {quoted(sides.alias)} {kind} JOIN {source} ON {on}"


def _kind(clauses: list[_Clause]) -> str:
    """The join that gives every row that matters, and no more."""
    keeps = any(each.of == _LEFT for each in clauses)
    inserts = any(each.of == _NEW for each in clauses)
    return {(True, True): "FULL", (True, False): "LEFT", (False, True): "RIGHT"}.get((keeps, inserts), "INNER")


def _is_matched(sides: _Sides) -> str:
    return f"({_is_there(sides)} AND {quoted(sides.source_alias)}.{_THERE} IS NOT NULL)"


def _is_there(sides: _Sides) -> str:
    return f"{quoted(sides.alias)}.{ROW} IS NOT NULL"


def _guard(sides: _Sides, clause: _Clause) -> str:
    """When a clause is asked at all, and its condition."""
    of = {
        _MATCHED: _is_matched(sides),
        _NEW: f"{quoted(sides.alias)}.{ROW} IS NULL",
        _LEFT: f"{quoted(sides.source_alias)}.{_THERE} IS NULL",
    }[clause.of]
    return f"{of} AND ({clause.condition})" if clause.condition else of


def _operation(sides: _Sides, clauses: list[_Clause]) -> str:
    """Which operation becomes of a row of the join."""
    cases = " ".join(f"WHEN {_guard(sides, each)} THEN {each.operation}" for each in clauses)
    return f"CASE {cases} WHEN {_is_there(sides)} THEN {KEEP} ELSE {_NONE} END"


def _columns(sides: _Sides, clauses: list[_Clause]) -> list[str]:
    target, alias = sides.target, quoted(sides.alias)
    operation = _operation(sides, clauses)
    found = [f"{operation} AS {OPERATION}", f"{alias}.{ROW} AS {ROW}"]
    if target.lineage:
        first, last = target.lineage
        found.append(f"{alias}.{first} AS {first}")
        found.append(f"CASE WHEN ({operation}) = {KEEP} THEN {alias}.{last} END AS {last}")
    for each in columns_of(target).fields:
        # Rows that no clause writes need no value.
        cases = [
            f"WHEN {_guard(sides, clause)} THEN {clause.values.get(each.name, quoted(sides.alias, each.name))}"
            if clause.operation != DELETE
            else f"WHEN {_guard(sides, clause)} THEN NULL"
            for clause in clauses
        ]
        value = f"CASE {' '.join(cases)} END"
        if all(clause.operation == DELETE for clause in clauses):
            value = f"CAST(NULL AS {spelt_type(each.dataType)})"
        found.append(f"{value} AS {quoted(each.name)}")
    found.append(f"coalesce({_is_matched(sides)}, false) AS {_THERE}")
    return found


def _source(context: Context, cursor: Cursor) -> tuple[DataFrame, Relation]:
    """Take what is merged, and how the clauses name its columns."""
    start = cursor.at
    if cursor.sees("("):
        cursor.enclosed()
        query = cursor.statement.between(start, cursor.at)
        alias = _UNNAMED
        if cursor.takes("AS") or not cursor.sees("ON"):
            alias = cursor.name("an alias of the source")
        name: tuple[str, ...] = (alias,)
    else:
        parts = cursor.names("the source of the merge")
        if cursor.sees("("):
            cursor.enclosed()  # a function that gives a table
        query = cursor.statement.between(start, cursor.at)
        name, alias = take_name(context.names, cursor, parts, "ON")
    source = context.queries.frame(f"{context.before}SELECT * FROM {query}")
    return source, Relation(name, source.columns, alias)


def _refuse_columns(cursor: Cursor) -> None:
    """Raise ``InvalidArgument`` for names of columns after an alias."""
    if cursor.sees("("):
        raise InvalidArgument(
            "Spark takes no names of columns after an alias in MERGE: write USING (SELECT * FROM VALUES (1, 'a') AS "
            "v(id, name)) AS s"
        )


def _check_conditions(cursor: Cursor) -> None:
    """Raise ``InvalidArgument`` for a clause that no row reaches, since one of its kind before it takes all."""
    whole: set[str] = set()
    cursor.until(_WHEN)
    while cursor.takes("WHEN"):
        of = _kind_of(cursor)
        if of in whole:
            raise InvalidArgument(
                f"of several clauses WHEN {of.upper()} only the last may have no condition: no row reaches the others"
            )
        if not cursor.sees("AND"):
            whole.add(of)
        cursor.until(_WHEN)


def _kind_of(cursor: Cursor) -> str:
    """Take ``MATCHED`` and its like: which rows a clause is about."""
    new = cursor.takes("NOT")
    cursor.expect("MATCHED")
    if new and cursor.takes("BY", "SOURCE"):
        return _LEFT
    if new:
        cursor.takes("BY", "TARGET")
    return _NEW if new else _MATCHED


def _clause(context: Context, cursor: Cursor, sides: _Sides, source: DataFrame) -> _Clause:
    """Take one WHEN with its THEN."""
    cursor.expect("WHEN")
    of = _kind_of(cursor)
    condition = cursor.until(_END) if cursor.takes("AND") else ""
    cursor.expect("THEN")
    qualifiers, only = sides.qualifiers(context), {_NEW: sides.given, _LEFT: sides.mine}.get(of)
    if condition:
        condition = qualifiers.applied(condition, only)
    operation, given = _given(context, cursor, sides, of)
    given = {path: qualifiers.applied(value, only) for path, value in given.items()}
    values = _stored(context, sides, source, of, given, condition)
    columns = optional_columns(sides.schema)
    nulls = {field.name: constant_of(field) for field in sides.schema.fields} if operation == INSERT else {}
    return _Clause(of, condition, operation, {**nulls, **by_column(columns, values, sides.alias)})


def _given(context: Context, cursor: Cursor, sides: _Sides, of: str) -> tuple[int, dict[Path, str]]:
    """Take what follows THEN: the operation, and the values that it gives."""
    if of == _NEW:
        cursor.expect("INSERT")
        return INSERT, _inserted(context, cursor, sides)
    if cursor.takes("DELETE"):
        return DELETE, {}
    cursor.expect("UPDATE", "SET")
    if not cursor.takes("*"):
        return UPDATE, assignments(context, sides.schema, cursor, sides.mine, _WHEN)
    if of == _LEFT:
        raise InvalidArgument("WHEN NOT MATCHED BY SOURCE has no row of the source for UPDATE SET *")
    return UPDATE, _all_columns(context, sides)


def _stored(
    context: Context, sides: _Sides, source: DataFrame, of: str, values: Mapping[Path, str], condition: str
) -> dict[Path, str]:
    """The values of a clause as they are stored, after Spark has judged them and the condition.

    It is asked about the tables alone that the clause is about: no column of another may be meant.
    """
    if not values and not condition:
        return {}
    mine, given = f"{TARGET} AS {quoted(sides.alias)}", f"{_SOURCE} AS {quoted(sides.source_alias)}"
    tables = {_NEW: given, _LEFT: mine}.get(of, f"{mine} CROSS JOIN {given}")
    frames = {_SOURCE: source}
    if of != _NEW:
        frames[TARGET] = without_rows(context, sides.target, sides.schema, [*values.values(), condition])
    return stored(context, optional_columns(sides.schema), values, tables, frames, condition)


def _inserted(context: Context, cursor: Cursor, sides: _Sides) -> dict[Path, str]:
    columns = optional_columns(sides.schema)
    if cursor.takes("*"):
        return _all_columns(context, sides)
    names = []
    for item in cursor.enclosed().items():
        path = path_of(columns, item.names("a column"), sides.mine, fold_of(context))
        item.expect_end()
        if len(path) > 1:
            raise InvalidArgument(f"INSERT gives values to whole columns, not to the field {'.'.join(path)} of one")
        names.append(path)
    cursor.expect("VALUES")
    values = [item.rest() for item in cursor.enclosed().items()]
    if len(values) != len(names) or len(set(names)) < len(names):
        raise InvalidArgument(f"INSERT names {len(names)} columns and gives {len(values)} values")
    return {path: default_of(sides.schema, path, value) for path, value in zip(names, values, strict=True)}


def _all_columns(context: Context, sides: _Sides) -> dict[Path, str]:
    """The columns of the source for those of the table of the same names."""
    fold = fold_of(context)
    known = {fold(name): name for name in sides.source_columns}
    found: dict[Path, str] = {}
    for each in optional_columns(sides.schema).fields:
        name = known.get(fold(each.name))
        if name is None and sides.evolves:
            continue
        if name is None:
            raise InvalidArgument(f"the source has no column '{each.name}', which * takes from it")
        found[(each.name,)] = quoted(sides.source_alias, name)
    return found
