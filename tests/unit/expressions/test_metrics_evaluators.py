"""Pruning of files by their statistics, against the rows that they hold."""

import math
import time
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.errors import InvalidExpression
from icefield.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    EqualTo,
    In,
    NotIn,
    Op,
    bind,
    inclusive_metrics,
    parse,
    strict_metrics,
)
from icefield.expressions.bounds import count_smaller
from icefield.schema import Schema
from icefield.types import NestedField, StructType, parse_type
from naive_filters import (
    ALL_NAMES,
    COLUMNS,
    NAN,
    SCHEMA,
    TYPES,
    UUIDS,
    column_name,
    expressions,
    naive,
    nested_rows,
    one_of,
    predicates,
    rows,
)
from naive_statistics import ColumnStatistics, File, Statistics, column_statistics, files


def check_sound(expression, found):
    """No file with a matching row is left out, and no file with another row is claimed."""
    bound = bind(SCHEMA, expression)
    statistics = Statistics(found)
    kept, covered = inclusive_metrics(bound, statistics), strict_metrics(bound, statistics)
    assert kept.dtype == covered.dtype == np.bool_
    assert len(kept) == len(covered) == len(found)
    for file, may, must in zip(found, kept, covered, strict=True):
        for row in file.rows:
            # Either way of comparing NaN must find its rows.
            matches = naive(bound, row) is True
            assert may or not (matches or naive(bound, row, nan_is_greatest=True) is True), (str(bound), file)
            assert matches or not must, (str(bound), file)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.spec("SCAN-19", "SCAN-20", "SCAN-21", "SCAN-22", "SCAN-23", "MET-07", "MET-10")
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_each_predicate_prunes_soundly(kind, data):
    name = column_name(kind)
    found = data.draw(files([name], rows({name: kind}, max_size=5)))
    check_sound(data.draw(predicates(name, kind)), found)


@pytest.mark.spec("SCAN-19", "SCAN-24")
@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_combined_predicates_prune_soundly_also_inside_null_structs(data):
    columns = {name: ALL_NAMES[name] for name in ("c_int", "c_double", "s.i", "s.d", "s.deep.t")}
    flat = {name: kind for name, kind in columns.items() if name in COLUMNS}
    found = data.draw(files(list(columns), nested_rows(flat, max_size=4)))
    check_sound(data.draw(expressions(columns)), found)


@pytest.mark.parametrize("name", ["c_int", "c_string", "c_decimal_9_2_", "c_double", "c_binary"])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_full_statistics_prune_all_that_bounds_can_tell(name, data):
    """Soundness alone would allow to keep everything: with exact bounds, ranges must prune all they can."""
    kind = COLUMNS[name]
    found_rows = data.draw(rows({name: kind}, max_size=5))
    bound = bind(SCHEMA, data.draw(predicates(name, kind).filter(lambda e: e.op.value in ("<", "<=", ">", ">="))))
    statistics = column_statistics(name, found_rows)
    file = File(found_rows, len(found_rows), {SCHEMA.find_field(name).field_id: statistics})
    matches = [naive(bound, row) is True for row in found_rows]
    has_nan = any(isinstance(row[name], float) and math.isnan(row[name]) for row in found_rows)
    assert inclusive_metrics(bound, Statistics([file]))[0] == (
        any(matches) or (has_nan and bound.op.value in (">", ">="))
    )
    assert strict_metrics(bound, Statistics([file]))[0] == all(matches)


INT = SCHEMA.find_field("c_int").field_id
FLOAT = SCHEMA.find_field("c_double").field_id
TEXT = SCHEMA.find_field("c_string").field_id
UUID = SCHEMA.find_field("c_uuid").field_id


