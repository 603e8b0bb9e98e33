"""The types of the arguments of Iceberg's functions, as Spark resolves them.

Spark knows no function whose type depends on the type of its argument and that is written in Python. So the argument is
resolved first, by a query of it alone over tables without rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from icefield.errors import InvalidArgument
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType
from sqlglot import exp

from icefield_spark.running import run_sql
from icefield_spark.sql.calls import VERSION, calls_in

_EMPTY = "icefield_empty_{}"
_FOUND = "icefield_argument"
_AFTER = ("order", "sort", "cluster", "distribute", "limit", "offset")

FrameOf = Callable[[exp.Table], tuple[str, DataFrame] | None]
"""The alias and an empty frame of a table of the tree; None for what is Spark's."""


class ArgumentTypes:
    """Tells the types of the arguments of the calls in one statement."""

    def __init__(self, spark: SparkSession, tree: exp.Expr, catalog: str, frame_of: FrameOf) -> None:
        self._spark = spark
        self._tree = tree.copy()
        self._frames: dict[str, DataFrame] = {}
        self._arguments: dict[int, Sequence[exp.Expr]] = {}
        self._known: dict[str, DataType] = {}
        for table in list(self._tree.find_all(exp.Table)):
            found = frame_of(table)
            if found is not None:
                self._put_empty(table, *found)
        for call in calls_in(self._tree, catalog):
            self._arguments[call.start] = call.arguments
            call.node.replace(_typed_alike(call.name, call.arguments))

    def of(self, start: int) -> list[DataType]:
        """The types of the arguments of the call that begins at a place of the statement.

        Raises what Spark raises for an argument that means nothing.
        """
        return [self._of(node) for node in self._arguments[start]]

    def _put_empty(self, table: exp.Table, alias: str, frame: DataFrame) -> None:
        name = _EMPTY.format(len(self._frames))
        self._frames[name] = frame
        for part in ("db", "catalog"):
            table.set(part, None)
        table.set("this", exp.to_identifier(name, quoted=True))
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))

    def _of(self, node: exp.Expr) -> DataType:
        failure: PySparkException | None = None
        for query in _queries(node):
            if query in self._known:
                return self._known[query]
            try:
                found = self._schema_of(query)
            except PySparkException as error:
                failure = failure or error
                continue
            self._known[query] = found
            return found
        if failure is not None:
            raise failure
        raise InvalidArgument(f"the type of {node.sql('spark'):.100} cannot be told here; use it in a SELECT")

    def _schema_of(self, query: str) -> DataType:
        string = query.replace("{", "{{").replace("}", "}}")
        given = {name: frame for name, frame in self._frames.items() if f"`{name}`" in string}
        for name in given:
            string = string.replace(f"`{name}`", f"{{{name}}}")
        return run_sql(self._spark, string if given else query, given).schema.fields[-1].dataType


def _typed_alike(name: str, arguments: Sequence[exp.Expr]) -> exp.Expr:
    """An expression of the type of a call, with the arguments in it."""
    if name == VERSION or not arguments:
        return exp.Literal.string("")
    result = arguments[-1]
    if name != "truncate":
        value, kind = ("1970-01-01", "date") if name == "days" else ("0", "int")
        result = exp.Anonymous(this="nvl2", expressions=[result, exp.cast(exp.Literal.string(value), kind), exp.Null()])
    for each in arguments[:-1]:
        result = exp.Anonymous(this="nvl2", expressions=[each, result, exp.Null()])
    return result


def _queries(node: exp.Expr) -> Iterator[str]:
    """Queries whose last column is an expression of a statement, the likeliest first."""
    holder, clause = _holder(node)
    if holder is None or node.find(exp.Column) is None:
        yield f"SELECT {node.sql('spark')} AS {_FOUND}"
    if holder is None:
        return
    inner = list(_inner(node, holder, clause))
    around = list(_around(holder))
    for depth in range(len(around) + 1):
        for query in inner:
            for outer in around[:depth]:
                query = f"SELECT {_FOUND} FROM {outer} CROSS JOIN LATERAL ({query}) AS icefield_lateral"
            yield f"{_with(holder)}{query}"


def _holder(node: exp.Expr) -> tuple[exp.Select | exp.SetOperation | None, str]:
    """The query that an expression is a part of, and the clause that it stands in."""
    while node.parent is not None:
        clause, node = str(node.arg_key), node.parent
        if isinstance(node, exp.Select | exp.SetOperation):
            return node, clause
    return None, ""


def _inner(node: exp.Expr, holder: exp.Select | exp.SetOperation, clause: str) -> Iterator[str]:
    value = f"{node.sql('spark')} AS {_FOUND}"
    bare = holder.copy()
    for name in (*_AFTER, "with_"):
        bare.set(name, None)
    ordered = f"SELECT {value} FROM ({bare.sql('spark')})"
    if clause in _AFTER:  # what the query calls its columns comes first there
        yield ordered
    if not isinstance(holder, exp.Select):
        return
    yield f"SELECT {value}{_from(holder)}"
    yield bare.select(value, append=True, dialect="spark").sql("spark")


def _from(select: exp.Select) -> str:
    pieces = [select.args.get("from_"), *(select.args.get("joins") or ()), *(select.args.get("laterals") or ())]
    found = " ".join(piece.sql("spark") for piece in pieces if piece is not None)
    return f" {found}" if found else ""


def _around(holder: exp.Expr) -> Iterator[str]:
    """The FROM clauses of the queries whose columns a subquery may name, the nearest first."""
    while holder.parent is not None:
        is_source = isinstance(holder.parent, exp.From | exp.Join) and holder.arg_key == "this"
        if is_source or isinstance(holder, exp.CTE):
            return
        holder = holder.parent
        if isinstance(holder, exp.Select) and holder.args.get("from_") is not None:
            yield _from(holder).strip().removeprefix("FROM ")


def _with(node: exp.Expr) -> str:
    """The WITH clause of all names that a query knows; the nearest of a name counts."""
    found: dict[str, str] = {}
    below: exp.Expr | None = None
    current: exp.Expr | None = node
    while current is not None:
        clause = current.args.get("with_")
        named = [] if clause is None else clause.expressions
        if below in named:
            named = named[: named.index(below)]
        for each in reversed(named):
            found.setdefault(each.alias.lower(), each.sql("spark"))
        below = current if isinstance(current, exp.CTE) else below
        current = current.parent
    return f"WITH {', '.join(reversed(found.values()))} " if found else ""
