"""The invalid values that pyarrow's own validation finds, and the ones that it does not find."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from icefield.types.arrow.nested import validate_full

LEAST = -(2**127)
MASK = pa.array([False, True])


def unscaled(numbers: list[int], precision: int = 38, scale: int = 0) -> pa.Array:
    """Decimals of any 128 bits."""
    data = b"".join(number.to_bytes(16, "little", signed=True) for number in numbers)
    return pa.Array.from_buffers(pa.decimal128(precision, scale), len(numbers), [None, pa.py_buffer(data)])


@given(
    number=st.one_of(st.integers(LEAST, -LEAST - 1), st.integers(-1000, 1000)),
    precision=st.integers(1, 38),
    scale=st.integers(0, 5),
)
@example(LEAST, 38, 0)
@example(LEAST, 5, 5)
@settings(max_examples=300)
def test_a_decimal_is_sound_that_has_no_more_digits_than_its_type(number: int, precision: int, scale: int) -> None:
    array = unscaled([0, number], precision, min(scale, precision))
    if abs(number) < 10**precision:
        validate_full(array)
    else:
        with pytest.raises(pa.ArrowInvalid):
            validate_full(array)


NESTINGS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "struct": lambda values: pa.StructArray.from_arrays([values], ["d"], mask=MASK),
    "list": lambda values: pa.ListArray.from_arrays([0, 1, 2], values, mask=MASK),
    "map": lambda values: pa.MapArray.from_arrays(pa.array([0, None, 1], pa.int32()), ["a", "b"], values),
    "list of structs": lambda values: pa.ListArray.from_arrays(
        [0, 1, 2], pa.StructArray.from_arrays([values], ["d"], mask=MASK)
    ),
}


@pytest.mark.parametrize("nesting", NESTINGS)
def test_the_least_number_of_128_bits_is_no_decimal_at_any_depth_but_below_a_null(nesting: str) -> None:
    nest = NESTINGS[nesting]
    with pytest.raises(pa.ArrowInvalid, match="digits"):
        validate_full(nest(unscaled([LEAST, 0])))
    if nesting != "map":
        validate_full(nest(unscaled([0, LEAST])))


def test_what_pyarrow_finds_is_found() -> None:
    damaged = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
    with pytest.raises(pa.ArrowInvalid, match="UTF8"):
        validate_full(damaged)
