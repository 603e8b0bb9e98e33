"""Plans for structs: which held field each slot takes, and whether anything is left to do."""

from __future__ import annotations

import pyarrow as pa
import pytest
from icefield.types import LongType, NestedField
from icefield.types.arrow.reshape import Slot, StructShape

FIELDS = [NestedField(number, name, LongType()) for number, name in enumerate("ab", 1)]
HELD = tuple(pa.field(name, pa.int64()) for name in "ab")


def slots(*sources: int | None) -> tuple[Slot, ...]:
    return tuple(Slot(field, source) for field, source in zip(FIELDS, sources, strict=True))


@pytest.mark.parametrize(
    ("held", "made", "expected"),
    [
        (HELD, slots(0, 1), True),
        (HELD, slots(1, 0), False),
        (HELD[:1], slots(0, None), False),
        (HELD, (Slot(FIELDS[0], 0, lambda array: array), *slots(0, 1)[1:]), False),
        (HELD, slots(0, 1)[:1], False),
    ],
    ids=["as held", "reordered", "filled", "converted", "one left out"],
)
def test_a_struct_is_plain_where_each_field_is_taken_unchanged_from_its_own_position(
    held: tuple[pa.Field, ...], made: tuple[Slot, ...], expected: bool
) -> None:
    assert StructShape(held, made).plain is expected
