"""The Avro schema that is written, against the vectors and the table spec's Appendix A."""

import json
import re
from decimal import Decimal

import fastavro
import pytest
from avro_files import open_file, write_file
from format_strategies import schemas
from hypothesis import given, settings
from icefield.schema import Schema, schema_to_arrow
from icefield.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
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
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
    parse_type,
)
from icefield_avro.schema_reading import arrow_schema, parse_schema
from icefield_avro.schema_writing import avro_schema, decimal_size, legal_name
from icefield_testing import entry_schema, manifest_list_schema
from vectors import VECTORS

NESTED = {
    "list<9:int>": ListType(9, IntegerType(), element_required=True),
    "map<10:string,11:int>": MapType(10, StringType(), 11, IntegerType(), value_required=True),
    "map<12:int,13:string>": MapType(12, IntegerType(), 13, StringType(), value_required=True),
}
NAMED = {"decimal": "decimal_{}_{}", "uuid": "uuid_fixed", "fixed": "fixed_{}"}


def field_of(kind, **how):
    """The Avro field of a schema's only column."""
    schema = Schema(NestedField(1, "c", kind, **({"required": True} | how)))
    (field,) = avro_schema(schema)["fields"]
    return field


def without_name(schema):
    """Fixed types have names of our own choice."""
    return {k: v for k, v in schema.items() if k != "name"} if isinstance(schema, dict) else schema


@pytest.mark.spec(
    "AVRO-01", "AVRO-02", "AVRO-03", "AVRO-04", "AVRO-05", "AVRO-06", "AVRO-08", "AVRO-09", "AVRO-10",
    "AVRO-12", "AVRO-13", "AVRO-18", "AVRO-19", "AVRO-20", "AVRO-21", "AVRO-22",
)  # fmt: skip
@pytest.mark.parametrize("text", [text for text in VECTORS["avro_types"] if not text.startswith("field")])
def test_each_type_is_written_as_the_vector_says(text):
    kind = NESTED.get(text) or parse_type(text.replace("(", "[").replace(")", "]") if "fixed" in text else text)
    assert without_name(field_of(kind)["type"]) == VECTORS["avro_types"][text]


@pytest.mark.spec("AVRO-15", "AVRO-17")
def test_an_optional_field_is_a_union_with_null_first_and_default_null():
    field = field_of(LongType(), required=False)
    expected = VECTORS["avro_types"]["field 8: optional long l"]
    assert field == expected | {"name": "c", "field-id": 1}
    assert type(field["field-id"]) is int


@pytest.mark.spec("AVRO-02")
def test_a_decimal_takes_the_fewest_bytes():
    assert {str(p): decimal_size(p) for p in range(1, 39)} == VECTORS["decimal_min_bytes"]


@pytest.mark.spec("AVRO-31")
@pytest.mark.parametrize("vector", VECTORS["avro_name_sanitize"], ids=lambda v: v["name"])
def test_a_name_is_made_legal(vector):
    assert legal_name(vector["name"]) == vector["avro"]
    schema = Schema(NestedField(1, vector["name"], LongType()))
    (field,) = avro_schema(schema)["fields"]
    assert field["name"] == vector["avro"]
    assert field.get("iceberg-field-name", field["name"]) == vector["name"]
    assert ("iceberg-field-name" in field) == (vector["name"] != vector["avro"])
    data = write_file(schema, [])
    assert open_file(data).schema.names == [vector["name"]]


@pytest.mark.spec("AVRO-31")
def test_names_that_become_the_same_stay_apart():
    schema = Schema(
        NestedField(1, "a.b", LongType()), NestedField(2, "a_x2Eb", LongType()), NestedField(3, "日", LongType())
    )
    names = [field["name"] for field in avro_schema(schema)["fields"]]
    assert len(set(names)) == 3
    assert all(re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) for name in names)
    assert open_file(write_file(schema, [])).schema.names == ["a.b", "a_x2Eb", "日"]