def verdict(text, record_count=10, **columns):
    """What both evaluators say of one file: "none", "some" or "all" of its rows match."""
    ids = {"int": INT, "double": FLOAT, "string": TEXT, "uuid": UUID, "nested": SCHEMA.find_field("s.d").field_id}
    file = File([], record_count, {ids[name]: ColumnStatistics(*one) for name, one in columns.items()})
    bound = bind(SCHEMA, parse(text) if isinstance(text, str) else text)
    kept, covered = inclusive_metrics(bound, Statistics([file]))[0], strict_metrics(bound, Statistics([file]))[0]
    return "all" if covered else "some" if kept else "none"


FULL = (10, 0, None, 5, 8)  # 10 values from 5 to 8, no null
SAME = (10, 0, None, 7, 7)
SOME_NULL = (10, 3, None, 5, 8)
ALL_NULL = (10, 10, None, None, None)

TRUTH_TABLE = [
    # predicate               FULL    SAME    SOME_NULL ALL_NULL
    ("c_int is null", "none", "none", "some", "all"),
    ("c_int is not null", "all", "all", "some", "none"),
    ("c_int < 5", "none", "none", "none", "none"),
    ("c_int < 6", "some", "none", "some", "none"),
    ("c_int < 9", "all", "all", "some", "none"),
    ("c_int <= 4", "none", "none", "none", "none"),
    ("c_int <= 5", "some", "none", "some", "none"),
    ("c_int <= 8", "all", "all", "some", "none"),
    ("c_int > 8", "none", "none", "none", "none"),
    ("c_int > 7", "some", "none", "some", "none"),
    ("c_int > 4", "all", "all", "some", "none"),
    ("c_int >= 9", "none", "none", "none", "none"),
    ("c_int >= 8", "some", "none", "some", "none"),
    ("c_int >= 5", "all", "all", "some", "none"),
    ("c_int = 4", "none", "none", "none", "none"),
    ("c_int = 7", "some", "all", "some", "none"),
    ("c_int = 9", "none", "none", "none", "none"),
    ("c_int != 4", "all", "all", "some", "none"),
    ("c_int != 7", "some", "none", "some", "none"),
    ("c_int in (1, 4, 9, 20)", "none", "none", "none", "none"),
    ("c_int in (1, 7, 9)", "some", "all", "some", "none"),
    ("c_int in (1, 5)", "some", "none", "some", "none"),
    ("c_int in (8, 20)", "some", "none", "some", "none"),
    ("c_int not in (1, 4, 9, 20)", "all", "all", "some", "none"),
    ("c_int not in (1, 7, 9)", "some", "none", "some", "none"),
]


@pytest.mark.parametrize(("text", "full", "same", "some_null", "all_null"), TRUTH_TABLE)
@pytest.mark.spec("SCAN-19", "SCAN-20", "SCAN-21")
def test_each_operator_has_its_truth_table(text, full, same, some_null, all_null):
    found = [verdict(text, int=one) for one in (FULL, SAME, SOME_NULL, ALL_NULL)]
    assert found == [full, same, some_null, all_null]


@pytest.mark.parametrize("text", [row[0] for row in TRUTH_TABLE] + ["c_double is nan", "c_string like 'a%'"])
@pytest.mark.spec("SCAN-19", "SCAN-40", "DEF-15", "MET-10")
def test_what_is_not_known_keeps_a_file_and_claims_nothing(text):
    assert verdict(text) == "some"
    assert verdict(text, record_count=-1) == "some"
    nothing = (None, None, None, None, None)
    assert verdict(text, int=nothing, double=nothing, string=nothing) == "some"


@pytest.mark.spec("SCAN-40", "DEF-15")
def test_a_file_without_the_column_is_kept_so_that_its_default_can_match():
    file_with, file_without = File([], 10, {INT: ColumnStatistics(10, 0, None, 1, 2)}), File([], 10, {})
    bound = bind(SCHEMA, EqualTo("c_int", 7))
    assert inclusive_metrics(bound, Statistics([file_with, file_without])).tolist() == [False, True]
    assert strict_metrics(bound, Statistics([file_with, file_without])).tolist() == [False, False]


