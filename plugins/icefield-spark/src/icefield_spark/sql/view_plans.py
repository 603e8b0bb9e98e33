"""Checks of the parsed plan of a view's query: allowed nodes, relations and functions.

Other engines and people write views, and the text of a view runs in the driver of each reader. So the check reads the
same plan that Spark then resolves and runs, not a text that is parsed again. Everything outside the lists is refused,
so that no addition in a new version of Spark passes unseen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from icefield.errors import InvalidArgument, UnsupportedFeature
from pyspark.sql import SparkSession

from icefield_spark.jvm import is_object, items
from icefield_spark.running import REFERENCE
from icefield_spark.sql.calls import FUNCTIONS as ICEBERGS
from icefield_spark.sql.view_functions import FUNCTIONS

_CATALYST: Final = "org.apache.spark.sql.catalyst."
_VALUES: Final = (
    "org.apache.spark.sql.types.",
    "org.apache.spark.unsafe.types.",
    "java.lang.",
    "java.math.",
    "java.util.UUID",
)
_MOST_NODES: Final = 20_000
_MOST_DEEP: Final = 400

_RELATIONS: Final = frozenset({"UnresolvedRelation", "UnresolvedTableValuedFunction"})
_NODE_NAMES: Final = """
Add Aggregate AggregateExpression Alias AliasIdentifier And Any_ AnyValue Ascending$ AttributeReference
BaseGroupingSets Between BitwiseAnd BitwiseNot BitwiseOr BitwiseXor CaseWhen Cast Coalesce Collate Complete$ Concat
CreateArray CreateMap CreateNamedStruct CreateStruct Cross$ CTERelationRef Cube CurrentDate CurrentRow$ CurrentTime
CurrentTimestamp CurrentUser Descending$ Distinct Divide EqualNullSafe EqualTo Except Exists Expand ExprId Extract
Filter First FullOuter$ FunctionIdentifier Generate GenericInternalRow GetStructField GlobalLimit GreaterThan
GreaterThanOrEqual GroupingSets If ILike In Inner$ InSubquery IntegralDivide Intersect IsNotNull IsNotUnknown IsNull
IsUnknown Join JoinHint LambdaFunction Last LateralJoin LateralSubquery LeftAnti$ LeftOuter$ LeftSemi$ LessThan
LessThanOrEqual Like LikeAll LikeAny LimitAll ListQuery Literal LocalLimit LocalRelation LocalTimestamp Lower Mode
MultiAlias Multiply NamedArgumentExpression NamePlaceholder$ NaturalJoin Not NotLikeAll NotLikeAny NullsFirst$
NullsLast$ NumericEvalContext Offset OneRowRelation Or Overlay Percentile PercentileCont PercentileDisc PipeExpression
PipeOperator Pivot Project RangeFrame$ Remainder RepartitionByExpression RightOuter$ RLike Rollup RowFrame$ Sample
SampleMethod$Bernoulli$ SampleMethod$System$ ScalarSubquery SemiStructuredExtract ShiftLeft ShiftRight
ShiftRightUnsigned Sort SortOrder SpecifiedWindowFrame StringLocate StringTrim StringTrimBoth StringTrimLeft
StringTrimRight SubqueryAlias Substring Subtract TimestampAdd TimestampAddInterval TimestampDiff TryEval UnaryMinus
UnaryPositive UnboundedFollowing$ UnboundedPreceding$ Union UnionLoop Unnest Unpivot UnpivotExpr UnresolvedAlias
UnresolvedAttribute UnresolvedCollation UnresolvedExtractValue UnresolvedFunction UnresolvedGenerator UnresolvedHaving
UnresolvedHint UnresolvedInlineTable UnresolvedNamedLambdaVariable UnresolvedOrdinal UnresolvedPipeAggregateOrdinal
UnresolvedQualify UnresolvedRegex UnresolvedStar UnresolvedStarExcept UnresolvedStarExceptOrReplace
UnresolvedSubqueryColumnAliases UnresolvedTVFAliases UnresolvedWindowExpression UnresolvedWith UnspecifiedFrame$
UsingJoin WindowExpression WindowSpecDefinition WindowSpecReference WithWindowDefinition
"""
_NODES: Final = frozenset(_NODE_NAMES.split())
"""Classes of plans and expressions in parsed queries. None of them reads or runs anything."""


def refuse_variables(spark: SparkSession, analyzed: Any, name: str) -> None:
    """Raise ``UnsupportedFeature`` if the analyzed query of a view reads a variable of the session."""
    if _has_variables(spark) and _reads_a_variable(analyzed):
        raise UnsupportedFeature(f"view {name} reads a variable of the session, which is not for a view to know")


def _has_variables(spark: SparkSession) -> bool:
    """Whether the session has variables, which Spark 3.5 does not know."""
    manager = spark._jsparkSession.sessionState().catalogManager()
    return not spark.version.startswith("3.") and not manager.tempVariableManager().isEmpty()


def _reads_a_variable(plan: Any) -> bool:
    """Whether a variable is in an analyzed plan or in a subquery of it. Spark marks such plans from 4.1 on only."""
    plans = [plan, *items(plan.subqueriesAll())]
    for node in plans:
        plans += items(node.children())
    left = [each for node in plans for each in items(node.expressions())]
    for node in left:
        if node.getClass().getName() == f"{_CATALYST}expressions.VariableReference":
            return True
        left += items(node.children())
    return False


def check_stored(plan: Any, name: str, icebergs: Collection[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The names that a view's query reads, with repetitions. Spark never takes them for paths of files.

    ``icebergs``: the qualifiers under which Iceberg's functions of the view's catalog are called. Raises
    ``UnsupportedFeature`` for a query outside the lists of this module.
    """
    checked = _Checked(name, icebergs)
    checked.look(plan, frozenset(), 0)
    return checked.read


