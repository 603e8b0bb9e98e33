"""Files of other writers: what their schemas are read as, and peers that read and write the same rows."""

import io
import json
from datetime import UTC, date, datetime, time
from decimal import Decimal

import fastavro
import pyarrow as pa
import pytest
from avro_files import container, encode, open_file, read_file, vectorized_only, write_file
from format_strategies import schemas, values
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from icefield import types as t
from icefield.schema import Schema, schema_to_arrow
from icefield.toolkit import FIELD_ID_KEY, field_id


def record(*fields):
    return {"type": "record", "name": "t", "fields": list(fields)}


def field(name, kind, **more):
    return {"name": name, "type": kind, **more}


def schema_of(*fields):
    return open_file(container(record(*fields), [])).schema


def read_as(kind):
    return schema_of(field("c", kind)).field("c").type


@pytest.mark.spec("AVRO-23", "AVRO-07", "AVRO-06")
@pytest.mark.parametrize(
    ("kind", "arrow"),
    [
        ({"type": "long", "logicalType": "timestamp-micros"}, pa.timestamp("us")),
        ({"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False}, pa.timestamp("us")),
        ({"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True}, pa.timestamp("us", "UTC")),
        ({"type": "long", "logicalType": "timestamp-millis"}, pa.timestamp("us")),
        ({"type": "long", "logicalType": "timestamp-millis", "adjust-to-utc": True}, pa.timestamp("us", "UTC")),
        ({"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": True}, pa.timestamp("ns", "UTC")),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, pa.timestamp("us")),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, pa.timestamp("us")),
        ({"type": "int", "logicalType": "time-millis"}, pa.time64("us")),
        ({"type": "string", "logicalType": "uuid"}, pa.string()),
        ({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}, pa.decimal128(5, 2)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 5}, pa.decimal128(5, 0)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 2}, pa.binary()),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 5}, pa.binary()),
        ({"type": "fixed", "name": "f", "size": 12, "logicalType": "duration"}, pa.binary(12)),
        ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, pa.string()),
        ({"type": {"type": "int", "logicalType": "date"}}, pa.date32()),
        ({"type": "long", "logicalType": "date"}, pa.int64()),
        (["long"], pa.int64()),
    ],
)
def test_types_of_other_writers_are_read(kind, arrow):
    assert read_as(kind) == arrow


@pytest.mark.spec("AVRO-23")
def test_either_order_of_a_union_makes_a_field_optional():
    schema = schema_of(field("a", ["null", "int"]), field("b", ["int", "null"]), field("c", "int"), field("d", ["int"]))
    assert [one.nullable for one in schema] == [True, True, False, False]


@pytest.mark.spec("AVRO-17", "AVRO-18", "AVRO-19", "AVRO-20", "AVRO-21")
def test_ids_are_read_and_never_made_up():
    items = {"type": "array", "items": "int", "element-id": 7}
    entries = record(field("key", "int", **{"field-id": 8}), field("value", "long", **{"field-id": 9})) | {"name": "k"}
    schema = schema_of(
        field("l", items, **{"field-id": 1}),
        field("m", {"type": "map", "values": "int", "key-id": 3, "value-id": 4}, **{"field-id": 2}),
        field("a", {"type": "array", "items": entries, "logicalType": "map"}, **{"field-id": 5}),
        field("text", "int", **{"field-id": "6"}),
        field("none", "int"),
        field("huge", "int", **{"field-id": 2**31}),
        field("yes", "int", **{"field-id": True}),
    )
    assert [field_id(one) for one in schema] == [1, 2, 5, None, None, None, None]
    assert field_id(schema.field("l").type.value_field) == 7
    assert [field_id(part) for part in (schema.field("m").type.key_field, schema.field("m").type.item_field)] == [3, 4]
    assert [field_id(part) for part in (schema.field("a").type.key_field, schema.field("a").type.item_field)] == [8, 9]


def test_names_are_resolved_in_their_namespaces():
    inner = {"type": "fixed", "name": "f", "size": 3, "namespace": "a.b"}
    nested = {"type": "record", "name": "a.b.r", "fields": [field("x", inner), field("y", "f"), field("z", "a.b.f")]}
    arrow = schema_of(field("s", nested), field("t", "a.b.r"), field("u", "a.b.f"))
    assert arrow.field("t").type == arrow.field("s").type
    assert arrow.field("u").type == pa.binary(3)


