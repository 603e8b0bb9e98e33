"""The keys of a z-order: ranks of values within a sample, and their bits in turns."""

from __future__ import annotations

from decimal import Decimal
from math import copysign
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from icefield.expressions import And, EqualTo, GreaterThanOrEqual, LessThan
from icefield_maintenance.compaction.strategies.ranks import Ranks
from icefield_maintenance.compaction.strategies.zorder import sample, spread_bits
from naive_filters import POOLS
from tables import new_table

ROWS = 20_000
FILES = 16


@pytest.mark.parametrize("kind", [kind for kind in POOLS if not kind.startswith(("struct", "list", "map"))])
def test_ranks_are_ordered_as_the_values_are(kind: str) -> None:
    values = [value for value in POOLS[kind] if value is not None and value == value]
    values.sort(key=lambda value: (value, copysign(1, value)) if isinstance(value, float) else value)
    array = pa.array(values)
    with_nulls = pa.concat_arrays([pa.nulls(2, array.type), array]).slice(1)
    for sampled in (array, with_nulls, array.slice(1, 2), with_nulls.take(pa.array([2, 1, 2, 1]))):
        found = Ranks.of(sampled, 12).find(with_nulls)
        assert found[0] == 0
        assert (found[1:] > 0).all()
        assert (np.diff(found) >= 0).all()
        assert found.max() < 1 << 12
    of_all = Ranks.of(array, 12).find(array)
    # But for zeros at the end of bytes, values that differ have ranks that differ.
    distinct = {repr(value.rstrip(b"\0") if isinstance(value, bytes) else value) for value in values}
    assert len(set(of_all.tolist())) == len(distinct)


@given(
    st.lists(st.binary(max_size=24), min_size=1, max_size=30),
    st.lists(st.binary(max_size=24), min_size=1, max_size=60),
    st.sampled_from([b"", b"https://", b"https://example.com/"]),
)
@example([b""], [b"\1", b"\0" * 16 + b"\1", b"\0"], b"https://")
@settings(deadline=None, max_examples=150)
def test_a_rank_says_how_many_of_the_sample_are_smaller(
    sampled: list[bytes], values: list[bytes], prefix: bytes
) -> None:
    # Zeros at the end do not count.
    sampled, values = ([prefix + one.rstrip(b"\0") for one in many] for many in (sampled, values))
    steps = sorted(sampled)
    steps = [steps[place * len(steps) // 62] for place in range(62)]
    found = Ranks.of(pa.array(sampled), 6).find(pa.array(values))
    assert found.tolist() == [sum(step < value for step in steps) + 1 for value in values]


def test_bits_take_turns_from_the_highest_down() -> None:
    draw = np.random.default_rng(7)
    for count, bits in ((1, 12), (2, 12), (3, 12), (5, 12), (16, 4)):
        numbers = [draw.integers(0, 1 << bits, 9) for _ in range(count)]
        made = sum(spread_bits(place, count, bits)[each] for place, each in enumerate(numbers))
        wanted = []
        for row in zip(*(each.tolist() for each in numbers), strict=True):
            texts = [f"{value:0{bits}b}" for value in row]
            wanted.append(int("".join("".join(each) for each in zip(*texts, strict=True)), 2))
        assert made.tolist() == wanted


@pytest.mark.slow
def test_a_sample_is_of_all_rows_alike_and_has_no_long_values() -> None:
    batches = [
        pa.record_batch({"n": pa.array(range(start, start + 1000)), "s": ["x" * 9999] * 1000})
        for start in range(0, 60_000, 1000)
    ]
    numbers, strings = sample(iter(batches), lambda batch: batch.columns, 1000)
    assert 400 < len(numbers) <= 1000
    assert len(strings) == len(numbers)
    assert strings.nbytes < len(strings) * 300
    assert 20_000 < pc.mean(numbers).as_py() < 40_000
    assert sample(iter(batches[:1]), lambda batch: batch.columns, 1000)[0].equals(batches[0].column(0))


def values_of(kind: str) -> pa.Array:
    draw = np.random.default_rng(3)
    numbers = draw.integers(0, 1_000_000, ROWS)
    match kind:
        case "URLs":
            return pa.array([f"https://www.example.com/shop/item/{number:07d}/view" for number in numbers])
        case "numbers with outliers":
            numbers[:3] = 2**60
            return pa.array(numbers)
        case "skewed numbers":
            return pa.array(np.exp(draw.normal(0, 6, ROWS)))
        case "skewed timestamps":
            return pa.array((draw.random(ROWS) ** 3 * 3e12).astype(np.int64), pa.timestamp("us"))
        case "decimals":
            return pa.array([Decimal(int(number) * 10**12) for number in numbers], pa.decimal128(30, 0))
        case "UUIDs":
            return pa.array([b"\1" * 8 + int(number).to_bytes(8, "big") for number in numbers], pa.binary(16))
    return pa.array(numbers, mask=draw.random(ROWS) < 0.5)


@pytest.mark.parametrize(
    "kind",
    ["URLs", "numbers with outliers", "skewed numbers", "skewed timestamps", "decimals", "UUIDs", "numbers and nulls"],
)
def test_filters_on_each_column_of_a_z_order_plan_few_files(kind: str) -> None:
    others = pa.array(np.random.default_rng(4).integers(0, 1_000_000, ROWS))
    rows = pa.table({"a": values_of(kind), "b": others})
    # Bounds of 16 characters, as by default, would not tell the URLs apart.
    properties = {"write.parquet.compression-codec": "uncompressed", "write.metadata.metrics.default": "full"}
    table = new_table(schema=rows.schema, properties=properties)
    table.append(rows)
    size = table.inspect.data_files()["file_size_in_bytes"][0].as_py()
    table.maintenance.rewrite_data_files(
        "zorder", zorder_columns=["a", "b"], rewrite_all=True, target_file_size_bytes=size // FILES
    )
    files = table.inspect.data_files().num_rows
    assert files >= FILES // 2
    planned: dict[str, list[int]] = {"a": [], "b": []}
    for column, counts in planned.items():
        values = rows[column].drop_null().combine_chunks()
        values = values.take(pc.sort_indices(values))
        for place in range(1, 10, 3):
            low: Any = values[place * len(values) // 10].as_py()
            high: Any = values[place * len(values) // 10 + len(values) // 50].as_py()
            for each in (EqualTo(column, low), And(GreaterThanOrEqual(column, low), LessThan(column, high))):
                counts.append(sum(1 for _ in table.scan(each).plan_files()))
    for column, counts in planned.items():
        assert sum(counts) / len(counts) <= files * 0.7, f"{column}: {counts} of {files}"
