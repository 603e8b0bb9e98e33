"""Hypothesis strategies for types, internal values and schemas."""

import itertools
import struct
from decimal import Decimal

from hypothesis import strategies as st
from icefield import types as t
from icefield.schema import Schema
from icefield.types.values import decimal_from_unscaled

PLAIN = (
    t.BooleanType(), t.IntegerType(), t.LongType(), t.FloatType(), t.DoubleType(), t.DateType(), t.TimeType(),
    t.TimestampType(), t.TimestamptzType(), t.TimestampNanoType(), t.TimestamptzNanoType(), t.StringType(),
    t.UUIDType(), t.BinaryType(),
)  # fmt: skip


def decimals():
    return st.integers(1, 38).flatmap(lambda p: st.builds(t.DecimalType, st.just(p), st.integers(0, p)))


def primitives():
    """Every primitive type that has values of its own in memory."""
    return st.one_of(st.sampled_from(PLAIN), decimals(), st.builds(t.FixedType, st.integers(1, 40)))


def fields(types, count=4):
    """Fields without sensible ids: number them with ``numbered``."""
    names = st.text("abcdefgh.ü_ ", min_size=1, max_size=6)
    one = st.tuples(names, types, st.booleans(), st.none() | st.text(max_size=5))
    return st.lists(one, max_size=count, unique_by=lambda made: made[0])


def nested_types(leaves):
    """Types of any nesting over ``leaves``, all ids 0: number them with ``numbered``."""

    def extend(inner):
        return st.one_of(
            fields(inner).map(lambda made: t.StructType(*(t.NestedField(0, *one) for one in made))),
            st.builds(t.ListType, st.just(0), inner, st.booleans()),
            st.builds(t.MapType, st.just(0), inner, st.just(0), inner, st.booleans()),
        )

    return st.recursive(leaves, extend, max_leaves=8)


def numbered(kind, take):
    """Give the nested fields of a type the ids that ``take`` returns."""
    match kind:
        case t.StructType():
            return t.StructType(
                *(
                    t.NestedField(take(), one.name, numbered(one.field_type, take), one.required, one.doc)
                    for one in kind.fields
                )
            )
        case t.ListType():
            return t.ListType(take(), numbered(kind.element_type, take), kind.element_required)
        case t.MapType():
            key_id, value_id = take(), take()
            key, value = numbered(kind.key_type, take), numbered(kind.value_type, take)
            return t.MapType(key_id, key, value_id, value, kind.value_required)
    return kind


def types(leaves=None):
    """Types of any nesting, with unique ids."""
    made = nested_types(primitives() if leaves is None else leaves)
    return made.map(lambda kind: numbered(kind, itertools.count(1).__next__))


def schemas(leaves=None):
    """Schemas without identifier fields or defaults."""
    columns = fields(nested_types(primitives() if leaves is None else leaves))

    def build(made):
        take = itertools.count(1).__next__
        return Schema(*(t.NestedField(take(), name, numbered(kind, take), *rest) for name, kind, *rest in made))

    return columns.map(build)


def as_float32(number):
    return struct.unpack("<f", struct.pack("<f", number))[0]


INT64 = st.integers(-(2**63), 2**63 - 1)
_VALUES = {
    t.BooleanType: st.booleans(),
    t.IntegerType: st.integers(-(2**31), 2**31 - 1),
    t.LongType: INT64,
    t.FloatType: st.floats(width=32),
    t.DoubleType: st.floats(),
    t.DateType: st.integers(-(2**31), 2**31 - 1),
    t.TimeType: st.integers(0, 86_400_000_000 - 1),
    t.TimestampType: INT64,
    t.TimestamptzType: INT64,
    t.TimestampNanoType: INT64,
    t.TimestamptzNanoType: INT64,
    t.StringType: st.text(max_size=12),
    t.UUIDType: st.binary(min_size=16, max_size=16),
    t.BinaryType: st.binary(max_size=12),
}


def unscaled_values(precision):
    """Integers of at most that many digits, with every length of bytes as likely as any other."""
    top = 10**precision - 1
    by_bits = st.integers(0, top.bit_length()).flatmap(lambda bits: st.integers(0, min(top, 2**bits)))
    return st.builds(lambda sign, size: sign * size, st.sampled_from([1, -1]), by_bits)


PYTHON_DAYS = st.integers(-719_162, 2_932_896)
PYTHON_MICROS = st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)
NUMPY_NANOS = st.integers(-(2**63) + 1, 2**63 - 1)
_PYTHON_VALUES = {
    t.DateType: PYTHON_DAYS,
    t.TimestampType: PYTHON_MICROS,
    t.TimestamptzType: PYTHON_MICROS,
    t.TimestampNanoType: NUMPY_NANOS,
    t.TimestamptzNanoType: NUMPY_NANOS,
}


def values(kind, *, finite=False, python=False):
    """Internal values of a type, without null; values inside a nested type may be null where the type permits it.

    ``finite`` leaves out values that JSON lacks, ``python`` values that Python's and numpy's calendars lack.
    """
    match kind:
        case t.DecimalType():
            return unscaled_values(kind.precision).map(lambda n: decimal_from_unscaled(n, kind.scale))
        case t.FixedType():
            return st.binary(min_size=kind.length, max_size=kind.length)
        case t.StructType():
            return st.tuples(*(_child(one, finite, python) for one in kind.fields))
        case t.ListType():
            return st.lists(_child(kind.element, finite, python), max_size=3).map(tuple)
        case t.MapType():
            pair = st.tuples(_child(kind.key, finite, python), _child(kind.value, finite, python))
            return st.lists(pair, max_size=3).map(tuple)
        case t.FloatType() if finite:
            return st.floats(width=32, allow_nan=False, allow_infinity=False)
        case t.DoubleType() if finite:
            return st.floats(allow_nan=False, allow_infinity=False)
    return _PYTHON_VALUES.get(type(kind), _VALUES[type(kind)]) if python else _VALUES[type(kind)]


def _child(field, finite, python):
    own = values(field.field_type, finite=finite, python=python)
    return own if field.required else st.none() | own


def typed_values(types_=None, *, finite=False):
    """A type and an internal value of it."""
    chosen = primitives() if types_ is None else types_
    return chosen.flatmap(lambda kind: st.tuples(st.just(kind), values(kind, finite=finite)))


def same(left, right):
    """Equality that knows NaN and distinguishes -0.0 from 0.0 and 1.0 from 1.00."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return (left != left and right != right) or struct.pack("<d", left) == struct.pack("<d", right)
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        return left.as_tuple() == right.as_tuple() or (left == right == 0)
    return type(left) is type(right) and left == right
