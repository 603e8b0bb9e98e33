import pickle

import pytest
from format_strategies import primitives, types
from hypothesis import given
from icefield.errors import IcefieldError, InvalidSchema, UnsupportedFeature
from icefield.types import (
    MAX_NESTING_DEPTH,
    TIMESTAMP_TYPES,
    AnyTimestampType,
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    GeographyType,
    GeometryType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    UnknownType,
    VariantType,
    parse_type,
    promotion_allowed,
)
from vectors import VECTORS

TYPES = VECTORS["type_json"]
INT_STRUCT = StructType(NestedField(1, "x", IntegerType()))
SPELLED = {
    "struct": INT_STRUCT,
    "struct<int>": INT_STRUCT,
    "list<int>": ListType(2, IntegerType()),
    "map<string,int>": MapType(3, StringType(), 4, IntegerType()),
    "map<string,struct<int>>": MapType(3, StringType(), 4, INT_STRUCT),
    "fixed(4)": FixedType(4),
    "fixed(8)": FixedType(8),
    "fixed(16)": FixedType(16),
}


def spelled(text):
    return SPELLED.get(text) or parse_type(text)


@pytest.mark.spec("TYP-01", "JSON-01", "JSON-02", "JSON-03", "JSON-04", "TYP-24", "TYP-25")
@pytest.mark.parametrize("case", TYPES["valid"], ids=lambda case: case["json"])
def test_a_types_string_is_read_and_written_as_the_spec_has_it(case):
    parsed = parse_type(case["json"])
    assert parsed == spelled(case["type"])
    assert parse_type(str(parsed)) == parsed
    assert str(parsed) == case["json"].replace("(9, 2)", "(9,2)").replace(", spherical)", ")")
    assert parsed.min_format_version == case["since"]


@pytest.mark.spec("JSON-05", "JSON-03")
@pytest.mark.parametrize(
    ("text", "expected"),
    list(
        zip(
            TYPES["accept_whitespace"],
            [DecimalType(9, 2), FixedType(16), GeometryType("srid:4326"), GeographyType("srid:4326", "spherical")],
            strict=True,
        )
    ),
)
def test_blanks_around_parameters_are_accepted(text, expected):
    assert parse_type(text) == expected


@pytest.mark.spec("TYP-01", "TYP-07", "TYP-25", "TYP-28")
@pytest.mark.parametrize(
    "text", [*TYPES["invalid"], "enum", "union", "", "struct", "decimal(9,39)", "decimal (9", "INT", "geography(a,)"]
)
def test_what_is_no_type_is_refused_with_its_string(text):
    with pytest.raises((UnsupportedFeature, InvalidSchema)) as caught:
        parse_type(text)
    assert text in str(caught.value)


@pytest.mark.spec("TYP-28")
def test_an_unknown_type_is_unsupported_and_not_a_string():
    with pytest.raises(UnsupportedFeature, match="blob"):
        parse_type("blob")


def test_a_types_string_is_bounded_and_its_error_is_short():
    with pytest.raises(InvalidSchema) as caught:
        parse_type("geometry(" + "x" * 100_000 + ")")
    assert len(str(caught.value)) < 300


def test_digits_of_other_scripts_are_no_digits():
    with pytest.raises(InvalidSchema):
        parse_type("fixed[١٦]")


@pytest.mark.spec("TYP-07")
@pytest.mark.parametrize(
    ("precision", "scale"), [(39, 2), (0, 0), (9, 39), (9, -39), (-1, 0), (True, 0), ("9", 2), (9.0, 2)]
)
def test_a_decimals_precision_and_scale_are_bounded(precision, scale):
    with pytest.raises(InvalidSchema):
        DecimalType(precision, scale)


@pytest.mark.parametrize("kind", ["decimal(9,10)", "decimal(1,38)"])
def test_a_scale_above_the_precision_can_be_read(kind):
    assert str(parse_type(kind)) == kind


@pytest.mark.spec("TYP-07")
def test_a_decimal_has_up_to_38_digits():
    assert str(DecimalType(38, 38)) == "decimal(38,38)"
    assert str(DecimalType(1, 0)) == "decimal(1,0)"


