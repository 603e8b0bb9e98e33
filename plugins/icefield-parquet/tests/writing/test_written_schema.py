"""What is written: ids on every node, physical and logical types, the shape of lists and maps."""

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from icefield.schema import Schema
from icefield.types import DecimalType, ListType, MapType, NestedField, StructType, UnknownType, parse_type
from parquet_files import read_as, write_rows
from vectors import VECTORS

NESTED = Schema(
    NestedField(1, "a b", "int"),
    NestedField(2, "s", StructType(NestedField(3, "x.y", "long"), NestedField(4, "u", "uuid", required=True))),
    NestedField(5, "l", ListType(6, ListType(7, "string"), element_required=True), required=True),
    NestedField(8, "m", MapType(9, "string", 10, StructType(NestedField(11, "v", "date")))),
)


def footer(schema, rows=()):
    data, _ = write_rows(schema, list(rows))
    return pq.ParquetFile(pa.BufferReader(data))


def nodes(schema):
    """Every line of the Parquet schema, as pyarrow prints it."""
    return [line.strip() for line in str(footer(schema).schema).splitlines()[2:] if line.strip() not in ("}", "")]


@pytest.mark.spec("PARQ-01", "PARQ-21")
def test_every_node_with_an_id_has_it_in_the_footer():
    text = str(footer(NESTED).schema)
    for id_, name in (
        (1, "a b"),
        (2, "s"),
        (3, "x.y"),
        (4, "u"),
        (5, "l"),
        (8, "m"),
        (9, "key"),
        (10, "value"),
        (11, "v"),
    ):
        assert f"field_id={id_} {name} " in text.replace(";", " ")
    assert "field_id=6 element" in text
    assert "field_id=7 element" in text


@pytest.mark.spec("PARQ-10", "PARQ-11", "PARQ-12", "PLT-48", "PLT-57")
def test_lists_have_three_levels_and_maps_have_keys_and_values_of_the_names_of_the_format():
    assert nodes(NESTED) == [
        "optional int32 field_id=1 a b;",
        "optional group field_id=2 s {",
        "optional int64 field_id=3 x.y;",
        "required fixed_len_byte_array(16) field_id=4 u (UUID);",
        "required group field_id=5 l (List) {",
        "repeated group field_id=-1 list {",
        "required group field_id=6 element (List) {",
        "repeated group field_id=-1 list {",
        "optional binary field_id=7 element (String);",
        "optional group field_id=8 m (Map) {",
        "repeated group field_id=-1 key_value {",
        "required binary field_id=9 key (String);",
        "optional group field_id=10 value {",
        "optional int32 field_id=11 v (Date);",
    ]


PHYSICAL = {"byte_array": "BYTE_ARRAY", "boolean": "BOOLEAN", "int32": "INT32", "int64": "INT64", "float": "FLOAT",
            "double": "DOUBLE"}  # fmt: skip
UNITS = {"MICROS": "microseconds", "NANOS": "nanoseconds"}


@pytest.mark.spec("PARQ-02", "PARQ-04", "PARQ-05", "PARQ-06", "PARQ-07", "PARQ-08", "PARQ-09")
@pytest.mark.parametrize(
    ("name", "expected"),
    [(name, found) for name, found in VECTORS["parquet_types"].items()
     if found and name not in ("fixed(L)", "variant", "geometry", "geography")]
    + [("fixed[7]", ["fixed_len_byte_array(7)", None])],
)  # fmt: skip
def test_each_type_is_written_as_the_format_says(name, expected):
    column = footer(Schema(NestedField(1, "v", parse_type(name)))).schema.column(0)
    physical, annotation = expected
    if physical.startswith("fixed_len_byte_array"):
        assert column.physical_type == "FIXED_LEN_BYTE_ARRAY"
        assert f"({column.length})" in physical
    else:
        assert column.physical_type == PHYSICAL[physical]
    logical = json.loads(column.logical_type.to_json())
    kind, _, arguments = (annotation or "None").partition("(")
    assert logical["Type"].lower() == kind.lower()
    if arguments:
        utc, unit = arguments.rstrip(")").split(",")
        assert logical["isAdjustedToUTC"] is utc.endswith("true")
        assert logical["timeUnit"] == UNITS[unit]


