"""Annotations of columns in files of others: what each means, where it may stand, and which of two decides."""

import datetime as dt
import math
import struct
import warnings
from decimal import Decimal

import pyarrow as pa
import pytest
from icefield.errors import InvalidFile, UnsupportedFeature
from icefield.schema import Schema
from icefield.toolkit import BytesInput, as_input_file
from icefield.types import DecimalType, FixedType, MapType, NestedField, parse_type
from icefield_parquet.annotations import most_digits
from icefield_parquet.footer import ParquetWarning
from parquet_files import read, read_as, reader_of
from parquet_footer import element
from parquet_forge import forge
from vectors import VECTORS

DAY = dt.date(1970, 1, 3)
MOMENT = dt.datetime(1970, 1, 3)
CLOCK = dt.time(0, 0, 0, 5_000)


def utc(moment):
    return moment.replace(tzinfo=dt.UTC)


def one(kind, id_=1):
    return Schema(NestedField(id_, "v", parse_type(kind) if isinstance(kind, str) else kind))


def stored(message, value):
    """The Arrow type and the value that a file of one row is read with."""
    table = read(forge(message, [{"v": value}]))
    return table.schema.field("v").type, table["v"].to_pylist()[0]


INTERVAL = bytes.fromhex(VECTORS["parquet_interval_example"]["hex"])
# By ConvertedType: the column, a value in it, and what is read of it.
CONVERTED = {
    "UTF8": ("binary v", b"\xc3\xa5", pa.string(), "å"),
    "MAP": ("group v", None, None, None),
    "MAP_KEY_VALUE": ("group v", None, None, None),
    "LIST": ("group v", None, None, None),
    "ENUM": ("binary v", b"RED", pa.string(), "RED"),
    "DECIMAL": ("int32 v", -128, pa.decimal128(5, 2), Decimal("-1.28")),
    "DATE": ("int32 v", 2, pa.date32(), DAY),
    "TIME_MILLIS": ("int32 v", 5, pa.time32("ms"), CLOCK),
    "TIME_MICROS": ("int64 v", 5_000, pa.time64("us"), CLOCK),
    "TIMESTAMP_MILLIS": ("int64 v", 172_800_000, pa.timestamp("ms", "UTC"), utc(MOMENT)),
    "TIMESTAMP_MICROS": ("int64 v", 172_800_000_000, pa.timestamp("us", "UTC"), utc(MOMENT)),
    "UINT_8": ("int32 v", 255, pa.int32(), 255),
    "UINT_16": ("int32 v", 65_535, pa.int32(), 65_535),
    "UINT_32": ("int32 v", -1, pa.uint32(), 2**32 - 1),
    "UINT_64": ("int64 v", -1, pa.uint64(), 2**64 - 1),
    "INT_8": ("int32 v", -128, pa.int32(), -128),
    "INT_16": ("int32 v", -32_768, pa.int32(), -32_768),
    "INT_32": ("int32 v", -(2**31), pa.int32(), -(2**31)),
    "INT_64": ("int64 v", -(2**63), pa.int64(), -(2**63)),
    "JSON": ("binary v", b'{"a":1}', pa.string(), '{"a":1}'),
    "BSON": ("binary v", b"\x05\0\0\0\0", pa.binary(), b"\x05\0\0\0\0"),
    "INTERVAL": ("fixed_len_byte_array(12) v", INTERVAL, pa.binary(12), INTERVAL),
}
NESTED = {
    "MAP": ("required group v (MAP) { repeated group key_value { required int32 key; required int32 value; } }",
            {"key_value": [{"key": 1, "value": 2}]}, pa.types.is_map, [(1, 2)]),
    "MAP_KEY_VALUE": ("required group v (MAP_KEY_VALUE) { repeated group map { required int32 key; required int32 "
                      "value; } }", {"map": [{"key": 1, "value": 2}]}, pa.types.is_map, [(1, 2)]),
    "LIST": ("required group v (LIST) { repeated group list { required int32 element; } }",
             {"list": [{"element": 7}]}, pa.types.is_list, [7]),
}  # fmt: skip


