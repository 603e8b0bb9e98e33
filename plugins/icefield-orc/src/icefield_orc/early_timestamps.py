"""Fractions of seconds before 1970, written so that all readers agree about them.

A timestamp is stored as seconds and nanoseconds. The format has a special rule for timestamps before 1970: where the
fraction, counted forward, has more than 999,999 nanoseconds, the second is stored rounded towards 1970, and a reader
subtracts one. Arrow's encoder ignores the rule, and stores the fraction as a negative number: readers on the JVM are
then a second off. So a stripe with such a timestamp is rebuilt when its file is closed: the two streams of its
timestamps are encoded here, by the rule.

The rule fails for the last second before 1970: its rounded second is not below zero, so readers do not subtract one.
Java's own writer loses these timestamps. There the negative fraction stays: readers on the C++ library are right, and
readers on the JVM are right for fractions of less than a millisecond.

Two parts would be wrong after the change, and are removed: statistics of the timestamps, and row indexes, which point
into streams. A file without row indexes says so in its footer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from icefield.abc import ReadRequest
from icefield.toolkit import BytesInput

from icefield_orc.compression import pack
from icefield_orc.protobuf import blob, items, write_bytes, write_integer, write_item
from icefield_orc.reader import OrcReader
from icefield_orc.schema import TIMESTAMPS, Node, TypeKind
from icefield_orc.stripes import DATA, INDEXES, SECONDARY, STREAMS, Stream, StripeFooter, parse_stripe_footer
from icefield_orc.tail import MAGIC, Stripe, Tail

Vector = npt.NDArray[np.int64]

_BASE = 1_420_070_400
"""Seconds are counted from 2015."""

_UNITS = {"us": 1_000_000, "ns": 1_000_000_000}
_SHORT = 999_999
_DIRECT_V2 = 2
_RUN = 512
_CONTENT, _STRIPES, _TYPES, _METADATA, _ROWS, _STATISTICS, _STRIDE = range(2, 9)
_TIMESTAMP_STATISTICS = 9


class Rebuilt(NamedTuple):
    """A rebuilt stripe: its bytes, its entry for the file's footer as if it began at 0, and its own footer."""

    data: bytes
    stripe: Stripe
    footer: StripeFooter


def holds_old_fraction(array: pa.Array) -> bool:
    """Whether there is a timestamp before 1970 that is not a whole second, at any depth."""
    kind = array.type
    if pa.types.is_struct(kind):
        return any(holds_old_fraction(array.field(at)) for at in range(kind.num_fields))
    if pa.types.is_map(kind):
        return holds_old_fraction(array.keys) or holds_old_fraction(array.items)
    if pa.types.is_list(kind):
        return holds_old_fraction(array.values)
    if not pa.types.is_timestamp(kind) or not len(array):
        return False
    units = array.view(pa.int64())
    least = pc.min(units).as_py()
    if least is None or least >= 0:
        return False
    values = units.drop_null().to_numpy(zero_copy_only=False)
    return bool(np.any(values[values < 0] % _UNITS[kind.unit]))


def rebuilt(data: bytes, stripe: Stripe, tail: Tail, root: Node, file_footer: bytes) -> Rebuilt:
    """Rebuild a stripe from its bytes, with its timestamps encoded anew."""
    footer = parse_stripe_footer(data[stripe.length - stripe.footer_length :], tail)
    alone = _file_of(data, stripe, tail, file_footer)
    made = dict(_encoded(_timestamps(alone, stripe.rows, root), tail))
    streams, parts, position = [], [], 0
    for stream in footer.streams:
        piece = data[position : position + stream.length]
        position += stream.length
        if stream.kind in INDEXES:
            continue
        if (stream.column, stream.kind) in made:
            if footer.encodings[stream.column] != _DIRECT_V2:
                raise ValueError("timestamps in an encoding that the writer never chooses")
            piece = made[stream.column, stream.kind]
        parts.append(piece)
        streams.append(replace(stream, length=len(piece)))
    rest = b"".join(write_item(*item) for item in footer.fields if item[0] != STREAMS)
    message = b"".join(write_bytes(STREAMS, _stream(stream)) for stream in streams) + rest
    end = pack(message, tail.postscript.codec, tail.postscript.block_size)
    body = b"".join(parts)
    made_footer = StripeFooter(tuple(streams), footer.encodings, footer.dictionaries, footer.fields)
    return Rebuilt(body + end, Stripe(0, 0, len(body), len(end), stripe.rows), made_footer)


def rewritten_footer(footer: bytes, stripes: list[Stripe], timestamps: frozenset[int]) -> bytes:
    """Rewrite a file's footer for other stripes, without row indexes and without the statistics of ``timestamps``."""
    out, column, left = [], 0, iter(stripes)
    for number, value in items(footer, len(footer)):
        if number == _STRIPES:
            value = stripe_message(next(left))
        elif number == _STATISTICS:
            value = _without_timestamps(blob(value)) if column in timestamps else value
            column += 1
        elif number == _STRIDE:
            value = 0
        elif number == _CONTENT:
            value = stripes[-1].start + stripes[-1].length
        out.append(write_item(number, value))
    return b"".join(out)


def rewritten_statistics(statistics: bytes, timestamps: frozenset[int]) -> bytes:
    """Return the statistics of stripes without the statistics of the columns in ``timestamps``."""
    out = []
    for number, value in items(statistics, len(statistics)):
        if number == 1:
            columns = enumerate(blob(held) for inner, held in items(blob(value), len(statistics)) if inner == 1)
            kept = (_without_timestamps(held) if column in timestamps else held for column, held in columns)
            value = b"".join(write_bytes(1, held) for held in kept)
        out.append(write_item(number, value))
    return b"".join(out)


