"""Projections of row filters to partitions, by brute force over all transforms."""

import itertools
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundPredicate,
    EqualTo,
    Op,
    Or,
    bind,
    bound_leaves,
    evaluate,
    inclusive_projection,
    parse,
    strict_projection,
)
from icefield.partitioning import UNPARTITIONED, PartitionField, PartitionSpec
from icefield.partitioning.spec import partition_batch
from icefield.partitioning.transforms import parse_transform
from icefield.schema import Schema
from icefield.types import NestedField, StructType, parse_type
from icefield.types.values import to_internal
from naive_filters import (
    COLUMNS,
    NAN,
    SCHEMA,
    TRANSFORM_CASES,
    column_name,
    expressions,
    naive,
    predicates,
    rows,
    spec_of,
    to_batch,
)
from vectors import VECTORS


def both(spec, expression, schema=SCHEMA):
    bound = bind(schema, expression)
    return inclusive_projection(spec, schema, bound), strict_projection(spec, schema, bound)


def check_sound(spec, expression, found):
    """No matching row's partition is left out, and no partition with another row is claimed."""
    batch = to_batch(found)
    inclusive, strict = both(spec, expression)
    partitions = partition_batch(spec, SCHEMA, batch)
    matches = [naive(expression, row) is True for row in found]
    possible, claimed = (evaluate(one, partitions).to_pylist() for one in (inclusive, strict))
    for row, match, may, must in zip(found, matches, possible, claimed, strict=True):
        assert may or not match, (row, str(inclusive))
        assert match or not must, (row, str(strict))
    return inclusive, strict


@pytest.mark.parametrize(("text", "kind"), TRANSFORM_CASES)
@pytest.mark.spec(
    "SCAN-04", "SCAN-05", "SCAN-08", "SCAN-09", "SCAN-10", "SCAN-11", "SCAN-12", "SCAN-13", "SCAN-14", "TRN-01"
)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_projections_of_one_predicate_are_sound(text, kind, data):
    name = column_name(kind)
    found = data.draw(rows({name: kind}, max_size=25))
    check_sound(spec_of((name, text)), data.draw(predicates(name, kind)), found)


def ranges(kind):
    """Whole numbers of a type, mostly near zero and near the ends of the range."""
    low, high = (-(2**31), 2**31 - 1) if kind in ("int", "date") else (-(2**63), 2**63 - 1)
    near = 400 if kind in ("int", "long", "date") else 100 * 86_400_000_000
    return st.one_of(
        st.integers(-near, near), st.integers(low, low + 40), st.integers(high - 40, high), st.integers(low, high)
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (text, kind)
        for text, kind in TRANSFORM_CASES
        if kind in ("int", "long", "date", "timestamp", "timestamp_ns") and text != "void"
    ],
)
@pytest.mark.spec("SCAN-04", "SCAN-05", "SCAN-10", "SCAN-12", "TRN-11")
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_projections_of_ranges_are_sound_over_the_whole_range_of_a_type(text, kind, data):
    name = column_name(kind)
    if kind == "timestamp_ns" or (kind, text) in (("timestamp", "year"), ("timestamp", "month")):
        numbers = st.integers(-(2**62), 2**62)
    else:
        numbers = ranges(kind)
    found = [{name: value} for value in data.draw(st.lists(numbers, min_size=1, max_size=20))]
    literal = data.draw(st.one_of(numbers, st.sampled_from([row[name] for row in found])))
    op = data.draw(st.sampled_from(["<", "<=", ">", ">=", "=", "!="]))
    check_sound(spec_of((name, text)), parse(f"{name} {op} {literal}"), found)


@pytest.mark.parametrize("text", ["truncate[1]", "truncate[7]", "truncate[100]"])
@pytest.mark.spec("SCAN-04", "SCAN-05", "SCAN-12")
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_projections_of_decimals_are_sound_up_to_the_last_digit(text, data):
    name = column_name("decimal(9,2)")
    most = Decimal("9999999.99")
    number = st.one_of(
        st.decimals(-3, 3, places=2), st.decimals(most - 2, most, places=2), st.decimals(-most, 2 - most, places=2)
    )
    found = [{name: value} for value in data.draw(st.lists(number, min_size=1, max_size=15))]
    literal = data.draw(st.one_of(number, st.sampled_from([row[name] for row in found])))
    op = data.draw(st.sampled_from(["<", "<=", ">", ">=", "=", "!="]))
    check_sound(spec_of((name, text)), parse(f"{name} {op} {literal}"), found)


