"""Variants in Parquet, shredded or not: peers read variants of Icefield, and Icefield reads variants of peers."""

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest
from icefield import open_table
from icefield.builtin.memory import MemoryFileSystem
from icefield.errors import InvalidFile, UnsupportedFeature
from icefield.schema import Schema, schema_to_arrow, schema_to_json
from icefield.types import ListType, MapType, NestedField, StructType, VariantType
from icefield_parquet.variants import variant_to_python
from parquet_files import read_as, write_rows
from parquet_footer import elements
from parquet_forge import forge
from plain_rows import comparable, plain_rows
from tables import new_table
from variant_bytes import PRIMITIVES, decimal, variant

AB = bytes.fromhex("1102000102") + b"ab"
"""The names ``a`` and ``b``."""

OBJECT = {"metadata": AB, "value": bytes.fromhex("020200010002040c010578")}
FIVE = {"metadata": b"\x01\0\0", "value": b"\x0c\x05"}

EVERYWHERE = Schema(
    NestedField(1, "n", "int"),
    NestedField(2, "v", VariantType()),
    NestedField(3, "s", StructType(NestedField(4, "w", VariantType()), NestedField(5, "t", "time"))),
    NestedField(6, "l", ListType(7, VariantType())),
    NestedField(8, "m", MapType(9, "string", 10, VariantType())),
)
ROWS = [
    {"n": 1, "v": OBJECT, "s": {"w": FIVE, "t": dt.time(1)}, "l": [OBJECT, None, FIVE], "m": [("k", OBJECT)]},
    {"n": 2, "v": None, "s": None, "l": None, "m": None},
    {"n": 3, "v": FIVE, "s": {"w": None, "t": None}, "l": [], "m": [("k", None), ("l", FIVE)]},
]


def shown(value):
    return None if value is None else variant_to_python(value["metadata"], value["value"])


def duck_rows(query):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        return connection.execute(query).fetchall()


def from_duckdb(tmp_path, values, shredding=""):
    """The bytes of a file with variants by DuckDB, and the values that Icefield reads from it."""
    path = tmp_path / "variants.parquet"
    option = f", shredding {{'v': '{shredding}'}}" if shredding else ""
    rows = ", ".join(f"({number}, ({value})::variant)" for number, value in enumerate(values))
    options = f"format parquet, field_ids {{n: 1, v: 2}}{option}"
    duck_rows(f"copy (select * from (values {rows}) t(n, v)) to '{path}' ({options})")
    data = path.read_bytes()
    return data, read_as(Schema(NestedField(2, "v", VariantType())), data)["v"].to_pylist()


@pytest.mark.spec("PARQ-13", "TYP-23")
def test_variants_at_any_depth_are_read_by_duckdb(tmp_path):
    data, _ = write_rows(EVERYWHERE, ROWS)
    path = tmp_path / "ours.parquet"
    path.write_bytes(data)
    rows = duck_rows(f"select n, v, s.w, s.t, l, m from '{path}'")
    assert rows == [
        (1, {"a": 1, "b": "x"}, 5, dt.time(1), [{"a": 1, "b": "x"}, None, 5], {"k": {"a": 1, "b": "x"}}),
        (2, None, None, None, None, None),
        (3, 5, None, None, [], {"k": None, "l": 5}),
    ]
    (described,) = duck_rows(f"select column_type from (describe select v from '{path}')")
    assert described == ("VARIANT",)


@pytest.mark.spec("PARQ-13", "TYP-23")
def test_variants_are_rows_of_a_table():
    table = new_table(schema=EVERYWHERE, properties={"format-version": "3"})
    table.append(pa.Table.from_pylist(ROWS, schema=schema_to_arrow(table.schema())))
    assert table.scan().to_arrow().sort_by("n").to_pylist() == ROWS
    assert table.scan("n = 1").to_arrow()["v"].to_pylist() == [OBJECT]
    assert table.scan("v is null").to_arrow()["n"].to_pylist() == [2]


JAVA = Schema(
    NestedField(1, "n", "int"),
    NestedField(2, "v", VariantType()),
    NestedField(3, "s", StructType(NestedField(4, "w", VariantType()), NestedField(5, "t", "time"))),
)
JAVA_ROWS = [{"n": row["n"], "v": row["v"], "s": row["s"]} for row in ROWS]


@pytest.mark.spec("PARQ-13", "VER-13")
def test_variants_are_read_by_java(catalog, java_iceberg):
    table = catalog.create_table("db.t", JAVA, properties={"format-version": "3"})
    table.append(pa.Table.from_pylist(JAVA_ROWS, schema=schema_to_arrow(table.schema())))
    expected = comparable(plain_rows(table.scan().to_arrow(), table.schema()), table.schema())
    assert comparable(java_iceberg.read(table.metadata_location), table.schema()) == expected


