import pyarrow as pa
import pytest
from format_strategies import same, types, values
from hypothesis import given
from hypothesis import strategies as st
from icefield.errors import InvalidArgument
from icefield.types import (
    DecimalType,
    FixedType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    UnknownType,
    UUIDType,
    VariantType,
)
from icefield.types.arrow.types import to_arrow_type
from icefield.types.values import constant_array, from_arrow_array, from_arrow_scalar, to_arrow_array, to_arrow_scalar


@pytest.mark.slow
@given(st.data())
def test_every_value_survives_arrow(data):
    kind = data.draw(types())
    made = data.draw(st.lists(st.none() | values(kind), max_size=5))
    array = to_arrow_array(kind, made)
    assert array.type == to_arrow_type(kind)
    array.validate(full=True)
    assert all(map(same, from_arrow_array(kind, array), made))
    assert all(map(same, from_arrow_array(kind, array[1:]), made[1:]))
    for internal in made:
        assert same(from_arrow_scalar(kind, to_arrow_scalar(kind, internal)), internal)


@given(st.data())
def test_a_constant_column_holds_its_value_that_often(data):
    kind = data.draw(types())
    internal, count = data.draw(st.none() | values(kind)), data.draw(st.integers(0, 4))
    array = constant_array(kind, internal, count)
    assert array.type == to_arrow_type(kind)
    assert all(map(same, from_arrow_array(kind, array), [internal] * count))


def test_a_null_struct_is_not_a_struct_of_nulls():
    kind = StructType(NestedField(1, "a", "int"))
    assert from_arrow_array(kind, to_arrow_array(kind, [None, (None,), (1,)])) == [None, (None,), (1,)]


def test_values_in_other_arrow_types_are_cast_without_loss():
    assert from_arrow_scalar(LongType(), pa.scalar(5, pa.int8())) == 5
    assert from_arrow_scalar(TimestampType(), pa.scalar(5, pa.timestamp("s"))) == 5_000_000
    assert from_arrow_scalar(StringType(), pa.scalar("a", pa.large_string())) == "a"
    assert from_arrow_array(StringType(), pa.chunked_array([["a"], ["a", None]]).dictionary_encode()) == [
        "a",
        "a",
        None,
    ]
    uuids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16)], pa.binary(16)))
    assert from_arrow_array(UUIDType(), uuids) == [bytes(16)]
    assert from_arrow_scalar(UUIDType(), uuids[0]) == bytes(16)
    assert from_arrow_array(ListType(1, "long"), pa.array([[1, None]], pa.large_list(pa.int16()))) == [(1, None)]


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [(IntegerType(), 2**31), (IntegerType(), "x"), (FixedType(4), b"x"), (DecimalType(3, 1), "x"), (StringType(), 5)],
)
def test_what_is_no_internal_value_is_refused(kind, wrong):
    with pytest.raises(InvalidArgument):
        to_arrow_scalar(kind, wrong)


@pytest.mark.parametrize(
    ("kind", "scalar"),
    [(IntegerType(), pa.scalar(2**40)), (IntegerType(), pa.scalar(1.5)), (StructType(), pa.scalar(1)),
     (FixedType(4), pa.scalar(b"x"))],
)  # fmt: skip
def test_arrow_values_that_do_not_fit_are_refused(kind, scalar):
    with pytest.raises(InvalidArgument):
        from_arrow_scalar(kind, scalar)


def test_types_without_values_of_their_own_have_arrow_forms_too():
    assert constant_array(UnknownType(), None, 2).equals(pa.nulls(2))
    assert from_arrow_array(VariantType(), to_arrow_array(VariantType(), [(b"m", b"v"), None])) == [(b"m", b"v"), None]
