"""Schemas united with others by name."""

import itertools

import pyarrow as pa
import pytest
from evolving_schemas import POINT, example, update
from format_strategies import schemas
from hypothesis import given
from icefield.errors import InvalidSchema
from icefield.schema import Schema, assign_fresh_ids, schema_to_arrow
from icefield.schema.evolution import SchemaUpdate
from icefield.types import (
    ListType,
    LongType,
    MapType,
    NestedField,
    StructType,
    parse_type,
)


@pytest.mark.spec("SCH-03", "SCH-22")
def test_union_by_name_adds_widens_and_loosens():
    other = Schema(
        NestedField(1, "new", "string", required=True),
        NestedField(2, "id", "int", doc="doc"),
        NestedField(3, "place", StructType(NestedField(4, "lat", "double"), NestedField(5, "alt", "int"))),
        NestedField(6, "points", ListType(7, StructType(NestedField(8, "x", "long"), NestedField(9, "z", "int")))),
        NestedField(10, "tags", MapType(11, "string", 12, StructType(NestedField(13, "until", "date")))),
    )
    changed = update(Schema(*example().fields)).union_by_name(other)
    result = changed.result()
    assert result.find_type("id") == LongType()
    assert result.find_field("id").optional
    assert result.find_field("id").doc == "doc"
    assert result.find_field("new").optional
    assert {str(result.find_type(name)) for name in ("place.lat", "points.x")} == {"double", "long"}
    new = {"place.alt", "points.element.z", "tags.value.until", "new"}
    assert {result.find_column_name(id_) for id_ in result.field_ids - example().field_ids} == new
    assert changed.last_column_id == 16
    assert [field.name for field in result.fields] == ["id", "place", "points", "tags", "new"]


def test_union_by_name_takes_arrow_and_minds_case_only_when_stated_to():
    other = pa.schema([("ID", pa.int64()), ("extra", pa.list_(pa.struct([("a", pa.string())])))])
    assert update().union_by_name(other).result().field_ids == {*example().field_ids, *range(13, 17)}
    folded = update(Schema(*example().fields), case_sensitive=False).union_by_name(other).result()
    assert folded.field_ids == {*example().field_ids, *range(13, 16)}


@pytest.mark.spec("SCH-13", "SCH-17", "SCH-23")
@pytest.mark.parametrize(
    "other",
    [
        NestedField(1, "id", "string"), NestedField(1, "place", "int"), NestedField(1, "id", POINT),
        NestedField(1, "points", ListType(2, "int")), NestedField(1, "points", POINT),
        NestedField(1, "tags", MapType(2, "int", 3, StructType())), NestedField(1, "place", ListType(2, "int")),
    ],
    ids=str,
)  # fmt: skip
def test_union_by_name_refuses_what_is_no_promotion(other):
    with pytest.raises(InvalidSchema, match="cannot change"):
        update().union_by_name(Schema(other))


@pytest.mark.spec("DEF-04", "DEF-05")
def test_union_by_name_brings_defaults_where_the_version_has_them():
    other = Schema(NestedField(1, "new", "int", True, None, None, 5), NestedField(2, "more", "int", write_default=6))
    added = update(format_version=3).union_by_name(other).result()
    assert added.find_field("new") == NestedField(13, "new", "int", True, None, 5, 5)
    assert added.find_field("more").initial_default == 6
    plain = update(format_version=2).union_by_name(other).result().find_field("new")
    assert (plain.optional, plain.has_default) == (True, False)


@pytest.mark.slow
@given(schemas())
def test_union_with_itself_changes_nothing_and_with_nothing_gives_the_other(schema):
    assert update(schema).union_by_name(schema).result() is schema
    assert update(schema).union_by_name(schema_to_arrow(schema)).result() is schema
    grown = SchemaUpdate(Schema(), last_column_id=0, format_version=3).union_by_name(schema).result()
    optional = Schema(
        *(NestedField(f.field_id, f.name, f.field_type, False, f.doc) for f in schema.fields), schema_id=0
    )
    counted = itertools.count(1).__next__
    expected = [assign_fresh_ids(Schema(field), counted)[0].fields[0] for field in optional.fields]
    assert grown == Schema(*expected)


@pytest.mark.parametrize(("kind", "given", "value"), [("int", "int", 7), ("long", "int", 7), ("double", "float", 1.5)])
def test_union_by_name_takes_a_new_write_default_and_leaves_the_initial_one(kind, given, value):
    own = Schema(NestedField(1, "a", kind, initial_default=1, write_default=1))
    other = Schema(NestedField(9, "a", given, write_default=value))
    field = SchemaUpdate(own, last_column_id=1, format_version=3).union_by_name(other).result().find_field("a")
    assert (field.field_type, field.initial_default, field.write_default) == (parse_type(kind), 1, value)
    assert type(field.write_default) is type(value)


def test_union_by_name_keeps_a_write_default_that_the_other_schema_lacks():
    inner = StructType(NestedField(2, "b", "int", initial_default=1, write_default=2))
    own = Schema(NestedField(1, "s", inner))
    other = Schema(NestedField(1, "s", StructType(NestedField(2, "b", "int"))))
    assert SchemaUpdate(own, last_column_id=2, format_version=3).union_by_name(other).result() == own
    changed = Schema(NestedField(1, "s", StructType(NestedField(2, "b", "int", write_default=3))))
    united = SchemaUpdate(own, last_column_id=2, format_version=3).union_by_name(changed).result()
    assert united.find_field("s.b").write_default == 3
    assert united.find_field("s.b").initial_default == 1


@pytest.mark.parametrize(
    ("key", "other"),
    [("decimal(9,2)", "decimal(10,2)"), ("int", "long"), (POINT, StructType(*POINT.fields[:1]))],
    ids=["decimal", "integer", "struct"],
)
def test_union_by_name_never_changes_the_keys_of_a_map(key, other):
    def holding(kind):
        kind = parse_type(kind) if isinstance(kind, str) else kind
        return assign_fresh_ids(Schema(NestedField(1, "m", MapType(2, kind, 3, "string"))))[0]

    assert update(holding(key)).union_by_name(holding(key)).result() == holding(key)
    with pytest.raises(InvalidSchema, match=r"'m'.*keys never change"):
        update(holding(key)).union_by_name(holding(other)).result()
