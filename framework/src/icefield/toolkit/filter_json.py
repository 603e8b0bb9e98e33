"""Filters in the JSON of the REST protocol, written."""

from __future__ import annotations

from typing import Any, Final

from icefield.expressions import AlwaysFalse, AlwaysTrue, BooleanExpression, BoundPredicate, Op
from icefield.toolkit.filters import translate_filter
from icefield.types.values import to_json

_NAMES: Final = {
    Op.IS_NULL: "is-null",
    Op.NOT_NULL: "not-null",
    Op.IS_NAN: "is-nan",
    Op.NOT_NAN: "not-nan",
    Op.LT: "lt",
    Op.LT_EQ: "lt-eq",
    Op.GT: "gt",
    Op.GT_EQ: "gt-eq",
    Op.EQ: "eq",
    Op.NOT_EQ: "not-eq",
    Op.STARTS_WITH: "starts-with",
    Op.NOT_STARTS_WITH: "not-starts-with",
    Op.IN: "in",
    Op.NOT_IN: "not-in",
}
_SETS: Final = (Op.IN, Op.NOT_IN)
_UNARY: Final = (Op.IS_NULL, Op.NOT_NULL, Op.IS_NAN, Op.NOT_NAN)


def filter_to_json(expression: BooleanExpression, *, values: bool = True) -> Any:
    """A bound filter as JSON, in the form that older programs can read, too.

    If ``values`` is false, the types replace the values, so that the JSON reveals no data. Raises ``InvalidArgument``
    for a filter with a value that JSON cannot hold, such as infinity.
    """
    if isinstance(expression, AlwaysTrue | AlwaysFalse):
        return isinstance(expression, AlwaysTrue)

    def leaf(predicate: BoundPredicate) -> Any:
        kind = predicate.field.field_type
        made: dict[str, Any] = {"type": _NAMES[predicate.op], "term": ".".join(predicate.path)}
        if predicate.op in _SETS:
            made["values"] = [to_json(kind, value) for value in predicate.value] if values else [f"({kind})"]
        elif predicate.op not in _UNARY:
            made["value"] = to_json(kind, predicate.value) if values else f"({kind})"
        return made

    return translate_filter(expression, leaf, lambda parts: _joined("and", parts), lambda parts: _joined("or", parts))


def _joined(kind: str, parts: list[Any]) -> Any:
    """Parts in pairs of pairs, so that many of them are not nested deep."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return {"type": kind, "left": _joined(kind, parts[:middle]), "right": _joined(kind, parts[middle:])}
