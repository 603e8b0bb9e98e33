"""Partition and sort transforms, on whole Arrow arrays and on single values."""

from icefield.partitioning.transforms.base import Transform as Transform
from icefield.partitioning.transforms.bucket import BucketTransform as BucketTransform
from icefield.partitioning.transforms.parse import parse_transform as parse_transform
from icefield.partitioning.transforms.temporal import DayTransform as DayTransform
from icefield.partitioning.transforms.temporal import HourTransform as HourTransform
from icefield.partitioning.transforms.temporal import MonthTransform as MonthTransform
from icefield.partitioning.transforms.temporal import TemporalTransform as TemporalTransform
from icefield.partitioning.transforms.temporal import YearTransform as YearTransform
from icefield.partitioning.transforms.trivial import IdentityTransform as IdentityTransform
from icefield.partitioning.transforms.trivial import UnknownTransform as UnknownTransform
from icefield.partitioning.transforms.trivial import VoidTransform as VoidTransform
from icefield.partitioning.transforms.truncate import TruncateTransform as TruncateTransform