@pytest.mark.spec("SCAN-25")
def test_an_empty_file_is_left_out_and_an_unknown_count_keeps_a_file():
    for expression in (AlwaysTrue(), bind(SCHEMA, parse("c_int = 7"))):
        found = [File([], count, {}) for count in (0, -1, None, 1)]
        assert inclusive_metrics(expression, Statistics(found)).tolist() == [False, True, True, True]
    assert strict_metrics(AlwaysFalse(), Statistics(found)).tolist() == [True, False, False, False]


@pytest.mark.parametrize("text", [row[0] for row in TRUTH_TABLE if "null" not in row[0]])
def test_bounds_that_nothing_is_between_are_unknown(text):
    assert verdict(text, int=(10, 0, None, 8, 5)) == "some"


def test_bounds_in_no_order_say_nothing_of_any_type_or_of_other_files():
    for name, low, high in (("double", 2.0, 1.0), ("string", "b", "a"), ("uuid", b"\x01" + bytes(15), bytes(16))):
        literal = {"double": "5", "string": "'c'", "uuid": "'ffffffff-ffff-ffff-ffff-ffffffffffff'"}[name]
        assert verdict(f"c_{name} = {literal}", **{name: (10, 0, 0, low, high)}) == "some"
        assert verdict(f"c_{name} = {literal}", **{name: (10, 0, 0, high, low)}) == "none"
    files = [File([], 10, {INT: ColumnStatistics(10, 0, None, *bounds)}) for bounds in ((8, 5), (5, 8), (None, 5))]
    assert inclusive_metrics(bind(SCHEMA, parse("c_int = 9")), Statistics(files)).tolist() == [True, False, False]


@pytest.mark.parametrize("column", [(0, 0, None, None, None), (4, 4, None, None, None), (4, 1, 3, None, None)])
def test_a_count_of_values_that_leaves_out_rows_says_nothing_of_these(column):
    assert verdict("c_double is not null", record_count=10, double=column) != "none"
    assert verdict("c_double is null", record_count=10, double=column) != "all"
    assert verdict("c_double = 5", record_count=10, double=column) == "some"
    assert verdict("c_double = 5", record_count=column[0] or 1, double=column) == ("none" if column[0] else "some")