@pytest.mark.spec("SCAN-03", "SCAN-04", "SCAN-05")
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_projections_of_combined_predicates_are_sound_for_specs_of_several_fields(data):
    choices = [(column_name(kind), text) for text, kind in TRANSFORM_CASES if text != "void"]
    spec = spec_of(*data.draw(st.lists(st.sampled_from(choices), min_size=1, max_size=4, unique=True)))
    names = {SCHEMA.find_column_name(field.source_id) for field in spec.fields} | {"c_int"}
    columns = {name: COLUMNS[name] for name in sorted(names)}
    check_sound(spec, data.draw(expressions(columns)), data.draw(rows(columns)))


@pytest.mark.parametrize(
    ("text", "kind"),
    [("year", "date"), ("month", "date"), ("day", "timestamp"), ("hour", "timestamp"), ("year", "timestamp")],
)
@pytest.mark.spec("SCAN-16")
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_projections_are_sound_for_partitions_that_old_writers_stored_one_too_high(text, kind, data):
    name = column_name(kind)
    spec = spec_of((name, text))
    unit = 1 if kind == "date" else 3_600_000_000
    number = st.integers(-800 * unit, 50 * unit)
    found = [{name: value} for value in data.draw(st.lists(number, min_size=1, max_size=10))]
    literal = data.draw(st.one_of(number, st.sampled_from([row[name] for row in found])))
    op = data.draw(st.sampled_from(["<", "<=", ">", ">=", "=", "!="]))
    expression = data.draw(
        st.sampled_from([parse(f"{name} {op} {literal}"), parse(f"{name} in ({literal}, {found[0][name]})"),
                         parse(f"{name} not in ({literal}, {found[0][name]})")])
    )  # fmt: skip
    inclusive, strict = both(spec, expression)
    transform, source = parse_transform(text), parse_type(kind)
    for row in found:
        correct = transform.apply_value(row[name], source)
        # Old writers rounded towards 1970: a value before 1970 got the next partition, unless it was the first of its
        # own.
        first = correct != transform.apply_value(row[name] - 1, source)
        for stored in {correct, correct if correct >= 0 or first else correct + 1}:
            match = naive(expression, row) is True
            assert naive(inclusive, {"p0": stored}) is True or not match
            assert naive(strict, {"p0": stored}) is not True or match


_OPS = {
    "gt": ">",
    "gt_eq": ">=",
    "lt": "<",
    "lt_eq": "<=",
    "eq": "=",
    "not_eq": "!=",
    "in": "in",
    "starts_with": "like",
}


def _vector_predicate(name, op, value):
    if op == "in":
        return parse(f"{name} in ({', '.join(map(str, value))})")
    if op == "starts_with":
        return parse(f"{name} like '{value}%'")
    return parse(f"{name} {_OPS[op]} {value!r}")


def _vector_id(vector):
    return f"{vector['transform']}-{'-'.join(map(str, vector['predicate']))}"


@pytest.mark.parametrize("vector", VECTORS["projections"], ids=_vector_id)
@pytest.mark.spec("SCAN-07", "SCAN-10", "SCAN-11", "SCAN-12", "SCAN-13", "SCAN-14", "SCAN-15", "SCAN-16")
def test_projections_admit_the_partitions_that_the_vectors_admit(vector):
    schema = Schema(NestedField(1, "x", parse_type(vector["source_type"])))
    spec = PartitionSpec(PartitionField(1, 1000, vector["transform"], "p"))
    found = both(spec, _vector_predicate("x", *vector["predicate"]), schema)
    partition_type = spec.partition_type(schema).fields[0].field_type
    for which, projection in zip(("inclusive", "strict"), found, strict=True):
        accepted = [vector[name] for name in (which, f"{which}_compat", f"{which}_alt") if name in vector]
        domain = _domain(partition_type, [one for one in accepted if one])
        admitted = {value for value in domain if naive(projection, {"p": value}) is True}
        wanted = []
        for one in accepted:
            expected = _expected(schema, spec, one, which)
            wanted.append({value for value in domain if naive(expected, {"p": value}) is True})
        assert admitted in wanted, (str(projection), accepted)


def _expected(schema, spec, one, which):
    if one is None:
        return AlwaysTrue() if which == "inclusive" else AlwaysFalse()
    return bind(spec.partition_type(schema), _vector_predicate("p", *one))


