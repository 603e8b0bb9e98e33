"""The statistics of many files as the metrics evaluators read them: Arrow arrays for each field."""

from __future__ import annotations

from functools import cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefield.expressions.bound import BoundPredicate
from icefield.expressions.bounds import Bounds, Mask

_UNKNOWN = -1


class FileStatistics(Protocol):
    """Statistics of ``num_files`` files by field id. None means unknown for all files, null unknown for one file.

    A caller that knows the value of a missing column (a default, a partition value) states that value instead of null.
    """

    @property
    def num_files(self) -> int:
        """The number of files."""

    def record_count(self) -> pa.Int64Array:
        """The rows of each file; negative or null is unknown."""

    def lower(self, field_id: int) -> pa.Array | None:
        """Decoded lower bounds, of the field's Arrow type."""

    def upper(self, field_id: int) -> pa.Array | None:
        """Decoded upper bounds, of the field's Arrow type."""

    def value_count(self, field_id: int) -> pa.Array | None:
        """The number of values in each file, including nulls and NaN."""

    def null_count(self, field_id: int) -> pa.Array | None:
        """The number of nulls in each file."""

    def nan_count(self, field_id: int) -> pa.Array | None:
        """The number of NaN values in each file."""


class OnceStatistics:
    """Caches the columns of other statistics, for filters that test a column several times."""

    def __init__(self, statistics: FileStatistics) -> None:
        self.num_files = statistics.num_files
        self.record_count = cache(statistics.record_count)
        self.lower = cache(statistics.lower)
        self.upper = cache(statistics.upper)
        self.value_count = cache(statistics.value_count)
        self.null_count = cache(statistics.null_count)
        self.nan_count = cache(statistics.nan_count)


class LeafStatistics:
    """Facts about the field of one predicate that the statistics prove, each as a mask over the files."""

    def __init__(self, leaf: BoundPredicate, statistics: OnceStatistics) -> None:
        self._leaf = leaf
        self._statistics = statistics
        self._id = leaf.field.field_id
        self._size = statistics.num_files
        self._values = self._counts(statistics.value_count(self._id))
        self._nulls = self._counts(statistics.null_count(self._id))
        self._nans = self._counts(statistics.nan_count(self._id)) if leaf.is_floating else np.zeros_like(self._nulls)
        # Whether each row counts as a value. Writers may leave out the rows of a null parent.
        self._is_whole = np.ones(self._size, np.bool_)
        records = self._counts(statistics.record_count())
        if len(leaf.path) > 1:
            self._is_whole = (self._values >= 0) & (self._values == records)
        else:  # each row has a value: a lower count is incomplete, so it is treated as unknown
            short = (self._values < records) & (self._values >= 0)
            self._values = np.where(short, _UNKNOWN, self._values) if short.any() else self._values

    def _counts(self, array: Any) -> npt.NDArray[np.int64]:
        return counts(array, self._size)

    def all_null(self) -> Mask:
        """Every row has null. A file without values counts, regardless of its null count."""
        return (self._values == 0) | ((self._values > 0) & (self._nulls == self._values))  # type: ignore[no-any-return]

    def no_null(self) -> Mask:
        """No row has null: the null count is zero, or it is unknown and the schema allows no null.

        A known count overrides the schema: a column that became required may hold older nulls.
        """
        if self._leaf.never_null:
            return self._nulls <= 0
        return (self._nulls == 0) & self._is_whole  # type: ignore[no-any-return]

    def all_nan(self) -> Mask:
        """Every row has NaN."""
        return (self._values >= 0) & (self._nans == self._values) & self._is_whole  # type: ignore[no-any-return]

    def no_nan(self) -> Mask:
        """No row has NaN."""
        return (self._nans == 0) | self.all_null()  # type: ignore[no-any-return]

    def nothing_comparable(self) -> Mask:
        """Every row has null or NaN."""
        known = (self._values >= 0) & (self._nulls >= 0) & (self._nans >= 0)
        return (known & (self._nulls + self._nans == self._values)) | self.all_null() | self.all_nan()  # type: ignore[no-any-return]

    def bounds(self) -> Bounds:
        """The bounds of the field."""
        statistics = self._statistics
        return Bounds(self._leaf, statistics.lower(self._id), statistics.upper(self._id), self._size)


def counts(array: Any, size: int) -> npt.NDArray[np.int64]:
    """Counts as NumPy numbers, negative where unknown."""
    if array is None:
        return np.full(size, _UNKNOWN, np.int64)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if array.null_count == 0 and array.type == pa.int64():
        return array.to_numpy()  # type: ignore[no-any-return]
    return pc.fill_null(array, _UNKNOWN).to_numpy(zero_copy_only=False).astype(np.int64, copy=False)  # type: ignore[no-any-return]
