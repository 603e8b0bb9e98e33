"""Types on the way to Spark and back, and batches in exactly the form that Spark demands."""

from __future__ import annotations

from inspect import signature

import icefield
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield import Schema
from icefield.errors import InvalidArgument
from icefield.schema import schema_from_arrow
from icefield.toolkit import to_arrow_type
from icefield.types import ListType, MapType, NestedField, StructType, parse_type
from icefield_spark.arrow import SparkBatches, from_spark_batch, spark_arrow_schema
from icefield_spark.chunks import ChunkContext, plan_chunks
from icefield_spark.types import from_spark_schema, to_spark_schema
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import to_arrow_schema

BOTH_WAYS = {
    "boolean": spark.BooleanType(),
    "int": spark.IntegerType(),
    "long": spark.LongType(),
    "float": spark.FloatType(),
    "double": spark.DoubleType(),
    "decimal(38,7)": spark.DecimalType(38, 7),
    "date": spark.DateType(),
    "time": spark.TimeType(6),
    "timestamp": spark.TimestampNTZType(),
    "timestamptz": spark.TimestampType(),
    "string": spark.StringType(),
    "binary": spark.BinaryType(),
    "unknown": spark.NullType(),
    "variant": spark.VariantType(),
}
TO_SPARK_ONLY = {
    "uuid": spark.StringType(),
    "fixed[3]": spark.BinaryType(),
    "timestamp_ns": spark.LongType(),
    "timestamptz_ns": spark.LongType(),
    "geometry": spark.BinaryType(),
    "geography": spark.BinaryType(),
}
FROM_SPARK_ONLY = {
    spark.ByteType(): "int",
    spark.ShortType(): "int",
    spark.VarcharType(9): "string",
    spark.CharType(9): "string",
}


@pytest.mark.parametrize("kind", [*BOTH_WAYS, *TO_SPARK_ONLY])
def test_a_type_has_its_own_type_in_spark(kind: str) -> None:
    schema = Schema(NestedField(1, "c", parse_type(kind), doc="why"), NestedField(2, "r", parse_type("int"), True))
    found = to_spark_schema(schema)
    assert found["c"].dataType == {**BOTH_WAYS, **TO_SPARK_ONLY}[kind]
    assert found["c"].metadata == {"comment": "why"}
    assert [field.nullable for field in found.fields] == [True, False]


@pytest.mark.parametrize("kind", BOTH_WAYS)
def test_a_type_of_spark_becomes_the_type_that_reads_as_it(kind: str) -> None:
    field = spark.StructField("c", BOTH_WAYS[kind], False, {"comment": "why"})
    required = kind != "unknown"  # a void that is NOT NULL holds nulls all the same
    expected = NestedField(1, "c", parse_type(kind), required, "why")
    assert from_spark_schema(spark.StructType([field])).fields == (expected,)


def test_an_empty_array_of_spark_whose_elements_are_void_becomes_a_list_of_unknown() -> None:
    schema = spark.StructType([spark.StructField("c", spark.ArrayType(spark.NullType(), False))])
    assert from_spark_schema(schema).fields == (NestedField(1, "c", ListType(2, parse_type("unknown"))),)
    assert spark_arrow_schema(schema).field("c").type == pa.list_(pa.null())


@pytest.mark.parametrize("kind", FROM_SPARK_ONLY, ids=str)
def test_a_narrower_type_of_spark_becomes_the_next_wider(kind: spark.DataType) -> None:
    found = from_spark_schema(spark.StructType([spark.StructField("c", kind)]))
    assert str(found.fields[0].field_type) == FROM_SPARK_ONLY[kind]


@pytest.mark.parametrize("kind", [spark.DayTimeIntervalType(), spark.YearMonthIntervalType()], ids=str)
def test_a_type_that_iceberg_lacks_is_refused_with_the_column(kind: spark.DataType) -> None:
    with pytest.raises(InvalidArgument, match="column 'c'"):
        from_spark_schema(spark.StructType([spark.StructField("c", spark.ArrayType(kind))]))
    with pytest.raises(InvalidArgument, match="cast it first"):
        spark_arrow_schema(spark.StructType([spark.StructField("c", kind)]))


