import pyarrow as pa
import pytest
from format_strategies import schemas, types
from hypothesis import given
from icefield.errors import InvalidArgument, InvalidSchema, UnsupportedFeature
from icefield.schema import Schema, as_schema, schema_from_arrow, schema_to_arrow
from icefield.types import (
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
    UUIDType,
    VariantType,
    parse_type,
)
from icefield.types.arrow.types import (
    DOC_KEY,
    FIELD_ID_KEY,
    TYPE_KEY,
    as_type,
    child_fields,
    field_id,
    from_arrow_type,
    to_arrow_field,
    to_arrow_type,
    with_field_id,
)


@pytest.mark.spec("TYP-01", "TYP-02", "TYP-13", "TYP-14", "TYP-23", "TYP-24")
@pytest.mark.parametrize(
    ("text", "arrow"),
    [
        ("boolean", pa.bool_()), ("int", pa.int32()), ("long", pa.int64()), ("float", pa.float32()),
        ("double", pa.float64()), ("decimal(9,2)", pa.decimal128(9, 2)), ("date", pa.date32()),
        ("time", pa.time64("us")), ("timestamp", pa.timestamp("us")), ("timestamptz", pa.timestamp("us", "UTC")),
        ("timestamp_ns", pa.timestamp("ns")), ("timestamptz_ns", pa.timestamp("ns", "UTC")), ("string", pa.string()),
        ("uuid", pa.binary(16)), ("fixed[7]", pa.binary(7)), ("binary", pa.binary()), ("unknown", pa.null()),
        ("geometry", pa.binary()), ("geography", pa.binary()),
    ],
)  # fmt: skip
def test_each_type_has_its_arrow_form(text, arrow):
    assert to_arrow_type(parse_type(text)) == arrow


def test_a_variant_is_a_struct_of_two_binaries():
    arrow = to_arrow_type(VariantType())
    assert [(child.name, child.type, child.nullable) for child in child_fields(arrow)] == [
        ("metadata", pa.binary(), False),
        ("value", pa.binary(), False),
    ]


def test_nested_fields_carry_name_id_doc_and_nullability():
    kind = MapType(2, "string", 3, ListType(4, StructType(NestedField(5, "x", "int", True, "why")), True), True)
    field = to_arrow_field(NestedField(1, "m", kind))
    key, value = child_fields(field.type)
    (element,) = child_fields(value.type)
    (inner,) = child_fields(element.type)
    assert [field_id(one) for one in (field, key, value, element, inner)] == [1, 2, 3, 4, 5]
    assert [one.name for one in (key, value, element, inner)] == ["key", "value", "element", "x"]
    assert [one.nullable for one in (field, key, value, element, inner)] == [True, False, False, False, False]
    assert inner.metadata[DOC_KEY] == b"why"


@pytest.mark.slow
@pytest.mark.spec("SCH-01")
@given(schemas())
def test_every_schema_survives_arrow(schema):
    assert schema_from_arrow(schema_to_arrow(schema), schema_id=3) == schema
    assert schema_from_arrow(schema_to_arrow(schema), schema_id=3).schema_id == 3
    # The schema is also equal after a round trip through Arrow's serialised form.
    assert schema_from_arrow(pa.ipc.read_schema(schema_to_arrow(schema).serialize())) == schema


@given(types())
def test_every_type_keeps_its_shape_through_arrow(kind):
    back = from_arrow_type(to_arrow_type(kind))
    assert back == kind or isinstance(kind, UUIDType)


@pytest.mark.parametrize(
    "kind",
    [UUIDType(), VariantType(), GeometryType("srid:1"), GeographyType(algorithm="karney"), FixedType(16)],
    ids=str,
)
def test_types_that_share_an_arrow_form_are_distinguished_in_a_field(kind):
    schema = Schema(NestedField(1, "a", ListType(2, StructType(NestedField(3, "b", kind)))), NestedField(4, "c", kind))
    assert schema_from_arrow(schema_to_arrow(schema)) == schema


@pytest.mark.parametrize(
    ("arrow", "text"),
    [(pa.string(), b"uuid"), (pa.binary(16), b"int"), (pa.binary(16), b"\xff"), (pa.binary(16), b"blob"),
     (pa.int32(), b"variant")],
)  # fmt: skip
def test_a_named_type_that_the_arrow_type_does_not_fit_is_ignored(arrow, text):
    field = pa.field("a", arrow, metadata={TYPE_KEY: text})
    assert schema_from_arrow(pa.schema([field])).fields[0].field_type == from_arrow_type(arrow)


