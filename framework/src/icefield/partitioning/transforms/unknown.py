"""A transform of a later version or of another vendor: kept as it is written, never computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.partitioning.transforms.base import Transform
from icefield.types import IcebergType, StringType


@dataclass(frozen=True, slots=True)
class UnknownTransform(Transform):
    """A transform a string that means nothing here. Tables that hold it can be read; nothing new is written with it.

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
        # No better guess; the values' real type is in the manifests' own schemas.
        return StringType()

    def _apply(self, array: pa.Array, source_type: IcebergType) -> pa.Array:
        raise self._error()

    def _apply_value(self, value: Any, source_type: IcebergType) -> Any:
        raise self._error()

    def _error(self) -> UnsupportedFeature:
        return UnsupportedFeature(f"transform {self.string!r} is not known to this version: it cannot be applied")

    def __str__(self) -> str:
        return self.string
