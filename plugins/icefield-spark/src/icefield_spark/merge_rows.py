"""A merge as a join of the table and its source. Each joined row carries its operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_

from icefield import Schema
from icefield.errors import InvalidArgument
from icefield.expressions import BooleanExpression, conjunction
from icefield.transaction import WriteResult
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as spark

from icefield_spark.assigning import Fold, Path, by_column, check_stored, default_values, fold_of, paths, values_of
from icefield_spark.changing import ChangedTable
from icefield_spark.comparisons import Side
from icefield_spark.conditions import Expression, Said, expression, said_of
from icefield_spark.keys import KeyFilter
from icefield_spark.merge_keys import key_columns
from icefield_spark.merging import add_columns
from icefield_spark.pinning import pinned
from icefield_spark.places import ROW
from icefield_spark.quoting import quoted
from icefield_spark.row_changes import columns_of, commit_changes, optional_columns
from icefield_spark.row_level import Target
from icefield_spark.row_writer import DELETE, INSERT, KEEP, OPERATION

MATCHED, NEW, LEFT = "MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"

_THERE = "icefield_is_source"
_OF = "icefield_of"
_CLAUSE = "icefield_clause"
_NONE = -1


@dataclass(frozen=True)
class WhenClause:
    """One WHEN clause: the kind of rows, the condition, the operation and the new values."""

    of: str
    condition: Expression | None
    operation: int
    values: Mapping[Path, Expression] | None
    """None if all columns take the values of the source."""


@dataclass(frozen=True)
class _Understood:
    """A clause as Spark's columns."""

    clause: WhenClause
    condition: Column | None
    values: Mapping[str, Column]
    """New values by columns of the table; other columns keep their values."""


