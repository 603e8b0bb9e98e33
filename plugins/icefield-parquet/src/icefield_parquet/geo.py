"""Arrow's extension type for shapes, which pyarrow writes as Parquet's GEOMETRY and GEOGRAPHY."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from icefield.types import DEFAULT_CRS, GeographyType, GeometryType


class WellKnownBinary(pa.ExtensionType):  # type: ignore[misc]
    """``geoarrow.wkb``: bytes that hold a shape. Not registered: it is used for writing only."""

    def __init__(self, stated: dict[str, Any]) -> None:
        self._stated = json.dumps(stated)
        super().__init__(pa.binary(), "geoarrow.wkb")

    def __arrow_ext_serialize__(self) -> bytes:
        return self._stated.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> WellKnownBinary:
        return cls(json.loads(serialized))


def shape_type(kind: GeometryType | GeographyType) -> pa.DataType:
    """The Arrow type that a column of shapes is written with.

    pyarrow knows spherical edges only: a geography with another algorithm is bytes to it, and its annotation is added
    to the footer.
    """
    stated: dict[str, Any] = {} if kind.crs == DEFAULT_CRS else {"crs": kind.crs}
    if isinstance(kind, GeographyType):
        if kind.algorithm != "spherical":
            return pa.binary()
        stated["edges"] = "spherical"
    return WellKnownBinary(stated)
