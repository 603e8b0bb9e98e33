"""Comparing the bounds and counts of a column in a manifest with the values in its file."""

from __future__ import annotations

from typing import Any

from icefield.errors import InvalidArgument
from icefield.toolkit import value_from_bytes
from icefield.types import IcebergType


def wrong_bound(name: str, kind: IcebergType, encoded: bytes, value: Any, *, upper: bool) -> str:
    """The error in a bound, given the column's greatest or least ``value``; empty if there is none.

    A truncated bound is correct as long as it still bounds. ``value`` is None if the column has only nulls and NaNs.
    """
    if value is None:
        return ""
    try:
        stated = value_from_bytes(kind, encoded)
    except InvalidArgument as error:
        return f"the bound of column '{name}': {error}"
    try:
        bounds = stated >= value if upper else stated <= value
    except TypeError:
        return ""  # points have no order
    side = "greatest" if upper else "least"
    return "" if bounds else f"column '{name}' has {value!r}, and its manifest says {side} {stated!r}"


def wrong_count(name: str, what: str, found: int, stated: int) -> str:
    """The error in a count of a column's nulls or NaNs; empty if there is none."""
    return "" if found == stated else f"column '{name}' has {found:,} {what}, and its manifest says {stated:,}"
