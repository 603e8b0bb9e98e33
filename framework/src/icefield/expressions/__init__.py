"""Filters: expressions and their string form, and the evaluators and projections that a scan applies to them."""

from icefield.expressions.arrow import evaluate, relocate, to_arrow
from icefield.expressions.binding import bind
from icefield.expressions.bound import BoundPredicate, bound_leaves, field_ids, map_leaves
from icefield.expressions.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    Not,
    Op,
    Or,
    conjunction,
    disjunction,
)
from icefield.expressions.file_metrics import FileStatistics, inclusive_metrics, strict_metrics
from icefield.expressions.manifest_evaluator import (
    FieldSummaries,
    PartitionSummaries,
    has_live_files,
    manifests_may_match,
)
from icefield.expressions.parser import Filter, as_expression, parse
from icefield.expressions.predicates import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    Reference,
    StartsWith,
    UnboundPredicate,
)
from icefield.expressions.projection import inclusive_projection, strict_projection
from icefield.expressions.residual import Residuals, row_matches

__all__ = [
    "AlwaysFalse",
    "AlwaysTrue",
    "And",
    "BooleanExpression",
    "BoundPredicate",
    "EqualTo",
    "FieldSummaries",
    "FileStatistics",
    "Filter",
    "GreaterThan",
    "GreaterThanOrEqual",
    "In",
    "IsNaN",
    "IsNull",
    "LessThan",
    "LessThanOrEqual",
    "Not",
    "NotEqualTo",
    "NotIn",
    "NotNaN",
    "NotNull",
    "NotStartsWith",
    "Op",
    "Or",
    "PartitionSummaries",
    "Reference",
    "Residuals",
    "StartsWith",
    "UnboundPredicate",
    "as_expression",
    "bind",
    "bound_leaves",
    "conjunction",
    "disjunction",
    "evaluate",
    "field_ids",
    "has_live_files",
    "inclusive_metrics",
    "inclusive_projection",
    "manifests_may_match",
    "map_leaves",
    "parse",
    "relocate",
    "row_matches",
    "strict_metrics",
    "strict_projection",
    "to_arrow",
]
