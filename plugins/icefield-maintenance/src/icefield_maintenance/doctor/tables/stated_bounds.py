"""What is said of a column in a manifest, next to what its file holds."""

from __future__ import annotations

from typing import Any

from icefield.errors import InvalidArgument
from icefield.types import IcebergType
from icefield.types.values import from_bytes


def wrong_bound(name: str, kind: IcebergType, encoded: bytes, value: Any, *, upper: bool) -> str:
    """What is wrong with a bound of a column whose greatest or least value is given; empty where nothing is.

    A bound that was truncated still bounds. ``value`` is None where the column holds nothing but nulls and NaNs.
    """
    if value is None:
        return ""
    try:
        stated = from_bytes(kind, encoded)
    except InvalidArgument as error:
        return f"the bound of column '{name}': {error}"
    try:
        bounds = stated >= value if upper else stated <= value
    except TypeError:
        return ""  # points have no order
    side = "greatest" if upper else "least"
    return "" if bounds else f"column '{name}' has {value!r}, and its manifest says {side} {stated!r}"


def wrong_count(name: str, what: str, found: int, stated: int) -> str:
    """What is wrong with a count of a column's nulls or NaNs; empty where nothing is."""
    return "" if found == stated else f"column '{name}' has {found:,} {what}, and its manifest says {stated:,}"
