"""Bounds of floats, strings, decimals, bytes and UUIDs compare as their types say."""

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.expressions import Op, bind, inclusive_metrics, parse, strict_metrics
from icefield.expressions.bounds import Bounds, count_smaller
from metrics_verdicts import UUID, verdict
from naive_filters import COLUMNS, NAN, SCHEMA, UUIDS, naive, predicates, rows
from naive_statistics import ColumnStatistics, File, Statistics


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


@pytest.mark.spec("MET-07")
def test_the_second_half_of_a_uuid_bound_does_not_count_where_the_orders_differ():
    low, high = bytes([1]) + bytes(7) + bytes([0x80]) + bytes(7), bytes([1]) + bytes(7) + bytes([0x7F]) + bytes(7)
    between = bytes([1]) + bytes(7) + bytes([0x01]) + bytes(7)  # Java compares the halves as signed numbers
    assert sorted([low, between, high], key=_signed) == [low, between, high]
    assert verdict(f"c_uuid = X'{between.hex()}'", uuid=(10, 0, None, low, high)) == "some"


def test_bounds_may_be_a_part_of_a_longer_array():
    leaf = bind(SCHEMA, parse(f"c_uuid = X'{bytes(16).hex()}'"))
    low, high = (pa.array([bytes([first]) * 16 for first in firsts], pa.binary(16)) for firsts in ([0, 9], [8, 9]))
    for start in (0, 1):
        bounds = Bounds(leaf, low[start:], high[start:], 2 - start)
        assert bounds.exclude(Op.EQ, leaf).tolist() == [False, True][start:]
