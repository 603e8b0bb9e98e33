"""Proofs by statistics about required columns, and about rows whose struct is null."""

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.expressions import Op, bind, parse, strict_metrics
from icefield.schema import Schema
from icefield.types import NestedField, StructType, parse_type
from metrics_verdicts import verdict
from naive_filters import SCHEMA, TYPES, column_name, naive, one_of, predicates
from naive_statistics import ColumnStatistics, File, Statistics, files

REQUIRED = Schema(
    *(replace(field, required=True) for field in SCHEMA.fields[:-1]),
    NestedField(50, "s", SCHEMA.find_type("s"), required=True),
    NestedField(
        60,
        "r",
        StructType(NestedField(61, "i", parse_type("int"), required=True), NestedField(62, "o", parse_type("int"))),
        required=True,
    ),
)
"""The columns of ``SCHEMA`` without nulls; of two structs without nulls, one has a required field."""


@pytest.mark.parametrize("kind", TYPES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_required_column_is_proven_without_counts_of_nulls_and_soundly(kind, data):
    name = column_name(kind)
    found = data.draw(files([name], st.lists(st.fixed_dictionaries({name: one_of(kind)}), max_size=5)))
    for file in found:
        file.columns.setdefault(SCHEMA.find_field(name).field_id, ColumnStatistics()).nulls = None
    expression = data.draw(predicates(name, kind))
    claimed = strict_metrics(bind(REQUIRED, expression), Statistics(found))
    for file, must in zip(found, claimed, strict=True):
        assert not must or all(naive(bind(REQUIRED, expression), row) is True for row in file.rows)
        for column in file.columns.values():
            column.nulls = 0
    if expression.op not in (Op.IS_NULL, Op.NOT_NULL):
        # A null count of zero proves nothing more about columns that may be null.
        assert list(claimed) == list(strict_metrics(bind(SCHEMA, expression), Statistics(found)))


@pytest.mark.parametrize(
    ("text", "column", "proven"),
    [
        ("c_int > 4", (10, None, None, 5, 8), True),
        ("c_int > 4", (None, None, None, 5, 8), True),
        ("c_int > 4", (10, 0, None, 5, 8), True),
        ("c_int > 4", (10, 3, None, 5, 8), False),
        ("c_int > 5", (10, None, None, 5, 8), False),
        ("c_int != 9", (None, None, None, 5, 8), True),
        ("c_int not in (1, 9)", (None, None, None, 5, 8), True),
        ("c_double > 4", (10, None, None, 5.0, 8.0), False),
        ("c_double > 4", (10, None, 0, 5.0, 8.0), True),
        ("c_double != 9", (10, None, None, 5.0, 8.0), True),
        ("c_string like 'a%'", (None, None, None, "ab", "ac"), True),
        ("r.i > 4", (10, None, None, 5, 8), True),
        ("r.i > 4", (7, 0, None, 5, 8), True),
        ("r.o > 4", (10, None, None, 5, 8), False),
        ("r.o > 4", (10, 0, None, 5, 8), True),
        ("s.i > 4", (10, None, None, 5, 8), False),
        ("s.deep.t > 'a'", (10, None, None, "ab", "ac"), False),
    ],
)
def test_only_where_the_whole_path_is_required_no_count_of_nulls_is_needed(text, column, proven):
    bound = bind(REQUIRED, parse(text))

    class Stated(Statistics):
        """The same statistics for every column."""

        def _column(self, field_id, name, kind):
            cell = getattr(ColumnStatistics(*column), name)
            return None if cell is None else pa.array([cell], kind)

        def lower(self, field_id):
            return self._column(field_id, "lower", bound.arrow.type)

        def upper(self, field_id):
            return self._column(field_id, "upper", bound.arrow.type)

    assert strict_metrics(bound, Stated([File([], 10, {})])).tolist() == [proven]


@pytest.mark.parametrize("text", ["c_double is null", "c_double is not nan", "c_double is nan"])
@pytest.mark.parametrize("nulls", [None, 0])
def test_of_a_column_without_values_all_is_proven_however_many_nulls_are_counted(text, nulls):
    # The number of rows is unknown, and the number of values shows that the column has none.
    assert verdict(text, -1, double=(0, nulls, 0, None, None)) == "all"


@pytest.mark.parametrize(
    ("text", "record_count", "column", "expected"),
    [
        # The statistics count three rows; in further rows the struct is null.
        ("s.d is null", 5, (3, 0, 0, 1.0, 2.0), "some"),
        ("s.d is null", 3, (3, 0, 0, 1.0, 2.0), "none"),
        ("s.d is null", None, (3, 0, 0, 1.0, 2.0), "some"),
        ("s.d is not null", 5, (3, 0, 0, 1.0, 2.0), "some"),
        ("s.d is not null", 3, (3, 0, 0, 1.0, 2.0), "all"),
        ("s.d is not null", 5, (3, 3, 0, None, None), "none"),
        ("s.d is nan", 5, (3, 0, 3, None, None), "some"),
        ("s.d is nan", 3, (3, 0, 3, None, None), "all"),
        ("s.d is not nan", 5, (3, 0, 3, None, None), "some"),
        ("s.d is not nan", 3, (3, 0, 3, None, None), "none"),
        ("s.d > 0", 5, (3, 0, 0, 1.0, 2.0), "some"),
        ("s.d > 0", 3, (3, 0, 0, 1.0, 2.0), "all"),
        ("s.d < 0", 5, (3, 0, 0, 1.0, 2.0), "none"),
    ],
)
@pytest.mark.spec("SCAN-19", "SCAN-24")
def test_rows_whose_struct_is_null_may_not_have_been_counted(text, record_count, column, expected):
    assert verdict(text, record_count, nested=column) == expected
