"""``identity``: the value itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from icefield.partitioning.transforms.base import Transform
from icefield.types import GeographyType, GeometryType, IcebergType


@dataclass(frozen=True, slots=True)
class IdentityTransform(Transform):
    """The value unchanged, of any primitive type but geometry and geography."""

    preserves_order: ClassVar[bool] = True

    def can_transform(self, source_type: IcebergType) -> bool:
        return source_type.is_primitive and not isinstance(source_type, GeometryType | GeographyType)

    def result_type(self, source_type: IcebergType) -> IcebergType:
        return source_type

    def _apply(self, array: pa.Array, source_type: IcebergType) -> pa.Array:
        return array

    def _apply_value(self, value: Any, source_type: IcebergType) -> Any:
        return value

    def __str__(self) -> str:
        return "identity"