@pytest.mark.spec("SCAN-19", "SCAN-25")
def test_counts_that_cannot_be_are_unknown():
    for column in ((-10, -10, -10, None, None), (10, -10, 20, None, None), (-1, -1, None, None, None)):
        for text in ("c_double is null", "c_double is not null", "c_double is nan", "c_double < 5", "c_double != 5"):
            assert verdict(text, record_count=-7, double=column) == "some"


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        # values, nulls, nans, lower, upper
        ("c_double is nan", (10, 0, 0, 1.0, 2.0), "none"),
        ("c_double is nan", (10, 0, 3, 1.0, 2.0), "some"),
        ("c_double is nan", (10, 0, None, 1.0, 2.0), "some"),
        ("c_double is nan", (10, 10, None, None, None), "none"),
        ("c_double is nan", (10, 0, 10, None, None), "all"),
        ("c_double is not nan", (10, 0, 10, None, None), "none"),
        ("c_double is not nan", (10, 3, 0, 1.0, 2.0), "all"),
        ("c_double is not nan", (10, 10, None, None, None), "all"),
        ("c_double < 0", (10, 0, 3, 1.0, 2.0), "none"),
        ("c_double < 5", (10, 0, 0, 1.0, 2.0), "all"),
        ("c_double < 5", (10, 0, 3, 1.0, 2.0), "some"),
        ("c_double < 5", (10, 0, None, 1.0, 2.0), "some"),
        ("c_double > 5", (10, 0, 0, 1.0, 2.0), "none"),
        ("c_double > 5", (10, 0, 3, 1.0, 2.0), "some"),
        ("c_double > 5", (10, 0, None, 1.0, 2.0), "some"),
        ("c_double > 5", (10, 0, 10, None, None), "some"),
        ("c_double > 0", (10, 0, 3, 1.0, 2.0), "some"),
        ("c_double > 0", (10, 0, 0, 1.0, 2.0), "all"),
        ("c_double < 5", (10, 0, 10, None, None), "none"),
        ("c_double = 5", (10, 4, 6, None, None), "none"),
        ("c_double = 1", (10, 0, None, 1.0, 1.0), "some"),
        ("c_double = 1", (10, 0, 0, 1.0, 1.0), "all"),
        ("c_double != 1", (10, 0, 0, 1.0, 1.0), "none"),
        ("c_double != 1", (10, 0, 1, 1.0, 1.0), "some"),
        ("c_double != 9", (10, 0, 1, 1.0, 2.0), "all"),
        ("c_double != 9", (10, 0, None, 1.0, 2.0), "all"),
        ("c_double != 9", (10, 1, 1, 1.0, 2.0), "some"),
        ("c_double != 9", (10, 0, 10, None, None), "all"),
        ("c_double != 9", (10, 0, 3, None, None), "some"),
        ("c_double != 9", (10, 0, 3, NAN, 2.0), "all"),
        ("c_double != 1", (10, 0, 3, NAN, 2.0), "some"),
        ("c_double not in (0, 9)", (10, 0, None, 1.0, 2.0), "all"),
        ("c_double not in (0, 9)", (10, 0, 10, None, None), "all"),
        ("c_double not in (1.5, 9)", (10, 0, None, 1.0, 2.0), "some"),
        ("c_double in (1, 9)", (10, 0, None, 1.0, 1.0), "some"),
        ("c_double != 9", (10, 0, 0, 1.0, 2.0), "all"),
        ("c_double = 0", (10, 0, 0, -0.0, 0.0), "all"),
        ("c_double < 0", (10, 0, 0, -0.0, 0.0), "none"),
        ("c_double = 5", (10, 0, 0, NAN, 2.0), "none"),
        ("c_double = 1", (10, 0, 0, NAN, 2.0), "some"),
        ("c_double < 5", (10, 0, 0, 1.0, NAN), "some"),
        ("c_double > 5", (10, 0, 0, 1.0, NAN), "some"),
        ("c_double in (0.5, 9)", (10, 0, 0, NAN, NAN), "some"),
    ],
)
@pytest.mark.spec("SCAN-22", "MET-10")
def test_files_with_nan_are_pruned_only_where_nan_does_not_matter(text, column, expected):
    assert verdict(text, double=column) == expected


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
        for column in file.columns.values():
            column.nulls = None
    expression = data.draw(predicates(name, kind))
    claimed = strict_metrics(bind(REQUIRED, expression), Statistics(found))
    for file, must in zip(found, claimed, strict=True):
        assert not must or all(naive(bind(REQUIRED, expression), row) is True for row in file.rows)
        for column in file.columns.values():
            column.nulls = 0
    if expression.op not in (Op.IS_NULL, Op.NOT_NULL):
        # With a count of no nulls nothing more is proven of columns that may have them.
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
        """Statistics of whatever column is asked for."""

        def _column(self, field_id, name, kind):
            cell = getattr(ColumnStatistics(*column), name)
            return None if cell is None else pa.array([cell], kind)

        def lower(self, field_id):
            return self._column(field_id, "lower", bound.arrow.type)

        def upper(self, field_id):
            return self._column(field_id, "upper", bound.arrow.type)

    assert strict_metrics(bound, Stated([File([], 10, {})])).tolist() == [proven]


