"""Partition and sort transforms, on whole Arrow arrays and on single values."""

from icefield.transforms.base import Transform
from icefield.transforms.bucket import BucketTransform
from icefield.transforms.identity import IdentityTransform
from icefield.transforms.parse import parse_transform
from icefield.transforms.temporal import (
    DayTransform,
    HourTransform,
    MonthTransform,
    TemporalTransform,
    YearTransform,
)
from icefield.transforms.truncate import TruncateTransform
from icefield.transforms.unknown import UnknownTransform
from icefield.transforms.void import VoidTransform

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