def test_an_array_of_pairs_that_is_no_map_stays_an_array():
    entry = record(field("key", "int"), field("value", "int")) | {"name": "k"}
    assert pa.types.is_list(read_as({"type": "array", "items": entry}))
    assert pa.types.is_map(read_as({"type": "array", "items": entry, "logicalType": "map"}))


@pytest.mark.spec("AVRO-13")
def test_both_forms_of_a_map_with_string_keys_read_alike():
    plain = {"type": "map", "values": "int"}
    entry = record(field("key", "string"), field("value", "int")) | {"name": "k"}
    pairs = {"type": "array", "items": entry, "logicalType": "map"}
    rows = [([("a", 1), ("b", 2)],), ([],)]
    tables = []
    for kind in (plain, pairs):
        schema = record(field("m", kind))
        tables.append(read_file(container(schema, [[encode(schema, row) for row in rows]])))
    assert tables[0].equals(tables[1])
    assert tables[0].column("m").to_pylist() == [[("a", 1), ("b", 2)], []]


@pytest.mark.spec("AVRO-22")
def test_a_variant_of_two_byte_strings_is_reported():
    parts = [field("metadata", "bytes"), field("value", "bytes")]
    arrow = schema_of(field("v", {"type": "record", "name": "r1", "logicalType": "variant", "fields": parts}))
    assert arrow.field("v").metadata[b"icefield.type"] == b"variant"
    assert FIELD_ID_KEY not in (arrow.field("v").type.field("value").metadata or {})


@pytest.mark.spec("AVRO-25")
def test_metadata_that_nobody_knows_is_tolerated_and_stated():
    data = container(record(field("a", "int")), [[b"\2"]], metadata={"iceberg.schema": b"{}", "x": b"\xff\x00"})
    reader = open_file(data)
    assert reader.metadata["x"] == b"\xff\x00"
    assert read_file(data).column("a").to_pylist() == [1]


def test_a_header_in_several_blocks_is_read():
    from avro_files import SYNC, long, sized

    schema = json.dumps(record(field("a", "int"))).encode()
    first = long(-1) + long(99) + sized(b"avro.schema") + sized(schema)
    data = b"Obj\x01" + first + long(1) + sized(b"k") + sized(b"v") + b"\0" + SYNC + long(2) + sized(b"\2\4") + SYNC
    assert read_file(data).column("a").to_pylist() == [1, 2]
    assert open_file(data).metadata["k"] == b"v"


# -- fastavro reads what the plugin writes, and the other way round


def for_arrow(value, kind):
    """An internal value as ``pyarrow.array`` takes it."""
    if value is None:
        return None
    match kind:
        case t.StructType():
            return {one.name: for_arrow(part, one.field_type) for one, part in zip(kind.fields, value, strict=True)}
        case t.ListType():
            return [for_arrow(item, kind.element_type) for item in value]
    return value


def of_peer(value, kind):
    """What fastavro gives, as pyarrow would."""
    if value is None:
        return None
    match kind:
        case t.StructType():
            return {
                one.name: of_peer(part, one.field_type) for one, part in zip(kind.fields, value.values(), strict=True)
            }
        case t.ListType():
            return [of_peer(item, kind.element_type) for item in value]
        case t.MapType():
            pairs = value.items() if isinstance(value, dict) else [(e["key"], e["value"]) for e in value]
            return [(of_peer(k, kind.key_type), of_peer(v, kind.value_type)) for k, v in pairs]
        case t.TimestampType():
            return value.replace(tzinfo=None)
        case t.UUIDType():
            return value if isinstance(value, bytes) else value.bytes
    return value


_PEER_LEAVES = st.sampled_from(
    [
        t.BooleanType(), t.IntegerType(), t.LongType(), t.FloatType(), t.DoubleType(), t.StringType(), t.BinaryType(),
        t.FixedType(5), t.DecimalType(9, 2), t.DecimalType(38, 10), t.UUIDType(), t.DateType(), t.TimeType(),
        t.TimestampType(), t.TimestamptzType(),
    ]
)  # fmt: skip