class TestOldAnnotations:
    @pytest.mark.spec("PLT-01", "PLT-02", "PLT-13", "PLT-14", "PLT-25", "PLT-28", "PLT-40", "PLT-43")
    @pytest.mark.parametrize("name", VECTORS["parquet_converted_type_codes"])
    def test_each_is_read_where_the_new_one_is_not_there(self, name):
        if name in NESTED:
            message, value, is_kind, expected = NESTED[name]
            kind, found = stored(message, value)
            assert is_kind(kind)
        else:
            column, value, wanted, expected = CONVERTED[name]
            message = f"required {column} ({name}{'(5,2)' if name == 'DECIMAL' else ''});"
            kind, found = stored(message, value)
            assert kind == wanted
        assert found == expected
        held = element(forge(message, []), "v")
        assert (held.converted, held.logical) == (name, None), "the file has nothing but the old annotation"

    @pytest.mark.spec("PLT-01", "PLT-02", "PLT-14")
    @pytest.mark.parametrize(("old", "new"), VECTORS["parquet_converted_to_logical"].items())
    def test_the_new_one_of_the_same_meaning_is_read_alike(self, old, new):
        if old in ("INTERVAL", "MAP_KEY_VALUE"):
            return  # these have no new annotation
        new = new.replace("(from SchemaElement.scale/precision)", "(5,2)").replace("LIST", "@LIST")
        if old in NESTED:
            message, value, *_ = NESTED[old]
            assert stored(message.replace(f"({old})", f"(@{new.lstrip('@')})"), value) == stored(message, value)
            return
        column, value, *_ = CONVERTED[old]
        both = [f"required {column} ({each});" for each in (old + ("(5,2)" if old == "DECIMAL" else ""), f"@{new}")]
        assert element(forge(both[1], []), "v").converted is None
        assert stored(both[0], value) == stored(both[1], value)

    @pytest.mark.spec("PLT-24")
    def test_an_old_decimal_has_its_digits_from_the_element(self):
        data = forge("required int64 v (DECIMAL(12,3));", [{"v": -1_280}])
        held = element(data, "v")
        assert (held.logical, held.precision, held.scale) == (None, 12, 3)
        assert read(data).to_pylist() == [{"v": Decimal("-1.280")}]
        assert read(data).schema.field("v").type == pa.decimal128(12, 3)

    @pytest.mark.spec("PLT-43")
    def test_an_interval_reads_as_its_twelve_bytes(self):
        example = VECTORS["parquet_interval_example"]
        data = forge("required fixed_len_byte_array(12) v (INTERVAL) = 1;", [{"v": INTERVAL}])
        (found,) = read_as(one(FixedType(12)), data)["v"].to_pylist()
        assert struct.unpack("<III", found) == (example["months"], example["days"], example["millis"])


class TestBoth:
    @pytest.mark.spec("PLT-03", "PLT-01")
    @pytest.mark.parametrize(
        ("message", "value", "kind", "expected"),
        [
            ("int64 v (TIMESTAMP(false,MICROS)) (TIMESTAMP_MILLIS)", 5, pa.timestamp("us"),
             dt.datetime(1970, 1, 1, 0, 0, 0, 5)),
            ("int64 v (TIME(false,MICROS)) (TIMESTAMP_MICROS)", 5, pa.time64("us"), dt.time(0, 0, 0, 5)),
            ("int32 v (INTEGER(32,false)) (INT_8)", -1, pa.uint32(), 2**32 - 1),
            ("int32 v (INTEGER(32,true)) (UINT_32)", -1, pa.int32(), -1),
            ("int32 v (@DECIMAL(9,1)) (DECIMAL(5,2))", 15, pa.decimal128(9, 1), Decimal("1.5")),
            ("binary v (@STRING) (BSON)", b"a", pa.string(), "a"),
            ("binary v (@BSON) (UTF8)", b"\xff", pa.binary(), b"\xff"),
            ("int32 v (@DATE) (TIME_MILLIS)", 2, pa.date32(), DAY),
        ],
    )  # fmt: skip
    def test_the_new_annotation_decides(self, message, value, kind, expected):
        held = element(forge(f"required {message};", []), "v")
        assert held.converted is not None
        assert held.logical is not None
        assert stored(f"required {message};", value) == (kind, expected)

    def test_what_was_fine_in_one_file_is_not_taken_for_another_schema(self):
        fine = "required int32 v (INTEGER(32,true)) = 1;"
        for _ in range(2):
            assert stored(fine, 5) == (pa.int32(), 5)
        for _ in range(2):
            with pytest.raises(InvalidFile, match="'w'"):
                reader_of(forge(f"{fine} required int64 w (INTEGER(32,true)) = 2;", []))
            with pytest.raises(InvalidFile, match="'v'"):
                reader_of(forge("required int64 v (INTEGER(32,true)) = 1;", []))
            with pytest.warns(ParquetWarning):
                reader_of(forge("required int64 v (DECIMAL(5,2)) = 1;", []))


