"""Partition specs, sort orders and transforms."""

from icefield.base.lazy_names import public_names
from icefield.partitioning.sort_order import UNSORTED as UNSORTED
from icefield.partitioning.sort_order import NullOrder as NullOrder
from icefield.partitioning.sort_order import SortDirection as SortDirection
from icefield.partitioning.sort_order import SortField as SortField
from icefield.partitioning.sort_order import SortOrder as SortOrder
from icefield.partitioning.sort_order import sort_order_from_json as sort_order_from_json
from icefield.partitioning.sort_order import sort_order_to_json as sort_order_to_json
from icefield.partitioning.spec import UNPARTITIONED as UNPARTITIONED
from icefield.partitioning.spec import PartitionField as PartitionField
from icefield.partitioning.spec import PartitionSpec as PartitionSpec
from icefield.partitioning.spec import spec_from_json as spec_from_json
from icefield.partitioning.spec import spec_to_json as spec_to_json

__all__ = public_names(__name__)