@pytest.mark.spec("AVRO-27")
def test_a_named_type_is_defined_once_and_then_named():
    twice = (UUIDType(), UUIDType(), DecimalType(9, 2), DecimalType(9, 2), FixedType(4), FixedType(4))
    fields = [NestedField(i, f"c{i}", kind) for i, kind in enumerate(twice, 1)]
    fields.append(NestedField(20, "s", StructType(NestedField(21, "u", UUIDType()))))
    text = json.dumps(avro_schema(Schema(*fields)))
    assert text.count('"logicalType": "uuid"') == 1
    assert text.count('"logicalType": "decimal"') == 1
    fastavro.parse_schema(json.loads(text))
    arrow = arrow_schema(parse_schema(text.encode()))
    assert arrow.equals(schema_to_arrow(Schema(*fields)), check_metadata=True)


@pytest.mark.spec("AVRO-16", "AVRO-14", "AVRO-15")
@pytest.mark.parametrize(
    ("kind", "default", "avro"),
    [
        (LongType(), 34, 34),
        (BooleanType(), True, True),
        (BooleanType(), False, False),
        (IntegerType(), 0, 0),
        (DoubleType(), 1.5, 1.5),
        (FloatType(), 0.25, 0.25),
        (DateType(), 19000, 19000),
        (TimeType(), 1, 1),
        (TimestampType(), -1, -1),
        (TimestampNanoType(), 7, 7),
        (StringType(), "", ""),
        (BinaryType(), b"\x00\xff", "\x00\xff"),
        (FixedType(2), b"\x01\xfe", "\x01\xfe"),
        (UUIDType(), bytes(range(16)), bytes(range(16)).decode("latin-1")),
        (DecimalType(9, 2), Decimal("-1.28"), "\xff\xff\xff\x80"),
    ],
)
@pytest.mark.parametrize("required", [True, False])
def test_a_default_becomes_the_same_default_in_avro(kind, default, avro, required):
    field = field_of(kind, required=required, initial_default=default, write_default=default)
    assert field["default"] == avro
    if not required:
        assert field["type"][1] == "null"
    schema = {"type": "record", "name": "t", "fields": [field]}
    fastavro.parse_schema(json.loads(json.dumps(schema)))


@pytest.mark.spec("AVRO-22", "TYP-21")
def test_types_of_the_third_version_are_written():
    assert field_of(UnknownType(), required=False)["type"] == "null"
    assert field_of(GeometryType())["type"] == "bytes"
    assert field_of(GeographyType())["type"] == "bytes"
    variant = field_of(VariantType())["type"]
    assert variant["logicalType"] == "variant"
    assert variant["fields"] == [{"name": "metadata", "type": "bytes"}, {"name": "value", "type": "bytes"}]


@pytest.mark.slow
@pytest.mark.spec("AVRO-11", "AVRO-17", "AVRO-18", "AVRO-19", "AVRO-20", "AVRO-21")
@settings(max_examples=150, deadline=None)
@given(schema=schemas())
def test_any_schema_comes_back_with_its_ids(schema):
    text = json.dumps(avro_schema(schema))
    fastavro.parse_schema(json.loads(text))
    arrow = arrow_schema(parse_schema(text.encode()))
    assert arrow.equals(schema_to_arrow(schema), check_metadata=True)


def records(schema, found=None):
    """All named records of an Avro schema, by name."""
    found = {} if found is None else found
    if isinstance(schema, dict):
        if schema.get("type") == "record":
            found[schema["name"]] = schema
        for value in schema.values():
            records(value, found)
    elif isinstance(schema, list):
        for value in schema:
            records(value, found)
    return found


@pytest.mark.spec("MAN-02", "MAN-21")
@pytest.mark.parametrize("version", [1, 2, 3])
def test_records_of_manifests_have_the_names_of_other_writers(version):
    partition = StructType(NestedField(1000, "day", DateType()))
    found = records(avro_schema(entry_schema(version, partition), "manifest_entry"))
    assert {"manifest_entry", "r2", "r102", "k117_v118", "k119_v120", "k121_v122", "k126_v127", "k129_v130"} <= set(
        found
    )
    for name, record in found.items():
        for field in record["fields"]:
            assert type(field["field-id"]) is int, (name, field["name"])
    listed = records(avro_schema(manifest_list_schema(version), "manifest_file"))
    assert {"manifest_file", "r508"} <= set(listed)


def test_a_struct_default_is_left_to_the_table():
    inner = StructType(NestedField(2, "x", LongType(), initial_default=3))
    assert field_of(TimestamptzType(), required=False)["default"] is None
    field = field_of(inner, required=False)
    assert field["default"] is None
    assert field["type"][1]["fields"][0]["default"] == 3