WIDTHS = [(width, signed) for width in (8, 16, 32, 64) for signed in ("true", "false")]


class TestIntegers:
    @pytest.mark.spec("PLT-08", "PLT-14")
    @pytest.mark.parametrize(("width", "signed"), WIDTHS)
    def test_each_width_stands_on_the_integer_that_holds_it_and_on_no_other(self, width, signed):
        right, wrong = ("int64", "int32") if width == 64 else ("int32", "int64")
        annotation = f"INTEGER({width},{signed})"
        assert stored(f"required {right} v ({annotation});", 7)[1] == 7
        with pytest.raises(InvalidFile, match=f"'v'.*may not annotate {wrong}"):
            reader_of(forge(f"required {wrong} v ({annotation});", []))
        old = f"{'' if signed == 'true' else 'U'}INT_{width}"
        with pytest.raises(InvalidFile, match="memory://parquet/file"):
            reader_of(forge(f"required {wrong} v ({old});", []))

    @pytest.mark.spec("PLT-08")
    @pytest.mark.parametrize("width", [0, 1, 24, 127, -8])
    def test_another_width_is_an_error(self, width):
        with pytest.raises(InvalidFile, match="'v'"):
            reader_of(forge(f"required int32 v (INTEGER({width},true));", []))

    @pytest.mark.spec("PLT-09")
    @pytest.mark.parametrize(("physical", "width"), [("int32", 32), ("int64", 64)])
    def test_a_bare_integer_is_the_signed_one_of_its_width(self, physical, width):
        least = -(2 ** (width - 1))
        plain = stored(f"required {physical} v;", least)
        for annotation in (f"INTEGER({width},true)", f"INT_{width}"):
            assert stored(f"required {physical} v ({annotation});", least) == plain
        assert plain[1] == least

    @pytest.mark.spec("PLT-11")
    @pytest.mark.parametrize("annotation", ["INT_8", "INT_16", "UINT_8", "UINT_16", "INTEGER(8,true)",
                                            "INTEGER(16,true)", "INTEGER(8,false)", "INTEGER(16,false)"])  # fmt: skip
    @pytest.mark.parametrize("value", [200, 70_000, -70_000, 2**31 - 1, -(2**31)])
    def test_a_value_beyond_its_width_is_kept_as_it_is_stored(self, annotation, value):
        data = forge(f"required int32 v ({annotation}) = 1;", [{"v": value}])
        assert read(data)["v"].to_pylist() == [value]
        assert read_as(one("int"), data)["v"].to_pylist() == [value]
        assert read_as(one("long"), data)["v"].to_pylist() == [value]

    @pytest.mark.spec("PLT-13", "PARQ-18")
    @pytest.mark.parametrize(
        ("physical", "annotation", "stored_value", "kind", "expected"),
        [
            ("int32", "UINT_8", 255, "int", 255),
            ("int32", "UINT_16", 65_535, "int", 65_535),
            ("int32", "INTEGER(32,false)", -1, "long", 2**32 - 1),
        ],
    )
    def test_the_greatest_unsigned_value_of_each_width_is_read(
        self, physical, annotation, stored_value, kind, expected
    ):
        data = forge(f"required {physical} v ({annotation}) = 1;", [{"v": stored_value}])
        assert read_as(one(kind), data)["v"].to_pylist() == [expected]

    @pytest.mark.spec("PLT-13", "PARQ-18")
    def test_unsigned_integers_of_64_bits_are_decoded_and_do_not_fit_a_long(self):
        data = forge("required int64 v (INTEGER(64,false)) = 1;", [{"v": -1}])
        assert stored("required int64 v (INTEGER(64,false));", -1) == (pa.uint64(), 2**64 - 1)
        with pytest.raises(InvalidFile, match="uint64"):
            read_as(one("long"), data)