@pytest.mark.parametrize(
    ("text", "lower", "upper", "expected"),
    [
        ("c_string = 'icebergs'", "ice", "icf", "some"),
        ("c_string = 'ice'", "ice", "ice", "all"),
        ("c_string = 'ich'", "ice", "icf", "none"),
        ("c_string != 'ice'", "ice", "icf", "some"),
        ("c_string > 'ice'", "ice", "icf", "some"),
        ("c_string >= 'ice'", "ice", "icf", "all"),
        ("c_string < 'icf'", "ice", "icf", "some"),
        ("c_string like 'iceberg%'", "ice", "icf", "some"),
        ("c_string like 'ic%'", "ice", "icf", "all"),
        ("c_string like 'icd%'", "ice", "icf", "none"),
        ("c_string like 'icg%'", "ice", "icf", "none"),
        ("c_string like 'icf%'", "ice", "icf", "some"),
        ("c_string like 'i%'", "ice", "jam", "some"),
        ("c_string like 'b%'", "a", "c", "some"),
        ("c_string not like 'ic%'", "ice", "icf", "none"),
        ("c_string not like 'iceb%'", "ice", "icf", "some"),
        ("c_string not like 'j%'", "ice", "icf", "all"),
        ("c_string in ('a', 'icd', 'icg', 'z')", "ice", "icf", "none"),
        ("c_string in ('a', 'iceberg')", "ice", "icf", "some"),
        ("c_string < 'é'", "\ue000", "\uffff", "none"),
        ("c_string > '\uffff'", "a", "\U0001f600", "some"),
        ("c_string > '\U0001f600'", "a", "\uffff", "none"),
    ],
)
@pytest.mark.spec("SCAN-23", "MET-07")
def test_string_bounds_are_bounds_and_no_values_and_compare_as_utf8(text, lower, upper, expected):
    assert verdict(text, string=(10, 0, None, lower, upper)) == expected


@pytest.mark.spec("MET-07")
def test_decimals_compare_by_value_and_bytes_without_sign():
    ids = {name: SCHEMA.find_field(name).field_id for name in ("c_decimal_9_2_", "c_binary", "c_fixed_3_")}
    bounds = {
        "c_decimal_9_2_": (Decimal("-10.00"), Decimal("9.50")),
        "c_binary": (b"\x10", b"\x90"),
        "c_fixed_3_": (b"\x00\x00\x00", b"\x80\x00\x00"),
    }
    columns = {ids[name]: ColumnStatistics(10, 0, None, *pair) for name, pair in bounds.items()}
    expected = {
        "c_decimal_9_2_ > 9.5": False,
        "c_decimal_9_2_ > 9.49": True,
        "c_decimal_9_2_ < -10": False,
        "c_decimal_9_2_ < -9": True,
        "c_decimal_9_2_ in (-11, 10, 100)": False,
        "c_decimal_9_2_ in (-11, -9.99)": True,
        "c_binary > X'90'": False,
        "c_binary > X'80'": True,
        "c_binary < X'10'": False,
        "c_binary in (X'00', X'91', X'ff')": False,
        "c_fixed_3_ > X'800000'": False,
        "c_fixed_3_ > X'7fffff'": True,
    }
    statistics = Statistics([File([], 10, columns)])
    assert {text: bool(inclusive_metrics(bind(SCHEMA, parse(text)), statistics)[0]) for text in expected} == expected


def _signed(value):
    """The order of Java's UUID: two signed halves."""
    return tuple(int.from_bytes(half, signed=True) for half in (value[:8], value[8:]))


@pytest.mark.slow
@pytest.mark.spec("MET-07")
@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(UUIDS), min_size=1, max_size=4), predicates("c_uuid", "uuid"), st.data())
def test_uuid_bounds_prune_soundly_whichever_order_their_writer_used(values, expression, data):
    bound = bind(SCHEMA, expression)
    order = data.draw(st.sampled_from([bytes, _signed]))
    one = ColumnStatistics(len(values), 0, None, min(values, key=order), max(values, key=order))
    for part in data.draw(st.lists(st.sampled_from(["lower", "upper"]), max_size=1)):
        setattr(one, part, None)
    statistics = Statistics([File([], len(values), {UUID: one}), File([], 1, {})])
    matches = [naive(bound, {"c_uuid": value}) is True for value in values]
    assert inclusive_metrics(bound, statistics)[0] or not any(matches)
    assert not strict_metrics(bound, statistics)[0] or all(matches)