def _domain(kind, accepted):
    """Partition values near the values of a test vector."""
    values = [value for _, one in accepted for value in (one if isinstance(one, list) else [one])] or ["5"]
    if isinstance(values[0], str):
        return {"i", "ic", "ice", "icd", "icf", "j", "", "hzz", *values}
    return {int(to_internal(kind, value)) + step for value in values for step in range(-100, 101)}


@pytest.mark.parametrize("op", [op.name for op in Op])
@pytest.mark.spec("SCAN-08", "SCAN-09")
def test_identity_keeps_each_predicate_as_it_is(op):
    value = ("a", "b") if Op[op].is_set else None if Op[op].is_unary else "a"
    name = "c_double" if "NAN" in op else "c_string"
    leaf = BoundPredicate(Op[op], SCHEMA.find_field(name), (name,), value)
    spec = spec_of((name, "identity"))
    target = spec.partition_type(SCHEMA).fields[0]
    expected = BoundPredicate(Op[op], target, ("p0",), value)
    assert inclusive_projection(spec, SCHEMA, leaf) == strict_projection(spec, SCHEMA, leaf) == expected


@pytest.mark.spec("SCAN-13")
def test_a_start_as_long_as_the_truncated_string_is_the_whole_of_it():
    spec = spec_of(("c_string", "truncate[3]"))
    for text, expected in {
        "c_string like 'ab%'": ("p0 like 'ab%'", "p0 like 'ab%'"),
        "c_string like 'abc%'": ("p0 = 'abc'", "p0 = 'abc'"),
        "c_string like 'abcd%'": ("p0 = 'abc'", "false"),
        "c_string not like 'ab%'": ("p0 not like 'ab%'", "p0 not like 'ab%'"),
        "c_string not like 'abc%'": ("p0 != 'abc'", "p0 != 'abc'"),
        "c_string not like 'abcd%'": ("true", "p0 != 'abc'"),
    }.items():
        assert tuple(map(str, both(spec, parse(text)))) == expected


@pytest.mark.spec("SCAN-22")
def test_a_nan_partition_stays_for_greater_than_since_nan_is_greater_in_other_engines():
    spec = spec_of(("c_double", "identity"))
    inclusive, strict = both(spec, parse("c_double > 5"))
    assert naive(inclusive, {"p0": NAN}) is True
    assert naive(strict, {"p0": NAN}) is not True
    assert naive(both(spec, parse("c_double < 5"))[0], {"p0": NAN}) is not True


@pytest.mark.parametrize("text", ["identity", "bucket[4]", "truncate[4]"])
@pytest.mark.spec("SCAN-09", "TRN-02")
def test_null_tests_go_to_the_partition_field(text):
    spec = spec_of(("c_string", text))
    for expression, op in ((parse("c_string is null"), Op.IS_NULL), (parse("c_string is not null"), Op.NOT_NULL)):
        for found in both(spec, expression):
            assert found == BoundPredicate(op, spec.partition_type(SCHEMA).fields[0], ("p0",))


@pytest.mark.parametrize("text", ["void", "zorder[3]"])
@pytest.mark.spec("SCAN-14", "SCAN-15", "TRN-26")
def test_void_and_unknown_transforms_say_nothing(text):
    spec = spec_of(("c_int", text), ("c_string", "identity"))
    for predicate in ("c_int = 5", "c_int is null", "c_int is not null", "c_int < 5", "c_int in (1, 2)"):
        assert both(spec, parse(predicate)) == (AlwaysTrue(), AlwaysFalse())
        inclusive, strict = both(spec, parse(f"{predicate} and c_string = 'a'"))
        assert str(inclusive) == "p1 = 'a'"
        assert strict == AlwaysFalse()


@pytest.mark.spec("SCAN-15")
def test_transforms_of_several_columns_and_of_dropped_ones_say_nothing():
    several = PartitionSpec(PartitionField(1, 1000, "bucket[4]", "p", source_ids=(2, 3)))
    dropped = PartitionSpec(PartitionField(999, 1000, "identity", "p"))
    for spec in (several, dropped, UNPARTITIONED):
        assert both(spec, parse("c_int = 5 and c_long = 6")) == (AlwaysTrue(), AlwaysFalse())


@pytest.mark.spec("SCAN-03")
def test_fields_of_one_column_work_together():
    spec = spec_of(("c_timestamp", "day"), ("c_timestamp", "hour"), ("c_int", "bucket[8]"))
    inclusive, strict = both(spec, parse("c_timestamp >= '2017-12-01T10:00:00'"))
    assert isinstance(inclusive, And)
    assert isinstance(strict, Or)
    assert {leaf.path for leaf in bound_leaves(inclusive)} == {("p0",), ("p1",)}


