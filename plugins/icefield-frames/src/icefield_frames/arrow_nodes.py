"""The structure of expressions of ``pyarrow.compute``.

Arrow shows it only where it writes an expression: as a record batch whose columns are the literals, and whose schema
lists the nodes in its metadata, in order and with repeated keys. Only Arrow's C data interface shows repeated keys.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from icefield.errors import InvalidExpression

from icefield_frames.filters import MOST_DEPTH

_MOST_PAIRS: Final = 100_000


@dataclass(frozen=True, slots=True)
class ArrowField:
    """A reference to a column, by the names from the top-level column down."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ArrowCall:
    """A call of a function of Arrow."""

    function: str
    arguments: tuple[ArrowNode, ...]
    options: pa.StructScalar | None = None

    def option(self, name: str) -> Any:
        """An option of the call, as a value of Python. Raises ``InvalidExpression`` if there is none."""
        if self.options is None or name not in self.options:
            raise InvalidExpression(f"this version of pyarrow states no option '{name}' of '{self.function}'")
        return self.options[name].as_py()

    @property
    def value_set(self) -> pa.Array:
        """The values of ``is_in``."""
        assert self.options is not None
        return self.options["value_set"].values


ArrowNode: TypeAlias = "ArrowField | ArrowCall | pa.Scalar"


def arrow_nodes(expression: pc.Expression) -> ArrowNode:
    """The root of an expression. Raises ``InvalidExpression`` for one in a form that is not known, or too deep."""
    try:
        reader = pa.ipc.open_file(expression.__reduce__()[1][0])
        pairs = iter(_pairs(reader.schema))
        return _node(*next(pairs), pairs, reader.get_batch(0), 0)
    except (pa.ArrowException, ValueError, LookupError, StopIteration) as error:
        raise InvalidExpression(f"this pyarrow expression is no filter of a table: {error}") from error


def _node(key: str, value: str, pairs: Iterator[tuple[str, str]], literals: pa.RecordBatch, depth: int) -> ArrowNode:
    if depth > MOST_DEPTH:
        raise InvalidExpression(f"a pyarrow expression is nested deeper than {MOST_DEPTH} levels")
    if key == "literal":
        return literals.column(int(value))[0]
    if key == "field_ref":
        return ArrowField((value,))
    if key == "nested_field_ref":
        names = [next(pairs) for _ in range(int(value))]
        if any(name != "field_ref" for name, _ in names):
            raise ValueError("a reference that is not by name")
        return ArrowField(tuple(name for _, name in names))
    if key != "call":
        raise ValueError(f"unknown part of an expression: {key}")
    arguments: list[ArrowNode] = []
    options = None
    for part, given in pairs:
        if part == "end":
            return ArrowCall(value, tuple(arguments), options)
        if part == "options":
            options = literals.column(int(given))[0]
        else:
            arguments.append(_node(part, given, pairs, literals, depth + 1))
    raise ValueError("an expression without an end")


def _pairs(schema: pa.Schema) -> list[tuple[str, str]]:
    """The metadata of a schema in its order: counts and lengths of four bytes, then keys and values."""
    capsule = schema.__arrow_c_schema__()
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    # The struct begins with three pointers: format, name and metadata.
    place = ctypes.cast(pointer_of(capsule, b"arrow_schema"), ctypes.POINTER(ctypes.c_void_p))[2]
    if not place:
        raise ValueError("it has no nodes")

    def take(count: int) -> bytes:
        nonlocal place
        assert place is not None
        data, place = ctypes.string_at(place, count), place + count
        return data

    def number() -> int:
        return ctypes.c_int32.from_buffer_copy(take(4)).value

    count = number()
    if count > _MOST_PAIRS:
        raise ValueError(f"it has more than {_MOST_PAIRS:,} parts")
    return [(take(number()).decode(), take(number()).decode()) for _ in range(count)]