def test_nested_types_keep_names_nullability_and_levels_and_their_ids_are_given_level_by_level() -> None:
    inner = StructType(NestedField(6, "x", parse_type("int"), True), NestedField(7, "y", parse_type("date")))
    schema = Schema(
        NestedField(1, "a", ListType(3, parse_type("string"), True), True),
        NestedField(2, "m", MapType(4, parse_type("string"), 5, inner, True)),
    )
    assert from_spark_schema(to_spark_schema(schema)) == schema


def _kinds() -> st.SearchStrategy[spark.DataType]:
    real = [kind for kind in BOTH_WAYS.values() if not isinstance(kind, spark.NullType)]
    simple = st.sampled_from([*real, spark.ByteType(), spark.ShortType()])

    def nested(inner: st.SearchStrategy[spark.DataType]) -> st.SearchStrategy[spark.DataType]:
        fields = st.lists(st.tuples(inner, st.booleans()), min_size=1, max_size=3).map(
            lambda found: spark.StructType([spark.StructField(f"f{i}", *each) for i, each in enumerate(found)])
        )
        lists = st.builds(spark.ArrayType, inner, st.booleans())
        return fields | lists | st.builds(spark.MapType, st.just(spark.StringType()), inner, st.booleans())

    return st.recursive(simple, nested, max_leaves=6)


@given(st.lists(st.tuples(_kinds(), st.booleans()), min_size=1, max_size=3))
def test_the_arrow_schema_of_a_spark_schema_is_the_one_that_pyspark_checks_batches_against(
    found: list[tuple[spark.DataType, bool]],
) -> None:
    schema = spark.StructType([spark.StructField(f"c{i}", *each) for i, each in enumerate(found)])
    zone = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}  # from Spark 4.2 on
    assert spark_arrow_schema(schema).equals(to_arrow_schema(schema, **zone), check_metadata=True)


UUIDS = [b"\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff", None, bytes(16), b"\xff" * 16]
TEXTS = [
    "00112233-4455-6677-8899-aabbccddeeff",
    None,
    "00000000-0000-0000-0000-000000000000",
    "ffffffff-ffff-ffff-ffff-ffffffffffff",
]

NESTED = Schema(
    NestedField(1, "id", parse_type("uuid")),
    NestedField(2, "ids", ListType(3, parse_type("uuid"))),
    NestedField(
        4, "s", StructType(NestedField(5, "f", parse_type("fixed[2]")), NestedField(6, "t", parse_type("time")))
    ),
    NestedField(7, "m", MapType(8, parse_type("uuid"), 9, parse_type("timestamp_ns"))),
)


def _nested_rows() -> pa.RecordBatch:
    ids = pa.array(UUIDS, pa.binary(16))
    lists = pa.array([UUIDS, None, [], [UUIDS[0]]], pa.list_(pa.field("element", pa.binary(16))))
    fixed = pa.array([b"ab", b"zz", None, b"\x00\xff"], pa.binary(2))
    times = pa.array([1, 2, None, 86_399_999_999], pa.int64()).cast(pa.time64("us"))
    structs = pa.StructArray.from_arrays([fixed, times], names=["f", "t"], mask=pa.array([False, True, False, False]))
    keys = pa.array([UUIDS[0], UUIDS[2], UUIDS[3]], pa.binary(16))
    nanos = pa.array([1, None, -(2**63)], pa.int64()).cast(pa.timestamp("ns"))
    maps = pa.MapArray.from_arrays(pa.array([0, None, 1, 1, 3], pa.int32()), keys, nanos)
    return pa.RecordBatch.from_arrays([ids, lists, structs, maps], names=["id", "ids", "s", "m"])


@pytest.mark.spec("TYP-13", "TYP-14")
@pytest.mark.parametrize("start", [0, 1, 2, 4])
def test_what_spark_spells_otherwise_is_converted_at_any_depth_and_back(start: int) -> None:
    batch = _nested_rows().slice(start)
    batches = SparkBatches(NESTED, to_spark_schema(NESTED))
    made = batches.convert(batch)
    made.validate(full=True)
    assert made.schema == spark_arrow_schema(to_spark_schema(NESTED))
    assert made.column("id").to_pylist() == TEXTS[start:]
    assert made.column("ids").to_pylist() == [TEXTS, None, [], [TEXTS[0]]][start:]
    assert made.column("m").to_pylist() == [[(TEXTS[0], 1)], None, [], [(TEXTS[2], None), (TEXTS[3], -(2**63))]][start:]
    again = from_spark_batch(made, NESTED)
    assert again.column("id").equals(batch.column("id"))
    assert again.column("ids").to_pylist() == batch.column("ids").to_pylist()
    assert again.column("s").to_pylist() == batch.column("s").to_pylist()
    assert (
        again.column("m").cast(pa.map_(pa.binary(16), pa.int64())).to_pylist()
        == [
            [(UUIDS[0], 1)],
            None,
            [],
            [(UUIDS[2], None), (UUIDS[3], -(2**63))],
        ][start:]
    )