class TestDecimals:
    @pytest.mark.spec("PLT-16", "PLT-17", "PLT-21")
    @pytest.mark.parametrize("annotation", ["DECIMAL", "@DECIMAL"])
    @pytest.mark.parametrize(("physical", "most"), [("int32", 9), ("int64", 18)])
    def test_an_integer_holds_no_more_digits_than_fit(self, physical, most, annotation):
        message = f"required {physical} v ({annotation}({most},2));"
        assert stored(message, -128) == (pa.decimal128(most, 2), Decimal("-1.28"))
        with pytest.raises(InvalidFile, match=f"'v'.*may not annotate {physical}"):
            reader_of(forge(f"required {physical} v ({annotation}({most + 1},2));", []))

    @pytest.mark.spec("PLT-17")
    @pytest.mark.parametrize("precision", [1, 9])
    def test_an_int64_for_a_few_digits_is_read_with_a_warning(self, precision):
        data = forge(f"required int64 v (DECIMAL({precision},0)) = 1;", [{"v": -7}])
        with pytest.warns(ParquetWarning, match=f"memory://parquet/file.*'v'.*{precision}"):
            assert read_as(one(DecimalType(precision, 0)), data)["v"].to_pylist() == [Decimal(-7)]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            reader_of(forge("required int64 v (DECIMAL(10,0));", [])).close()

    @pytest.mark.spec("PLT-18", "PLT-21")
    @pytest.mark.parametrize(("length", "most"), VECTORS["parquet_fixed_max_precision"].items())
    def test_bytes_of_a_length_hold_no_more_digits_than_fit(self, length, most):
        message = f"required fixed_len_byte_array({length}) v"
        value = (-(10**most) + 1).to_bytes(int(length), "big", signed=True)
        assert stored(f"{message} (DECIMAL({most},0));", value)[1] == 1 - 10**most
        with pytest.raises(InvalidFile, match=rf"'v'.*may not annotate fixed_len_byte_array\({length}\)"):
            reader_of(forge(f"{message} (DECIMAL({most + 1},0));", []))

    @pytest.mark.spec("PLT-18")
    def test_the_digits_that_fit_are_those_of_the_formula(self):
        for length in (*range(1, 40), 999, 1_000, 1_001, 5_000):
            assert most_digits(length) == math.floor(math.log10(2) * (8 * length - 1))

    @pytest.mark.spec("PLT-19")
    def test_bytes_of_no_length_hold_any_number_of_digits_and_need_a_precision(self):
        value = -(10**59) + 1
        size = (value.bit_length() + 8) // 8
        kind, found = stored("required binary v (DECIMAL(60,2));", value.to_bytes(size, "big", signed=True))
        assert kind == pa.decimal256(60, 2)
        assert found.as_tuple() == (1, (9,) * 59, -2)
        assert stored("required binary v (DECIMAL(5,2));", b"\xff") == (pa.decimal128(5, 2), Decimal("-0.01"))
        for annotation in ("DECIMAL", "DECIMAL(0,0)", "@DECIMAL(0,0)", "DECIMAL(3,4)", "DECIMAL(3,-1)"):
            with pytest.raises(InvalidFile, match="'v'"):
                reader_of(forge(f"required binary v ({annotation});", []))

    @pytest.mark.spec("PLT-21")
    @pytest.mark.parametrize("physical", ["boolean", "float", "double", "int96"])
    def test_nothing_else_holds_a_decimal(self, physical):
        for annotation in ("DECIMAL(5,2)", "@DECIMAL(5,2)"):
            with pytest.raises(InvalidFile, match="memory://parquet/file"):
                reader_of(forge(f"required {physical} v ({annotation});", []))


UNITS = {"MILLIS": (1_000, "int32", pa.time32("ms")), "MICROS": (1, "int64", pa.time64("us")),
         "NANOS": (0.001, "int64", pa.time64("ns"))}  # fmt: skip