@pytest.mark.spec("PARQ-13")
def test_variants_that_java_writes_are_read(tmp_path, java_iceberg):
    location = str(tmp_path / "theirs")
    java_iceberg.create(location, schema_to_json(JAVA), None, {"format-version": "3"})
    rows = plain_rows(pa.Table.from_pylist(JAVA_ROWS, schema=schema_to_arrow(JAVA)), JAVA)
    java_iceberg.append(location, "parquet", rows)
    table = open_table(f"file://{location}/metadata/v2.metadata.json")
    (task,) = table.scan().plan_files()
    data = open(task.file.file_path.removeprefix("file:"), "rb").read()  # noqa: SIM115
    assert [each.logical for each in elements(data) if each.name in ("v", "w")] == ["VARIANT(1)"] * 2
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["n"]) == JAVA_ROWS


class TestShredded:
    """Columns that DuckDB shreds: values of the named type are in a typed column, all other values are beside it."""

    PRIMITIVES = (
        ("tinyint", "1::tinyint", 1), ("smallint", "-300::smallint", -300), ("integer", "70000", 70_000),
        ("bigint", "5000000000", 5_000_000_000), ("float", "1.5::float", 1.5), ("double", "-2.5::double", -2.5),
        ("boolean", "true", True), ("boolean", "false", False), ("varchar", "'blå'", "blå"),
        ("varchar", f"'{'x' * 63}'", "x" * 63), ("varchar", f"'{'x' * 64}'", "x" * 64), ("varchar", "''", ""),
        ("blob", "'\\xFF\\x00'::blob", b"\xff\0"), ("date", "date '1969-12-31'", dt.date(1969, 12, 31)),
        ("time", "time '01:02:03.000004'", dt.time(1, 2, 3, 4)),
        ("timestamp", "timestamp '1960-01-01 00:00:00.000001'", dt.datetime(1960, 1, 1, 0, 0, 0, 1)),
        ("decimal(4,2)", "(-1.25)::decimal(4,2)", Decimal("-1.25")),
        ("decimal(18,4)", "123456789.0001::decimal(18,4)", Decimal("123456789.0001")),
        ("decimal(38,2)", "(-123456789012345678901234.25)::decimal(38,2)", Decimal("-123456789012345678901234.25")),
        ("uuid", "'00112233-4455-6677-8899-aabbccddeeff'::uuid", bytes.fromhex("00112233445566778899aabbccddeeff")),
    )  # fmt: skip

    @pytest.mark.spec("PARQ-13")
    @pytest.mark.parametrize(("kind", "sql", "value"), PRIMITIVES)
    def test_a_column_of_one_type(self, tmp_path, kind, sql, value):
        data, found = from_duckdb(tmp_path, [sql, "'other'", "null", sql, "{'z': 1}"], kind.upper())
        assert [each.name for each in elements(data)].count("typed_value") == 1, "it is shredded"
        plain = [shown(each) for each in found]
        if isinstance(value, bytes):
            plain = [getattr(each, "bytes", each) for each in plain]
        assert plain == [value, "other", None, value, {"z": 1}]

    @pytest.mark.spec("PARQ-13")
    def test_objects_lists_and_what_does_not_fit_them(self, tmp_path):
        values = {
            "{'a': 1, 'b': 'x', 'c': [1, 2]}": {"a": 1, "b": "x", "c": [1, 2]},
            "{'a': 'no', 'd': 5}": {"a": "no", "d": 5},
            "{'b': 'y', 'zz': {'a': 7, 'e': [true]}, 'd': ['1', 'x']}": {
                "b": "y", "zz": {"a": 7, "e": [True]}, "d": ["1", "x"]
            },
            "7": 7, "null": None, "[1, 2]": [1, 2], "{'a': 2}": {"a": 2},
            "{'c': [[1], [2]]}": {"c": [[1], [2]]}, "{'c': []}": {"c": []},
        }  # fmt: skip
        data, found = from_duckdb(tmp_path, values, "STRUCT(a INTEGER, b VARCHAR, c INTEGER[])")
        assert [each.name for each in elements(data)].count("typed_value") == 5
        assert [shown(each) for each in found] == list(values.values())

    @pytest.mark.spec("PARQ-13")
    def test_objects_in_lists_in_objects(self, tmp_path):
        kind = "STRUCT(l STRUCT(x BIGINT, y STRUCT(z VARCHAR)[])[])"
        values = [
            {"l": [{"x": 1, "y": [{"z": "a"}, {"z": "b"}]}, {"x": 2, "y": []}]},
            {"l": []},
            {"l": [{"x": 3, "y": [{"z": "c"}]}]},
        ]
        sql = [json.dumps(value).replace('"', "'") for value in values]
        data, found = from_duckdb(tmp_path, [*sql, "{'l': 1, 'k': {'x': 1}}"], kind)
        assert [each.name for each in elements(data)].count("typed_value") >= 7
        assert [shown(each) for each in found] == [*values, {"l": 1, "k": {"x": 1}}]

    @pytest.mark.spec("PARQ-13")
    def test_many_fields_and_long_lists(self, tmp_path):
        wide = {f"k{number:04}": number for number in range(700)}
        long = list(range(900))
        sql = [json.dumps(value).replace('"', "'") for value in (wide, long, {"k0005": long, "k0650": "x" * 70_000})]
        _, found = from_duckdb(tmp_path, sql, "STRUCT(k0005 INTEGER, k0650 INTEGER, k0300 INTEGER)")
        assert [shown(each) for each in found] == [wide, long, {"k0005": long, "k0650": "x" * 70_000}]

    @pytest.mark.spec("PARQ-13")
    def test_a_table_reads_them_next_to_its_own(self, tmp_path):
        data, _ = from_duckdb(tmp_path, ["{'a': 1}", "{'a': 'x'}", "null"], "STRUCT(a INTEGER)")
        location = f"memory://shredded/{tmp_path.name}.parquet"
        MemoryFileSystem.files[location] = (data, 0)
        table = new_table(schema=JAVA.select_ids({1, 2}), properties={"format-version": "3"})
        table.add_files([location])
        table.append(pa.Table.from_pylist([{"n": 9, "v": OBJECT}], schema=schema_to_arrow(table.schema())))
        found = table.scan().to_arrow().sort_by("n").to_pylist()
        assert [(row["n"], shown(row["v"])) for row in found] == [
            (0, {"a": 1}), (1, {"a": "x"}), (2, None), (9, {"a": 1, "b": "x"})
        ]  # fmt: skip
        assert table.scan("n = 1").to_arrow()["n"].to_pylist() == [1]