@pytest.mark.parametrize(
    ("arrow", "kind"),
    [
        (pa.int8(), "int"), (pa.int16(), "int"), (pa.uint8(), "int"), (pa.uint16(), "int"), (pa.uint32(), "long"),
        (pa.float16(), "float"), (pa.decimal32(5, 2), "decimal(5,2)"), (pa.decimal64(12, 2), "decimal(12,2)"),
        (pa.decimal256(38, 2), "decimal(38,2)"), (pa.date64(), "date"), (pa.time32("s"), "time"),
        (pa.time32("ms"), "time"), (pa.timestamp("s"), "timestamp"),
        (pa.timestamp("ms", "Europe/Berlin"), "timestamptz"),
        (pa.timestamp("ns", "+02:00"), "timestamptz_ns"), (pa.large_string(), "string"), (pa.string_view(), "string"),
        (pa.large_binary(), "binary"), (pa.binary_view(), "binary"), (pa.dictionary(pa.int8(), pa.string()), "string"),
        (pa.run_end_encoded(pa.int32(), pa.int64()), "long"), (pa.uuid(), "uuid"), (pa.json_(), "string"),
        (pa.bool8(), "boolean"), (pa.null(), "unknown"),
    ],
    ids=str,
)  # fmt: skip
def test_other_arrow_types_stand_for_the_type_that_holds_them(arrow, kind):
    assert from_arrow_type(arrow) == parse_type(kind)


@pytest.mark.parametrize(
    "arrow",
    [pa.list_(pa.int8()), pa.large_list(pa.int8()), pa.list_(pa.int8(), 3), pa.list_view(pa.int8()),
     pa.large_list_view(pa.int8()), pa.fixed_shape_tensor(pa.int8(), [2])],
    ids=str,
)  # fmt: skip
def test_every_kind_of_list_is_a_list(arrow):
    assert from_arrow_type(arrow) == ListType(1, "int")


@pytest.mark.parametrize(
    ("arrow", "hint"),
    [
        (pa.uint64(), "cast to int64"), (pa.time64("ns"), "time64"), (pa.duration("s"), "duration"),
        (pa.month_day_nano_interval(), "interval"), (pa.decimal256(39, 2), "38"), (pa.decimal128(5, -2), "scale"),
        (pa.dense_union([pa.field("a", pa.int8())]), "union"), (pa.opaque(pa.int8(), "t", "v"), "storage"),
        (pa.list_(pa.uint64()), "uint64"),
    ],
    ids=str,
)  # fmt: skip
def test_an_arrow_type_that_no_type_holds_is_refused_with_what_to_do(arrow, hint):
    with pytest.raises(UnsupportedFeature, match=hint):
        from_arrow_type(arrow)
    with pytest.raises(UnsupportedFeature, match="'col'"):
        schema_from_arrow(pa.schema([pa.field("col", arrow)]))


@pytest.mark.spec("SCH-27")
def test_ids_are_fresh_unless_every_field_has_one():
    partly = pa.schema([with_field_id(pa.field("a", pa.int32()), 7), pa.field("b", pa.list_(pa.int32()))])
    assert schema_from_arrow(partly).field_ids == {1, 2, 3}
    inner_missing = pa.schema([with_field_id(pa.field("a", pa.list_(pa.int32())), 7)])
    assert schema_from_arrow(inner_missing).field_ids == {1, 2}
    whole = pa.schema([with_field_id(pa.field("a", pa.int32(), nullable=False), 7)])
    assert schema_from_arrow(whole) == Schema(NestedField(7, "a", "int", required=True))
    numbers = iter([50, 60])
    assert from_arrow_type(pa.map_(pa.string(), pa.int32()), lambda: next(numbers)) == MapType(50, "string", 60, "int")


@pytest.mark.parametrize("text", [b"", b"-1", b"x", b"1.0", b"2147483648", b"99999999999999999999", "\u0661".encode()])
def test_a_string_that_is_no_id_is_none(text):
    assert field_id(pa.field("a", pa.int32(), metadata={FIELD_ID_KEY: text})) is None
    assert field_id(pa.field("a", pa.int32())) is None


def test_an_id_is_put_next_to_other_metadata():
    field = with_field_id(pa.field("a", pa.int32(), metadata={"x": "y"}), 5)
    assert field.metadata == {b"x": b"y", FIELD_ID_KEY: b"5"}


def test_nesting_beyond_the_limit_is_one_typed_error():
    arrow = pa.int32()
    for level in range(1500):
        arrow = pa.list_(with_field_id(pa.field("element", arrow), level))
    with pytest.raises(InvalidSchema, match="100 levels"):
        from_arrow_type(arrow)
    with pytest.raises(InvalidSchema, match="100 levels"):
        schema_from_arrow(pa.schema([with_field_id(pa.field("a", arrow), 2000)]))


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(InvalidSchema, match="'a'"):
        schema_from_arrow(pa.schema([("a", pa.int32()), ("a", pa.int32())]))


def test_a_schema_or_type_may_be_given_in_any_form():
    schema = Schema(NestedField(1, "a", "int"))
    assert as_schema(schema) is schema
    assert as_schema(pa.schema([("a", pa.int32())])) == schema
    with pytest.raises(InvalidArgument, match="dict"):
        as_schema({"a": "int"})
    with pytest.raises(InvalidArgument, match=r"not pyarrow\.lib\.Table$"):
        as_schema(pa.table({"a": [1]}))
    assert as_type("decimal(9,2)") == as_type(pa.decimal128(9, 2)) == as_type(DecimalType(9, 2))
    assert as_type(pa.string()) == StringType()
    with pytest.raises(InvalidArgument):
        as_type(5)