@pytest.mark.spec("PARQ-03", "PLT-23")
@pytest.mark.parametrize(("precision", "expected"), VECTORS["parquet_decimal_physical"].items())
def test_a_decimal_takes_the_least_room_that_its_precision_allows(precision, expected):
    precision = int(precision)
    scale = precision // 2
    column = footer(Schema(NestedField(1, "d", DecimalType(precision, scale)))).schema.column(0)
    assert json.loads(column.logical_type.to_json()) == {"Type": "Decimal", "precision": precision, "scale": scale}
    assert (column.precision, column.scale) == (precision, scale)
    if expected.startswith("fixed"):
        assert column.physical_type == "FIXED_LEN_BYTE_ARRAY"
        assert f"fixed[{column.length}]" == expected
    else:
        assert column.physical_type == expected.upper()


@pytest.mark.spec("PARQ-14", "TYP-21")
def test_a_column_of_unknown_type_is_left_out_and_reads_as_null():
    kind = StructType(NestedField(3, "u", UnknownType()), NestedField(4, "x", "int"))
    listed = ListType(8, StructType(NestedField(9, "u", UnknownType()), NestedField(10, "y", "int")))
    mapped = MapType(12, "string", 13, StructType(NestedField(14, "z", "int"), NestedField(15, "u", UnknownType())))
    schema = Schema(
        NestedField(1, "n", UnknownType()),
        NestedField(2, "s", kind),
        NestedField(7, "l", listed),
        NestedField(11, "m", mapped),
    )
    rows = [
        {"n": None, "s": {"u": None, "x": 1}, "l": [{"u": None, "y": 1}, None], "m": [("a", {"z": 1, "u": None})]},
        {"n": None, "s": None, "l": None, "m": None},
        {"n": None, "s": {"u": None, "x": None}, "l": [], "m": [("b", None)]},
    ]
    data, written = write_rows(schema, rows)
    file = pq.ParquetFile(pa.BufferReader(data))
    assert file.schema.names == ["x", "y", "key", "z"]
    assert set(written.metrics.column_sizes) == {4, 10, 12, 14}
    assert read_as(schema, data).to_pylist() == rows


@pytest.mark.spec("PARQ-14")
def test_a_table_of_nothing_but_unknown_columns_can_be_written():
    schema = Schema(NestedField(1, "n", UnknownType()), NestedField(2, "l", ListType(3, UnknownType())))
    rows = [{"n": None, "l": [None, None]}, {"n": None, "l": None}]
    data, _ = write_rows(schema, rows)
    assert read_as(schema, data).to_pylist() == rows


@pytest.mark.spec("PARQ-20")
def test_any_name_can_be_written_for_readers_go_by_id():
    names = ["a b", "a.b", "", "ä/ö", "x" * 300, "1st", "select", "\n"]
    schema = Schema(*(NestedField(number + 1, name, "int") for number, name in enumerate(names)))
    rows = [dict(zip(names, range(len(names)), strict=True))]
    data, _ = write_rows(schema, rows)
    assert read_as(schema, data).to_pylist() == rows
    renamed = Schema(*(NestedField(number + 1, f"c{number}", "int") for number in range(len(names))))
    assert read_as(renamed, data).to_pylist() == [{f"c{number}": number for number in range(len(names))}]


EDGES = {
    "boolean": [True, False, None],
    "int": [-(2**31), 2**31 - 1, None],
    "long": [-(2**63), 2**63 - 1, None],
    "date": [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)],
    "time": [dt.time(0), dt.time(23, 59, 59, 999999), None],
    "timestamp": [dt.datetime(2017, 11, 16, 17, 10, 34), dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59)],
    "timestamptz": [dt.datetime(2017, 11, 17, 1, 10, 34, tzinfo=dt.UTC), dt.datetime(1969, 12, 31, tzinfo=dt.UTC)],
    "string": ["", "\U0001f600", "\ud7ff\ue000", "e\u0301", None],
    "uuid": [bytes.fromhex("00112233445566778899aabbccddeeff"), bytes(16), None],
    "binary": [b"", b"\0\xff", None],
    "fixed[3]": [b"\0\0\0", b"\xff\xfe\xfd", None],
    "decimal(38,0)": [Decimal("9" * 38), Decimal("-" + "9" * 38), None],
    "decimal(9,2)": [Decimal("-1.28"), Decimal("9999999.99"), None],
    "decimal(18,18)": [Decimal("0.000000000000000001"), Decimal("-0.999999999999999999"), None],
}


