"""Residual objects of shredding: objects re-encoded with only the fields that have no column of their own."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from icefield_parquet.variants.cells import Inside, Numbers, Variants

_OBJECT: Final = 2
_MOST_IN_A_BYTE: Final = 0xFF


def encoded_residues(variants: Variants, inside: Inside, kept: Any, objects: int) -> pa.Array:
    """Encode, for each object, an object of its kept fields; null for an object without kept fields.

    Fields stay in their order, which is the order of their names.
    """
    owners, ids, cells = inside.owners[kept], inside.ids[kept], inside.cells.take(kept)
    counts = np.bincount(owners, minlength=objects)
    ends = np.cumsum(cells.sizes)
    totals = np.bincount(owners, cells.sizes, objects).astype(np.int64)
    # The ordinal of each kept field in its object, and its distance in bytes from the first one.
    nth = np.arange(len(owners)) - (np.cumsum(counts) - counts)[owners]
    begins = ends - cells.sizes - (np.cumsum(totals) - totals)[owners]
    largest_id = np.zeros(objects, np.int64)
    np.maximum.at(largest_id, owners, ids)
    id_sizes, offset_sizes = _width(largest_id), _width(totals)
    large = counts > _MOST_IN_A_BYTE
    count_sizes = np.where(large, 4, 1)
    ids_at = 1 + count_sizes
    offsets_at = ids_at + counts * id_sizes
    values_at = offsets_at + (counts + 1) * offset_sizes
    sizes = np.where(counts > 0, values_at + totals, 0)
    starts = np.cumsum(sizes) - sizes
    out = np.zeros(int(sizes.sum()), np.uint8)
    there = counts > 0
    first = starts[there]
    out[first] = (_OBJECT | (offset_sizes - 1 | id_sizes - 1 << 2 | large << 4) << 2)[there]
    _put(out, first + 1, counts[there], count_sizes[there])
    _put(out, (starts + ids_at)[owners] + nth * id_sizes[owners], ids, id_sizes[owners])
    _put(out, (starts + offsets_at)[owners] + nth * offset_sizes[owners], begins, offset_sizes[owners])
    _put(out, (starts + offsets_at + counts * offset_sizes)[there], totals[there], offset_sizes[there])
    _copy(out, (starts + values_at)[owners] + begins, variants.data, cells.at, cells.sizes)
    buffers = [
        pa.py_buffer(np.packbits(there, bitorder="little")),
        pa.py_buffer(np.concatenate((starts, [len(out)])).astype(np.int32)),
        pa.py_buffer(out),
    ]
    return pa.Array.from_buffers(pa.binary(), objects, buffers)


def _width(numbers: Numbers) -> Numbers:
    """How many bytes numbers take, one to four."""
    return 1 + (numbers > 0xFF) + (numbers > 0xFFFF) + (numbers > 0xFFFFFF)


def _put(out: Any, at: Numbers, numbers: Numbers, widths: Numbers) -> None:
    for byte in range(4):
        wide = widths > byte
        out[at[wide] + byte] = numbers[wide] >> 8 * byte & 0xFF


def _copy(out: Any, to: Numbers, data: Any, at: Numbers, sizes: Numbers) -> None:
    within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    out[np.repeat(to, sizes) + within] = data[np.repeat(at, sizes) + within]
