"""Types and field ids of ORC files: what is written, as a peer reads it, and what is read of a peer's files."""

import datetime as dt
from decimal import Decimal
from itertools import count

import pyarrow as pa
import pytest
from icefield.errors import InvalidFile, UnsupportedFeature
from icefield.schema import Schema, schema_to_arrow
from icefield.toolkit import field_id
from icefield.types import (
    FixedType,
    ListType,
    MapType,
    NestedField,
    StructType,
    TimestampNanoType,
    TimestamptzNanoType,
    UnknownType,
    VariantType,
    parse_type,
)
from orc_files import described, nodes, peer, peer_write, read, read_as, reader_of, write, write_rows
from pyorc import TypeKind
from vectors import VECTORS

NAMES = {"decimal(P,S)": "decimal(9,2)", "fixed(L)": "fixed[7]"}
PEER_NAMES = {"decimal(P,S)": "decimal(9,2)"}
KINDS = [(name, *value) for name, value in VECTORS["orc_types"].items() if value and not name.startswith("_")]
NESTED = Schema(
    NestedField(1, "n", "long", required=True),
    NestedField(2, "s", StructType(NestedField(3, "x", "int"), NestedField(4, "u", "uuid", required=True))),
    NestedField(5, "l", ListType(6, ListType(7, "time"), element_required=True)),
    NestedField(8, "m", MapType(9, "string", 10, StructType(NestedField(11, "v", "date")))),
)


def kind_of(name):
    special = {"variant": VariantType(), "timestamp_ns": TimestampNanoType(), "timestamptz_ns": TimestamptzNanoType()}
    return special.get(name) or parse_type(NAMES.get(name, name))


class TestWhatIsWritten:
    @pytest.mark.spec("ORC-01", "ORC-03", "ORC-04", "ORC-05", "ORC-06", "ORC-09", "ORC-10", "ORC-15")
    @pytest.mark.parametrize(("name", "stored", "attributes"), KINDS, ids=lambda value: str(value)[:20])
    def test_each_type_is_stored_as_the_vectors_say(self, name, stored, attributes):
        data, _ = write_rows(Schema(NestedField(5, "v", kind_of(name), required=True)), [])
        node = peer(data).schema.fields["v"]
        assert str(node) == PEER_NAMES.get(name, stored)
        expected = {key: "7" if value == "L" else value for key, value in attributes.items()}
        assert node.attributes == {"iceberg.id": "5", "iceberg.required": "true", **expected}

    @pytest.mark.spec("ORC-01", "ORC-12", "ORC-14")
    def test_every_type_of_a_nested_column_has_its_id_and_whether_it_is_required(self):
        data, _ = write_rows(NESTED, [])
        found = [
            (n.attributes["iceberg.id"], n.attributes["iceberg.required"]) for n in [*nodes(peer(data).schema)][1:]
        ]
        required = {"1", "4", "6", "9"}
        assert found == [(str(id_), str(str(id_) in required).lower()) for id_ in range(1, 12)]

    @pytest.mark.spec("ORC-11")
    def test_the_ids_are_listed_in_the_user_metadata_as_well(self):
        data, _ = write_rows(NESTED, [], metadata={"k": "v"})
        assert peer(data).user_metadata == {"k": b"v", "iceberg.column.id": b"1,2,3,4,5,6,7,8,9,10,11"}

    @pytest.mark.spec("ORC-15")
    def test_columns_of_unknown_type_are_left_out_at_every_level(self):
        schema = Schema(
            NestedField(1, "a", "int"),
            NestedField(2, "u", UnknownType()),
            NestedField(3, "s", StructType(NestedField(4, "u", UnknownType()), NestedField(5, "b", "int"))),
        )
        rows = [{"a": 1, "u": None, "s": {"u": None, "b": 2}}, {"a": None, "u": None, "s": None}]
        data, _ = write_rows(schema, rows)
        assert str(peer(data).schema) == "struct<a:int,s:struct<b:int>>"
        assert read_as(schema, data).to_pylist() == rows

    @pytest.mark.spec("ORC-15")
    @pytest.mark.parametrize(
        "kind", [UnknownType(), ListType(2, UnknownType()), StructType(NestedField(2, "u", UnknownType()))], ids=str
    )
    def test_a_column_with_nothing_but_unknown_is_refused(self, kind):
        with pytest.raises(UnsupportedFeature, match="unknown"):
            write_rows(Schema(NestedField(1, "v", kind)), [])

    @pytest.mark.spec("ORC-15")
    def test_a_variant_reads_back_and_has_no_ids_inside(self):
        schema = Schema(NestedField(1, "v", VariantType()), NestedField(2, "n", "int"))
        rows = [{"v": {"metadata": b"\1\0\0", "value": b"\0"}, "n": 1}, {"v": None, "n": 2}]
        data, _ = write_rows(schema, rows)
        assert [node.attributes.get("iceberg.id") for node in nodes(peer(data).schema)] == [None, "1", None, None, "2"]
        assert "iceberg.column.id" not in peer(data).user_metadata
        assert read_as(schema, data).to_pylist() == rows

    def test_a_variant_after_a_null_one_in_a_list_of_structs_reads_back(self):
        schema = Schema(NestedField(1, "l", ListType(2, StructType(NestedField(3, "v", VariantType())))))
        given = {"metadata": b"\1\0\0", "value": b"\x0c\7"}
        rows = [{"l": [{"v": None}, {"v": given}]}, {"l": [{"v": given}, {"v": None}, {"v": given}]}]
        data, _ = write_rows(schema, rows)
        assert read_as(schema, data).to_pylist() == rows


