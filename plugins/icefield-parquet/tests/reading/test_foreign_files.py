"""Files of other writers: old layouts, other physical types, missing annotations, statistics that cannot be trusted."""

import base64
import datetime as dt
import struct
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as encryption
import pytest
from icefield.abc import ReadRequest
from icefield.errors import InvalidFile, UnsupportedFeature
from icefield.schema import Schema
from icefield.toolkit import BytesInput
from icefield.types import DecimalType, ListType, MapType, NestedField, StructType, parse_type
from parquet_files import read, read_as, reader_of
from parquet_forge import forge
from vectors import VECTORS


def one(kind, id_=1):
    return Schema(NestedField(id_, "v", parse_type(kind)))


def values(schema, data):
    return read_as(schema, data)["v"].to_pylist()


class TestDecimals:
    @pytest.mark.spec("PARQ-15", "PARQ-23", "SCH-12", "PRJ-16", "PLT-15", "PLT-20")
    @pytest.mark.parametrize(
        ("physical", "precision", "encode"),
        [
            ("int32", 9, int),
            ("int64", 18, int),
            ("fixed_len_byte_array(5)", 9, lambda v: v.to_bytes(5, "big", signed=True)),
            ("fixed_len_byte_array(16)", 9, lambda v: v.to_bytes(16, "big", signed=True)),
            ("binary", 9, lambda v: v.to_bytes(2, "big", signed=True)),
        ],
    )
    def test_a_decimal_in_any_storage_reads_as_its_own_and_as_a_wider_type(self, physical, precision, encode):
        message = f"optional {physical} v (DECIMAL({precision},2)) = 1;"
        data = forge(message, [{"v": encode(-128)}, {"v": None}, {"v": encode(1422)}])
        expected = [Decimal("-1.28"), None, Decimal("14.22")]
        for wider in (precision, precision + 1, 38):
            table = read_as(Schema(NestedField(1, "v", DecimalType(wider, 2))), data)
            assert table.schema.field("v").type == pa.decimal128(wider, 2)
            assert table["v"].to_pylist() == expected

    def test_a_decimal_of_another_scale_is_not_read(self):
        data = forge("required int32 v (DECIMAL(9,3)) = 1;", [{"v": 1}])
        with pytest.raises(InvalidFile, match="'v'"):
            values(one("decimal(9,2)"), data)