SHREDDED = {"write.parquet.shred-variants": "true"}
NUMBERED = Schema(
    NestedField(1, "n", "int"),
    NestedField(2, "v", VariantType()),
    NestedField(3, "s", StructType(NestedField(4, "w", VariantType(), required=True))),
)
MIXED = [
    {"a": 1, "b": "x", "c": [1, 2], "d": {"e": 1.5, "f": None}}, {"a": 300, "b": None, "c": [], "zz": {"a": [1, "y"]}},
    {"a": "no", "d": 7, "c": [1, "two", None, [3]]}, {}, {"b": "z" * 90, "d": {}}, {"a": 2, "d": {"e": "t", "g": True}},
    None, 5, "text", [1, 2], [{"a": 1}], {"A": 1, "a": 5},
]  # fmt: skip
"""Values that are mostly objects: with fields missing, null, of another type and of no column."""


def numbered(values):
    """A row for each value; a null variant and a null struct come behind."""
    rows = [{"n": n, "v": variant(value), "s": {"w": variant(value)}} for n, value in enumerate(values)]
    return [*rows, {"n": len(rows), "v": None, "s": None}]


@pytest.mark.spec("PARQ-13")
class TestShreddedHere:
    """Other implementations read the original values from variants that Icefield writes shredded."""

    @pytest.mark.parametrize("name", PRIMITIVES)
    def test_duckdb_reads_each_primitive(self, tmp_path, name):
        rows = numbered([PRIMITIVES[name], PRIMITIVES[name], "another", None, {"z": 1}])
        files = [write_rows(NUMBERED, rows, properties=properties)[0] for properties in (SHREDDED, {})]
        assert [len([each for each in elements(data) if each.name == "typed_value"]) for data in files] == [2, 0]
        shown_ = []
        for at, data in enumerate(files):
            path = tmp_path / f"{at}.parquet"
            path.write_bytes(data)
            # A decimal has the precision of its column, so the precision is no part of the value.
            kind = "split_part(variant_typeof(v), '(', 1)"
            shown_.append(duck_rows(f"select n, v, s.w, {kind} from '{path}' order by n"))
        assert repr(shown_[0]) == repr(shown_[1])

    def test_duckdb_reads_objects_and_lists(self, tmp_path):
        data, _ = write_rows(NUMBERED, numbered(MIXED), properties=SHREDDED)
        names = [each.name for each in elements(data)]
        assert names.count("typed_value") >= 2 * 6
        path = tmp_path / "ours.parquet"
        path.write_bytes(data)
        rows = duck_rows(f"select v, s.w from '{path}' order by n")
        assert rows == [*((value, value) for value in MIXED), (None, None)]
        assert duck_rows(f"select n from '{path}' where v.a::varchar = '300'") == [(1,)]

    def test_duckdb_distinguishes_names_that_differ_in_case_only(self, tmp_path):
        values = [{"a": 1, "A": "x", "a.b": 2, "value": 3, "typed_value": 4, "list": 5}] * 2
        data, _ = write_rows(NUMBERED, numbered(values), properties=SHREDDED)
        path = tmp_path / "ours.parquet"
        path.write_bytes(data)
        assert duck_rows(f"select v from '{path}' order by n") == [(values[0],), (values[1],), (None,)]

    @pytest.mark.parametrize("values", [MIXED, [[1], [2, None, "x"], [], [[3]], {"a": 1}]], ids=["objects", "lists"])
    def test_java_reads_objects_and_lists(self, catalog, java_iceberg, values):
        self.check_java(catalog, java_iceberg, values)

    def test_java_reads_each_primitive(self, catalog, java_iceberg):
        others = [decimal(8, 12345, 2), decimal(10, 1, 38), 1, -(2**62), 2**40]
        self.check_java(catalog, java_iceberg, [dict(PRIMITIVES), dict(PRIMITIVES), *PRIMITIVES.values(), *others])

    def check_java(self, catalog, java_iceberg, values):
        table = catalog.create_table("db.t", NUMBERED, properties={"format-version": "3", **SHREDDED})
        table.append(pa.Table.from_pylist(numbered(values), schema=schema_to_arrow(table.schema())))
        (task,) = table.scan().plan_files()
        with table.io.open_input(task.file.file_path) as source:
            assert b"typed_value" in source.read()
        found = sorted(java_iceberg.read(table.metadata_location), key=lambda row: row["n"])

        def decoded(held):
            return ... if held is None else variant_to_python(*(bytes.fromhex(held[p]) for p in ("metadata", "value")))

        expected = [variant_to_python(**variant(value)) for value in values]
        assert repr([decoded(row["v"]) for row in found]) == repr([*expected, ...])
        assert repr([row["s"] and decoded(row["s"]["w"]) for row in found]) == repr([*expected, None])


