"""Pruning of files by their statistics, against the rows that they hold."""

import math
import time

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
    bind,
    inclusive_metrics,
    parse,
    strict_metrics,
)
from metrics_verdicts import INT, TEXT, verdict
from naive_filters import (
    ALL_NAMES,
    COLUMNS,
    SCHEMA,
    TYPES,
    column_name,
    expressions,
    naive,
    nested_rows,
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
            # Rows must be found whether NaN compares as unknown or as the greatest value.
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
    """Keeping every file would be sound, but with exact bounds comparisons must prune all files that they can."""
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