class TestTimes:
    def test_a_reader_says_that_a_timestamp_is_stored_in_int96(self):
        data = forge("required int96 v = 1; required int64 w (TIMESTAMP(true,MICROS)) = 2;", [{"v": bytes(12), "w": 1}])
        with reader_of(data) as reader:
            assert list(reader.stored_types) == ["INT96", "INT64"]
            assert [str(field.type) for field in reader.schema] == ["timestamp[us]", "timestamp[us, tz=UTC]"]

    @pytest.mark.spec("PARQ-16")
    def test_int96_reads_as_either_kind_of_timestamp(self):
        nanos = (17 * 3600 + 10 * 60 + 34) * 10**9 + 123_456_000
        days = 2440588 + (dt.date(2017, 11, 16) - dt.date(1970, 1, 1)).days
        data = forge("optional int96 v = 1;", [{"v": struct.pack("<qi", nanos, days)}, {"v": None}])
        wall = dt.datetime(2017, 11, 16, 17, 10, 34, 123456)
        assert values(one("timestamp"), data) == [wall, None]
        assert values(one("timestamptz"), data) == [wall.replace(tzinfo=dt.UTC), None]

    @pytest.mark.spec("PARQ-16")
    def test_int96_far_from_now_is_read(self):
        days = 2440588 + (dt.date(1, 1, 1) - dt.date(1970, 1, 1)).days
        data = forge("required int96 v = 1;", [{"v": struct.pack("<qi", 0, days)}])
        assert values(one("timestamp"), data) == [dt.datetime(1, 1, 1)]

    @pytest.mark.spec("PARQ-16", "PARQ-22", "PLT-31", "PLT-34", "PLT-35", "PLT-36")
    @pytest.mark.parametrize("utc", ["true", "false"])
    @pytest.mark.parametrize(("unit", "factor"), [("MILLIS", 1000), ("MICROS", 1)])
    def test_the_tables_type_decides_whether_a_timestamp_has_a_zone(self, unit, factor, utc):
        data = forge(f"required int64 v (TIMESTAMP({utc},{unit})) = 1;", [{"v": 172_800_000_000 // factor}])
        wall = dt.datetime(1970, 1, 3)
        assert values(one("timestamp"), data) == [wall]
        assert values(one("timestamptz"), data) == [wall.replace(tzinfo=dt.UTC)]

    @pytest.mark.spec("PARQ-16")
    def test_nanoseconds_that_microseconds_cannot_hold_raise_and_others_are_converted(self):
        message = "required int64 v (TIMESTAMP(false,NANOS)) = 1;"
        assert values(one("timestamp"), forge(message, [{"v": 5_000}])) == [dt.datetime(1970, 1, 1, 0, 0, 0, 5)]
        with pytest.raises(InvalidFile, match="'v'") as caught:
            values(one("timestamp"), forge(message, [{"v": 5_001}]))
        assert caught.value.location == "memory://parquet/file"

    @pytest.mark.spec("PARQ-22", "PARQ-05")
    @pytest.mark.parametrize(
        ("message", "stored"),
        [
            ("required int64 v (TIME_MICROS) = 1;", 5_000),
            ("required int64 v (TIME(true,MICROS)) = 1;", 5_000),
            ("required int32 v (TIME_MILLIS) = 1;", 5),
            ("required int64 v (TIME(false,NANOS)) = 1;", 5_000_000),
            ("required int64 v = 1;", 5_000),
        ],
    )
    def test_a_time_reads_as_a_time_whatever_its_annotation(self, message, stored):
        assert values(one("time"), forge(message, [{"v": stored}])) == [dt.time(0, 0, 0, 5_000)]

    @pytest.mark.spec("PARQ-22", "PARQ-04")
    def test_bare_numbers_read_as_the_tables_date_and_timestamp(self):
        assert values(one("date"), forge("required int32 v = 1;", [{"v": -1}])) == [dt.date(1969, 12, 31)]
        assert values(one("timestamp"), forge("required int64 v = 1;", [{"v": 1}])) == [
            dt.datetime(1970, 1, 1, 0, 0, 0, 1)
        ]

    def test_a_date_that_became_a_timestamp_reads_as_midnight(self):
        data = forge("required int32 v (DATE) = 1;", [{"v": 2}])
        assert values(one("timestamp"), data) == [dt.datetime(1970, 1, 3)]


class TestNumbersAndText:
    @pytest.mark.spec("PARQ-18")
    @pytest.mark.parametrize(
        ("annotation", "stored", "kind", "expected"),
        [
            ("INT_8", -5, "int", -5),
            ("INT_16", -500, "int", -500),
            ("UINT_8", 200, "int", 200),
            ("UINT_16", 60_000, "int", 60_000),
            ("UINT_32", -1, "long", 2**32 - 1),
            ("INTEGER(8,true)", -5, "int", -5),
        ],
    )
    def test_small_and_unsigned_integers_read_as_the_type_that_holds_them(self, annotation, stored, kind, expected):
        assert values(one(kind), forge(f"required int32 v ({annotation}) = 1;", [{"v": stored}])) == [expected]

    @pytest.mark.spec("PARQ-18")
    def test_unsigned_integers_of_64_bits_are_refused(self):
        with pytest.raises(InvalidFile, match="uint64"):
            values(one("long"), forge("required int64 v (UINT_64) = 1;", [{"v": -1}]))

    @pytest.mark.spec("PARQ-23", "SCH-10", "SCH-11", "PRJ-16")
    def test_promoted_columns_are_cast_up(self):
        assert values(one("long"), forge("optional int32 v = 1;", [{"v": -7}, {"v": None}])) == [-7, None]
        assert values(one("double"), forge("required float v = 1;", [{"v": 1.5}])) == [1.5]

    @pytest.mark.parametrize(
        ("held", "kind"), [("int64", "int"), ("double", "float"), ("int32", "string"), ("binary", "long")]
    )
    def test_nothing_else_is_cast(self, held, kind):
        stored = {"int64": 1, "double": 1.0, "int32": 1, "binary": b"1"}[held]
        with pytest.raises(InvalidFile, match="cannot be read as"):
            values(one(kind), forge(f"required {held} v = 1;", [{"v": stored}]))

    @pytest.mark.spec("PARQ-18", "PLT-05", "PLT-06", "PLT-45", "PLT-69")
    @pytest.mark.parametrize("annotation", ["", "(UTF8)", "(STRING)", "(ENUM)", "(JSON)"])
    def test_text_in_any_annotation_reads_as_string(self, annotation):
        data = forge(f"required binary v {annotation} = 1;", [{"v": "blå".encode()}])
        assert values(one("string"), data) == ["blå"]
        assert values(one("binary"), data) == ["blå".encode()]

    @pytest.mark.spec("PARQ-18", "PLT-45")
    def test_bson_reads_as_binary(self):
        assert values(one("binary"), forge("required binary v (BSON) = 1;", [{"v": b"\xff"}])) == [b"\xff"]

    @pytest.mark.spec("TYP-12")
    def test_bytes_that_are_no_text_raise_when_a_string_is_meant(self):
        with pytest.raises(InvalidFile, match="'v'"):
            values(one("string"), forge("required binary v = 1;", [{"v": b"\xff"}]))

    @pytest.mark.spec("TYP-13", "TYP-14")
    def test_fixed_and_uuid_are_read_from_bytes_of_their_length_only(self):
        data = forge("required binary v = 1;", [{"v": bytes(range(16))}])
        assert values(one("uuid"), data) == [bytes(range(16))]
        assert values(one("fixed[16]"), data) == [bytes(range(16))]
        with pytest.raises(InvalidFile, match="'v'"):
            values(one("fixed[15]"), data)


LIST_ROWS = {
    "3-level": lambda inner: {"list": [{"element": inner}]},
    "1": lambda inner: {"element": [inner]},
}


class TestListsAndMaps:
    @pytest.mark.spec(
        "PARQ-17", "PARQ-11", "PLT-46", "PLT-51", "PLT-52", "PLT-53", "PLT-54", "PLT-55", "PLT-56", "PLT-67"
    )
    @pytest.mark.parametrize("vector", VECTORS["parquet_list_rules"], ids=lambda vector: vector["schema"][:60])
    def test_each_layout_of_lists_has_the_nullability_and_element_that_the_rules_say(self, vector):
        with reader_of(forge(vector["schema"], [])) as reader:
            (held,) = reader.schema
        assert pa.types.is_list(held.type)
        assert held.nullable is vector["list_nullable"]
        assert held.type.value_field.nullable is vector["element_nullable"]
        element = held.type.value_type
        if vector["element"].startswith("struct"):
            names = [part.split(":")[0] for part in vector["element"][7:-1].split(",")]
            assert [child.name for child in element] == names
        elif vector["element"].startswith("list"):
            assert element.value_type == pa.int32()
            assert not element.value_field.nullable
        else:
            assert element == {"string": pa.string(), "int": pa.int32()}[vector["element"]]

    @pytest.mark.spec("PARQ-17", "PLT-49", "PLT-50")
    @pytest.mark.parametrize(
        ("message", "rows", "expected"),
        [
            ("optional group v (LIST) = 1 { repeated int32 item = 2; }",
             [None, {"item": []}, {"item": [1, 2]}], [None, [], [1, 2]]),
            ("optional group v (LIST) = 1 { repeated group bag { optional int32 array_element = 2; } }",
             [None, {"bag": [{"array_element": None}, {"array_element": 3}]}], [None, [None, 3]]),
            ("repeated int32 v = 1;", [[], [1, 2]], [[], [1, 2]]),
        ],
    )  # fmt: skip
    def test_rows_of_old_lists_come_out_right(self, message, rows, expected):
        schema = Schema(NestedField(1, "v", ListType(2, "int")))
        assert values(schema, forge(message, [{"v": row} for row in rows])) == expected

    @pytest.mark.spec("PARQ-17")
    def test_structs_in_old_lists_are_read_by_id(self):
        message = (
            "optional group v (LIST) = 1 { repeated group v_tuple = 2 "
            "{ required binary s (UTF8) = 3; optional int32 n = 4; } }"
        )
        data = forge(message, [{"v": {"v_tuple": [{"s": b"a", "n": 1}, {"s": b"b", "n": None}]}}, {"v": None}])
        element = StructType(NestedField(4, "number", "long"), NestedField(3, "text", "string"))
        schema = Schema(NestedField(1, "v", ListType(2, element)))
        assert values(schema, data) == [[{"number": 1, "text": "a"}, {"number": None, "text": "b"}], None]

    @pytest.mark.spec("PARQ-17", "PARQ-12", "PLT-60", "PLT-61")
    @pytest.mark.parametrize(
        ("message", "rows"),
        [
            ("optional group v (MAP) = 1 { repeated group map { required binary str (UTF8) = 2; "
             "required int32 num = 3; } }",
             [None, {"map": [{"str": b"a", "num": 1}]}]),
            ("optional group v (MAP_KEY_VALUE) = 1 { repeated group map { required binary key (UTF8) = 2; "
             "optional int32 value = 3; } }",
             [None, {"map": [{"key": b"a", "value": 1}]}]),
        ],
    )  # fmt: skip
    def test_maps_of_any_names_are_read(self, message, rows):
        schema = Schema(NestedField(1, "v", MapType(2, "string", 3, "int")))
        assert values(schema, forge(message, [{"v": row} for row in rows])) == [None, [("a", 1)]]

    @pytest.mark.spec("PARQ-17", "PLT-58")
    def test_a_map_without_values_has_null_values(self):
        message = "optional group v (MAP) = 1 { repeated group key_value { required binary key (UTF8) = 2; } }"
        schema = Schema(NestedField(1, "v", MapType(2, "string", 3, "int")))
        data = forge(message, [{"v": {"key_value": [{"key": b"a"}, {"key": b"b"}]}}, {"v": None}])
        assert values(schema, data) == [[("a", None), ("b", None)], None]


class TestAlwaysNull:
    @pytest.mark.spec("PLT-62")
    @pytest.mark.parametrize("physical", ["int32", "binary", "double"])
    def test_a_column_that_is_annotated_as_always_null_reads_as_nulls_of_any_type(self, physical):
        data = forge(f"optional {physical} v (UNKNOWN) = 1;", [{"v": None}, {"v": None}])
        for kind in ("string", "decimal(9,2)", "long"):
            assert values(one(kind), data) == [None, None]


class TestSchemas:
    @pytest.mark.spec("PRJ-13")
    def test_no_id_is_made_up_for_a_file_without_ids(self):
        with reader_of(forge("required int32 a; optional group s { optional int32 b; }", [])) as reader:
            assert all(field.metadata is None for field in reader.schema)
            assert reader.schema.field("s").type.field("b").metadata is None

    @pytest.mark.spec("PARQ-21")
    def test_the_schema_that_another_writer_left_in_the_footer_is_handed_out_and_changes_nothing(self):
        data = forge("required int32 a = 5;", [{"a": 1}], metadata={"iceberg.schema": '{"type":"struct","fields":[]}'})
        with reader_of(data) as reader:
            assert reader.metadata["iceberg.schema"] == b'{"type":"struct","fields":[]}'
        assert read_as(Schema(NestedField(5, "z", "int")), data).to_pylist() == [{"z": 1}]

    def test_a_stored_arrow_schema_may_name_extensions_and_dictionaries(self):
        table = pa.table(
            {
                "u": pa.array([bytes(range(16)), None], pa.uuid()),
                "d": pa.array(["a", "b"]).dictionary_encode(),
                "l": pa.array(["x", None], pa.large_string()),
                "s": pa.array([{"u": bytes(16)}, None], pa.struct([("u", pa.binary(16))])),
            }
        )
        ids = {"u": 1, "d": 2, "l": 3, "s": 4}
        schema = pa.schema(
            [field.with_metadata({b"PARQUET:field_id": str(ids[field.name]).encode()}) for field in table.schema]
        )
        sink = pa.BufferOutputStream()
        pq.write_table(table.cast(schema), sink)
        data = sink.getvalue().to_pybytes()
        read_schema = Schema(NestedField(1, "u", "uuid"), NestedField(2, "d", "string"), NestedField(3, "l", "string"))
        assert read_as(read_schema, data).to_pylist() == [
            {"u": bytes(range(16)), "d": "a", "l": "x"},
            {"u": None, "d": "b", "l": None},
        ]
        assert read(data)["s"].to_pylist() == [{"u": bytes(16)}, None]

    def test_siblings_of_one_name_are_told_apart_by_id(self):
        data = forge("required int32 a = 1; required int64 a = 2;", [{"a": 7}])
        for id_, kind in ((1, "int"), (2, "long")):
            found = read_as(one(kind, id_), data)
            assert found.column("v").to_pylist() == [7]
            assert str(found.column("v").type) == {"int": "int32", "long": "int64"}[kind]


class TestDamage:
    def test_an_encrypted_footer_is_told_from_damage(self):
        with pytest.raises(UnsupportedFeature, match="encrypted"):
            reader_of(b"PARE" + bytes(40) + struct.pack("<I", 20) + b"PARE")

    def test_an_encrypted_column_under_a_plain_footer_is_told_from_damage_and_others_are_read(self):
        def client(_):
            class Keys(encryption.KmsClient):
                wrap_key = staticmethod(lambda key, name: base64.b64encode(key))

            return Keys()

        rows = pa.table({"secret": [1, 2], "open": [3, 4]})
        configuration = encryption.EncryptionConfiguration("k", column_keys={"k": ["secret"]}, plaintext_footer=True)
        factory = encryption.CryptoFactory(client)
        properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), configuration)
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, rows.schema, encryption_properties=properties) as writer:
            writer.write_table(rows)
        data = sink.getvalue().to_pybytes()
        with reader_of(data) as reader:
            (batch,) = reader.read(ReadRequest(reader.schema.remove(0)))
            assert batch.column("open").to_pylist() == [3, 4]
            with pytest.raises(UnsupportedFeature, match="encrypted"):
                list(reader.read(ReadRequest(reader.schema)))

    @pytest.mark.parametrize("claimed", [0, 1, 5, 2**40])
    def test_a_wrong_number_of_rows_is_damage_and_positions_are_never_wrong(self, claimed):
        data = forge("required int32 a = 1;", [{"a": 1}, {"a": 2}, {"a": 3}], rows_claimed=claimed)
        with pytest.raises(InvalidFile, match="memory://parquet/file"):
            read(data)

    @pytest.mark.parametrize("length", [2**31 - 1, 2**32 - 1, 0])
    def test_a_footer_of_impossible_length_is_damage(self, length):
        with pytest.raises(InvalidFile, match="memory://parquet/file"):
            reader_of(b"PAR1" + bytes(100) + struct.pack("<I", length) + b"PAR1")

    def test_a_schema_nested_without_end_is_damage(self):
        with pytest.raises(InvalidFile, match="memory://parquet/file"):
            read(forge_deep(3_000))

    def test_the_input_is_closed_when_the_file_cannot_be_opened(self):
        source = BytesInput(b"PAR1 nothing PAR1")
        from icefield_parquet.parquet_format import ParquetFormat

        with pytest.raises(InvalidFile):
            ParquetFormat().open_reader(source, "memory://x")
        assert source.closed


def forge_deep(depth):
    """A file whose schema is a chain of groups, built without recursion."""
    from parquet_thrift import STRUCT, Struct

    elements = [Struct().text(4, "schema").i32(5, 1)]
    elements += [Struct().i32(3, 1).text(4, "a").i32(5, 1) for _ in range(depth)]
    elements.append(Struct().i32(1, 1).i32(3, 1).text(4, "x"))
    footer = Struct().i32(1, 2).list(2, STRUCT, elements).i64(3, 0).list(4, STRUCT, []).encode()
    return b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1"
