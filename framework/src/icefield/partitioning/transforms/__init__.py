"""Partition and sort transforms, on whole Arrow arrays and on single values."""

from icefield.partitioning.transforms.base import Transform
from icefield.partitioning.transforms.bucket import BucketTransform
from icefield.partitioning.transforms.parse import parse_transform
from icefield.partitioning.transforms.temporal import (
    DayTransform,
    HourTransform,
    MonthTransform,
    TemporalTransform,
    YearTransform,
)
from icefield.partitioning.transforms.trivial import IdentityTransform, UnknownTransform, VoidTransform
from icefield.partitioning.transforms.truncate import TruncateTransform

__all__ = [
    "BucketTransform",
    "DayTransform",
    "HourTransform",
    "IdentityTransform",
    "MonthTransform",
    "TemporalTransform",
    "Transform",
    "TruncateTransform",
    "UnknownTransform",
    "VoidTransform",
    "YearTransform",
    "parse_transform",
]