class TestWhatIsRead:
    @pytest.mark.spec("ORC-02")
    def test_small_integers_and_bounded_strings_are_read_as_int_and_string(self):
        data = peer_write(
            "struct<a:tinyint,b:smallint,c:varchar(9),d:char(3)>", [(-128, 32767, "ü", "abc"), (None,) * 4]
        )
        table = read(data)
        assert table.schema.types == [pa.int32(), pa.int32(), pa.string(), pa.string()]
        assert table.to_pylist() == [
            {"a": -128, "b": 32767, "c": "ü", "d": "abc"},
            {"a": None, "b": None, "c": None, "d": None},
        ]

    @pytest.mark.spec("ORC-01")
    def test_a_peers_values_of_every_type_are_read(self):
        text = (
            "struct<b:boolean,i:int,l:bigint,f:float,d:double,e:decimal(20,3),day:date,s:string,x:binary,"
            "st:struct<a:int>,ar:array<string>,m:map<int,string>>"
        )
        row = (True, -1, 2**62, 0.5, 1e300, Decimal("-12345678901234567.125"), dt.date(1, 1, 1), "日本", b"\0\xff",
               (7,), ["a", None], {1: "x", 2: None})  # fmt: skip
        data = peer_write(text, [row, (None,) * 12] * 3)
        got = read(data).to_pylist()
        assert list(got[0].values()) == [*row[:9], {"a": 7}, ["a", None], [(1, "x"), (2, None)]]
        assert set(got[5].values()) == {None}

    @pytest.mark.spec("ORC-03")
    @pytest.mark.parametrize(("stored", "micros"), [("bigint", 86_399_999_999), ("int", 1_800_000_001)])
    def test_a_time_is_read_from_a_long_or_an_int(self, stored, micros):
        schema = described(f"struct<t:{stored}>", {1: {"iceberg.id": "3", "iceberg.long-type": "TIME"}})
        table = read(peer_write(schema, [(micros,), (None,)]))
        assert table.schema.field("t").type == pa.time64("us")
        assert table.column("t").cast(pa.int64()).to_pylist() == [micros, None]

    @pytest.mark.spec("ORC-03")
    def test_the_last_microsecond_of_a_day_is_stored_in_a_long(self):
        schema = Schema(NestedField(1, "t", "time"))
        data, _ = write_rows(schema, [{"t": dt.time(23, 59, 59, 999_999)}])
        assert [*peer(data)] == [(86_399_999_999,)]

    @pytest.mark.spec("ORC-09", "ORC-10")
    def test_a_uuid_and_a_fixed_are_read_at_their_length_and_no_other(self):
        schema = described(
            "struct<u:binary,f:binary>",
            {1: {"iceberg.binary-type": "UUID"}, 2: {"iceberg.binary-type": "FIXED", "iceberg.length": "3"}},
        )
        table = read(peer_write(schema, [(bytes(16), b"abc"), (None, None)]))
        assert table.schema.types == [pa.binary(16), pa.binary(3)]
        assert table.to_pylist() == [{"u": bytes(16), "f": b"abc"}, {"u": None, "f": None}]
        for wrong in ((bytes(15), b"abc"), (bytes(16), b"abcd")):
            with pytest.raises(InvalidFile, match="memory://orc/file"):
                read(peer_write(schema, [wrong]))

    @pytest.mark.spec("ORC-16")
    def test_a_union_is_refused_by_name(self):
        data = peer_write("struct<a:int,either:uniontype<int,string>>", [(1, 2)])
        with pytest.raises(UnsupportedFeature, match="'either' is a union"):
            read(data)

    @pytest.mark.spec("ORC-14")
    def test_what_is_not_said_to_be_required_is_optional_and_a_null_in_what_is_gets_refused(self):
        schema = described("struct<a:int,b:int>", {1: {"iceberg.id": "1", "iceberg.required": "true"}})
        with reader_of(peer_write(schema, [(1, None)])) as reader:
            assert [field.nullable for field in reader.schema] == [False, True]
        with pytest.raises(InvalidFile, match="required column 'a'"):
            read(peer_write(schema, [(None, 1)]))