@pytest.mark.spec("MET-07")
def test_uuid_bounds_do_prune_where_both_orders_agree():
    low, high = bytes([0x01]) + bytes(15), bytes([0x02]) + bytes(15)
    for op, value, expected in [
        ("<", low, "none"), (">=", low, "all"),
        ("<", bytes([3]) + bytes(15), "all"), (">", bytes([3]) + bytes(15), "none"),
        ("=", bytes([0x01, 0x80]) + bytes(14), "some"), ("=", bytes([0x80]) + bytes(15), "none"),
    ]:  # fmt: skip
        assert verdict(f"c_uuid {op} X'{value.hex()}'", uuid=(10, 0, None, low, high)) == expected
    assert verdict(f"c_uuid = X'{low.hex()}'", uuid=(10, 0, None, low, low)) == "all"


@pytest.mark.parametrize(
    ("text", "record_count", "column", "expected"),
    [
        # Three rows are counted; there are more, in which the struct is null.
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


def test_only_the_statistics_of_tested_columns_are_asked_for():
    statistics = Statistics([File([], 10, {INT: ColumnStatistics(*FULL)})])
    inclusive_metrics(bind(SCHEMA, parse("c_int = 7 and c_string = 'a'")), statistics)
    assert statistics.asked == {INT, TEXT}
    statistics.asked.clear()
    inclusive_metrics(bind(SCHEMA, parse("c_int = 100 and c_string = 'a'")), statistics)
    assert statistics.asked == {INT}


def test_an_expression_must_be_bound():
    for evaluator in (inclusive_metrics, strict_metrics):
        with pytest.raises(InvalidExpression, match="bind"):
            evaluator(EqualTo("c_int", 5), Statistics([File([], 1, {})]))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_values_below_a_probe_are_counted_for_every_type(data):
    name = data.draw(st.sampled_from(sorted(COLUMNS)))
    bound = bind(
        SCHEMA, data.draw(predicates(name, COLUMNS[name]).filter(lambda e: e.op.is_set and len(e.literals) > 1))
    )
    values = bound.arrow
    probes = [row[name] for row in data.draw(rows({name: COLUMNS[name]}))]
    probes = [probe for probe in probes if probe is None or probe == probe]
    for or_equal in (False, True):
        found = count_smaller(values, pa.array(probes, values.type), or_equal=or_equal)
        for probe, count in zip(probes, found, strict=True):
            if probe is not None:
                smaller = [
                    value for value in bound.value if _bytes(value) < _bytes(probe) or (or_equal and value == probe)
                ]
                assert count == len(smaller)


def _bytes(value):
    return value.encode() if isinstance(value, str) else value


class _ManyFiles:
    """A hundred thousand files with an int and a string column."""

    num_files = 100_000

    def __init__(self):
        numbers = pa.array(np.arange(self.num_files) * 10, pa.int64())
        texts = numbers.cast(pa.string())
        self._bounds = {SCHEMA.find_field("c_long").field_id: numbers, TEXT: texts}

    def record_count(self):
        return pa.repeat(pa.scalar(10, pa.int64()), self.num_files)

    def lower(self, field_id):
        return self._bounds[field_id]

    upper = lower

    def value_count(self, field_id):
        return self.record_count()

    def null_count(self, field_id):
        return pa.repeat(pa.scalar(0, pa.int64()), self.num_files)

    def nan_count(self, field_id):
        return None


def test_long_lists_against_many_files_take_no_time_for_each_pair():
    statistics = _ManyFiles()
    numbers = [number * 10 + 5 for number in range(20_000)] + [70]
    started = time.perf_counter()
    kept = inclusive_metrics(bind(SCHEMA, In("c_long", numbers)), statistics)
    assert np.flatnonzero(kept).tolist() == [7]
    assert strict_metrics(bind(SCHEMA, NotIn("c_long", numbers)), statistics).sum() == 99_999
    kept = inclusive_metrics(bind(SCHEMA, In("c_string", list(map(str, numbers)))), statistics)
    assert np.flatnonzero(kept).tolist() == [7]
    assert time.perf_counter() - started < 5
