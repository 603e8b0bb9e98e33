"""Filters on Arrow data, against a row-by-row evaluation in Python."""

import pickle
from decimal import Decimal

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.errors import InvalidExpression
from icefield.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    BoundPredicate,
    EqualTo,
    GreaterThan,
    In,
    IsNull,
    LessThan,
    NotEqualTo,
    NotIn,
    Op,
    bind,
    evaluate,
    field_ids,
    map_leaves,
    parse,
    relocate,
    row_matches,
    to_arrow,
)
from icefield.schema import Schema
from icefield.types import NestedField, StructType, parse_type
from naive_filters import (
    ALL_NAMES,
    COLUMNS,
    NAN,
    SCHEMA,
    TYPES,
    column_name,
    expressions,
    naive,
    nested_rows,
    predicates,
    to_batch,
)
from naive_filters import rows as flat_rows


def matching(expression, data):
    found = evaluate(expression, data)
    assert found.null_count == 0
    assert found.type == pa.bool_()
    return found.to_pylist()


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.spec("SCAN-20", "SCAN-24", "MET-07")
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_each_operator_gives_what_a_row_by_row_evaluation_gives(kind, data):
    name = column_name(kind)
    found = data.draw(flat_rows({name: kind}))
    expression = data.draw(predicates(name, kind))
    expected = [naive(expression, row) is True for row in found]
    bound = bind(SCHEMA, expression)
    assert matching(bound, to_batch(found)) == expected
    assert [row_matches(bound, row) for row in found] == expected


@pytest.mark.spec("SCAN-20", "SCAN-24")
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_combined_predicates_follow_three_valued_logic_also_inside_null_structs(data):
    columns = {name: ALL_NAMES[name] for name in ("c_int", "c_double", "c_string", "s.i", "s.d", "s.deep.t")}
    flat = {name: kind for name, kind in columns.items() if name in COLUMNS}
    found = data.draw(nested_rows(flat))
    expression = data.draw(expressions(columns))
    bound, batch = bind(SCHEMA, expression), to_batch(found)
    expected = [naive(expression, row) is True for row in found]
    assert matching(bound, batch) == expected
    assert matching(bound, batch.to_struct_array()) == expected
    assert [row_matches(bound, row) for row in found] == expected
    assert matching(bound, pa.Table.from_batches([batch.slice(0, 3), batch.slice(3)])) == expected
    assert matching(bound, batch.slice(1)) == expected[1:]
    assert matching(pickle.loads(pickle.dumps(bound)), batch) == expected


@pytest.mark.spec("SCAN-24")
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_the_expression_for_arrow_datasets_keeps_the_same_rows(data):
    columns = {
        name: ALL_NAMES[name] for name in ("c_int", "c_float", "c_string", "c_binary", "c_date", "s.d", "s.deep.t")
    }
    flat = {name: kind for name, kind in columns.items() if name in COLUMNS}
    found = data.draw(nested_rows(flat))
    bound = bind(SCHEMA, data.draw(expressions(columns)))
    batch = to_batch(found)
    table = pa.Table.from_batches([batch]).append_column("row", pa.array(range(len(found)), pa.int64()))
    kept = ds.dataset(table).to_table(columns=["row"], filter=to_arrow(bound))["row"].to_pylist()
    assert kept == [row for row, matches in enumerate(matching(bound, batch)) if matches]


@pytest.mark.spec("SCAN-24")
def test_a_null_never_matches_a_comparison_nor_its_negation():
    batch = pa.record_batch({"c_int": pa.array([None], pa.int32())})
    for text in ("c_int = 5", "c_int != 5", "c_int < 5", "c_int >= 5", "c_int in (5, 6)", "c_int not in (5, 6)"):
        for whole in (text, f"not ({text})"):
            assert matching(bind(SCHEMA, parse(whole)), batch) == [False], whole
    assert matching(bind(SCHEMA, parse("c_int is null")), batch) == [True]
    assert matching(bind(SCHEMA, parse("not (c_int is not null)")), batch) == [True]