def stripe_message(stripe: Stripe) -> bytes:
    """Return the entry of a stripe in a file's footer."""
    stated = (stripe.start, stripe.index_length, stripe.data_length, stripe.footer_length, stripe.rows)
    return b"".join(write_integer(number, value) for number, value in enumerate(stated, start=1))


def timestamp_columns(root: Node) -> frozenset[int]:
    """The numbers of the columns that are timestamps."""
    return frozenset(node.column for node in root.below() if node.kind in TIMESTAMPS)


def _without_timestamps(statistics: bytes) -> bytes:
    return b"".join(
        write_item(*item) for item in items(statistics, len(statistics)) if item[0] != _TIMESTAMP_STATISTICS
    )


def _stream(stream: Stream) -> bytes:
    return b"".join(write_integer(at, value) for at, value in enumerate((stream.kind, stream.column, stream.length), 1))


def _timestamps(alone: bytes, rows: int, root: Node) -> Iterator[tuple[int, pa.Array]]:
    """Read back the values of each timestamp column, in order, from a file with one stripe."""
    wanted = [child for child in root.children if any(node.kind in TIMESTAMPS for node in child.below())]
    with OrcReader(BytesInput(alone), "an ORC file that is being written", len(alone)) as reader:
        columns = pa.schema([child.arrow_field() for child in wanted])
        (batch,) = reader.read(ReadRequest(columns, batch_rows=rows))
    for node, column in zip(wanted, batch.columns, strict=True):
        yield from _leaves(node, column)


def _file_of(data: bytes, stripe: Stripe, tail: Tail, file_footer: bytes) -> bytes:
    """Build a file with a single stripe."""
    footer = write_bytes(_STRIPES, stripe_message(replace(stripe, start=len(MAGIC)))) + write_integer(
        _ROWS, stripe.rows
    )
    kept = (
        write_item(number, value)
        for number, value in items(file_footer, len(file_footer))
        if number in (_TYPES, _METADATA)
    )
    postscript = tail.postscript
    packed = pack(footer + b"".join(kept), postscript.codec, postscript.block_size)
    numbers = ((1, len(packed)), (2, postscript.codec), (3, postscript.block_size), (6, 6))
    script = b"".join(write_integer(number, value) for number, value in numbers) + write_bytes(8000, MAGIC)
    return MAGIC + data + packed + script + bytes([len(script)])


def _leaves(node: Node, array: pa.Array) -> Iterator[tuple[int, pa.Array]]:
    if node.kind in TIMESTAMPS:
        yield node.column, array.drop_null()
    elif node.kind == TypeKind.STRUCT and not node.opaque:
        for child, column in zip(node.children, array.flatten(), strict=True):
            yield from _leaves(child, column)
    elif node.kind == TypeKind.LIST:
        yield from _leaves(node.children[0], array.flatten())
    elif node.kind == TypeKind.MAP:
        for child, column in zip(node.children, (array.keys, array.items), strict=True):
            yield from _leaves(child, column)


def _encoded(columns: Iterator[tuple[int, pa.Array]], tail: Tail) -> Iterator[tuple[tuple[int, int], bytes]]:
    postscript = tail.postscript
    for column, array in columns:
        values = array.view(pa.int64()).to_numpy(zero_copy_only=False)
        seconds, nanos = stored_parts(values, array.type.unit)
        shifted = seconds - _BASE
        for kind, numbers in ((DATA, (shifted << 1) ^ (shifted >> 63)), (SECONDARY, _formatted(nanos))):
            yield (column, kind), pack(_runs(numbers), postscript.codec, postscript.block_size)


def stored_parts(values: Vector, unit: str) -> tuple[Vector, Vector]:
    """The seconds from 1970 and the nanoseconds that the file stores for timestamps."""
    each = _UNITS[unit]
    seconds = values // each
    nanos = (values - seconds * each) * (1_000_000_000 // each)
    rounded = (seconds < 0) & (nanos > _SHORT)
    last = rounded & (seconds == -1)
    return seconds + rounded, nanos - last * np.int64(1_000_000_000)


def _formatted(nanos: Vector) -> Vector:
    """Encode nanoseconds without trailing zeros, if there are at least two.

    The lowest three bits hold the number of removed zeros less one, or 0.
    """
    digits, zeros = np.abs(nanos), np.zeros(len(nanos), np.int64)
    short = (digits != 0) & (digits % 100 == 0)
    digits = np.where(short, digits // 100, digits)
    zeros += short
    for _ in range(6):
        more = short & (digits % 10 == 0)
        digits = np.where(more, digits // 10, digits)
        zeros += more
    return (np.sign(nanos) * digits << 3) | zeros


def _runs(numbers: Vector) -> bytes:
    """Encode numbers as runs of the second version of the run-length encoding, all with the same width in bytes."""
    if not len(numbers):
        return b""
    unsigned = numbers.view(np.uint64)
    width = max(1, (int(unsigned.max()).bit_length() + 7) // 8)
    packed = unsigned.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 8 - width :]
    whole = len(numbers) // _RUN
    body = packed[: whole * _RUN].reshape(whole, _RUN * width)
    heads = np.tile(np.frombuffer(_run_head(_RUN, width), np.uint8), (whole, 1))
    out = np.hstack((heads, body)).tobytes()
    rest = len(numbers) - whole * _RUN
    return out + (_run_head(rest, width) + packed[whole * _RUN :].tobytes() if rest else b"")


def _run_head(count: int, width: int) -> bytes:
    code = width * 8 - 1 if width <= 3 else 23 + width
    return bytes([1 << 6 | code << 1 | (count - 1) >> 8, (count - 1) & 0xFF])