def test_damaged_shredded_columns_are_errors_that_name_the_column():
    message = (
        "optional group v (VARIANT) = 2 { required binary metadata; optional binary value; "
        "optional group typed_value { required group a { optional binary value; optional int32 typed_value; } } }"
    )
    schema = Schema(NestedField(2, "v", VariantType()))
    typed = {"a": {"value": None, "typed_value": 1}}
    for metadata, value in (
        (b"", None), (b"\x02\0\0", None), (b"\x01\0\0", None), (AB, b""), (AB, b"\x0c\x01"), (AB, b"\x02\x05"),
        (AB, b"\x02\x01\x01\x00\x05\x0c"), (AB, b"\x02\x01\x07\x00\x02\x0c\x01"), (AB, b"\x02\x01\x01\xff\x02\x0c"),
    ):  # fmt: skip
        data = forge(message, [{"v": {"metadata": metadata, "value": value, "typed_value": typed}}])
        with pytest.raises(InvalidFile, match="'v'") as caught:
            read_as(schema, data)
        assert caught.value.location == "memory://parquet/file"


def test_a_type_that_no_variant_has_is_not_supported():
    message = (
        "optional group v (VARIANT) = 2 { required binary metadata; optional binary value; "
        "optional int64 typed_value (UINT_64); }"
    )
    data = forge(message, [{"v": {"metadata": AB, "value": None, "typed_value": 1}}])
    with pytest.raises(UnsupportedFeature, match=r"'v'.*uint64"):
        read_as(Schema(NestedField(2, "v", VariantType())), data)


def test_the_two_parts_may_come_in_either_order():
    message = "optional group v (VARIANT) = 2 { required binary value; required binary metadata; }"
    data = forge(message, [{"v": OBJECT}, {"v": None}])
    assert read_as(Schema(NestedField(2, "v", VariantType())), data)["v"].to_pylist() == [OBJECT, None]


@pytest.mark.spec("PARQ-13")
def test_clickhouse_reads_the_parts_of_a_variant_and_the_columns_next_to_it(tmp_path, click):
    data, _ = write_rows(JAVA.select_ids({1, 2}), [{"n": 1, "v": FIVE}, {"n": 2, "v": None}])
    path = tmp_path / "ours.parquet"
    path.write_bytes(data)
    found = click.arrow(f"select n, hex(v.metadata), hex(v.value) from file('{path}', Parquet) order by n")
    first, second = zip(*found.to_pydict().values(), strict=True)
    assert first == (1, "010000", "0C05")
    assert second[0] == 2
