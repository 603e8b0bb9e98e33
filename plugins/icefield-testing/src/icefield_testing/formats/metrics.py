"""Metrics are compared with a walk through the rows, value by value."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from icefield.abc import FileFormat
from icefield.schema import Schema, schema_to_arrow
from icefield.toolkit import Metrics, from_arrow_scalar
from icefield.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

from icefield_testing.format_data import EDGES, NESTED, NESTED_ROWS, flat_table, table_of, tables
from icefield_testing.formats.base import FormatChecks, examples


class MetricsChecks(FormatChecks):
    """Checks of the metrics that a writer and a reader state for the values."""

    def test_metrics_are_true(self, file_format: FileFormat) -> None:
        """If this fails, look at ``MetricsCollector``: counts include nulls, bounds leave out null and NaN."""
        schema, table = flat_table(999)
        metrics = self._check(file_format, schema, table)
        assert metrics.record_count == 999
        assert 5 not in metrics.lower_bounds, "what is inside a list has no bounds"

    @pytest.mark.parametrize("kind", EDGES, ids=str)
    def test_metrics_of_every_type_are_true(self, file_format: FileFormat, kind: IcebergType) -> None:
        """If this fails, a bound is not in the order of the type, or not the internal value."""
        self._check(file_format, *table_of(kind, EDGES[kind], required=False))
        self._check(file_format, *table_of(kind, EDGES[kind][:1], required=True))

    @pytest.mark.parametrize("shape", NESTED)
    def test_metrics_of_nested_columns_are_true(self, file_format: FileFormat, shape: str) -> None:
        """If this fails, look at leaves below null parents, and at elements of lists and maps."""
        self._check(file_format, *table_of(NESTED[shape], NESTED_ROWS[shape], required=False))

    @pytest.mark.parametrize(
        "values",
        [
            [math.nan, math.nan],
            [math.nan, 1.0, None, -1.0],
            [-0.0, 0.0],
            [0.0, None, -0.0],
            [-0.0],
            [0.0],
            [math.inf, -math.inf, math.nan],
            [None, None],
            [],
        ],
        ids=repr,
    )
    @pytest.mark.parametrize("kind", [FloatType(), DoubleType()], ids=str)
    def test_metrics_of_floats_are_true(
        self, file_format: FileFormat, kind: IcebergType, values: list[float | None]
    ) -> None:
        """If this fails, NaN is a bound, or 0.0 bounds a column that holds -0.0."""
        self._check(file_format, *table_of(kind, values, required=False))

    @pytest.mark.parametrize(
        "values",
        [["", "a"], ["\uffff", "\U0001f600"], ["é", "e\u0301", "z"], ["a" * 5_000, "a" * 4_999], [None], ["\0", ""]],
        ids=["empty", "beyond the surrogates", "accents", "long", "null", "zero"],
    )
    def test_metrics_of_strings_are_true(self, file_format: FileFormat, values: list[str | None]) -> None:
        """If this fails, strings are ordered by UTF-16 or by locale, and not by their bytes."""
        self._check(file_format, *table_of(StringType(), values, required=False))

    @pytest.mark.parametrize(
        ("kind", "values"),
        [
            (LongType(), [2**53 + 1, 2**62 + 1]),
            (LongType(), [-(2**62) - 1, -(2**53) - 1]),
            (DecimalType(17, 0), [Decimal(10**16 + 1), Decimal(99_999_999_999_999_983)]),
            (DecimalType(20, 2), [Decimal("-100000000000000001.01"), Decimal("100000000000000001.01")]),
            (DecimalType(38, 0), [-(10**37) - 1, 10**37 + 1]),
        ],
        ids=["long", "negative long", "decimal of 17", "decimal of 20", "decimal of 38"],
    )
    def test_bounds_of_exact_numbers_are_exact(
        self, file_format: FileFormat, kind: IcebergType, values: list[Any]
    ) -> None:
        """If this fails, a bound went through a float, which rounds it inwards: files are skipped that match."""
        self._check(file_format, *table_of(kind, values, required=False))

    def test_metrics_of_sibling_fields_are_their_own(self, file_format: FileFormat) -> None:
        """If this fails, metrics of nested fields are matched by place or by name, and two of one type are swapped."""
        schema = Schema(
            NestedField(1, "n", LongType(), required=True),
            NestedField(9, "s", StructType(NestedField(8, "x", LongType()), NestedField(3, "y", LongType()))),
            NestedField(2, "t", StructType(NestedField(7, "y", LongType()), NestedField(5, "x", LongType()))),
        )
        rows = [
            {"n": 1, "s": {"x": 10, "y": 1_000}, "t": {"y": -10, "x": None}},
            {"n": 2, "s": {"x": 20, "y": None}, "t": {"y": None, "x": None}},
            {"n": 3, "s": {"x": None, "y": 3_000}, "t": {"y": -30, "x": 7}},
            {"n": 4, "s": {"x": None, "y": 4_000}, "t": None},
            {"n": 5, "s": {"x": None, "y": 5_000}, "t": {"y": -50, "x": 7}},
        ]
        self._check(file_format, schema, pa.Table.from_pylist(rows, schema=schema_to_arrow(schema)))

    def test_a_nan_is_no_bound(self, file_format: FileFormat) -> None:
        """If this fails, a bound is NaN, and every comparison with it is false: files are skipped that match."""
        schema, table = table_of(DoubleType(), [1.0, math.nan, None, 2.0], required=False)
        _, written = self.write(file_format, schema, table)
        bounds = [*written.metrics.lower_bounds.values(), *written.metrics.upper_bounds.values()]
        assert all(bound == bound for bound in bounds)

    def test_values_below_null_parents_are_not_counted(self, file_format: FileFormat) -> None:
        """If this fails, a value that no reader sees widens the bounds, or is counted as one that is there."""
        schema = Schema(
            NestedField(1, "n", LongType(), required=True),
            NestedField(2, "s", StructType(NestedField(3, "x", LongType()))),
        )
        arrow = schema_to_arrow(schema)
        hidden = pa.StructArray.from_arrays(
            [pa.array([5, -999, 7, 999])],
            fields=[arrow.field("s").type.field(0)],
            mask=pa.array([False, True, False, True]),
        )
        table = pa.Table.from_arrays([pa.array(range(4)), hidden], schema=arrow)
        metrics = self._check(file_format, schema, table)
        assert metrics.lower_bounds.get(3, 5) == 5
        assert metrics.upper_bounds.get(3, 7) == 7

    def test_metrics_of_several_batches_are_those_of_the_file(self, file_format: FileFormat) -> None:
        """If this fails, metrics are those of the last batch, or counted twice."""
        schema, table = flat_table(2_000)
        _, whole = self.write(file_format, schema, table)
        _, parts = self.write(file_format, schema, table, batch_rows=70)
        for name in ("record_count", "value_counts", "null_value_counts", "lower_bounds", "upper_bounds"):
            assert getattr(parts.metrics, name) == getattr(whole.metrics, name)

    @examples(25)
    @given(made=tables())
    def test_metrics_of_any_table_are_true(self, file_format: FileFormat, made: tuple[Schema, pa.Table]) -> None:
        """If this fails, Hypothesis prints the smallest table whose metrics are wrong."""
        self._check(file_format, *made)

    def test_column_sizes_are_of_the_columns_of_the_file(self, file_format: FileFormat) -> None:
        """If this fails, ``column_sizes`` count bytes in memory, or columns that the file does not have."""
        schema, table = flat_table(5_000)
        _, written = self.write(file_format, schema, table)
        sizes = written.metrics.column_sizes
        assert sizes.keys() <= set(schema.field_ids)
        assert all(size >= 0 for size in sizes.values())
        assert sum(sizes.values()) <= written.size

    def _check(self, file_format: FileFormat, schema: Schema, table: pa.Table) -> Metrics:
        """Compare the metrics of the writer, and the metrics that a reader finds in the file, with the values."""
        truth = _truth(schema, table)
        location, written = self.write(file_format, schema, table)
        with self.open(file_format, location) as reader:
            found = reader.metrics()
        for metrics in (written.metrics, found):
            stated = metrics.record_count
            assert stated == table.num_rows, f"record_count is {stated:,}, there are {table.num_rows:,} rows"
            _compare(metrics, truth)
        return written.metrics


@dataclass
class _LeafMetrics:
    """The actual counts and values of one leaf."""

    kind: IcebergType
    bounded: bool
    values: int = 0
    nulls: int = 0
    nans: int = 0
    present: list[Any] = field(default_factory=list)


def _truth(schema: Schema, table: pa.Table) -> dict[int, _LeafMetrics]:
    found: dict[int, _LeafMetrics] = {}
    for column in schema.fields:
        for scalar in table.column(column.name):
            for leaf, bounded, value in _leaves(column, scalar, bounded=True):
                _count(found.setdefault(leaf.field_id, _LeafMetrics(leaf.field_type, bounded)), value)
        for leaf, bounded, _ in _leaves(column, pa.scalar(None), bounded=True):
            found.setdefault(leaf.field_id, _LeafMetrics(leaf.field_type, bounded))
    return found


def _leaves(column: NestedField, scalar: pa.Scalar, *, bounded: bool) -> Iterator[tuple[NestedField, bool, pa.Scalar]]:
    """The leaves of a value; a null struct counts as a null in each of its leaves."""
    kind = column.field_type
    if isinstance(kind, StructType):
        for child in kind.fields:
            yield from _leaves(child, scalar[child.name] if scalar.is_valid else pa.scalar(None), bounded=bounded)
    elif isinstance(kind, ListType):
        for item in scalar.values if scalar.is_valid else ():
            yield from _leaves(kind.element, item, bounded=False)
    elif isinstance(kind, MapType):
        for entry in scalar.values if scalar.is_valid else ():
            for child, at in ((kind.key, 0), (kind.value, 1)):
                yield from _leaves(child, entry[at], bounded=False)
    else:
        yield column, bounded, scalar


def _count(leaf: _LeafMetrics, scalar: pa.Scalar) -> None:
    leaf.values += 1
    if not scalar.is_valid:
        leaf.nulls += 1
        return
    value = from_arrow_scalar(leaf.kind, scalar)
    if isinstance(value, float) and math.isnan(value):
        leaf.nans += 1
    else:
        leaf.present.append(value)


def _compare(metrics: Metrics, truth: dict[int, _LeafMetrics]) -> None:
    counted = (metrics.value_counts, metrics.null_value_counts, metrics.nan_value_counts)
    for stated, of in zip(counted, ("values", "nulls", "nans"), strict=True):
        for number, count in stated.items():
            # A leaf inside lists or maps may have no value at all.
            expected = getattr(truth[number], of) if number in truth else 0
            assert count == expected, f"{of} of {number}: stated {count}, there are {expected}"
    for number in {*metrics.lower_bounds, *metrics.upper_bounds}:
        leaf = truth[number]
        assert leaf.bounded, f"what is inside a list or a map has no bounds: {number}"
        assert leaf.present, f"bounds of {number}, which has no value"
        lower, upper = metrics.lower_bounds[number], metrics.upper_bounds[number]
        assert type(lower) is type(upper) is type(leaf.present[0]), f"bounds of {number} are no internal values"
        ranks = [_rank(value) for value in leaf.present]
        least, greatest = min(leaf.present, key=_rank), max(leaf.present, key=_rank)
        assert _rank(lower) <= min(ranks), f"lower bound of {number}: {lower!r}, there is {least!r}"
        assert _rank(upper) >= max(ranks), f"upper bound of {number}: {upper!r}, there is {greatest!r}"


def _rank(value: Any) -> Any:
    """The sort key of a value in the order of its type: strings by their bytes, -0.0 before 0.0."""
    if isinstance(value, str):
        return value.encode()
    return (value, math.copysign(1.0, value)) if isinstance(value, float) else value
