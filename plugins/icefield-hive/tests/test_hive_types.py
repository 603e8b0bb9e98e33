"""Types that the metastore holds for Hive and Spark, as Arrow types."""

from __future__ import annotations

import json
from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield.errors import InvalidSchema, UnsupportedFeature
from icefield.schema import as_schema
from icefield_hive.arrow_types import of_hive, of_spark
from icefield_hive.columns import hive_type

_PRIMITIVES = st.sampled_from(
    [
        *(pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32()),
        *(pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.decimal128(9, 2), pa.decimal128(38, 38)),
    ]
)
_NAMES = st.lists(st.from_regex(r"[a-z_][a-z0-9_é-]{0,5}", fullmatch=True), min_size=1, max_size=3, unique=True)


def _nested(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    structs = _NAMES.flatmap(
        lambda names: st.tuples(*[inner] * len(names)).map(lambda t: list(zip(names, t, strict=True)))
    )
    return inner.map(pa.list_) | st.tuples(_PRIMITIVES, inner).map(lambda pair: pa.map_(*pair)) | structs.map(pa.struct)


TYPES = st.recursive(_PRIMITIVES, _nested, max_leaves=8)


@pytest.mark.counted
@given(TYPES)
def test_a_type_that_the_catalog_writes_is_read_back(kind: pa.DataType) -> None:
    written = as_schema(pa.schema([("c", kind)]))
    read = as_schema(pa.schema([("c", of_hive(hive_type(written.fields[0].field_type)))]))
    assert read == written


@pytest.mark.counted
@given(st.text("<>,:()`0123456789 abdeimnrstucy", max_size=30) | st.text(max_size=10))
def test_any_other_text_is_a_type_or_a_typed_error(text: str) -> None:
    with suppress(UnsupportedFeature, InvalidSchema):
        of_hive(text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("tinyint", pa.int32()),
        ("SMALLINT", pa.int32()),
        ("varchar(10)", pa.string()),
        ("char(3)", pa.string()),
        ("decimal", pa.decimal128(10, 0)),
        ("decimal(5)", pa.decimal128(5, 0)),
        ("decimal(9, 2)", pa.decimal128(9, 2)),
        ("timestamp with local time zone", pa.timestamp("us", "UTC")),
        ("struct<`a b`:int,c:array<varchar(3)>>", pa.struct([("a b", pa.int32()), ("c", pa.list_(pa.string()))])),
    ],
)
def test_types_of_hive_alone_are_read(text: str, kind: pa.DataType) -> None:
    assert of_hive(text) == kind


@pytest.mark.parametrize(
    "text", ["uniontype<int,string>", "void", "interval_day_time", "int(", "array<int", "map<int>"]
)
def test_types_that_iceberg_lacks_are_refused(text: str) -> None:
    with pytest.raises((UnsupportedFeature, InvalidSchema)):
        of_hive(text)


def test_a_schema_of_spark_is_read_with_its_comments() -> None:
    inner = {"type": "struct", "fields": [{"name": "X", "type": "short", "metadata": {}}]}
    fields = [
        {"name": "userId", "type": "long", "metadata": {"comment": "who"}},
        {"name": "ts", "type": "timestamp"},
        {"name": "n", "type": "timestamp_ntz"},
        {"name": "a", "type": {"type": "array", "elementType": inner}},
        {"name": "m", "type": {"type": "map", "keyType": "string", "valueType": "decimal(9,2)"}},
    ]
    read = of_spark(json.dumps({"type": "struct", "fields": fields}))
    assert read.types == [
        pa.int64(),
        pa.timestamp("us", "UTC"),
        pa.timestamp("us"),
        pa.list_(pa.struct([("X", pa.int32())])),
        pa.map_(pa.string(), pa.decimal128(9, 2)),
    ]
    assert read.field("userId").metadata == {b"doc": b"who"}
    for text in ("", "{}", "[]", '{"fields": [1]}', '{"fields": [{"name": "x", "type": {"type": "udt"}}]}'):
        with pytest.raises((InvalidSchema, UnsupportedFeature)):
            of_spark(text)
