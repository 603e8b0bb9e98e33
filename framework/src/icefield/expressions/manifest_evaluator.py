"""Selects the manifests that may list a relevant file, by their entries in the manifest list, in one pass per column.

Spec: Manifest Lists, Scan Planning. Information that a manifest list lacks is unknown and keeps the manifest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from icefield.expressions.bound import BoundPredicate
from icefield.expressions.bounds import Bounds, Mask, to_mask
from icefield.expressions.expressions import BooleanExpression, Op
from icefield.expressions.file_metrics import NAN_MAY_MATCH, combine
from icefield.types import StructType
from icefield.types.values import from_bytes_array


@dataclass(frozen=True, slots=True)
class FieldSummaries:
    """The summaries of one partition field over many manifests: null (or None for all) where a manifest has none.

    ``lower`` and ``upper`` are decoded, of the field's Arrow type. ``has_bounds`` says whether the manifest list has
    either bound, decodable or not. A summary without bounds has no values but null and NaN; a summary with bounds that
    cannot be decoded may have any value. If ``has_bounds`` is None, it is derived from ``lower`` and ``upper``.
    """

    contains_null: pa.BooleanArray | None = None
    contains_nan: pa.BooleanArray | None = None
    lower: pa.Array | None = None
    upper: pa.Array | None = None
    has_bounds: Mask | None = None


@dataclass(frozen=True, slots=True)
class PartitionSummaries:
    """The summaries of ``num_manifests`` manifests of one spec; ``fields`` by the id of the partition field."""

    num_manifests: int
    fields: dict[int, FieldSummaries] = field(default_factory=dict)

    @classmethod
    def decode(
        cls,
        partition_type: StructType,
        num_manifests: int,
        summaries: Sequence[tuple[Any, Any, Any, Any]],
        only: frozenset[int] | None = None,
    ) -> PartitionSummaries:
        """Decode the field summaries of manifest lists.

        ``summaries`` has for each field of the partition type, by position, the arrays ``contains_null``,
        ``contains_nan``, ``lower`` and ``upper`` (bounds as bytes; any may be None). ``only``: ids of the fields to
        decode. Fields that the manifest lists lack are unknown.
        """
        fields = {}
        for one, (contains_null, contains_nan, lower, upper) in zip(partition_type.fields, summaries, strict=False):
            if only is not None and one.field_id not in only:
                continue
            fields[one.field_id] = FieldSummaries(
                contains_null,
                contains_nan,
                None if lower is None else from_bytes_array(one.field_type, lower),
                None if upper is None else from_bytes_array(one.field_type, upper),
                _present(lower, num_manifests) | _present(upper, num_manifests),
            )
        return cls(num_manifests, fields)


def manifests_may_match(expression: BooleanExpression, summaries: PartitionSummaries) -> Mask:
    """For each manifest, whether it may list a file in a matching partition.

    ``expression`` is bound to the partition type of the manifests' own spec: an inclusive projection. Raises
    ``InvalidExpression`` if it is not bound.
    """
    size = summaries.num_manifests
    return combine(expression, size, lambda leaf: ~_excluded(leaf, summaries))


def _excluded(leaf: BoundPredicate, summaries: PartitionSummaries) -> Mask:
    size = summaries.num_manifests
    found = summaries.fields.get(leaf.field.field_id)
    if found is None:
        return np.zeros(size, np.bool_)
    has_null, no_null = _known(found.contains_null, size)
    has_nan, no_nan = (
        _known(found.contains_nan, size) if leaf.is_floating else (np.zeros(size, np.bool_), np.ones(size, np.bool_))
    )
    has_bounds = found.has_bounds
    if has_bounds is None:
        has_bounds = _present(found.lower, size) | _present(found.upper, size)
    nothing = ~has_bounds & (has_null | has_nan)
    match leaf.op:
        case Op.IS_NULL:
            return no_null
        case Op.NOT_NULL:
            return nothing & no_nan
        case Op.IS_NAN:
            return no_nan
        case Op.NOT_NAN:
            return nothing & no_null
    excluded = nothing | Bounds(leaf, found.lower, found.upper, size).exclude(leaf.op, leaf)
    return excluded & no_nan if leaf.is_floating and leaf.op in NAN_MAY_MATCH else excluded


def _known(flags: Any, size: int) -> tuple[Mask, Mask]:
    """Where a flag is known to be true, and where it is known to be false."""
    if flags is None:
        nowhere = np.zeros(size, np.bool_)
        return nowhere, nowhere
    is_true = to_mask(flags)
    return is_true, to_mask(flags.is_valid()) & ~is_true


def _present(array: Any, size: int) -> Mask:
    return np.zeros(size, np.bool_) if array is None else to_mask(array.is_valid())
