"""Equal partition tuples found among many."""

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield.engine import partition_keys
from icefield.partitioning.spec import normalised_key
from icefield.partitioning.tuples import tuple_groups
from icefield.types.arrow import equality as module

FIELDS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int64(), [None, 0, 1, 2**62]),
    (pa.string(), [None, "", "a", "b"]),
    (pa.float64(), [None, 0.0, -0.0, math.nan, -math.nan, 1.5]),
    (pa.float32(), [None, 0.0, -0.0, math.nan, 1.5]),
    (pa.null(), [None]),
    (pa.bool_(), [None, True, False]),
    (pa.binary(2), [None, b"ab", b"\x00\x00"]),
]


@pytest.mark.spec("PART-24", "SCAN-38")
@pytest.mark.parametrize("many", [2**62, 4])
@given(st.lists(st.tuples(*(st.sampled_from(values) for _, values in FIELDS)), max_size=20))
def test_rows_share_a_number_when_their_normalised_tuples_are_equal(many: int, tuples: list[tuple[Any, ...]]) -> None:
    children = [pa.array([row[i] for row in tuples], kind) for i, (kind, _) in enumerate(FIELDS)]
    partition = pa.StructArray.from_arrays(children, names=[f"p{i}" for i in range(len(FIELDS))])
    before, module._LARGE = module._LARGE, many  # type: ignore[misc]
    try:
        numbers, examples = tuple_groups(partition)
    finally:
        module._LARGE = before  # type: ignore[misc]
    keys = [normalised_key(row) for row in tuples]
    assert len(examples) == len(set(keys))
    assert [keys[examples[number]] for number in numbers] == keys
    assert partition_keys(3, partition, examples) == [(3, *keys[row]) for row in examples]


@pytest.mark.spec("PART-16")
def test_without_fields_all_rows_are_one_partition() -> None:
    partition = pa.StructArray.from_buffers(pa.struct([]), 5, [None], children=[])
    numbers, examples = tuple_groups(partition)
    assert (numbers.tolist(), partition_keys(0, partition, examples)) == ([0] * 5, [(0,)])


def test_values_that_arrow_cannot_encode_are_distinguished_too() -> None:
    column = pa.array([[1], [2], None, [1]])
    numbers, examples = tuple_groups(pa.StructArray.from_arrays([column], names=["p"]))
    assert len(examples) == 3
    assert numbers[0] == numbers[3] != numbers[1]