@dataclass(frozen=True)
class MergeFrame:
    """A merge of a frame into a table."""

    source: DataFrame
    on: Expression | Sequence[str]
    clauses: Sequence[WhenClause]
    names: tuple[str, str] = ("target", "source")
    """The aliases of the table and of the source in all expressions."""
    evolves: bool = False
    """Whether columns that the source has more are added to the table."""

    def run(self, target: Target) -> WriteResult:
        """Merge and commit.

        Raises ``InvalidArgument`` for invalid clauses, and for a row that several rows of the source would change.
        """
        self._check()
        session, schema = self.source.sparkSession, target.table.schema()
        subject = ChangedTable.of(session, target, self.names[0], self._expressions())
        if self.evolves and any(each.values is None for each in self.clauses):
            with target.table.transaction() as transaction:
                add_columns(transaction, self.source.schema, fold_of(session) is str)
                schema = transaction.shape.schema()
                understood = self._understood(subject, schema)
            target = replace(target, table=target.table.refresh())
            subject = replace(subject, target=target)
        else:
            understood = self._understood(subject, schema)
        if any(each.of == LEFT for each in self.clauses):
            return self._commit(subject, understood, self.source, None, None)
        # Rows of the table that cannot match the source are left out of the join.
        said = self._said(subject)
        filters = [said.concern(target.table)]
        compared = key_columns(schema, self.source, said.pairs)
        if compared is None:
            return self._commit(subject, understood, self.source, filters, None)
        with pinned(self.source) as held:
            if held is None:  # only the join may read it then
                return self._commit(subject, understood, self.source, filters, None)
            keys, bounds = compared.read(held)
            return self._commit(subject, understood, held, [*filters, *bounds], keys)

    def _check(self) -> None:
        if not self.clauses:
            raise InvalidArgument("this merge does nothing: say what is to become of rows by its when_... methods")
        whole: set[str] = set()
        for clause in self.clauses:
            if clause.of in whole:
                raise InvalidArgument(
                    f"of several clauses WHEN {clause.of} only the last may have no condition: no row reaches others"
                )
            if clause.condition is None:
                whole.add(clause.of)

    def _expressions(self) -> list[Expression]:
        """All expressions that may name columns."""
        found: list[Expression] = [quoted(name) for name in self._keys]
        if not found:
            found.append(self.on)  # type: ignore[arg-type]
        for clause in self.clauses:
            found += [] if clause.condition is None else [clause.condition]
            found += (clause.values or {}).values()
        return found

    @property
    def _keys(self) -> Sequence[str]:
        """The columns of the key; empty if there is a condition."""
        return self.on if isinstance(self.on, Sequence) and not isinstance(self.on, str) else ()

    def _condition(self, session: SparkSession) -> Column:
        if not self._keys:
            return expression(session, self.on)  # type: ignore[arg-type]
        mine, given = self.names
        return reduce(and_, [f.col(quoted(mine, name)) == f.col(quoted(given, name)) for name in self._keys])

    def _said(self, subject: ChangedTable) -> Said:
        if not self._keys:
            source = Side(self.names[1], self.source.schema)
            return said_of(subject.session, self.on, subject.side(), source)  # type: ignore[arg-type]
        fold = fold_of(subject.session)
        mine = {fold(field.name): field.name for field in subject.target.table.schema().fields}
        given = {fold(name): name for name in self.source.columns}
        return Said(pairs=[(mine[name], given[name]) for name in map(fold, self._keys) if name in mine])

    # -- resolving the clauses ----------------------------------------------------------------------------------------

    def _understood(self, subject: ChangedTable, schema: Schema) -> list[_Understood]:
        """The clauses with names resolved and values checked by Spark, each on the sides that it applies to."""
        session, columns = subject.session, optional_columns(schema)
        mine = subject.empty(schema)
        given = self._marked(self.source)
        both = mine.crossJoin(given)
        scopes = {MATCHED: both, NEW: given.withColumn(ROW, f.lit(None)).alias(self.names[1]), LEFT: mine}
        check_stored(session, both, columns, {}, self._condition(session))
        fold = fold_of(session)
        defaults = default_values(session, schema, columns)
        found: list[_Understood] = []
        for clause in self.clauses:
            condition = None if clause.condition is None else expression(session, clause.condition)
            values = {}
            if clause.operation != DELETE:
                assigned = self._all(columns, fold) if clause.values is None else clause.values
                values = values_of(session, schema, paths(columns, assigned, fold, self.names[0]))
            if clause.operation == INSERT and any(len(path) > 1 for path in values):
                raise InvalidArgument("INSERT gives values to whole columns, not to the field of one")
            check_stored(session, scopes[clause.of], columns, values, condition)
            made = by_column(columns, values, self.names[0])
            found.append(_Understood(clause, condition, {**defaults, **made} if clause.operation == INSERT else made))
        return found

    def _all(self, columns: spark.StructType, fold: Fold) -> dict[Path, Expression]:
        """The columns of the source for the table's columns of the same names."""
        known = {fold(name): name for name in self.source.columns}
        found: dict[Path, Expression] = {}
        for each in columns.fields:
            name = known.get(fold(each.name))
            if name is not None:
                found[(each.name,)] = f.col(quoted(self.names[1], name))
            elif not self.evolves:
                raise InvalidArgument(f"the source has no column '{each.name}', which * takes from it")
        return found

    def _marked(self, source: DataFrame) -> DataFrame:
        return source.select("*", f.lit(True).alias(_THERE)).alias(self.names[1])

    # -- the rows -----------------------------------------------------------------------------------------------------

    def _commit(
        self,
        subject: ChangedTable,
        clauses: Sequence[_Understood],
        source: DataFrame,
        filters: Sequence[BooleanExpression] | None,
        keys: KeyFilter | None,
    ) -> WriteResult:
        """Join and commit. ``filters`` and ``keys`` select the rows of the table to read."""
        concern = None if filters is None else conjunction(list(filters))
        writes = any(each.operation != DELETE for each in self.clauses)
        named = [field.name for field in subject.target.table.schema().fields]
        named = named if writes else subject.read_by(self._expressions())
        rows = subject.rows(named, where=concern, keys=keys)
        joined = rows.join(self._marked(source), self._condition(subject.session), _kind(self.clauses))
        changes = self._changes(subject, joined, clauses, [*named, *subject.metadata])
        matched = [each for each in self.clauses if each.of == MATCHED]
        one_delete = len(matched) == 1 and matched[0].operation == DELETE and matched[0].condition is None
        return commit_changes(
            subject.session,
            subject.target,
            changes,
            concern=concern,
            one_source_row=bool(matched) and not one_delete,
        )

    def _changes(
        self, subject: ChangedTable, joined: DataFrame, clauses: Sequence[_Understood], read: Sequence[str]
    ) -> DataFrame:
        """The rows of a join as changes. ``read``: the table's columns in the join.

        The conditions of clauses are evaluated once a row. Clauses of a kind see only the columns of the sides that
        they are about.
        """
        target, columns, (alias, other) = subject.target, columns_of(subject.target), self.names
        old = {name: f"icefield_old_{at}" for at, name in enumerate([*read, *target.kept_of_rows])}
        is_mine, is_given = f.col(ROW).isNotNull(), f.col(_THERE).isNotNull()
        frame = joined.withColumns(
            {
                _OF: f.when(is_mine & is_given, MATCHED).when(is_given, NEW).otherwise(LEFT),
                _CLAUSE: f.lit(None).cast("int"),
                **{held: f.col(quoted(alias, name)) for name, held in old.items()},
            }
        )
        carried: dict[str, spark.DataType] = {}
        for of in (MATCHED, NEW, LEFT):
            held = [ROW, _THERE, _OF, _CLAUSE, *old.values(), *carried]
            if of == NEW:
                names = [name for name in self.source.columns if self.source.columns.count(name) == 1]
                frame = frame.select(*held, *(f.col(quoted(other, name)) for name in names))
            elif of == LEFT:
                frame = frame.select(*held, *(f.col(old[name]).alias(name) for name in read)).alias(alias)
            chosen = [(number, each) for number, each in enumerate(clauses) if each.clause.of == of]
            if not chosen:
                continue
            guards = [
                f.col(_OF) == of if each.condition is None else (f.col(_OF) == of) & each.condition
                for _, each in chosen
            ]
            cases = [(guard, f.lit(number)) for guard, (number, _) in zip(guards, chosen, strict=True)]
            frame = frame.withColumn(_CLAUSE, _case(cases, f.col(_CLAUSE)))
            values = {
                _held(number, at): (f.when(f.col(_CLAUSE) == number, each.values[column.name]), column.dataType)
                for number, each in chosen
                for at, column in enumerate(columns.fields)
                if column.name in each.values
            }
            frame = frame.withColumns({name: value for name, (value, _) in values.items()})
            carried |= {name: kind for name, (_, kind) in values.items()}
        return self._as_stored(subject, frame, clauses, carried, old)

    def _as_stored(
        self,
        subject: ChangedTable,
        frame: DataFrame,
        clauses: Sequence[_Understood],
        values: Mapping[str, spark.DataType],
        old: Mapping[str, str],
    ) -> DataFrame:
        """The changes. Each value is cast to the type of its column before one clause's values are chosen."""
        target, columns = subject.target, columns_of(subject.target)
        kept = [f.col(name) for name in (ROW, _THERE, _CLAUSE, *old.values())]
        frame = frame.select(*kept, *map(f.col, values))
        plain = [each for each in frame.schema.fields if each.name not in values]
        stored = [spark.StructField(name, kind) for name, kind in values.items()]
        frame = frame.to(spark.StructType([*plain, *stored]))
        done = [(f.col(_CLAUSE) == number, f.lit(each.clause.operation)) for number, each in enumerate(clauses)]
        listed = [
            _case(done, f.when(f.col(ROW).isNotNull(), KEEP).otherwise(_NONE)).alias(OPERATION),
            f.col(ROW),
            f.col(_THERE),
            *((f.col(old[name]) if name in old else f.lit(None).cast("long")).alias(name) for name in target.lineage),
        ]
        for at, column in enumerate(columns.fields):
            none = f.lit(None).cast(column.dataType)
            cases = [
                (f.col(_CLAUSE) == number, f.col(_held(number, at) if column.name in each.values else old[column.name]))
                for number, each in enumerate(clauses)
                if each.clause.operation != DELETE
            ]
            listed.append(_case(cases, none).alias(column.name))
        matters = (f.col(OPERATION) > KEEP) | ((f.col(OPERATION) == KEEP) & f.col(_THERE).isNotNull())
        return frame.select(*listed).where(matters)


def _held(number: int, at: int) -> str:
    """The name of the column with a clause's values for a column of the table."""
    return f"icefield_new_{number}_{at}"


def _case(cases: Sequence[tuple[Column, Column]], rest: Column) -> Column:
    """The value of the first case that holds."""
    if not cases:
        return rest
    (condition, value), *more = cases
    found = f.when(condition, value)
    for condition, value in more:
        found = found.when(condition, value)
    return found.otherwise(rest)


def _kind(clauses: Sequence[WhenClause]) -> str:
    """The type of the join that gives exactly the rows that the clauses need."""
    keeps = any(each.of == LEFT for each in clauses)
    inserts = any(each.of == NEW for each in clauses)
    return {(True, True): "full", (True, False): "left", (False, True): "right"}.get((keeps, inserts), "inner")
