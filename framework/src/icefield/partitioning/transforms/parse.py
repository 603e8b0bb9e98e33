"""From the string of a transform to the transform."""

from __future__ import annotations

import re

from icefield.errors import InvalidArgument
from icefield.partitioning.transforms.base import LARGEST_PARAMETER, Transform
from icefield.partitioning.transforms.bucket import BucketTransform
from icefield.partitioning.transforms.temporal import DayTransform, HourTransform, MonthTransform, YearTransform
from icefield.partitioning.transforms.trivial import IdentityTransform, UnknownTransform, VoidTransform
from icefield.partitioning.transforms.truncate import TruncateTransform

_SIMPLE: dict[str, Transform] = {
    str(transform): transform
    for transform in (
        IdentityTransform(),
        YearTransform(),
        MonthTransform(),
        DayTransform(),
        HourTransform(),
        VoidTransform(),
    )
}
_WITH_PARAMETER = re.compile(r"(bucket|truncate)\[([0-9]+)\]", re.ASCII)


def parse_transform(transform: str | Transform) -> Transform:
    """Parse a transform string; a transform object is returned unchanged.

    Case does not matter. An unknown string becomes an ``UnknownTransform`` that keeps it verbatim. Raises
    ``InvalidArgument`` for a bucket count or width out of range, and for an argument of another type.
    """
    if isinstance(transform, Transform):
        return transform
    if not isinstance(transform, str):
        raise InvalidArgument(f"a transform is given as a string or as an object, not {transform!r}")
    string = transform.lower()
    simple = _SIMPLE.get(string)
    if simple is not None:
        return simple
    match = _WITH_PARAMETER.fullmatch(string)
    if match is None:
        return UnknownTransform(transform)
    kind, digits = match.groups()
    if len(digits) > len(str(LARGEST_PARAMETER)):
        raise InvalidArgument(f"the parameter of transform {kind} must be from 1 to {LARGEST_PARAMETER}")
    return BucketTransform(int(digits)) if kind == "bucket" else TruncateTransform(int(digits))
