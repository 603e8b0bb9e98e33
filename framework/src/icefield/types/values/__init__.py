"""Single values and arrays of them: internal values, and their binary, JSON, Python and Arrow forms."""

from icefield.types.values.arrow import constant_array as constant_array
from icefield.types.values.arrow import from_arrow_array as from_arrow_array
from icefield.types.values.arrow import from_arrow_scalar as from_arrow_scalar
from icefield.types.values.arrow import to_arrow_array as to_arrow_array
from icefield.types.values.arrow import to_arrow_scalar as to_arrow_scalar
from icefield.types.values.binary import GeoPoint as GeoPoint
from icefield.types.values.binary import geo_point_from_bytes as geo_point_from_bytes
from icefield.types.values.binary import geo_point_to_bytes as geo_point_to_bytes
from icefield.types.values.binary import value_from_bytes as value_from_bytes
from icefield.types.values.binary import value_to_bytes as value_to_bytes
from icefield.types.values.binary_arrays import from_bytes_array as from_bytes_array
from icefield.types.values.distinct import distinct as distinct
from icefield.types.values.internal import decimal_from_unscaled as decimal_from_unscaled
from icefield.types.values.internal import initial_value as initial_value
from icefield.types.values.internal import promote as promote
from icefield.types.values.internal import unscaled as unscaled
from icefield.types.values.internal import write_value as write_value
from icefield.types.values.json import value_from_json as value_from_json
from icefield.types.values.json import value_to_json as value_to_json
from icefield.types.values.python import to_internal as to_internal