class TestFieldIds:
    TEXT = "struct<a:int,s:struct<x:int>,l:array<int>,m:map<int,int>>"

    def ids(self, data):
        with reader_of(data) as reader:
            return [field_id(f) for f in every_field(reader.schema)]

    @pytest.mark.spec("ORC-12")
    def test_attributes_come_before_the_list_and_the_list_before_nothing(self):
        attributes = {number: {"iceberg.id": str(number + 10)} for number in range(1, 9)}
        listed = {"iceberg.column.id": b"101,102,103,104,105,106,107,108"}
        rows = [(1, (2,), [3], {4: 5})]
        both = peer_write(described(self.TEXT, attributes), rows, metadata=listed)
        assert self.ids(both) == [11, 12, 13, 14, 15, 16, 17, 18]
        assert self.ids(peer_write(self.TEXT, rows, metadata=listed)) == [*range(101, 109)]
        assert self.ids(peer_write(self.TEXT, rows)) == [None] * 8

    @pytest.mark.spec("ORC-11")
    @pytest.mark.parametrize("text", [b"1,2", b"1,2,3,4,5,6,7,8,9", b"1,2,3,4,5,6,7,x", b"1,2,3,4,5,6,7,-8", b""])
    def test_a_list_of_ids_that_does_not_fit_is_refused(self, text):
        with pytest.raises(InvalidFile):
            self.ids(peer_write(self.TEXT, [], metadata={"iceberg.column.id": text}))

    @pytest.mark.spec("ORC-05")
    @pytest.mark.parametrize("form", ["list", "attributes"])
    def test_a_struct_of_timestamp_and_offset_is_a_timestamptz_in_utc(self, form):
        text = "struct<n:int,at:struct<ts:timestamp,offset:int>>"
        timestamp = dt.datetime(1969, 12, 31, 23, 59, 58, 999_999, dt.UTC)
        rows = [(1, (timestamp, 3600)), (2, None)]
        if form == "list":
            data = peer_write(text, rows, metadata={"iceberg.column.id": b"1,2"})
        else:
            data = peer_write(described(text, {1: {"iceberg.id": "1"}, 2: {"iceberg.id": "2"}}), rows)
        schema = Schema(NestedField(1, "n", "int"), NestedField(2, "at", "timestamptz"))
        assert read_as(schema, data).to_pylist() == [{"n": 1, "at": timestamp}, {"n": 2, "at": None}]

    def test_such_a_struct_with_ids_inside_stays_a_struct(self):
        data = peer_write("struct<at:struct<ts:timestamp,offset:int>>", [], metadata={"iceberg.column.id": b"1,2,3"})
        with reader_of(data) as reader:
            assert pa.types.is_struct(reader.schema.field("at").type)