@pytest.mark.spec("TYP-14")
@pytest.mark.parametrize("length", [0, -1, 2**31, True, "4"])
def test_a_fixeds_length_is_a_positive_integer_of_31_bits(length):
    with pytest.raises(InvalidSchema):
        FixedType(length)


@pytest.mark.spec("TYP-23")
def test_a_variant_is_neither_primitive_nor_nested():
    assert not VariantType().is_primitive
    assert not VariantType().is_nested


@pytest.mark.spec("TYP-24", "TYP-25")
def test_geometry_and_geography_have_defaults_for_their_parameters():
    assert parse_type("geometry") == GeometryType("OGC:CRS84")
    assert parse_type("geography(srid:4326)") == GeographyType("srid:4326", "spherical")
    assert str(GeographyType(algorithm="vincenty")) == "geography(OGC:CRS84, vincenty)"
    assert parse_type("geography(OGC:CRS84, vincenty)") == GeographyType(algorithm="vincenty")


@pytest.mark.spec("TYP-26")
@pytest.mark.parametrize("crs", ['{"type": "GeographicCRS"}', ' {"a"}', "", "a,b", "a(b"])
def test_a_crs_is_an_identifier_and_never_inline_projjson(crs):
    with pytest.raises(InvalidSchema):
        GeometryType(crs)
    with pytest.raises(InvalidSchema):
        GeographyType(crs)
    assert GeometryType("projjson:my.property").crs == "projjson:my.property"


@pytest.mark.spec("TYP-21")
def test_an_unknown_column_cannot_be_required():
    with pytest.raises(InvalidSchema, match="required"):
        NestedField(1, "u", UnknownType(), required=True)


@pytest.mark.spec("DEF-11", "TYP-21", "TYP-23")
@pytest.mark.parametrize("kind", [UnknownType(), VariantType(), GeometryType(), GeographyType()], ids=str)
@pytest.mark.parametrize("which", ["initial_default", "write_default"])
def test_types_without_defaults_take_none(kind, which):
    with pytest.raises(InvalidSchema, match="default"):
        NestedField(1, "u", kind, **{which: b"x"})
    assert NestedField(1, "u", kind, **{which: None}).has_default is False


@pytest.mark.spec("TYP-22", "TYP-27")
@pytest.mark.parametrize(
    "kind",
    [UnknownType(), TimestampNanoType(), TimestamptzNanoType(), VariantType(), GeometryType(), GeographyType()],
    ids=str,
)
def test_a_nested_type_needs_the_version_of_what_is_in_it(kind):
    assert kind.min_format_version == 3
    assert StructType(NestedField(1, "a", ListType(2, MapType(3, "int", 4, kind)))).min_format_version == 3
    assert StructType(NestedField(1, "a", ListType(2, "int"))).min_format_version == 1


@pytest.mark.spec("TYP-16")
def test_a_struct_refuses_two_fields_of_one_name():
    with pytest.raises(InvalidSchema, match="'a'"):
        StructType(NestedField(1, "a", "int"), NestedField(2, "a", "long"))


@pytest.mark.spec("TYP-17", "TYP-18")
def test_elements_keys_and_values_are_fields_with_ids_and_keys_are_required():
    listed = ListType(3, "string", element_required=True)
    assert (listed.element.field_id, listed.element.name, listed.element.required) == (3, "element", True)
    mapped = MapType(4, StructType(NestedField(6, "x", "int")), 5, ListType(7, "int"))
    assert (mapped.key.field_id, mapped.key.name, mapped.key.required) == (4, "key", True)
    assert (mapped.value.field_id, mapped.value.name, mapped.value.required) == (5, "value", False)


@pytest.mark.parametrize("bad", [-1, 2**31, True, "1", None, 1.0])
def test_a_field_id_is_an_integer_of_31_bits(bad):
    with pytest.raises(InvalidSchema):
        NestedField(bad, "a", "int")


def test_a_field_takes_its_type_as_strings():
    assert NestedField(1, "a", "decimal(9, 2)").field_type == DecimalType(9, 2)
    with pytest.raises(InvalidSchema):
        NestedField(1, "a", 7)
    with pytest.raises(InvalidSchema):
        NestedField(1, 7, "int")
    with pytest.raises(InvalidSchema):
        StructType("a")