@pytest.mark.parametrize("kind", ["uuid", "fixed[3]", "time", "timestamp_ns", "timestamptz_ns", "timestamptz"])
@pytest.mark.parametrize("values", [[], [None], [None, None]], ids=len)
def test_a_column_without_a_value_is_converted_like_any_other(kind: str, values: list[None]) -> None:
    schema = Schema(NestedField(1, "c", parse_type(kind)))
    batches = SparkBatches(schema, to_spark_schema(schema))
    column = pa.array(values, to_arrow_type(parse_type(kind)))
    made = batches.convert(pa.RecordBatch.from_arrays([column], names=["c"]))
    assert made.schema == batches.schema
    assert from_spark_batch(made, schema).column("c").equals(column)


def test_columns_come_in_the_order_and_with_the_nullability_that_spark_expects() -> None:
    schema = Schema(NestedField(1, "a", parse_type("int"), True), NestedField(2, "b", parse_type("string")))
    target = spark.StructType([spark.StructField("b", spark.StringType()), spark.StructField("a", spark.IntegerType())])
    batch = pa.RecordBatch.from_pydict({"a": pa.array([1], pa.int32()), "b": ["x"]})
    made = SparkBatches(schema, target).convert(batch)
    assert made.schema == pa.schema([("b", pa.string()), ("a", pa.int32())])
    assert made.to_pylist() == [{"b": "x", "a": 1}]


@pytest.mark.spec("TYP-23")
def test_a_variant_is_turned_round_as_spark_has_it() -> None:
    schema = Schema(NestedField(1, "v", parse_type("variant")))
    variant = pa.StructArray.from_arrays(
        [pa.array([b"m", b""]), pa.array([b"v", b""])],
        fields=[pa.field("metadata", pa.binary(), nullable=False), pa.field("value", pa.binary(), nullable=False)],
        mask=pa.array([False, True]),
    )
    made = SparkBatches(schema, to_spark_schema(schema)).convert(pa.RecordBatch.from_arrays([variant], names=["v"]))
    assert made.schema.field("v").type.field("metadata").metadata == {b"variant": b"true"}
    assert made.column("v").to_pylist() == [{"value": b"v", "metadata": b"m"}, None]


@pytest.mark.spec("TYP-13", "TYP-14")
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("uuid", pa.array(["00112233-4455-6677-8899-aabbccddeef"])),
        ("uuid", pa.array(["g0112233-4455-6677-8899-aabbccddeeff"])),
        ("fixed[3]", pa.array([b"ab"])),
        ("time", pa.array([1], pa.time64("ns"))),
    ],
)
def test_a_value_of_spark_that_the_column_cannot_hold_is_refused_with_its_name(kind: str, value: pa.Array) -> None:
    schema = Schema(NestedField(1, "c", parse_type(kind)))
    with pytest.raises(InvalidArgument, match="column 'c' cannot be written"):
        from_spark_batch(pa.RecordBatch.from_arrays([value], names=["c"]), schema)


def test_a_column_that_the_table_does_not_know_passes_so_that_the_writer_can_refuse_it_by_name() -> None:
    schema = schema_from_arrow(pa.schema([("a", pa.int32())]))
    batch = pa.RecordBatch.from_pydict({"b": ["x"]})
    assert from_spark_batch(batch, schema).equals(batch)


def test_rows_go_to_spark_in_their_order_and_in_batches_of_few(catalog: icefield.Catalog) -> None:
    rows = pa.table({"id": range(20_000), "at": [[n] if n % 3 else None for n in range(20_000)]})
    table = catalog.create_table("db.many", rows.schema)
    table.append(rows)
    scan = table.scan()
    context = ChunkContext.of(scan, to_spark_schema(scan.projection))
    batches = [batch for chunk in plan_chunks(scan) for batch in context.read(chunk)]
    assert max(batch.num_rows for batch in batches) <= 10_000, "as many as PySpark itself puts into one"
    assert len(batches) == 3
    assert pa.Table.from_batches(batches).to_pydict() == rows.to_pydict()