@pytest.mark.spec("TYP-02", "TYP-03", "TYP-04", "TYP-07", "TYP-08", "TYP-09", "TYP-10", "TYP-11", "TYP-12", "TYP-13",
                  "TYP-14", "TYP-15")  # fmt: skip
@pytest.mark.parametrize("kind", EDGES)
def test_the_edges_of_each_type_come_back(kind):
    schema = Schema(NestedField(1, "v", parse_type(kind)))
    rows = [{"v": value} for value in EDGES[kind]]
    data, _ = write_rows(schema, rows)
    assert read_as(schema, data).to_pylist() == rows
    stored = pq.ParquetFile(pa.BufferReader(data)).read()
    if kind == "uuid":
        assert [value.bytes if value else None for value in stored["v"].to_pylist()] == EDGES[kind]
    else:
        assert stored["v"].to_pylist() == EDGES[kind], "what another reader makes of it"


@pytest.mark.spec("TYP-05", "TYP-06")
@pytest.mark.parametrize(("kind", "bits"), [("float", pa.int32()), ("double", pa.int64())])
def test_floats_come_back_to_the_bit(kind, bits):
    schema = Schema(NestedField(1, "v", parse_type(kind)))
    values = pa.array([0.0, -0.0, float("inf"), float("-inf"), float("nan"), 5e-324, 1.5, None])
    column = values.cast(pa.float32(), safe=False) if kind == "float" else values
    rows = [{"v": value} for value in column.to_pylist()]
    data, _ = write_rows(schema, rows)
    assert read_as(schema, data)["v"].combine_chunks().view(bits).equals(column.view(bits))


@pytest.mark.spec("PARQ-10", "TYP-19")
def test_required_fields_below_null_structs_are_written_and_pruned():
    kind = StructType(NestedField(2, "u", "uuid", required=True), NestedField(3, "n", "int", required=True))
    schema = Schema(
        NestedField(1, "s", kind),
        NestedField(
            4, "l", ListType(5, StructType(NestedField(6, "u", "uuid", required=True), NestedField(7, "x", "int")))
        ),
    )
    rows = [
        {"s": {"u": bytes(16), "n": 1}, "l": [{"u": bytes(16), "x": 1}, None]},
        {"s": None, "l": None},
        {"s": {"u": bytes(16), "n": 2}, "l": []},
    ]
    data, _ = write_rows(schema, rows)
    assert read_as(schema, data).to_pylist() == rows
    pruned = schema.select_ids({3, 6})
    expected = [
        {"s": {"n": 1}, "l": [{"u": bytes(16)}, None]},
        {"s": None, "l": None},
        {"s": {"n": 2}, "l": []},
    ]
    assert read_as(pruned, data).to_pylist() == expected


POINT = bytes.fromhex("0101000000000000000000F03F0000000000000040")


@pytest.mark.spec("PARQ-14", "TYP-24", "TYP-25")
@pytest.mark.parametrize(
    ("kind", "annotation"),
    [
        ("geometry", "Geometry(crs=)"),
        ("geometry(srid:4326)", "Geometry(crs=srid:4326)"),
        ("geography", "Geography(crs=, algorithm=spherical)"),
        ("geography(EPSG:4267)", "Geography(crs=EPSG:4267, algorithm=spherical)"),
        ("geography(EPSG:4267, vincenty)", "Geography(crs=EPSG:4267, algorithm=vincenty)"),
        ("geography(OGC:CRS84, karney)", "Geography(crs=, algorithm=karney)"),
    ],
)
def test_shapes_are_annotated_with_what_they_are(kind, annotation):
    listed = ListType(3, StructType(NestedField(4, "g", parse_type(kind))))
    schema = Schema(NestedField(1, "g", parse_type(kind)), NestedField(2, "l", listed))
    rows = [{"g": POINT, "l": [{"g": POINT}, None]}, {"g": None, "l": None}]
    data, _ = write_rows(schema, rows)
    text = str(pq.ParquetFile(pa.BufferReader(data)).schema)
    assert text.count(f"({annotation})") == 2
    assert read_as(schema, data).to_pylist() == rows
