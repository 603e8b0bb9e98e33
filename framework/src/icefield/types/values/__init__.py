"""Single values and arrays of them: internal values, and their binary, JSON, Python and Arrow forms."""

from icefield.types.values.arrow import (
    constant_array,
    from_arrow_array,
    from_arrow_scalar,
    to_arrow_array,
    to_arrow_scalar,
)
from icefield.types.values.binary import (
    GeoPoint,
    from_bytes,
    geo_point_from_bytes,
    geo_point_to_bytes,
    to_bytes,
)
from icefield.types.values.binary_arrays import from_bytes_array
from icefield.types.values.distinct import distinct
from icefield.types.values.internal import decimal_from_unscaled, initial_value, promote, unscaled, write_value
from icefield.types.values.json import from_json, to_json
from icefield.types.values.python import to_internal, to_python
from icefield.types.values.variant import VariantLeaf, variant_bounds_from_bytes, variant_to_python

__all__ = [
    "GeoPoint",
    "VariantLeaf",
    "constant_array",
    "decimal_from_unscaled",
    "distinct",
    "from_arrow_array",
    "from_arrow_scalar",
    "from_bytes",
    "from_bytes_array",
    "from_json",
    "geo_point_from_bytes",
    "geo_point_to_bytes",
    "initial_value",
    "promote",
    "to_arrow_array",
    "to_arrow_scalar",
    "to_bytes",
    "to_internal",
    "to_json",
    "to_python",
    "unscaled",
    "variant_bounds_from_bytes",
    "variant_to_python",
    "write_value",
]