def check_text(string: str, name: str) -> None:
    """Raise ``UnsupportedFeature`` for a view's text in which Spark would substitute ``${...}``."""
    if REFERENCE in string:
        raise UnsupportedFeature(
            f"view {name} holds '{REFERENCE}', in place of which Spark puts settings and the environment of whoever "
            "reads it: write its query without"
        )


class _Checked:
    """Walks over a plan with all of its nodes and expressions, and checks them."""

    def __init__(self, name: str, icebergs: Collection[tuple[str, ...]]) -> None:
        self._icebergs = icebergs
        self._name = name
        self._nodes = 0
        self.read: list[tuple[str, ...]] = []

    def look(self, node: Any, known: frozenset[str], depth: int) -> None:
        """Check a node and its parts. ``known``: the common table expressions that are visible there."""
        if not is_object(node):
            return
        kind = str(node.getClass().getName())
        self._nodes += 1
        if self._nodes > _MOST_NODES or depth > _MOST_DEEP:
            raise InvalidArgument(f"view {self._name} has a query that is too long or nested too deeply")
        if kind.startswith("scala."):
            for each in _parts(node, kind):
                self.look(each, known, depth + 1)
            return
        if not kind.startswith(_CATALYST):
            if kind.startswith(_VALUES) or kind in (
                "java.util.UUID",
                "org.apache.spark.sql.util.CaseInsensitiveStringMap",
            ):
                return
            raise self._refused(kind)
        short = kind.rpartition(".")[2]
        if short in _RELATIONS or short in ("UnresolvedFunction", "UnresolvedGenerator"):
            getattr(self, f"_{short}")(node, known)
        elif short not in _NODES:
            raise self._refused(kind)
        if short in ("GenericInternalRow", "UnresolvedRelation"):
            return
        if short == "UnresolvedWith":
            known = self._with(node, known, depth)
            self.look(node.child(), known, depth + 1)
            return
        for at in range(node.productArity()):
            self.look(node.productElement(at), known, depth + 1)

    def _with(self, node: Any, known: frozenset[str], depth: int) -> frozenset[str]:
        """Check the common table expressions of a WITH; return all that are visible after them."""
        recursive = node.productArity() > 2 and bool(node.allowRecursion())  # Spark 3.5 has no recursion
        for relation in items(node.cteRelations()):
            own = known | {str(relation._1()).lower()}
            self.look(relation._2(), own if recursive else known, depth + 1)
            known = own
        return known

    def _UnresolvedRelation(self, node: Any, known: frozenset[str]) -> None:  # noqa: N802
        parts = [str(each) for each in items(node.multipartIdentifier())]
        if not node.options().isEmpty() or node.isStreaming():
            raise UnsupportedFeature(f"view {self._name} reads {'.'.join(parts)!r}, which is no table of the catalog")
        if len(parts) > 1 or parts[0].lower() not in known:
            self.read.append(tuple(parts))

    def _UnresolvedTableValuedFunction(self, node: Any, known: frozenset[str]) -> None:  # noqa: N802
        self._called([str(each) for each in items(node.name())])

    def _UnresolvedFunction(self, node: Any, known: frozenset[str]) -> None:  # noqa: N802
        self._called([str(each) for each in items(node.nameParts())])

    def _UnresolvedGenerator(self, node: Any, known: frozenset[str]) -> None:  # noqa: N802
        name = node.name()
        before = [each.get() for each in (name.catalog(), name.database()) if each.isDefined()]
        self._called([*map(str, before), str(name.funcName())])

    def _called(self, parts: list[str]) -> None:
        if parts[-1].lower() in ICEBERGS and tuple(parts[:-1]) in self._icebergs:
            return
        if [each.lower() for each in parts[:-1]] not in ([], ["builtin"], ["system", "builtin"]):
            raise UnsupportedFeature(f"view {self._name} calls {'.'.join(parts)!r}, which is none of Spark's functions")
        if parts[-1].lower() not in FUNCTIONS:
            raise UnsupportedFeature(
                f"view {self._name} calls {parts[-1]!r}: the functions of a view are those of Spark that compute from "
                "their arguments alone"
            )

    def _refused(self, kind: str) -> UnsupportedFeature:
        what = kind.rpartition(".")[2].rstrip("$")
        if what == "ScriptTransformation":
            return UnsupportedFeature(f"view {self._name} runs a program by TRANSFORM")
        return UnsupportedFeature(f"view {self._name} has a query with {what} in it, which no view may have")


def _parts(node: Any, kind: str) -> Iterator[Any]:
    """The items of a collection, option or tuple of Scala."""
    if kind.startswith("scala.collection."):
        yield from items(node.toSeq())
    elif kind == "scala.Some" or kind.startswith("scala.Tuple"):
        yield from (node.productElement(at) for at in range(node.productArity()))
    elif kind.startswith("scala.util.") or kind not in ("scala.None$", "scala.Enumeration$Val"):
        raise UnsupportedFeature(f"a query of a view cannot be looked through: it has a {kind}")