class TestEvolution:
    @pytest.mark.spec("ORC-13")
    @pytest.mark.parametrize("vector", VECTORS["orc_projection"], ids=["flat", "nested"])
    def test_a_file_is_read_under_a_later_schema_by_id(self, vector):
        written, wanted = (parse_struct(vector[name]) for name in ("iceberg_write", "iceberg_read"))
        rows = [sample(written)]
        data, _ = write_rows(Schema(*written.fields), rows)
        assert str(peer(data).schema) == vector["orc_write"].replace(" ", "")
        got = read_as(Schema(*wanted.fields), data).to_pylist()[0]
        assert got == expected(written, wanted, rows[0])


def parse_struct(text):
    """The types of the vectors: ``name (id): type``."""
    text = text.strip().removeprefix("struct<").removesuffix(">")
    fields, depth, start = [], 0, 0
    for at, char in enumerate(text + ","):
        depth += (char == "<") - (char == ">")
        if char == "," and depth == 0:
            head, _, kind = text[start:at].strip().partition(":")
            name, _, number = head.partition("(")
            kind = kind.strip()
            made = parse_struct(kind) if kind.startswith("struct<") else parse_type(kind)
            fields.append(NestedField(int(number.strip().rstrip(")")), name.strip(), made))
            start = at + 1
    return StructType(*fields)


def sample(struct, numbers=None):
    numbers = numbers or count(3)
    values = {"int": lambda n: n, "string": str, "date": lambda n: dt.date(2000, 1, n)}
    return {
        f.name: sample(f.field_type, numbers) if isinstance(f.field_type, StructType)
        else values[str(f.field_type)](next(numbers))
        for f in struct.fields
    }  # fmt: skip


def expected(written, wanted, row):
    by_id = {f.field_id: f for f in written.fields}
    made = {}
    for field in wanted.fields:
        old = by_id.get(field.field_id)
        value = None if old is None else row[old.name]
        nested = isinstance(field.field_type, StructType) and value is not None
        made[field.name] = expected(old.field_type, field.field_type, value) if nested else value
    return made


def every_field(fields):
    for field in fields:
        yield field
        kind = field.type
        if pa.types.is_struct(kind):
            yield from every_field([kind.field(at) for at in range(kind.num_fields)])
        elif pa.types.is_map(kind):
            yield from every_field([kind.key_field, kind.item_field])
        elif pa.types.is_list(kind):
            yield from every_field([kind.value_field])


@pytest.mark.spec("ORC-09")
def test_a_fixed_value_with_nulls_between_reads_back():
    schema = Schema(NestedField(1, "f", FixedType(2)))
    data, _ = write_rows(schema, [{"f": b"ab"}, {"f": None}, {"f": b"\0\0"}])
    assert peer(data).schema.fields["f"].kind == TypeKind.BINARY
    assert read_as(schema, data).column("f").to_pylist() == [b"ab", None, b"\0\0"]


def test_a_slice_of_nested_rows_is_written_as_it_is():
    rows = [{"n": n, "s": None if n % 3 else {"x": n, "u": bytes([n]) * 16}, "l": [[dt.time(n)], [None]],
             "m": [("k", None if n % 2 else {"v": dt.date(2000, 1, n + 1)})]} for n in range(20)]  # fmt: skip
    table = pa.Table.from_pylist(rows, schema=schema_to_arrow(NESTED)).slice(3, 11)
    data, _ = write(NESTED, table, batch_rows=4)
    assert read_as(NESTED, data).to_pylist() == rows[3:14]
