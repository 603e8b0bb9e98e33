"""Filters: expressions and their string form, and the evaluators and projections that a scan applies to them."""

from typing import TYPE_CHECKING

from icefield.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from icefield.expressions.arrow import evaluate as evaluate
    from icefield.expressions.arrow import relocate as relocate
    from icefield.expressions.arrow import to_arrow as to_arrow
    from icefield.expressions.binding import bind as bind
    from icefield.expressions.bound import BoundPredicate as BoundPredicate
    from icefield.expressions.bound import bound_leaves as bound_leaves
    from icefield.expressions.bound import field_ids as field_ids
    from icefield.expressions.bound import map_leaves as map_leaves
    from icefield.expressions.expressions import AlwaysFalse as AlwaysFalse
    from icefield.expressions.expressions import AlwaysTrue as AlwaysTrue
    from icefield.expressions.expressions import And as And
    from icefield.expressions.expressions import BooleanExpression as BooleanExpression
    from icefield.expressions.expressions import Not as Not
    from icefield.expressions.expressions import Op as Op
    from icefield.expressions.expressions import Or as Or
    from icefield.expressions.expressions import conjunction as conjunction
    from icefield.expressions.expressions import disjunction as disjunction
    from icefield.expressions.file_metrics import FileStatistics as FileStatistics
    from icefield.expressions.file_metrics import inclusive_metrics as inclusive_metrics
    from icefield.expressions.file_metrics import strict_metrics as strict_metrics
    from icefield.expressions.manifest_evaluator import FieldSummaries as FieldSummaries
    from icefield.expressions.manifest_evaluator import PartitionSummaries as PartitionSummaries
    from icefield.expressions.manifest_evaluator import manifests_may_match as manifests_may_match
    from icefield.expressions.parser import Filter as Filter
    from icefield.expressions.parser import as_expression as as_expression
    from icefield.expressions.parser import parse as parse
    from icefield.expressions.predicates import EqualTo as EqualTo
    from icefield.expressions.predicates import GreaterThan as GreaterThan
    from icefield.expressions.predicates import GreaterThanOrEqual as GreaterThanOrEqual
    from icefield.expressions.predicates import In as In
    from icefield.expressions.predicates import IsNaN as IsNaN
    from icefield.expressions.predicates import IsNull as IsNull
    from icefield.expressions.predicates import LessThan as LessThan
    from icefield.expressions.predicates import LessThanOrEqual as LessThanOrEqual
    from icefield.expressions.predicates import NotEqualTo as NotEqualTo
    from icefield.expressions.predicates import NotIn as NotIn
    from icefield.expressions.predicates import NotNaN as NotNaN
    from icefield.expressions.predicates import NotNull as NotNull
    from icefield.expressions.predicates import NotStartsWith as NotStartsWith
    from icefield.expressions.predicates import Reference as Reference
    from icefield.expressions.predicates import StartsWith as StartsWith
    from icefield.expressions.predicates import UnboundPredicate as UnboundPredicate
    from icefield.expressions.projection import inclusive_projection as inclusive_projection
    from icefield.expressions.projection import strict_projection as strict_projection
    from icefield.expressions.residual import Residuals as Residuals
    from icefield.expressions.residual import row_matches as row_matches

__getattr__, __dir__ = lazy_names(__name__)
