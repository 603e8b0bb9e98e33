"""``void``: null for everything; takes the place of a dropped partition field in format version 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from icefield.partitioning.transforms.base import Transform
from icefield.types import IcebergType, IntegerType
from icefield.types.arrow.types import to_arrow_type


@dataclass(frozen=True, slots=True)
class VoidTransform(Transform):
    """Null for any source; of the source's type, or int where the source is not primitive."""

    preserves_order: ClassVar[bool] = False

    def can_transform(self, source_type: IcebergType) -> bool:
        return True

    def result_type(self, source_type: IcebergType) -> IcebergType:
        return source_type if source_type.is_primitive else IntegerType()

    def _apply(self, array: pa.Array, source_type: IcebergType) -> pa.Array:
        return pa.nulls(len(array), to_arrow_type(self.result_type(source_type)))

    def _apply_value(self, value: Any, source_type: IcebergType) -> None:
        return None

    def __str__(self) -> str:
        return "void"
