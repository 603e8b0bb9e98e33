"""Incoming rows under the table's schema."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from icefield.engine import Conforming
from icefield.errors import InvalidArgument
from icefield.schema import Schema, schema_to_arrow
from icefield.types import ListType, MapType, NestedField, StructType, VariantType, parse_type


def conform(schema, data):
    batch = data if isinstance(data, pa.RecordBatch) else pa.RecordBatch.from_pydict(data)
    result = Conforming(schema, batch.schema).apply(batch)
    result.validate(full=True)
    assert result.schema.equals(schema_to_arrow(schema), check_metadata=True)
    return result


def one(kind, **options):
    return Schema(NestedField(1, "v", parse_type(kind) if isinstance(kind, str) else kind, **options))


def column(schema, array):
    return conform(schema, {"v": array}).column("v")


class TestNames:
    def test_columns_are_found_by_name_in_any_order(self):
        schema = Schema(NestedField(1, "a", "int"), NestedField(2, "b", "string"))
        result = conform(schema, {"b": ["x"], "a": pa.array([1], pa.int32())})
        assert result.to_pylist() == [{"a": 1, "b": "x"}]

    def test_ids_of_the_incoming_rows_do_not_count(self):
        field = pa.field("v", pa.int32(), metadata={b"PARQUET:field_id": b"77"})
        batch = pa.RecordBatch.from_arrays([pa.array([1], pa.int32())], schema=pa.schema([field]))
        assert conform(one("int"), batch).to_pylist() == [{"v": 1}]

    @pytest.mark.parametrize(("name", "hint"), [("w", "there are v"), ("V", "there is a 'v'")])
    def test_a_column_that_the_table_lacks_is_refused(self, name, hint):
        with pytest.raises(InvalidArgument, match=f"'{name}'.*{hint}"):
            conform(one("int"), {"v": pa.array([1], pa.int32()), name: [1]})

    def test_a_column_that_comes_twice_is_refused(self):
        batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["v", "v"])
        with pytest.raises(InvalidArgument, match="twice"):
            conform(one("long"), batch)

    def test_a_nested_column_that_the_table_lacks_is_refused_with_its_path(self):
        schema = one(StructType(NestedField(2, "a", "int")))
        with pytest.raises(InvalidArgument, match=r"'v\.b'"):
            conform(schema, {"v": pa.array([{"a": 1, "b": 2}])})


class TestWhatIsMissing:
    @pytest.mark.spec("DEF-07", "DEF-02")
    def test_a_column_that_is_not_supplied_gets_its_write_default(self):
        schema = Schema(
            NestedField(1, "a", "int"),
            NestedField(2, "b", "int", initial_default=7, write_default=8),
            NestedField(3, "c", "string", required=True, initial_default="x", write_default="y"),
            NestedField(4, "d", "date"),
        )
        result = conform(schema, {"a": pa.array([1, 2], pa.int32())})
        assert result.to_pylist() == [{"a": 1, "b": 8, "c": "y", "d": None}, {"a": 2, "b": 8, "c": "y", "d": None}]

    @pytest.mark.spec("DEF-07", "TYP-19")
    def test_a_required_column_without_write_default_must_be_supplied(self):
        schema = Schema(NestedField(1, "a", "int"), NestedField(2, "b", "int", required=True))
        with pytest.raises(InvalidArgument, match=r"'b'.*required"):
            conform(schema, {"a": pa.array([1], pa.int32())})

    @pytest.mark.spec("DEF-08", "DEF-07")
    def test_a_struct_that_lacks_a_field_gets_the_fields_write_default(self):
        kind = StructType(NestedField(2, "x", "int"), NestedField(3, "y", "int", write_default=4))
        result = column(one(kind), pa.array([{"x": 1}, None], pa.struct([("x", pa.int32())])))
        assert result.to_pylist() == [{"x": 1, "y": 4}, None]

    @pytest.mark.spec("DEF-08")
    def test_a_struct_with_an_empty_default_gets_those_of_its_fields(self):
        kind = StructType(NestedField(3, "x", "int", write_default=1), NestedField(4, "y", "int"))
        schema = Schema(NestedField(1, "a", "int"), NestedField(2, "s", kind, write_default=()))
        assert conform(schema, {"a": pa.array([1], pa.int32())}).to_pylist() == [{"a": 1, "s": {"x": 1, "y": None}}]

    @pytest.mark.spec("TYP-21")
    def test_a_column_of_unknown_type_takes_nulls_only(self):
        assert column(one("unknown"), pa.nulls(2)).to_pylist() == [None, None]
        with pytest.raises(InvalidArgument, match="unknown"):
            column(one("unknown"), pa.array([1]))


LOSSLESS = [
    ("int", pa.array([1, None], pa.int8())),
    ("int", pa.array([1, None], pa.uint16())),
    ("int", pa.array([2**31 - 1, -(2**31)], pa.int64())),
    ("long", pa.array([1, None], pa.int32())),
    ("long", pa.array([2**32 - 1], pa.uint32())),
    ("double", pa.array([1.5, None], pa.float32())),
    ("float", pa.array([1.5, None], pa.float16())),
    ("string", pa.array(["a", None], pa.large_string())),
    ("string", pa.array(["a", None], pa.string_view())),
    ("string", pa.array(["a", None, "a"]).dictionary_encode()),
    ("string", pa.array(["a", None, "a"], pa.large_string()).dictionary_encode()),
    ("binary", pa.array([b"a", None], pa.large_binary())),
    ("binary", pa.array([b"a", None], pa.binary_view())),
    ("binary", pa.array([b"ab", None], pa.binary(2))),
    ("fixed[2]", pa.array([b"ab", None], pa.binary())),
    ("uuid", pa.array([bytes(16), None], pa.binary(16))),
    ("decimal(9,2)", pa.array([Decimal("1.2"), None], pa.decimal128(5, 1))),
    ("decimal(9,2)", pa.array([Decimal("1.20"), None], pa.decimal128(38, 2))),
    ("date", pa.array([dt.date(2020, 1, 1), None], pa.date64())),
    ("time", pa.array([dt.time(1, 2, 3), None], pa.time32("s"))),
    ("timestamp", pa.array([dt.datetime(2020, 1, 1), None], pa.timestamp("s"))),
    ("timestamp", pa.array([dt.datetime(2020, 1, 1), None], pa.timestamp("ns"))),
    ("timestamp_ns", pa.array([dt.datetime(2020, 1, 1), None], pa.timestamp("us"))),
    ("timestamptz", pa.array([dt.datetime(2020, 1, 1, tzinfo=dt.UTC), None], pa.timestamp("ms", "Europe/Oslo"))),
    ("string", pa.nulls(2)),
    ("int", pa.array([7, 7, None], pa.int32()).dictionary_encode()),
]


class TestMaps:
    @pytest.mark.spec("PLT-59")
    @pytest.mark.parametrize("depth", [0, 1])
    def test_a_key_that_comes_twice_in_a_row_is_refused(self, depth):
        kind, wrap = MapType(2, parse_type("string"), 3, parse_type("int")), lambda row: row
        if depth:
            kind, wrap = ListType(4, kind), lambda row: [row]
        arrow = schema_to_arrow(one(kind)).field("v").type
        fine = [[("a", 1), ("b", 2)], [("b", 3), ("a", None)], []]
        assert column(one(kind), pa.array([wrap(row) for row in fine], arrow)).to_pylist() == [wrap(r) for r in fine]
        with pytest.raises(InvalidArgument, match=r"'v'.*key comes twice"):
            column(one(kind), pa.array([wrap(row) for row in [*fine, [("a", 1), ("b", 2), ("a", 3)]]], arrow))


class TestCasts:
    @pytest.mark.parametrize(("kind", "array"), LOSSLESS, ids=lambda each: str(getattr(each, "type", each)))
    def test_another_form_of_the_same_values_is_taken(self, kind, array):
        made, wanted = column(one(kind), array).to_pylist(), array.to_pylist()
        if pa.types.is_timestamp(array.type):
            assert [value and value.replace(tzinfo=None) for value in made] == [
                value and (value.astimezone(dt.UTC) if value.tzinfo else value).replace(tzinfo=None) for value in wanted
            ]
        else:
            assert made == wanted

    def test_a_run_end_encoded_column_is_decoded(self):
        array = pa.RunEndEncodedArray.from_arrays([2, 3], pa.array(["a", "b"]))
        assert column(one("string"), array).to_pylist() == ["a", "a", "b"]

    @pytest.mark.spec("TYP-13")
    def test_an_extension_is_taken_by_its_storage(self):
        array = pa.array([bytes(range(16)), None], pa.uuid())
        assert column(one("uuid"), array).to_pylist() == [bytes(range(16)), None]

    @pytest.mark.spec("TYP-03", "TYP-14", "TYP-07", "TYP-22")
    @pytest.mark.parametrize("where", ["struct", "list", "map"])
    def test_values_below_nulls_are_no_values(self, where):
        """Below nulls, readers leave arbitrary memory contents."""
        times = pa.array([1, 1 << 60]).view(pa.time64("us"))
        given = pa.StructArray.from_arrays([times], ["t"], mask=pa.array([False, True]))
        kind = StructType(NestedField(2, "t", "time", required=True))
        if where == "list":
            given, kind = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), given), ListType(3, kind)
        elif where == "map":
            keys = pa.array(["a", "b"])
            given = pa.MapArray.from_arrays(pa.array([0, 1, 2], pa.int32()), keys, given)
            kind = MapType(3, "string", 4, kind)
        batch = pa.RecordBatch.from_arrays([given], ["v"])
        with pytest.raises(pa.ArrowInvalid, match="range"):
            batch.validate(full=True)
        found = Conforming(one(kind), batch.schema).apply(batch).column("v")
        assert found.is_valid().to_pylist() == given.is_valid().to_pylist()
        shown = pa.RecordBatch.from_arrays([given.slice(0, 1)], ["v"])
        assert found.slice(0, 1).to_pylist() == shown.column("v").to_pylist()
        wrong = pa.StructArray.from_arrays([times], ["t"])
        with pytest.raises(InvalidArgument, match="none of"):
            Conforming(one(StructType(NestedField(2, "t", "time"))), pa.schema([("v", wrong.type)])).apply(
                pa.RecordBatch.from_arrays([wrong], ["v"])
            )

    @pytest.mark.parametrize(
        ("kind", "array"),
        [
            ("int", pa.array([2**31])),
            ("int", pa.array([-(2**31) - 1])),
            ("long", pa.array([2**63], pa.uint64())),
            ("fixed[2]", pa.array([b"a"])),
            ("fixed[2]", pa.array([b"abc"])),
            ("uuid", pa.array([bytes(15)])),
            ("decimal(3,1)", pa.array([Decimal("100.0")], pa.decimal128(5, 1))),
            ("decimal(9,1)", pa.array([Decimal("1.25")], pa.decimal128(5, 2))),
            ("timestamp", pa.array([1], pa.timestamp("ns"))),
            ("timestamp_ns", pa.array([dt.datetime(2263, 1, 1)], pa.timestamp("us"))),
            ("timestamp_ns", pa.array([dt.datetime(1677, 1, 1)], pa.timestamp("us"))),
            ("time", pa.array([1], pa.time64("ns"))),
            ("time", pa.array([86_400_000_000]).view(pa.time64("us"))),
            ("time", pa.array([-1]).view(pa.time64("us"))),
            ("decimal(3,1)", pa.array([Decimal("1000.0")], pa.decimal128(5, 1)).view(pa.decimal128(3, 1))),
            ("decimal(38,0)", pa.array([bytes(15) + b"\x80"], pa.binary(16)).view(pa.decimal128(38, 0))),
        ],
        ids=lambda each: str(getattr(each, "type", each)),
    )
    def test_a_value_that_the_type_does_not_hold_is_refused(self, kind, array):
        with pytest.raises(InvalidArgument, match="'v'"):
            column(one(kind), array)

    @pytest.mark.parametrize(
        ("kind", "array"),
        [
            ("float", pa.array([1.5])),
            ("int", pa.array([1.0])),
            ("double", pa.array([1])),
            ("string", pa.array([1])),
            ("string", pa.array([b"a"])),
            ("binary", pa.array(["a"])),
            ("long", pa.array(["1"])),
            ("boolean", pa.array([1])),
            ("timestamp", pa.array([dt.datetime(2020, 1, 1, tzinfo=dt.UTC)])),
            ("timestamptz", pa.array([dt.datetime(2020, 1, 1)])),
            ("timestamp", pa.array([dt.date(2020, 1, 1)])),
            ("date", pa.array([dt.datetime(2020, 1, 1)])),
            ("uuid", pa.array(["00112233-4455-6677-8899-aabbccddeeff"])),
            ("decimal(9,2)", pa.array([1])),
            ("string", pa.array([["a"]])),
            ("string", pa.array([{"a": 1}])),
        ],
        ids=lambda each: str(getattr(each, "type", each)),
    )
    def test_another_kind_of_value_is_refused_with_what_to_cast_to(self, kind, array):
        with pytest.raises(InvalidArgument, match=r"'v'.*cast it to"):
            column(one(kind), array)

    @pytest.mark.spec("TYP-12")
    @pytest.mark.parametrize("text", [b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"a\xe2\x82"])
    def test_string_that_is_not_utf8_is_refused(self, text):
        array = pa.Array.from_buffers(
            pa.string(), 1, [None, pa.py_buffer(pa.array([0, len(text)], pa.int32()).buffers()[1]), pa.py_buffer(text)]
        )
        with pytest.raises(InvalidArgument, match="'v'"):
            column(one("string"), array)
        nested = pa.ListArray.from_arrays([0, 1], array)
        with pytest.raises(InvalidArgument, match="'v'"):
            column(one(ListType(2, parse_type("string"))), nested)

    @pytest.mark.spec("TYP-12")
    def test_any_other_string_is_taken(self):
        assert column(one("string"), pa.array(["", "\U0001f600", "\0"])).to_pylist() == ["", "\U0001f600", "\0"]


class TestNested:
    def test_lists_maps_and_structs_are_cast_inside(self):
        kind = StructType(
            NestedField(2, "l", ListType(3, parse_type("long"))),
            NestedField(4, "m", MapType(5, parse_type("string"), 6, parse_type("double"))),
        )
        held = pa.struct(
            [
                ("m", pa.map_(pa.large_string(), pa.float32())),
                ("l", pa.large_list(pa.int16())),
            ]
        )
        rows = [{"m": [("a", 1.5), ("b", None)], "l": [1, None]}, None, {"m": None, "l": []}]
        made = column(one(kind), pa.array(rows, held))
        assert made.to_pylist() == [{"l": row["l"], "m": row["m"]} if row else None for row in rows]

    @pytest.mark.parametrize("make", [pa.list_view, pa.large_list_view, pa.large_list])
    def test_any_kind_of_list_is_taken_whole_or_sliced(self, make):
        array = pa.array([[1], None, [2, None, 3], []], make(pa.int32()))
        schema = one(ListType(2, parse_type("int")))
        assert column(schema, array).to_pylist() == array.to_pylist()
        assert column(schema, array.slice(1, 2)).to_pylist() == array.to_pylist()[1:3]

    def test_what_is_below_a_null_struct_is_not_looked_at(self):
        # Below a null struct, Arrow's builders put an empty value, which is not a valid uuid.
        held = pa.array([{"u": bytes(16)}, None])
        kind = StructType(NestedField(2, "u", "uuid"))
        assert column(one(kind), held).to_pylist() == [{"u": bytes(16)}, None]

    def test_a_variant_is_taken_as_its_two_parts(self):
        held = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])
        rows = [{"metadata": b"\1\0\0", "value": b"\0"}, None]
        assert column(one(VariantType()), pa.array(rows, held)).to_pylist() == rows


class TestRequired:
    @pytest.mark.spec("TYP-19")
    def test_a_null_in_a_required_column_is_refused(self):
        with pytest.raises(InvalidArgument, match=r"'v'.*required") as caught:
            column(one("int", required=True), pa.array([1, None], pa.int32()))
        assert caught.value.field_id == 1
        assert column(one("int", required=True), pa.array([1, 2], pa.int32())).to_pylist() == [1, 2]

    @pytest.mark.spec("TYP-19")
    def test_a_required_field_may_be_null_only_below_a_null_struct(self):
        kind = StructType(NestedField(2, "x", "int", required=True), NestedField(3, "y", "int"))
        held = pa.struct([("x", pa.int32()), ("y", pa.int32())])
        rows = [{"x": 1, "y": None}, None]
        assert column(one(kind), pa.array(rows, held)).to_pylist() == rows
        with pytest.raises(InvalidArgument, match=r"'v\.x'"):
            column(one(kind), pa.array([*rows, {"x": None, "y": 1}], held))

    @pytest.mark.spec("TYP-19")
    def test_a_null_struct_hides_all_levels_below_it(self):
        inner = StructType(NestedField(3, "x", "int", required=True))
        kind = StructType(NestedField(2, "in", inner, required=True))
        leaf = pa.StructArray.from_arrays([pa.array([1, None], pa.int32())], names=["x"])  # the inner one is not null
        outer = pa.StructArray.from_arrays([leaf], names=["in"], mask=pa.array([False, True]))
        assert column(one(kind), outer).to_pylist() == [{"in": {"x": 1}}, None]
        with pytest.raises(InvalidArgument, match=r"'v\.in\.x'"):
            column(one(kind), pa.StructArray.from_arrays([leaf], names=["in"]))

    @pytest.mark.spec("TYP-19", "TYP-18", "TYP-17")
    def test_required_elements_and_values_may_not_be_null(self):
        elements = one(ListType(2, parse_type("int"), element_required=True))
        assert column(elements, pa.array([[1], None, []], pa.list_(pa.int32()))).to_pylist() == [[1], None, []]
        with pytest.raises(InvalidArgument, match=r"'v\.element'"):
            column(elements, pa.array([[1, None]], pa.list_(pa.int32())))
        values = one(MapType(2, parse_type("string"), 3, parse_type("int"), value_required=True))
        held = pa.map_(pa.string(), pa.int32())
        assert column(values, pa.array([[("a", 1)], None], held)).to_pylist() == [[("a", 1)], None]
        with pytest.raises(InvalidArgument, match=r"'v\.value'"):
            column(values, pa.array([[("a", None)]], held))

    @pytest.mark.spec("TYP-19")
    def test_elements_below_a_null_list_do_not_count(self):
        kind = ListType(2, StructType(NestedField(3, "x", "int", required=True)))
        items = pa.array([{"x": None}, {"x": 1}], pa.struct([("x", pa.int32())]))
        held = pa.ListArray.from_arrays([0, 1, 2], items, mask=pa.array([True, False]))
        assert column(one(kind), held).to_pylist() == [None, [{"x": 1}]]
        with pytest.raises(InvalidArgument, match=r"'v\.element\.x'"):
            column(one(kind), pa.ListArray.from_arrays([0, 1, 2], items))


class TestCost:
    def test_columns_in_their_final_form_are_handed_on_as_they_are(self):
        schema = Schema(NestedField(1, "a", "long"), NestedField(2, "s", StructType(NestedField(3, "t", "string"))))
        batch = pa.RecordBatch.from_pylist([{"a": 1, "s": {"t": "x"}}], schema=schema_to_arrow(schema))
        result = conform(schema, batch)
        for made, given in zip(result.columns, batch.columns, strict=True):
            assert [b.address if b else None for b in made.buffers()] == [
                b.address if b else None for b in given.buffers()
            ]