def test_nesting_is_bounded():
    kind = IntegerType()
    for level in range(MAX_NESTING_DEPTH):
        kind = ListType(level, kind)
    assert kind.depth == MAX_NESTING_DEPTH
    assert pickle.loads(pickle.dumps(kind)) == kind
    assert str(kind).startswith("list<list<")
    with pytest.raises(InvalidSchema, match="100"):
        StructType(NestedField(1, "a", kind))


@given(types())
def test_types_are_hashable_picklable_and_immutable(kind):
    twin = pickle.loads(pickle.dumps(kind))
    assert twin == kind
    assert hash(twin) == hash(kind)
    assert repr(twin) == repr(kind)
    with pytest.raises((AttributeError, TypeError)):
        kind.anything = 1
    assert eval(repr(kind), vars(__import__("icefield.types", fromlist=["x"]))) == kind


@given(primitives(), primitives())
def test_two_types_are_equal_exactly_when_their_strings_are(left, right):
    assert (left == right) == (str(left) == str(right))
    assert left != "int"


@pytest.mark.spec("SCH-10", "SCH-11", "SCH-12", "SCH-14")
@pytest.mark.parametrize(("old", "new", "since"), VECTORS["type_promotion"]["allowed"])
def test_a_promotion_is_allowed_from_its_format_version_on(old, new, since):
    for version in (1, 2, 3):
        assert promotion_allowed(spelled(old), spelled(new), version) is (version >= since)


@pytest.mark.spec("SCH-13", "SCH-14", "SCH-17")
@pytest.mark.parametrize(("old", "new"), VECTORS["type_promotion"]["rejected"])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_any_other_change_of_type_is_no_promotion(old, new, version):
    assert not promotion_allowed(spelled(old), spelled(new), version)


@pytest.mark.spec("SCH-14")
@pytest.mark.parametrize(("old", "new"), VECTORS["type_promotion"]["rejected_in_v2_only"])
def test_newer_promotions_are_refused_in_older_tables(old, new):
    assert not promotion_allowed(spelled(old), spelled(new), 2)
    assert promotion_allowed(spelled(old), spelled(new), 3)


@given(primitives(), primitives(), primitives())
def test_promotion_never_leads_back_and_chains_of_it_are_promotions(a, b, c):
    if a != b and promotion_allowed(a, b, 3):
        assert not promotion_allowed(b, a, 3)
        if promotion_allowed(b, c, 3):
            assert promotion_allowed(a, c, 3)
    assert promotion_allowed(a, a, 1)


@pytest.mark.spec("SCH-12")
def test_a_decimal_widens_but_keeps_its_scale():
    assert promotion_allowed(DecimalType(9, 2), DecimalType(38, 2), 1)
    assert not promotion_allowed(DecimalType(9, 2), DecimalType(9, 1), 1)


def test_every_error_of_a_type_is_typed():
    for make in (lambda: DecimalType("a", "b"), lambda: parse_type(7), lambda: FixedType(None)):
        with pytest.raises(IcefieldError):
            make()


@pytest.mark.spec("SCH-14")
def test_dates_become_timestamps_without_zone_only():
    assert promotion_allowed(DateType(), TimestampType(), 3)
    assert not promotion_allowed(DateType(), LongType(), 3)
    assert not promotion_allowed(BinaryType(), DoubleType(), 3)


def test_the_timestamp_types_state_their_zone_and_their_digits():
    stated = {str(kind()): (kind.has_zone, kind.digits) for kind in TIMESTAMP_TYPES}
    assert stated == {
        "timestamp": (False, 6),
        "timestamptz": (True, 6),
        "timestamp_ns": (False, 9),
        "timestamptz_ns": (True, 9),
    }
    assert all(issubclass(kind, AnyTimestampType) for kind in TIMESTAMP_TYPES)


def test_every_type_has_children_and_only_nested_types_have_any():
    element, value = NestedField(1, "element", "int"), NestedField(3, "value", "int")
    key = NestedField(2, "key", "int", required=True)
    assert StructType(element, key).children == (element, key)
    assert ListType(1, "int").children == (element,)
    assert MapType(2, "int", 3, "int").children == (key, value)
    assert parse_type("decimal(9,2)").children == parse_type("variant").children == ()
