"""Dynamic overwrites of tables that have files of other partition specs: no old row stays beside its replacement."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.catalog import Table
from icefield.errors import ValidationFailed
from icefield.partitioning.spec import normalised_key, partition_batch
from icefield.transaction.snapshots.summary import distinct_partitions
from tables import ids, new_table, orphans, rows

Fields = Sequence[tuple[str, str]]


def evolved(first: Fields, then: Fields, data: pa.Table, **properties: str) -> Table:
    """A table whose rows were written under one spec, and that has another now."""
    table = new_table(schema=data.schema, **properties)
    with table.update_spec() as update:
        for name, transform in first:
            update.add_field(name, transform)
    if len(data):
        table.append(data)
    with table.update_spec() as update:
        for field in table.spec().fields:
            update.remove_field(field.name)
        for name, transform in then:
            update.add_field(name, transform)
    return table


@pytest.mark.spec("COMMIT-23")
def test_files_of_an_older_spec_that_hold_none_of_the_replaced_rows_stay():
    table = new_table("kind")
    table.append(pa.concat_tables([rows([1], "a"), rows([2], "b")]))
    with table.update_spec() as update:
        update.add_field("id", "bucket[2]")
    table.append(rows([3], "c"))
    table.dynamic_partition_overwrite(rows([3, 3], "c"))
    assert ids(table) == [1, 2, 3, 3]


@pytest.mark.spec("COMMIT-23")
def test_a_dynamic_overwrite_does_not_leave_rows_of_an_older_spec_beside_the_new_ones():
    table = new_table("kind")
    table.append(rows([1], "a"))
    with table.update_spec() as update:
        update.add_field("id", "bucket[2]")
    with pytest.raises(
        ValidationFailed, match=r"1 data files of other partition specs \(0 by kind\).*rewrite_all=True"
    ):
        table.dynamic_partition_overwrite(rows([1, 1], "a"))
    assert ids(table) == [1]
    assert not orphans(table)
    table.maintenance.rewrite_data_files(rewrite_all=True)
    table.dynamic_partition_overwrite(rows([1, 1], "a"))
    assert ids(table) == [1, 1]


def test_an_older_spec_that_somebody_writes_with_meanwhile_is_seen_as_well():
    table = new_table("kind")
    table.append(rows([1], "b"))
    with table.update_spec() as update:
        update.add_field("id", "bucket[2]")
    table.append(rows([2], "a"))
    table.dynamic_partition_overwrite(rows([2], "a"))
    assert ids(table) == [1, 2]


def test_buckets_of_both_specs_are_compared():
    data = pa.table({"id": pa.array([1, 2], pa.int64()), "kind": ["a", "a"]})
    table = new_table("bucket[16](id)", schema=data.schema)
    table.append(data)
    with table.update_spec() as update:
        update.add_field("kind", "identity")
    other = next(n for n in range(3, 99) if partition(table, n) not in {partition(table, 1), partition(table, 2)})
    table.dynamic_partition_overwrite(data.slice(0, 1).set_column(0, "id", pa.array([other])))
    assert ids(table) == [1, 2, other]
    with pytest.raises(ValidationFailed):
        table.dynamic_partition_overwrite(data.slice(0, 1))


def partition(table: Table, number: int) -> Any:
    batch = pa.record_batch({"id": pa.array([number], pa.int64()), "kind": ["a"]})
    return distinct_partitions(partition_batch(table.spec(), table.schema(), batch))[0][0]


def test_days_before_the_replaced_hours_stay():
    def at(*times: dt.datetime) -> pa.Table:
        return pa.table({"ts": pa.array(times, pa.timestamp("us"))})

    january, june = dt.datetime(2024, 1, 5, 3), dt.datetime(2024, 6, 1, 7)
    table = evolved([("ts", "day")], [("ts", "hour")], at(january, june.replace(hour=1)))
    table.append(at(june))
    table.dynamic_partition_overwrite(at(june))
    assert sorted(table.scan().to_arrow()["ts"].to_pylist()) == [january, june.replace(hour=1), june]
    with pytest.raises(ValidationFailed):
        table.dynamic_partition_overwrite(at(january))


def test_many_partitions_are_looked_for_together():
    data = pa.table({"id": pa.array(range(300), pa.int64()), "kind": ["a"] * 300})
    table = evolved([("kind", "identity")], [("id", "identity")], data.slice(0, 1))
    table.dynamic_partition_overwrite(data.slice(1))
    assert ids(table) == list(range(300))
    with pytest.raises(ValidationFailed):
        table.dynamic_partition_overwrite(data)


COLUMNS = {
    "n": (pa.int32(), st.integers(-(2**31), 2**31 - 1) | st.integers(-20, 20)),
    "l": (pa.int64(), st.integers(-(2**63), 2**63 - 1) | st.integers(-20, 20)),
    "s": (pa.string(), st.text("ab\U0001f600", max_size=4)),
    "b": (pa.binary(), st.binary(max_size=4)),
    "d": (pa.decimal128(5, 2), st.decimals(Decimal(-99), Decimal(99), places=2)),
    "day": (pa.date32(), st.dates()),
    "ts": (pa.timestamp("us"), st.datetimes()),
    "ns": (pa.timestamp("ns"), st.datetimes(dt.datetime(1678, 1, 1), dt.datetime(2262, 1, 1))),
    "f": (pa.float64(), st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf")])),
}
TRANSFORMS = {
    "n": ["identity", "bucket[2]", "truncate[7]"],
    "l": ["identity", "bucket[2]", "truncate[7]"],
    "s": ["identity", "bucket[2]", "truncate[2]"],
    "b": ["identity", "bucket[2]", "truncate[2]"],
    "d": ["identity", "truncate[50]"],
    "day": ["identity", "year", "month", "day"],
    "ts": ["identity", "year", "month", "day", "hour"],
    "ns": ["year", "month", "day", "hour"],
    "f": ["identity"],
}
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])
ROWS = st.lists(st.fixed_dictionaries({n: st.none() | each for n, (_, each) in COLUMNS.items()}), max_size=4)
FIELD = st.sampled_from([(name, transform) for name, found in TRANSFORMS.items() for transform in found])
SPEC = st.lists(FIELD, min_size=1, max_size=2, unique_by=lambda field: field[0])


@settings(max_examples=300, deadline=None)
@given(SPEC, SPEC, ROWS, ROWS.filter(len))
def test_rows_of_a_replaced_partition_go_or_the_overwrite_is_refused(first, then, old, new):
    table = evolved(
        first,
        then,
        pa.Table.from_pylist(old, SCHEMA),
        **{"format-version": "3"},
    )

    def keys(held: list[dict[str, Any]]) -> list[Any]:
        values = [
            partition_batch(table.spec(), table.schema(), pa.RecordBatch.from_pylist([row], SCHEMA)) for row in held
        ]
        return [normalised_key(distinct_partitions(each)[0]) for each in values]

    def shown(held: list[dict[str, Any]]) -> list[str]:
        return sorted(repr(row) for row in pa.Table.from_pylist(held, SCHEMA).to_pylist())

    replaced = set(keys(new))
    gone = [key in replaced for key in keys(old)]
    try:
        table.dynamic_partition_overwrite(pa.Table.from_pylist(new, SCHEMA))
    except ValidationFailed:
        assert shown(table.scan().to_arrow().to_pylist()) == shown(old)
        return
    kept = [row for row, goes in zip(old, gone, strict=True) if not goes]
    assert sorted(map(repr, table.scan().to_arrow().to_pylist())) == shown([*kept, *new])
