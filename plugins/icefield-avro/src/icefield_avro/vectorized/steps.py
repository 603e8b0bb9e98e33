"""The steps for the parts of a writer's schema, which skip or read their values at a vector of positions.

``skip`` returns the positions after the values at some positions. ``read`` returns the same and a function that makes
the Arrow array, to be called once the walk is proved. An invalid value (a branch that a union does not have, a length
beyond the data) makes the position dead, see ``byte_buffer``.
"""

from __future__ import annotations

from functools import partial
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
from icefield.toolkit import validate_full

from icefield_avro.arrays import Vector
from icefield_avro.nodes import Optional, Primitive
from icefield_avro.vectorized.byte_buffer import ByteBuffer, Unproven
from icefield_avro.vectorized.rows import Finish, Rows, from_values, nulls
from icefield_avro.vectorized.slices import from_slices

ENOUGH: Final = 4  # consecutive failures after which an attempt is skipped

Read = tuple[Finish, Vector]

_DAY: Final = 86_400_000_000  # microseconds
_OFTEN: Final = 8
_LONGEST_RUN: Final = 6
_LONG: Final = np.iinfo(np.int64)
_POWERS: Final = [10**digits for digits in range(39)]


class Step(Protocol):
    """A part of a schema."""

    def skip(self, buffer: ByteBuffer, at: Vector) -> Vector:
        """The positions after the values."""
        ...

    def read(self, buffer: ByteBuffer, at: Vector, rows: Rows) -> Read:
        """A function that makes the array, and the positions after the values."""
        ...


class LeafStep(Step, Protocol):
    """A step that can leave out some rows without a copy of the other rows."""

    def skip_where(self, buffer: ByteBuffer, at: Vector, present: Vector) -> Vector:
        """The positions after the values where ``present``, else the positions themselves."""
        ...

    def read_where(self, buffer: ByteBuffer, at: Vector, present: Vector | None, rows: Rows) -> Read:
        """The same with the values."""
        ...


class NullStep:
    """Nothing at all."""

    def skip(self, buffer: ByteBuffer, at: Vector) -> Vector:
        return at

    def read(self, buffer: ByteBuffer, at: Vector, rows: Rows) -> Read:
        return partial(nulls, pa.null(), rows), at


class FixedStep:
    """Values of fixed width: booleans, floats, fixed and decimals in fixed."""

    def __init__(self, node: Primitive) -> None:
        assert node.width is not None
        self.width = node.width
        self.is_plain = node.wire in ("float", "double") or (
            node.wire == "fixed" and not pa.types.is_decimal(node.arrow)
        )
        """Whether Arrow stores a value in the same bytes."""
        self.node = node

    def skip(self, buffer: ByteBuffer, at: Vector) -> Vector:
        if buffer.is_guessed and self.node.wire == "boolean":
            return np.where(buffer.bytes[at] > 1, buffer.dead, at + 1)
        return at + self.width

    def skip_where(self, buffer: ByteBuffer, at: Vector, present: Vector) -> Vector:
        return at + np.multiply(present, self.width, dtype=np.int64)

    def read(self, buffer: ByteBuffer, at: Vector, rows: Rows) -> Read:
        return self.read_where(buffer, at, None, rows)

    def read_where(self, buffer: ByteBuffer, at: Vector, present: Vector | None, rows: Rows) -> Read:
        end = self.skip(buffer, at) if present is None else self.skip_where(buffer, at, present)
        return partial(self.array, buffer, at, present, rows), end

    def array(self, buffer: ByteBuffer, at: Vector, present: Vector | None, rows: Rows) -> pa.Array:
        """The array of the values at the positions. Raises ``Unproven`` for a value that the type does not have."""
        node = self.node
        match node.wire:
            case "double":
                return from_values(node.arrow, _kept(buffer.words[at], present), rows, present)
            case "float":
                return from_values(node.arrow, _kept(buffer.words[at].astype("<u4"), present), rows, present)
        matrix = buffer.fixed(at, self.width)
        if present is not None:
            matrix *= present[:, None]
        return from_matrix(node, matrix, rows, present)


class VarintStep:
    """Integers, and types stored as integers: dates, times, timestamps, symbols of an enum."""

    def __init__(self, node: Primitive) -> None:
        self.node = node

    def skip(self, buffer: ByteBuffer, at: Vector) -> Vector:
        return buffer.ends_of_longs(at)

    def skip_where(self, buffer: ByteBuffer, at: Vector, present: Vector) -> Vector:
        return buffer.ends_of_longs_where(at, present)

    def read(self, buffer: ByteBuffer, at: Vector, rows: Rows) -> Read:
        return self.read_where(buffer, at, None, rows)

    def read_where(self, buffer: ByteBuffer, at: Vector, present: Vector | None, rows: Rows) -> Read:
        numbers, end = buffer.longs(at) if present is None else buffer.longs_where(at, present)
        return partial(self.array, numbers, present, rows), end

    def array(self, numbers: Vector, present: Vector | None, rows: Rows) -> pa.Array:
        """The array of numbers that were read. Raises ``Unproven`` for one out of the type's range."""
        node = self.node
        if node.wire == "enum":
            return _symbols(node, numbers, present, rows)
        if node.wire == "int":
            numbers = _within(numbers, np.dtype(np.int32))
        if pa.types.is_time(node.arrow):
            numbers = _scaled(numbers, node.factor, 0, _DAY - 1)
        elif node.factor != 1:
            numbers = _scaled(numbers, node.factor, _LONG.min, _LONG.max)
        return from_values(node.arrow, numbers, rows, present)