class TestTimes:
    @pytest.mark.spec("PLT-26", "PLT-27")
    @pytest.mark.parametrize("adjusted", ["true", "false"])
    @pytest.mark.parametrize("unit", UNITS)
    def test_each_unit_counts_from_midnight_on_the_integer_that_holds_a_day(self, unit, adjusted):
        factor, physical, kind = UNITS[unit]
        data = forge(f"required {physical} v (TIME({adjusted},{unit})) = 1;", [{"v": int(5_000 / factor)}])
        assert read(data).schema.field("v").type == kind
        assert read_as(one("time"), data)["v"].to_pylist() == [CLOCK]
        wrong = "int64" if physical == "int32" else "int32"
        with pytest.raises(InvalidFile, match=f"'v'.*may not annotate {wrong}"):
            reader_of(forge(f"required {wrong} v (TIME({adjusted},{unit}));", []))

    @pytest.mark.spec("PLT-28", "PLT-27")
    @pytest.mark.parametrize(("old", "physical"), [("TIME_MILLIS", "int64"), ("TIME_MICROS", "int32")])
    def test_the_old_annotations_stand_on_the_same_integers(self, old, physical):
        with pytest.raises(InvalidFile, match=old):
            reader_of(forge(f"required {physical} v ({old});", []))

    @pytest.mark.spec("PLT-32")
    @pytest.mark.parametrize("annotation", ["TIME(true,4)", "TIMESTAMP(true,4)", "TIMESTAMP(false,9)"])
    def test_a_unit_of_the_future_is_not_supported_and_no_damage(self, annotation):
        with pytest.raises(UnsupportedFeature, match=r"memory://parquet/file.*'v'.*unit") as caught:
            reader_of(forge(f"required int64 v ({annotation});", []))
        assert not isinstance(caught.value, InvalidFile)

    @pytest.mark.spec("PLT-32")
    def test_the_input_of_a_file_that_is_not_supported_is_closed(self):
        from icefield_parquet.parquet_format import ParquetFormat

        source = BytesInput(forge("required int64 v (TIME(true,4));", []))
        with pytest.raises(UnsupportedFeature):
            ParquetFormat().open_reader(source, "memory://x")
        assert source.closed

    @pytest.mark.spec("PLT-25")
    @pytest.mark.parametrize("annotation", ["DATE", "@DATE"])
    def test_a_date_counts_days_on_an_int32_alone(self, annotation):
        data = forge(f"required int32 v ({annotation}) = 1;", [{"v": -1}, {"v": 2}])
        assert read_as(one("date"), data)["v"].to_pylist() == [dt.date(1969, 12, 31), DAY]
        with pytest.raises(InvalidFile, match="memory://parquet/file"):
            reader_of(forge(f"required int64 v ({annotation});", []))

    @pytest.mark.spec("PLT-40", "PARQ-22")
    @pytest.mark.parametrize(("old", "per_second"), [("TIMESTAMP_MILLIS", 1_000), ("TIMESTAMP_MICROS", 10**6)])
    def test_an_old_timestamp_is_an_instant_unless_the_table_says_otherwise(self, old, per_second):
        data = forge(f"required int64 v ({old}) = 1;", [{"v": 172_800 * per_second}])
        assert read(data)["v"].to_pylist() == [utc(MOMENT)]
        assert read_as(one("timestamptz"), data)["v"].to_pylist() == [utc(MOMENT)]
        assert read_as(one("timestamp"), data)["v"].to_pylist() == [MOMENT]

    @pytest.mark.spec("PLT-37")
    @pytest.mark.parametrize("value", [-(2**63), -(2**63) + 1, 2**63 - 1, -62_135_596_800_000_001])
    @pytest.mark.parametrize("adjusted", ["true", "false"])
    def test_every_number_is_a_timestamp_beyond_the_years_of_the_language_as_well(self, value, adjusted):
        claims = {"v": {"min_value": struct.pack("<q", value), "max_value": struct.pack("<q", value), "null_count": 0}}
        message = f"required int64 v (TIMESTAMP({adjusted},MICROS)) = 1;"
        data = forge(message, [{"v": value}], statistics=claims)
        for kind in ("timestamp", "timestamptz"):
            assert read_as(one(kind), data)["v"].cast(pa.int64()).to_pylist() == [value]
        with reader_of(data) as reader:
            assert reader.metrics().lower_bounds == {1: value}

    @pytest.mark.spec("PLT-37")
    def test_the_year_300000_is_a_number_of_milliseconds(self):
        value = 9_404_783_942_400_000
        data = forge("required int64 v (TIMESTAMP(true,MILLIS)) = 1;", [{"v": value}])
        assert read(data)["v"].cast(pa.int64()).to_pylist() == [value]
        with pytest.raises(InvalidFile, match="'v'"):
            read_as(one("timestamptz"), data)


