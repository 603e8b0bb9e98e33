"""The types of the table format, their text form and promotions."""

from icefield.base.lazy_names import public_names
from icefield.types.nested import MAX_NESTING_DEPTH as MAX_NESTING_DEPTH
from icefield.types.nested import ListType as ListType
from icefield.types.nested import MapType as MapType
from icefield.types.nested import NestedField as NestedField
from icefield.types.nested import StructType as StructType
from icefield.types.primitive import DEFAULT_CRS as DEFAULT_CRS
from icefield.types.primitive import EDGE_ALGORITHMS as EDGE_ALGORITHMS
from icefield.types.primitive import MAX_FIXED_LENGTH as MAX_FIXED_LENGTH
from icefield.types.primitive import MAX_TYPE_STRING as MAX_TYPE_STRING
from icefield.types.primitive import TIMESTAMP_TYPES as TIMESTAMP_TYPES
from icefield.types.primitive import AnyTimestampType as AnyTimestampType
from icefield.types.primitive import BinaryType as BinaryType
from icefield.types.primitive import BooleanType as BooleanType
from icefield.types.primitive import DateType as DateType
from icefield.types.primitive import DecimalType as DecimalType
from icefield.types.primitive import DoubleType as DoubleType
from icefield.types.primitive import FixedType as FixedType
from icefield.types.primitive import FloatType as FloatType
from icefield.types.primitive import GeographyType as GeographyType
from icefield.types.primitive import GeometryType as GeometryType
from icefield.types.primitive import IcebergType as IcebergType
from icefield.types.primitive import IntegerType as IntegerType
from icefield.types.primitive import LongType as LongType
from icefield.types.primitive import PrimitiveType as PrimitiveType
from icefield.types.primitive import StringType as StringType
from icefield.types.primitive import TimestampNanoType as TimestampNanoType
from icefield.types.primitive import TimestampType as TimestampType
from icefield.types.primitive import TimestamptzNanoType as TimestamptzNanoType
from icefield.types.primitive import TimestamptzType as TimestamptzType
from icefield.types.primitive import TimeType as TimeType
from icefield.types.primitive import UnknownType as UnknownType
from icefield.types.primitive import UUIDType as UUIDType
from icefield.types.primitive import VariantType as VariantType
from icefield.types.primitive import parse_type as parse_type
from icefield.types.primitive import promotion_allowed as promotion_allowed
from icefield.types.primitive import shown as shown
from icefield.types.reserved import DELETE_FILE_PATH as DELETE_FILE_PATH
from icefield.types.reserved import DELETE_FILE_POS as DELETE_FILE_POS
from icefield.types.reserved import METADATA_COLUMNS as METADATA_COLUMNS
from icefield.types.reserved import POS as POS

__all__ = public_names(__name__)
