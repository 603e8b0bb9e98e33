"""Navigation in many variants at once, with a few vectorised calls for each level.

A cell is the position of an encoded value. Nothing is decoded here, and no Python object is created for a row: the
contents of the objects or arrays at some cells are the cells of their fields or elements. Spec: Variant Encoding
(Parquet).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield.errors import InvalidArgument

from icefield_parquet.variants.decoding import variant_names

NULL, TRUE, FALSE, INT8, INT16, INT32, INT64, DOUBLE, DECIMAL4, DECIMAL8, DECIMAL16 = range(11)
DATE, TIMESTAMPTZ, TIMESTAMP, FLOAT, BINARY, STRING, TIME, TIMESTAMPTZ_NANOS, TIMESTAMP_NANOS, UUID = range(11, 21)
OBJECT, ARRAY = 64, 65
"""The kinds of cells: primitives have the numbers of the format; short and long strings are ``STRING``."""

_SHORT_STRING, _OBJECT = 1, 2
_SIZED: Final = (BINARY, STRING)
_WIDTHS: Final = np.full(64, -1, np.int64)
"""How many bytes a primitive has; -1 for unknown ones."""
_WIDTHS[: UUID + 1] = [1, 1, 1, 2, 3, 5, 9, 9, 6, 10, 18, 5, 9, 9, 5, 5, 5, 9, 9, 9, 17]

Numbers = Any
"""An array of integers of numpy, one a cell."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Places of values: the variant each is in, where it begins, and how many bytes it has."""

    rows: Numbers
    at: Numbers
    sizes: Numbers

    def __len__(self) -> int:
        return len(self.at)

    def take(self, chosen: Any) -> Cells:
        return Cells(self.rows[chosen], self.at[chosen], self.sizes[chosen])


@dataclass(frozen=True, slots=True)
class Inside:
    """The cells of some objects or arrays. ``owners`` gives the position of each cell's container, in ascending order.

    ``names`` are the positions of the fields' names among all names; ``ids`` are their positions in the variant's own
    dictionary.
    """

    owners: Numbers
    cells: Cells
    names: Numbers
    ids: Numbers