class TestBytes:
    @pytest.mark.spec("PLT-07")
    def test_a_uuid_has_its_bytes_in_the_order_of_its_string(self):
        data = forge("required fixed_len_byte_array(16) v (UUID) = 1;", [{"v": bytes(range(0, 256, 17))}])
        (found,) = read_as(one("uuid"), data)["v"].to_pylist()
        assert found.hex() == "00112233445566778899aabbccddeeff"
        assert element(data, "v").converted is None

    @pytest.mark.parametrize(
        ("physical", "annotation"),
        [
            ("fixed_len_byte_array(15)", "UUID"), ("binary", "UUID"), ("fixed_len_byte_array(4)", "FLOAT16"),
            ("int32", "@STRING"), ("fixed_len_byte_array(4)", "@ENUM"), ("int64", "@JSON"), ("double", "@BSON"),
            ("int32", "GEOMETRY"), ("fixed_len_byte_array(3)", "GEOGRAPHY"), ("int32", "TIMESTAMP(true,MICROS)"),
            ("int96", "TIMESTAMP(true,MICROS)"), ("float", "INTEGER(32,true)"),
        ],
    )  # fmt: skip
    def test_an_annotation_on_another_type_than_its_own_is_an_error(self, physical, annotation):
        with pytest.raises(InvalidFile, match=r"'v'.*may not annotate"):
            reader_of(forge(f"required {physical} v ({annotation});", []))

    @pytest.mark.spec("PLT-06")
    @pytest.mark.parametrize("annotation", ["ENUM", "@ENUM"])
    def test_an_enum_is_strings_to_whoever_asks_the_file_alone(self, annotation):
        assert stored(f"required binary v ({annotation});", b"RED") == (pa.string(), "RED")

    @pytest.mark.spec("PLT-66")
    def test_half_floats_are_read_as_floats(self):
        data = forge("required fixed_len_byte_array(2) v (FLOAT16) = 1;", [{"v": struct.pack("<e", -1.5)}])
        assert read_as(one("float"), data)["v"].to_pylist() == [-1.5]

    @pytest.mark.spec("PLT-66", "PLT-69")
    @pytest.mark.parametrize("annotation", ["UNION(9)", "UNION(19)", "UNION(77)"])
    def test_an_annotation_of_the_future_leaves_the_bytes_of_the_column(self, annotation):
        assert stored(f"required binary v ({annotation});", b"\xff") == (pa.binary(), b"\xff")


class TestMaps:
    @pytest.mark.spec("PLT-59")
    def test_of_pairs_with_one_key_the_last_one_counts(self):
        vector = VECTORS["parquet_duplicate_keys"]
        message = (
            "required group v (MAP) = 1 { repeated group key_value { required binary key (UTF8) = 2; "
            "required int32 value = 3; } }"
        )
        pairs = [{"key": key.encode(), "value": value} for key, value in vector["pairs"]]
        data = forge(message, [{"v": {"key_value": pairs}}])
        (found,) = read_as(one(MapType(2, "string", 3, "int")), data)["v"].to_pylist()
        assert dict(found) == vector["result"]
        assert len(found) == len(vector["result"])

    @pytest.mark.spec("PLT-61")
    def test_the_old_annotation_of_pairs_inside_a_map_says_nothing(self):
        message = (
            "optional group v (MAP) = 1 { repeated group key_value (MAP_KEY_VALUE) "
            "{ required binary key (UTF8) = 2; optional int32 value = 3; } }"
        )
        data = forge(message, [{"v": {"key_value": [{"key": b"a", "value": None}]}}, {"v": None}])
        schema = one(MapType(2, "string", 3, "int"))
        assert read_as(schema, data)["v"].to_pylist() == [[("a", None)], None]


class TestOpening:
    @pytest.mark.spec("FS-02")
    @pytest.mark.parametrize(("columns", "requests"), [(3, 1), (3_000, 2)])
    def test_a_footer_is_fetched_once_and_with_the_least_number_of_requests(self, columns, requests):
        from icefield_parquet.parquet_format import ParquetFormat

        message = " ".join(f"required int32 column_number_{number} (INT_8);" for number in range(columns))
        data = forge(message, [dict.fromkeys((f"column_number_{number}" for number in range(columns)), 5)] * 20)
        assert (int.from_bytes(data[-8:-4], "little") > 64 << 10) is (requests == 2)

        class Counting:
            """A file of another machine."""

            def __init__(self):
                self.source, self.lengths = pa.BufferReader(data), []

            def read(self, size=-1):
                self.lengths.append(size)
                return self.source.read(size)

            def __getattr__(self, name):
                return getattr(self.source, name)

        source = Counting()
        with ParquetFormat().open_reader(as_input_file(source, is_remote=True), "memory://x") as reader:
            assert len(reader.schema) == columns
            assert len(source.lengths) == requests
            assert sum(source.lengths) <= max(64 << 10, int.from_bytes(data[-8:-4], "little") + 8)

    @pytest.mark.parametrize("length", [0, 1, 7, 8, 11, 12, 40])
    def test_files_too_short_for_a_footer_are_damaged(self, length):
        data = forge("required int32 v;", [{"v": 5}])
        with pytest.raises(InvalidFile, match="memory://parquet/file"):
            reader_of(data[len(data) - length :] if length else b"")