@pytest.mark.spec("SCAN-22")
def test_nan_compares_as_in_ieee_754_and_a_null_is_not_nan():
    batch = pa.record_batch({"c_double": pa.array([NAN, None, 7.0])})
    expected = {
        "c_double > 5": [False, False, True],
        "c_double < 5": [False, False, False],
        "not (c_double < 5)": [False, False, True],
        "not (c_double > 5)": [False, False, False],
        "c_double != 5": [True, False, True],
        "c_double not in (5, 6)": [True, False, True],
        "c_double is nan": [True, False, False],
        "c_double is not nan": [False, True, True],
    }
    assert {text: matching(bind(SCHEMA, parse(text)), batch) for text in expected} == expected


def test_minus_zero_is_zero_in_comparisons_and_lists():
    batch = pa.record_batch({"c_float": pa.array([0.0, -0.0, 1.0], pa.float32())})
    for expression in (
        EqualTo("c_float", 0.0),
        EqualTo("c_float", -0.0),
        In("c_float", [-0.0, 9.0]),
        In("c_float", [0, 9]),
    ):
        assert matching(bind(SCHEMA, expression), batch) == [True, True, False]
        assert matching(bind(SCHEMA, ~expression), batch) == [False, False, True]


def test_dictionaries_views_large_and_extension_types_are_read_as_they_come():
    values = ["a", None, "b", "a"]
    plain = pa.array(values)
    expression = bind(SCHEMA, In("c_string", ["a", "x"]))
    starts = bind(SCHEMA, parse("c_string like 'a%'"))
    less = bind(SCHEMA, LessThan("c_string", "b"))
    forms = [plain, plain.cast(pa.large_string()), plain.cast(pa.string_view()), plain.dictionary_encode()]
    for array in (*forms, pa.chunked_array([forms[3], forms[3].slice(2)])):
        table = pa.table({"c_string": array})
        for one in (expression, starts, less):
            assert matching(one, table)[:4] == [True, False, False, True]
    batch = pa.record_batch({"c_uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16)], pa.binary(16)))})
    assert matching(bind(SCHEMA, EqualTo("c_uuid", bytes(16))), batch) == [True]
    nan = pa.DictionaryArray.from_arrays(pa.array([0, None, 1]), pa.array([NAN, 1.0]))
    assert matching(bind(SCHEMA, parse("c_double is not nan")), pa.record_batch({"c_double": nan})) == [
        False,
        True,
        True,
    ]


def test_a_column_of_a_narrower_type_is_compared_by_value():
    batch = pa.record_batch({"c_long": pa.array([5, None], pa.int32())})
    assert matching(bind(SCHEMA, LessThan("c_long", 2**40)), batch) == [True, False]
    assert matching(bind(SCHEMA, In("c_long", [5, 2**40])), batch) == [True, False]
    assert matching(bind(SCHEMA, NotIn("c_long", [4, 2**40])), batch) == [True, False]


def test_a_column_that_holds_nothing_but_nulls_matches_nothing_but_null_tests():
    batch = pa.record_batch({"c_int": pa.nulls(1), "c_string": pa.nulls(1), "c_double": pa.nulls(1)})
    found = {
        text: matching(bind(SCHEMA, parse(text)), batch)[0]
        for text in (
            "c_int = 1",
            "c_int is null",
            "c_int is not null",
            "c_string like 'a%'",
            "c_double is nan",
            "c_double is not nan",
        )
    }
    assert [text for text, matches in found.items() if matches] == ["c_int is null", "c_double is not nan"]


def test_constants_match_every_row_or_none():
    batch = pa.record_batch({"x": pa.array([1, 2])})
    assert matching(AlwaysTrue(), batch) == [True, True]
    assert matching(AlwaysFalse(), batch) == [False, False]
    assert ds.dataset(pa.table(batch)).count_rows(filter=to_arrow(AlwaysFalse())) == 0
    assert ds.dataset(pa.table(batch)).count_rows(filter=to_arrow(AlwaysTrue())) == 2


def test_a_column_that_is_not_in_the_data_is_an_error_that_names_it():
    bound = bind(SCHEMA, EqualTo("s.i", 5))
    for data in (pa.record_batch({"x": [1]}), pa.record_batch({"s": [1]}), pa.record_batch({"s": [{"x": 1}]})):
        with pytest.raises(InvalidExpression, match=r"no column 's\.i'|no column 'i'"):
            evaluate(bound, data)


def test_an_expression_that_is_not_bound_cannot_be_evaluated():
    batch = pa.record_batch({"x": [1]})
    for use in (
        lambda e: evaluate(e, batch),
        lambda e: row_matches(e, {}),
        to_arrow,
        field_ids,
        lambda e: map_leaves(e, lambda leaf: leaf),
    ):
        with pytest.raises(InvalidExpression, match="bind"):
            use(EqualTo("x", 1) & IsNull("x"))


def test_a_filter_is_moved_to_a_file_by_field_id():
    inner = pa.field("was_i", pa.int32(), metadata={b"PARQUET:field_id": b"51"})
    file_schema = pa.schema(
        [
            pa.field(
                "was_int", pa.int32(), metadata={b"PARQUET:field_id": str(SCHEMA.find_field("c_int").field_id).encode()}
            ),
            pa.field("was_s", pa.struct([inner]), metadata={b"PARQUET:field_id": b"50"}),
        ]
    )
    bound = bind(SCHEMA, parse("c_int = 1 and s.i > 2 and c_string = 'not in the file'"))
    moved = relocate(bound, file_schema)
    assert str(moved) == "was_int = 1 and was_s.was_i > 2"
    table = pa.table(
        [pa.array([1, 1], pa.int32()), pa.array([{"was_i": 2}, {"was_i": 3}], file_schema[1].type)], schema=file_schema
    )
    assert matching(moved, table) == [False, True]
    assert ds.dataset(table).count_rows(filter=to_arrow(bound, file_schema)) == 1


def test_long_lists_are_searched_not_scanned():
    values = list(range(0, 200_000, 2))
    bound = bind(SCHEMA, In("c_long", values))
    found = evaluate(bound, pa.record_batch({"c_long": pa.array(range(1000), pa.int64())}))
    assert found.to_pylist() == [value % 2 == 0 for value in range(1000)]


def test_fields_are_distinguished_by_path_where_names_hold_dots():
    schema = Schema(
        NestedField(1, "a.b", parse_type("int")),
        NestedField(2, "a", StructType(NestedField(3, "b", parse_type("int")))),
    )
    batch = pa.record_batch({"a.b": pa.array([1], pa.int32()), "a": pa.array([{"b": 2}], pa.struct({"b": pa.int32()}))})
    assert matching(bind(schema, parse('"a.b" = 1')), batch) == [True]
    assert matching(bind(schema, EqualTo(("a.b",), 1)), batch) == [True]
    assert matching(bind(schema, EqualTo(("a.b",), 2)), batch) == [False]
    with pytest.raises(InvalidExpression, match="could mean"):
        bind(schema, EqualTo("a.b", 1))


def test_the_value_of_a_leaf_becomes_arrow_data_once():
    leaf = bind(SCHEMA, In("c_decimal_9_2_", [Decimal("1.50"), Decimal("0.01")]))
    assert isinstance(leaf, BoundPredicate)
    assert leaf.op is Op.IN
    assert leaf.value == (Decimal("0.01"), Decimal("1.50"))
    assert leaf.arrow is leaf.arrow
    assert leaf.arrow.type == pa.decimal128(9, 2)
    assert bind(SCHEMA, GreaterThan("c_timestamptz", 5)).arrow == pa.scalar(5, pa.timestamp("us", "UTC"))
    assert isinstance(bind(SCHEMA, NotEqualTo("c_time", 5)).arrow, pa.Time64Scalar)