class VarintRun:
    """Adjacent integers, skipped together."""

    def __init__(self, many: int) -> None:
        self.parts: tuple[int, ...] = (many,)

    def skip(self, buffer: ByteBuffer, at: Vector) -> Vector:
        for many in self.parts:
            if many == 1:
                at = buffer.ends_of_longs(at)
                continue
            at, longer = buffer.ends_of_few_longs(at, many)
            if longer * _OFTEN > len(at) and not buffer.is_guessed:  # a hint for the next time
                self.parts = tuple(half for part in self.parts for half in (part // 2, part - part // 2) if half)
        return at

    def read(self, buffer: ByteBuffer, at: Vector, rows: Rows) -> Read:
        return partial(nulls, pa.null(), rows), self.skip(buffer, at)


def strides(steps: list[Step]) -> list[Step]:
    """Merge runs of integer steps: the merged steps skip the same values with fewer operations."""
    out: list[Step] = []
    run = 0
    for step in [*steps, None]:
        if isinstance(step, VarintStep) and run < _LONGEST_RUN:
            run += 1
            last = step
            continue
        if run:
            out.append(VarintRun(run) if run > 1 else last)
        run = 0
        if isinstance(step, VarintStep):
            run, last = 1, step
        elif step is not None:
            out.append(step)
    return out


class SizedStep:
    """Strings, byte strings and decimals in byte strings: a length, then so many bytes."""

    def __init__(self, node: Primitive) -> None:
        self.node = node

    def skip(self, buffer: ByteBuffer, at: Vector) -> Vector:
        return buffer.sized(at)[2]

    def skip_where(self, buffer: ByteBuffer, at: Vector, present: Vector) -> Vector:
        return buffer.sized_where(at, present)[2]

    def read(self, buffer: ByteBuffer, at: Vector, rows: Rows) -> Read:
        return self.read_where(buffer, at, None, rows)

    def read_where(self, buffer: ByteBuffer, at: Vector, present: Vector | None, rows: Rows) -> Read:
        start, length, end = buffer.sized(at) if present is None else buffer.sized_where(at, present)
        return partial(self.array, buffer, start, length, present, rows), end

    def array(self, buffer: ByteBuffer, start: Vector, length: Vector, present: Vector | None, rows: Rows) -> pa.Array:
        """The array of slices of the buffer. Raises ``Unproven`` for a string that is not UTF-8."""
        arrow = self.node.arrow
        if pa.types.is_decimal(arrow):
            return from_values(arrow, _decimals_of_any_size(buffer, start, length, arrow.precision), rows, present)
        try:
            return from_slices(arrow, buffer, start, length, rows, present)
        except pa.ArrowInvalid:
            raise Unproven("a string that is not UTF-8") from None


class OptionalStep:
    """A union with null: a branch, then the value or nothing."""

    def __init__(self, node: Optional, inner: Step, arrow: pa.DataType) -> None:
        self.inner = inner
        self.leaf: LeafStep | None = inner if isinstance(inner, FixedStep | VarintStep | SizedStep) else None
        self.arrow = arrow
        self._is_varint = isinstance(inner, VarintStep)
        self._long = 0  # consecutive calls with a long integer; wrong guesses often read long integers
        self.value = 2 * node.value_branch  # as the byte that is found
        self.null = -1 if node.null_branch is None else 2 * node.null_branch

    def _branches(self, buffer: ByteBuffer, at: Vector) -> tuple[Vector, Vector | None, int]:
        """Positions after the branch, which rows have a value (None: all), and how many."""
        branch = buffer.bytes[at]
        after = at + 1
        present = branch == self.value
        count = int(np.count_nonzero(present))
        if count == len(at):
            return after, None, count
        if count + np.count_nonzero(branch == self.null) < len(at):
            after[~present & (branch != self.null)] = buffer.dead
        return after, present, count

    def skip(self, buffer: ByteBuffer, at: Vector) -> Vector:
        if self._is_varint and self._long < ENOUGH:
            ends = buffer.ends_of_optional_longs(at, self.value, self.null)
            if ends is not None:
                self._long = 0
                return ends
            self._long += 1
        after, present, count = self._branches(buffer, at)
        if present is None:
            return self.inner.skip(buffer, after)
        if not count:
            return after
        if self.leaf is not None:
            return self.leaf.skip_where(buffer, after, present)
        index = np.flatnonzero(present)
        after[index] = self.inner.skip(buffer, after[index])
        return after

    def read(self, buffer: ByteBuffer, at: Vector, rows: Rows) -> Read:
        after, present, count = self._branches(buffer, at)
        if present is None:
            return self.inner.read(buffer, after, rows)
        if not count:
            return partial(nulls, self.arrow, rows), after
        if self.leaf is not None:
            return self.leaf.read_where(buffer, after, present, rows)
        index = np.flatnonzero(present)
        finish, after[index] = self.inner.read(buffer, after[index], rows.subset(index))
        return finish, after


def from_matrix(node: Primitive, matrix: Vector, rows: Rows, present: Vector | None) -> pa.Array:
    """The array of values of fixed width, given as rows of bytes. Raises ``Unproven`` for an impossible value."""
    if node.wire == "boolean":
        return _booleans(matrix.ravel(), rows, present)
    if pa.types.is_decimal(node.arrow):
        matrix = _decimals(matrix, node.arrow.precision)
    return from_values(node.arrow, matrix, rows, present)


def _kept(values: Vector, present: Vector | None) -> Vector:
    """The values where present, zero elsewhere."""
    return values if present is None else values * present


def _within(numbers: Vector, dtype: np.dtype[np.int32]) -> Vector:
    narrow = numbers.astype(dtype)
    if not np.array_equal(narrow, numbers):
        raise Unproven("an integer out of range")
    return narrow


def _booleans(values: Vector, rows: Rows, present: Vector | None) -> pa.Array:
    if np.count_nonzero(values > 1):
        raise Unproven("a boolean that is neither 0 nor 1")
    bits = np.packbits(rows.spread(values), bitorder="little")
    valid = rows.valid(present)
    buffers = [None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little")), pa.py_buffer(bits)]
    return pa.Array.from_buffers(pa.bool_(), rows.count, buffers)


def _scaled(numbers: Vector, factor: int, least: int, most: int) -> Vector:
    """The numbers times ``factor``, which must be within bounds."""
    if int(numbers.min()) * factor < least or int(numbers.max()) * factor > most:
        raise Unproven("a time out of range")
    return numbers.astype(np.int64) * factor


def _symbols(node: Primitive, numbers: Vector, present: Vector | None, rows: Rows) -> pa.Array:
    if not 0 <= int(numbers.min()) <= int(numbers.max()) < len(node.symbols):
        raise Unproven("an enum without that symbol")
    indices = from_values(pa.int32(), numbers.astype(np.int32), rows, present)
    return pa.array(node.symbols, pa.string()).take(indices)


def _decimals(big_endian: Vector, precision: int) -> Vector:
    """Convert big-endian numbers of some bytes to Arrow's little-endian numbers of sixteen bytes."""
    # The sign fills the missing bytes: -123 in two bytes is ff 85, and here 85 ff, followed by fourteen ff.
    width = big_endian.shape[1]
    out = np.zeros((len(big_endian), 16), np.uint8)
    kept = min(width, 16)
    out[:, :kept] = big_endian[:, width - kept :][:, ::-1]
    if width:
        sign = (big_endian[:, 0] >> 7) * np.uint8(255)
        if kept < 16:
            out[:, kept:] = sign[:, None]
        if width > 16 and ((big_endian[:, : width - 16] != sign[:, None]).any() or ((out[:, 15] ^ sign) >> 7).any()):
            raise Unproven("a decimal of more than 128 bits")
    _check_digits(out, precision)
    return out


def _decimals_of_any_size(buffer: ByteBuffer, start: Vector, length: Vector, precision: int) -> Vector:
    if len(length) and int(length.max()) > 16:
        raise Unproven("a decimal of more than 16 bytes")
    back = np.arange(16)
    inside = back < length[:, None]
    last = start + length - 1
    digits = buffer.bytes[np.maximum(last[:, None] - back, 0)]
    sign = (buffer.bytes[start] >> 7) * np.uint8(255) * (length > 0)
    out = np.where(inside, digits, sign[:, None])
    _check_digits(out, precision)
    return out


def _check_digits(little_endian: Vector, precision: int) -> None:
    """Raise ``Unproven`` for a number with more digits than the type."""
    words = np.ascontiguousarray(little_endian).view("<i8")
    low, high = words[:, 0], words[:, 1]
    limit = _POWERS[precision]
    if limit < 1 << 63:
        if not (high == low >> 63).all() or (len(low) and not -limit < int(low.min()) <= int(low.max()) < limit):
            raise Unproven("a decimal of too many digits")
        return
    top = limit >> 64
    if len(high) and not -top < int(high.min()) <= int(high.max()) < top:  # near the limit: let Arrow decide
        decimals = pa.Array.from_buffers(pa.decimal128(precision, 0), len(high), [None, pa.py_buffer(words)])
        try:
            validate_full(decimals)
        except pa.ArrowInvalid:
            raise Unproven("a decimal of too many digits") from None