@pytest.mark.spec("SCAN-03")
def test_each_spec_gives_its_own_projection():
    bound = bind(SCHEMA, parse("c_timestamp = '2017-12-01T10:00:00' and c_int = 5"))
    by_day, by_bucket = spec_of(("c_timestamp", "day")), spec_of(("c_int", "bucket[8]"))
    assert [str(inclusive_projection(spec, SCHEMA, bound)) for spec in (by_day, by_bucket, UNPARTITIONED)] == [
        "p0 = '2017-12-01'",
        f"p0 = {parse_transform('bucket[8]').apply_value(5, parse_type('int'))}",
        "true",
    ]


@pytest.mark.spec("SCAN-11")
def test_a_list_becomes_the_set_of_its_buckets():
    spec = spec_of(("c_int", "bucket[4]"))
    found = inclusive_projection(spec, SCHEMA, bind(SCHEMA, parse(f"c_int in ({', '.join(map(str, range(100)))})")))
    assert found.value == (0, 1, 2, 3)
    assert both(spec_of(("c_int", "bucket[1]")), parse("c_int in (1, 2)"))[0].op is Op.EQ


def test_a_date_by_day_is_decided_by_its_partition_alone():
    spec = spec_of(("c_date", "day"))
    for text in ("c_date = '2017-12-01'", "c_date < '1960-01-01'", "c_date in ('2017-12-01', '1950-01-01')"):
        inclusive, strict = both(spec, parse(text))
        assert inclusive == strict


def test_projection_through_a_field_inside_a_struct_uses_its_id():
    spec = PartitionSpec(PartitionField(51, 1000, "identity", "p"))
    assert str(both(spec, parse("s.i = 5"))[0]) == "p = 5"
    assert both(spec, parse("c_int = 5"))[0] == AlwaysTrue()


def test_a_predicate_bound_to_another_type_of_the_column_is_not_projected():
    older = Schema(NestedField(1, "x", parse_type("int")))
    spec = PartitionSpec(PartitionField(1, 1000, "identity", "p"))
    newer = Schema(NestedField(1, "x", parse_type("long")))
    assert inclusive_projection(spec, newer, bind(older, EqualTo("x", 1))) == AlwaysTrue()


def test_the_partition_type_may_be_given_as_a_struct_to_bind_to():
    spec = spec_of(("c_int", "identity"))
    assert isinstance(spec.partition_type(SCHEMA), StructType)
    bound = bind(spec.partition_type(SCHEMA), EqualTo("p0", 5))
    assert evaluate(bound, pa.StructArray.from_arrays([pa.array([5, 6], pa.int32())], names=["p0"])).to_pylist() == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("text", "kind"), [case for case in TRANSFORM_CASES if case[1] in ("int", "long", "date") and case[0] != "void"]
)
@pytest.mark.spec("SCAN-10")
def test_projections_are_sound_at_both_ends_of_a_type(text, kind):
    name = column_name(kind)
    low, high = (-(2**63), 2**63 - 1) if kind == "long" else (-(2**31), 2**31 - 1)
    ends = [low, low + 1, high - 1, high]
    for literal, op in itertools.product(ends, ["<", "<=", ">", ">=", "=", "!="]):
        check_sound(spec_of((name, text)), parse(f"{name} {op} {literal}"), [{name: value} for value in ends])


@pytest.mark.spec("SCAN-10")
@pytest.mark.parametrize(("kind", "low"), [("int", -(2**31)), ("long", -(2**63))])
def test_a_width_that_divides_the_least_number_leaves_no_partition_out_of_order(kind, low):
    schema = Schema(NestedField(1, "a", parse_type(kind)))
    even, odd = (PartitionSpec(PartitionField(1, 1000, f"truncate[{width}]", "p")) for width in (4, 3))
    assert [str(one) for one in both(even, parse("a < 10"), schema)] == ["p <= 8", "p < 8"]
    assert [str(one) for one in both(even, parse(f"a > {low + 5}"), schema)] == [f"p >= {low + 4}", f"p > {low + 4}"]
    assert " or p " in str(both(odd, parse("a < 10"), schema)[0]).lower()


def test_the_greatest_decimal_of_a_type_has_a_partition():
    schema = Schema(NestedField(1, "a", parse_type("decimal(4, 2)")))
    spec = PartitionSpec(PartitionField(1, 1000, "truncate[10]", "p"))
    assert str(both(spec, parse("a >= 99.99"), schema)[0]) == "p >= 99.90"
