"""The interface of partition and sort transforms (spec: "Partition Transforms")."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import pyarrow as pa

from icefield.errors import InvalidArgument
from icefield.partitioning.transforms.arrays import conformed
from icefield.partitioning.transforms.display import display_value
from icefield.types import IcebergType

LARGEST_PARAMETER = 2**31 - 1
"""Bucket counts and widths are 4-byte integers in every implementation."""


class Transform(ABC):
    """A pure function from a source value to a partition or sort value; null becomes null.

    Immutable, hashable and picklable. ``str(transform)`` is the string in metadata.
    """

    __slots__ = ()

    preserves_order: ClassVar[bool] = False
    """Whether ``a <= b`` implies ``transform(a) <= transform(b)``."""

    is_known: ClassVar[bool] = True
    """False for a transform that this version cannot compute: it is carried along and never applied."""

    @abstractmethod
    def can_transform(self, source_type: IcebergType) -> bool:
        """Whether columns of that type may be transformed."""

    @abstractmethod
    def result_type(self, source_type: IcebergType) -> IcebergType:
        """The type of the transformed values."""

    def apply(self, array: pa.Array | pa.ChunkedArray, source_type: IcebergType) -> pa.Array | pa.ChunkedArray:
        """Transform a whole column from the Arrow form of ``source_type`` to the Arrow form of ``result_type``.

        Of a dictionary-encoded array, only the distinct values are transformed. A chunked array stays chunked.
        Raises ``InvalidArgument`` when the type cannot be transformed.
        """
        self.check_source(source_type)
        if isinstance(array, pa.ChunkedArray):
            chunks = [self.apply(chunk, source_type) for chunk in array.chunks or [pa.array([], array.type)]]
            return pa.chunked_array(chunks)
        if isinstance(array, pa.DictionaryArray) and len(array.dictionary) <= len(array):
            return self.apply(array.dictionary, source_type).take(array.indices)
        return self._apply(conformed(array, source_type) if source_type.is_primitive else array, source_type)

    def apply_value(self, value: Any, source_type: IcebergType) -> Any:
        """Transform one internal value; None stays None.

        Raises ``InvalidArgument`` when the type cannot be transformed.
        """
        self.check_source(source_type)
        return None if value is None else self._apply_value(value, source_type)

    def to_display(self, result_type: IcebergType, value: Any) -> str:
        """The readable string of one transformed value, as in partition folders; None is ``null``."""
        return display_value(result_type, value)

    def check_source(self, source_type: IcebergType) -> None:
        """Raise ``InvalidArgument`` unless columns of that type may be transformed."""
        if not self.can_transform(source_type):
            raise InvalidArgument(f"transform {self} does not apply to columns of type {source_type}")

    @abstractmethod
    def _apply(self, array: pa.Array, source_type: IcebergType) -> pa.Array:
        """Transform an array that is neither chunked nor dictionary-encoded nor of an extension type."""

    @abstractmethod
    def _apply_value(self, value: Any, source_type: IcebergType) -> Any:
        """Transform a value that is not None."""


def checked_parameter(value: object, what: str) -> None:
    """Raise ``InvalidArgument`` unless ``value`` is an integer from 1 to ``LARGEST_PARAMETER``."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LARGEST_PARAMETER:
        raise InvalidArgument(f"{what} must be an integer from 1 to {LARGEST_PARAMETER}, not {value!r}")