class Variants:
    """The variants of an array, except for rows below a null, which ``absent`` marks.

    All methods raise ``InvalidArgument`` for bytes that are no variant.
    """

    def __init__(self, array: pa.StructArray, absent: Any = None) -> None:
        # Flattened, a part is null where its variant is.
        metadata, value = (array.flatten()[array.type.get_field_index(name)] for name in ("metadata", "value"))
        there = value.is_valid() if not metadata.null_count else pc.and_(value.is_valid(), metadata.is_valid())
        there = there.to_numpy(zero_copy_only=False)
        self.there = np.flatnonzero(there if absent is None else there & ~absent)
        """The positions of the variants that are not null. Cells count these only."""
        coded = metadata.take(pa.array(self.there)).dictionary_encode()
        self.names, self._numbers, sizes = _numbered([variant_names(each) for each in coded.dictionary.to_pylist()])
        codes = coded.indices.to_numpy(zero_copy_only=False)
        self._names_of, self._first_of = sizes[codes], (np.cumsum(sizes) - sizes)[codes]
        _, offsets, data = value.buffers()
        places = np.frombuffer(offsets, np.int32)[value.offset :][: len(value) + 1].astype(np.int64)
        self.data = np.frombuffer(data or b"", np.uint8)
        self._ends = places[1:][self.there]
        self.roots = self._cells(np.arange(len(self.there)), places[self.there])

    def kinds(self, cells: Cells) -> Numbers:
        """Return the kind of each cell."""
        first = self.data[cells.at].astype(np.int64)
        basic, header = first & 3, first >> 2
        return np.select([basic == 0, basic == _SHORT_STRING, basic == _OBJECT], [header, STRING, OBJECT], ARRAY)

    def payloads(self, cells: Cells) -> tuple[Numbers, Numbers]:
        """Where the bytes of strings or byte strings begin, and how many there are."""
        short = self.data[cells.at] & 3 == _SHORT_STRING
        before = np.where(short, 1, 5)
        return cells.at + before, cells.sizes - before

    def inside(self, cells: Cells) -> Inside:
        """Return the contents of cells, which are either all objects or all arrays."""
        count, ids_at, id_size, offsets_at, offset_size, values_at = self._heads(cells.rows, cells.at)
        owners = np.repeat(np.arange(len(cells)), count)
        nth = np.arange(len(owners)) - np.repeat(np.cumsum(count) - count, count)
        rows, id_size, offset_size = cells.rows[owners], id_size[owners], offset_size[owners]
        at = values_at[owners] + self.numbers(rows, offsets_at[owners] + nth * offset_size, offset_size)
        found = self._cells(rows, at)
        held = np.bincount(owners, found.sizes, len(cells))
        # Several offsets may point to the same bytes, so a few bytes could stand for any number of values.
        if (at + found.sizes > (cells.at + cells.sizes)[owners]).any() or (held > cells.sizes).any():
            raise InvalidArgument("what is in a variant is larger than the variant")
        if not len(owners) or not id_size[0]:
            return Inside(owners, found, owners[:0], owners[:0])
        ids = self.numbers(rows, ids_at[owners] + nth * id_size, id_size)
        if (ids >= self._names_of[rows]).any():
            raise InvalidArgument("a field of a variant has no name in its metadata")
        return Inside(owners, found, self._numbers[self._first_of[rows] + ids], ids)

    def numbers(self, rows: Numbers, at: Numbers, width: Any) -> Numbers:
        """Little-endian numbers of up to four bytes."""
        widths = np.broadcast_to(width, at.shape)
        if (at + widths > self._ends[rows]).any():
            raise InvalidArgument("a variant ends too early")
        found = np.zeros(len(at), np.int64)
        for byte in range(int(widths.max(initial=0))):
            wide = widths > byte
            found[wide] |= self.data[at[wide] + byte].astype(np.int64) << 8 * byte
        return found

    def _heads(self, rows: Numbers, at: Numbers) -> tuple[Numbers, ...]:
        """The layout of objects or arrays.

        It is the number of items, the positions of ids, offsets and values, and the widths of ids and offsets.
        """
        first = self.numbers(rows, at, 1)
        is_object, header = first & 3 == _OBJECT, first >> 2
        count_size = np.where(header & np.where(is_object, 0x10, 4), 4, 1)
        id_size = np.where(is_object, (header >> 2 & 3) + 1, 0)
        offset_size = (header & 3) + 1
        count = self.numbers(rows, at + 1, count_size)
        ids_at = at + 1 + count_size
        offsets_at = ids_at + count * id_size
        values_at = offsets_at + (count + 1) * offset_size
        if (values_at > self._ends[rows]).any():
            raise InvalidArgument("a variant ends too early")
        return count, ids_at, id_size, offsets_at, offset_size, values_at

    def _cells(self, rows: Numbers, at: Numbers) -> Cells:
        """The cells at some places, with their sizes."""
        first = self.numbers(rows, at, 1)
        basic, header = first & 3, first >> 2
        sizes = np.where(basic == 0, _WIDTHS[header], 1 + header)
        if (sizes < 0).any():
            raise InvalidArgument("a variant has a primitive of unknown kind")
        sized = np.flatnonzero((basic == 0) & np.isin(header, _SIZED))
        sizes[sized] += self.numbers(rows[sized], at[sized] + 1, 4)
        nested = np.flatnonzero(basic >= _OBJECT)
        count, _, _, offsets_at, offset_size, values_at = self._heads(rows[nested], at[nested])
        ends = self.numbers(rows[nested], offsets_at + count * offset_size, offset_size)
        sizes[nested] = values_at + ends - at[nested]
        if (at + sizes > self._ends[rows]).any():
            raise InvalidArgument("a variant ends too early")
        return Cells(rows, at, sizes)


def _numbered(dictionaries: Sequence[Sequence[str]]) -> tuple[list[str], Numbers, Numbers]:
    """The distinct names; the position of each dictionary's names among them; the size of each dictionary."""
    known: dict[str, int] = {}
    numbers = [known.setdefault(name, len(known)) for names in dictionaries for name in names]
    return list(known), np.array(numbers, np.int64), np.array([len(names) for names in dictionaries], np.int64)


def bitmap(there: Any) -> pa.Buffer:
    """Truth values as Arrow keeps them."""
    return pa.py_buffer(np.packbits(there, bitorder="little"))


def byte_strings(data: Any, at: Numbers, sizes: Numbers, there: Any) -> pa.Array:
    """The bytes at some places; null where there is nothing."""
    sizes = np.where(there, sizes, 0)
    ends = np.concatenate(([0], np.cumsum(sizes)))
    held = data[np.arange(ends[-1]) + np.repeat(at - ends[:-1], sizes)]
    buffers = [bitmap(there), pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(held)]
    return pa.Array.from_buffers(pa.binary(), len(at), buffers)
