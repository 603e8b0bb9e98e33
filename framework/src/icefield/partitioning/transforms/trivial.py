"""Transforms that compute nothing: identity, void, and the transforms of a later version or another vendor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.partitioning.transforms.base import Transform
from icefield.types import GeographyType, GeometryType, IcebergType, IntegerType, StringType
from icefield.types.arrow.types import to_arrow_type


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


@dataclass(frozen=True, slots=True)
class VoidTransform(Transform):
    """Null for any source; of the source's type, or int where the source is not primitive.

    It takes the place of a dropped partition field in format version 1.
    """

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


@dataclass(frozen=True, slots=True)
class UnknownTransform(Transform):
    """A transform whose string is kept as it is written. Tables that hold it can be read; nothing new is written.

    ``apply`` and ``apply_value`` raise ``UnsupportedFeature``.
    """

    string: str

    is_known: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not isinstance(self.string, str):
            raise InvalidArgument(f"a transform is written as a string, not {self.string!r}")

    def can_transform(self, source_type: IcebergType) -> bool:
        return True

    def result_type(self, source_type: IcebergType) -> IcebergType:
        # The real type is unknown here; the manifests' own schemas state it.
        return StringType()

    def _apply(self, array: pa.Array, source_type: IcebergType) -> pa.Array:
        raise UnsupportedFeature(f"transform {self.string!r} is not known to this version: it cannot be applied")

    def _apply_value(self, value: Any, source_type: IcebergType) -> Any:
        return self._apply(value, source_type)

    def __str__(self) -> str:
        return self.string