@st.composite
def tables(draw):
    schema = draw(schemas(_PEER_LEAVES).filter(lambda s: len(s.fields) > 0 and not _has_unhashable_keys(s.as_struct())))
    row = st.tuples(
        *(
            values(one.field_type, finite=True, python=True)
            if one.required
            else st.none() | values(one.field_type, finite=True, python=True)
            for one in schema.fields
        )
    )
    rows = draw(st.lists(row, max_size=25))
    arrow = schema_to_arrow(schema)
    columns = [
        pa.array([for_arrow(row[i], one.field_type) for row in rows], arrow.field(i).type)
        for i, one in enumerate(schema.fields)
    ]
    return schema, pa.Table.from_arrays(columns, schema=arrow)


def _has_unhashable_keys(kind):
    match kind:
        case t.MapType():  # a dict of fastavro's keeps one entry a key
            return True
        case t.StructType() | t.ListType():
            return any(_has_unhashable_keys(child.field_type) for child in kind.children)
    return False


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(made=tables(), codec=st.sampled_from(["gzip", "snappy", "uncompressed", "bzip2", "xz"]))
def test_fastavro_reads_what_is_written(made, codec):
    schema, table = made
    data = write_file(schema, table.to_batches(), {"write.avro.compression-codec": codec, "avro.block-size": "200"})
    peer = [of_peer(row, schema.as_struct()) for row in fastavro.reader(io.BytesIO(data))]
    assert peer == table.to_pylist()


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(made=tables(), codec=st.sampled_from(["deflate", "snappy", "null", "bzip2", "xz"]), stepwise=st.booleans())
def test_what_fastavro_writes_is_read(made, codec, stepwise):
    schema, table = made
    data = write_file(schema, table.to_batches())
    avro = json.loads(open_file(data).metadata["avro.schema"])
    rows = list(fastavro.reader(io.BytesIO(data)))
    rewritten = io.BytesIO()
    fastavro.writer(rewritten, avro, rows, codec=codec, sync_interval=300)
    if stepwise:
        with vectorized_only():
            got = read_file(rewritten.getvalue())
    else:
        got = read_file(rewritten.getvalue())
    assert got.schema.equals(table.schema, check_metadata=True)
    assert got.equals(table)


@pytest.mark.spec("AVRO-01", "AVRO-02", "AVRO-03", "AVRO-04", "AVRO-05", "AVRO-06", "AVRO-09", "AVRO-10", "AVRO-12")
def test_a_peer_sees_the_values_that_were_meant():
    schema = Schema(
        t.NestedField(1, "d", t.DecimalType(9, 2)),
        t.NestedField(2, "day", t.DateType()),
        t.NestedField(3, "t", t.TimeType()),
        t.NestedField(4, "ts", t.TimestampType()),
        t.NestedField(5, "tz", t.TimestamptzType()),
        t.NestedField(6, "m", t.MapType(7, t.IntegerType(), 8, t.BinaryType(), value_required=True)),
        t.NestedField(9, "s", t.MapType(10, t.StringType(), 11, t.LongType(), value_required=True)),
    )
    row = {
        "d": Decimal("-1.28"),
        "day": date(1969, 12, 31),
        "t": time(23, 59, 59, 999999),
        "ts": datetime(1969, 7, 20, 20, 17, 40, 1),
        "tz": datetime(2024, 2, 29, tzinfo=UTC),
        "m": [(117, b"\x00\xff"), (-3, b"")],
        "s": [("a", 1)],
    }
    data = write_file(schema, [pa.RecordBatch.from_pylist([row], schema=schema_to_arrow(schema))])
    (peer,) = fastavro.reader(io.BytesIO(data))
    assert peer["ts"].replace(tzinfo=None) == row["ts"]
    assert peer["tz"] == row["tz"]
    assert peer["m"] == [{"key": 117, "value": b"\x00\xff"}, {"key": -3, "value": b""}]
    assert peer["s"] == {"a": 1}
    assert [peer[name] for name in ("d", "day", "t")] == [row[name] for name in ("d", "day", "t")]
