"""Twice the columns of a file take about twice the CPU time."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from growth import MOST_GROWTH, Work, growth
from icefield.toolkit import VARIANT_ARROW
from icefield_parquet.schema import counterparts
from icefield_parquet.variants.whole import stored_columns, with_whole_variants

pytestmark = pytest.mark.slow

SHREDDED = pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.int64())])
ONE = pa.array([{"metadata": b"\x11\x00\x00", "value": None, "typed_value": 7}], SHREDDED)


def columns_of(kind: pa.DataType, count: int) -> pa.Schema:
    return pa.schema([(f"c{number}", kind) for number in range(count)])


def finding_what_is_stored(count: int) -> Work:
    file, wanted = columns_of(SHREDDED, count), columns_of(VARIANT_ARROW, count)

    def work() -> None:
        assert stored_columns(file, wanted) == file

    return work


def putting_variants_together(count: int) -> Work:
    batch = pa.RecordBatch.from_arrays([ONE] * count, schema=columns_of(SHREDDED, count))
    wanted = columns_of(VARIANT_ARROW, count)

    def work() -> None:
        assert with_whole_variants(batch, wanted, "memory://x").num_columns == count

    return work


def columns_of_one_name(count: int) -> Work:
    fields = [pa.field("c", pa.int64(), metadata={"PARQUET:field_id": str(number)}) for number in range(1, count + 1)]

    def work() -> None:
        assert counterparts(fields, fields) == list(range(count))

    return work


SHAPES: dict[Callable[[int], Work], int] = {
    finding_what_is_stored: 1000,
    putting_variants_together: 1000,
    columns_of_one_name: 500,
}


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_twice_the_columns_take_about_twice_the_time(shape: Callable[[int], Work]) -> None:
    assert growth(shape, SHAPES[shape]) <= MOST_GROWTH
