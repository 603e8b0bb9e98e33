import json
import pickle

import pyarrow as pa
import pytest
from bounded import bounded
from format_strategies import schemas
from hypothesis import given
from icefield.errors import InvalidSchema
from icefield.schema import (
    MappedField,
    NameMapping,
    Schema,
    create_name_mapping,
    parse_name_mapping,
    schema_from_arrow,
    schema_to_arrow,
)
from icefield.schema.name_mapping import carries_ids, update_name_mapping
from icefield.types import MAX_NESTING_DEPTH, ListType, MapType, NestedField, StructType
from icefield.types.arrow.types import child_fields, field_id, with_field_id
from pyiceberg.table.name_mapping import parse_mapping_from_json
from vectors import VECTORS

VECTOR = VECTORS["name_mapping_json"]


@pytest.mark.spec("PRJ-07", "JSON-22", "PRJ-21")
def test_a_mapping_reads_and_writes_as_the_vector_has_it():
    text = json.dumps(VECTOR["json"])
    mapping = parse_name_mapping(text)
    assert mapping.to_json() == VECTOR["json"]
    assert parse_name_mapping(mapping.to_string()) == mapping
    assert parse_name_mapping(VECTOR["json"]) == mapping
    assert hash(mapping) == hash(parse_name_mapping(text))
    assert pickle.loads(pickle.dumps(mapping)) == mapping


@pytest.mark.spec("PRJ-07", "PRJ-08", "PRJ-09", "PRJ-10")
@pytest.mark.parametrize("lookup", VECTOR["lookups"], ids=lambda lookup: ".".join(lookup["path"]))
def test_names_lead_to_the_ids_of_the_vector(lookup):
    found = parse_name_mapping(VECTOR["json"]).find(*lookup["path"])
    assert (found.field_id if found else None) == lookup["id"]


def no_ids(schema):
    """An Arrow schema as a file without ids has it."""

    def strip(field):
        return pa.field(field.name, strip_type(field.type), field.nullable)

    def strip_type(arrow):
        if pa.types.is_struct(arrow):
            return pa.struct(list(map(strip, child_fields(arrow))))
        if pa.types.is_map(arrow):
            return pa.map_(*map(strip, child_fields(arrow)))
        if pa.types.is_list(arrow):
            return pa.list_(strip(arrow.value_field))
        return arrow

    return pa.schema(list(map(strip, schema)))


def ids_of(field):
    yield field_id(field)
    for child in child_fields(field.type):
        yield from ids_of(child)


@pytest.mark.spec("PRJ-07", "PRJ-09")
@given(schemas())
def test_a_schemas_own_mapping_gives_a_file_without_ids_all_of_them_back(schema):
    mapping = create_name_mapping(schema)
    applied = mapping.apply(no_ids(schema_to_arrow(schema)))
    ids = [id_ for field in applied for id_ in ids_of(field)]
    assert ids == list(schema.id_to_field)
    assert parse_name_mapping(mapping.to_string()) == mapping
    for id_ in schema.field_ids:
        assert mapping.find(*schema.name_path(id_)).field_id == id_
        assert mapping.find(*schema.name_path(id_)).field_id == id_


@pytest.mark.spec("JSON-22", "PRJ-07")
@given(schemas())
def test_another_implementation_reads_the_same_mapping(schema):
    peer = parse_mapping_from_json(create_name_mapping(schema).to_string())
    assert parse_name_mapping(peer.model_dump_json()) == create_name_mapping(schema)


def table(*columns):
    return pa.schema([pa.field(name, kind) for name, kind in columns])


def mapped(mapping, *columns):
    return [field_id(field) for field in parse_name_mapping(mapping).apply(table(*columns))]


@pytest.mark.spec("PRJ-08")
def test_a_name_with_a_dot_is_that_name():
    mapping = [{"field-id": 1, "names": ["a.b"]}]
    file = parse_name_mapping(mapping).apply(table(("a", pa.struct([("b", pa.int32())])), ("a.b", pa.int32())))
    assert [list(ids_of(field)) for field in file] == [[None, None], [1]]


@pytest.mark.spec("PRJ-09")
def test_elements_keys_and_values_have_mappings_whatever_the_file_calls_them():
    mapping = parse_name_mapping(
        [
            {"field-id": 1, "names": ["l"], "fields": [{"field-id": 2, "names": ["element"]}]},
            {
                "field-id": 3,
                "names": ["m"],
                "fields": [
                    {"field-id": 4, "names": ["key"]},
                    {"field-id": 5, "names": ["value"], "fields": [{"field-id": 6, "names": ["x"]}]},
                ],
            },
        ]
    )
    value = pa.field("val", pa.struct([("x", pa.int32()), ("y", pa.int32())]))
    for make in (pa.list_, pa.large_list, pa.list_view, pa.large_list_view, lambda item: pa.list_(item, 3)):
        file = table(
            ("l", make(pa.field("item", pa.int32()))), ("m", pa.map_(pa.field("k", pa.string(), False), value))
        )
        applied = mapping.apply(file)
        assert [list(ids_of(field)) for field in applied] == [[1, 2], [3, 4, 5, 6, None]]
        assert applied.equals(file)
        assert applied.field("l").type.value_field.name == "item"


@pytest.mark.spec("PRJ-10")
def test_several_names_lead_to_one_id():
    mapping = [{"field-id": 1, "names": ["id", "record_id"]}]
    assert mapped(mapping, ("id", pa.int32())) == [1]
    assert mapped(mapping, ("record_id", pa.int32())) == [1]


def test_one_id_goes_to_one_column_of_a_file_that_with_the_earliest_name():
    mapping = [{"field-id": 1, "names": ["id", "record_id"]}]
    assert mapped(mapping, ("record_id", pa.int32()), ("id", pa.int32())) == [None, 1]
    assert mapped(mapping, ("id", pa.int32()), ("id", pa.int64())) == [1, None]


@pytest.mark.spec("PRJ-11")
def test_names_may_be_empty_and_ids_absent():
    mapping = [
        {"field-id": 1, "names": []},
        {"names": ["only_in_files"], "fields": [{"field-id": 2, "names": ["x"]}]},
        {"field-id": 3, "names": ["b"]},
    ]
    assert parse_name_mapping(mapping).to_json() == mapping
    file = parse_name_mapping(mapping).apply(table(("only_in_files", pa.struct([("x", pa.int32())])), ("b", pa.int8())))
    assert [list(ids_of(field)) for field in file] == [[None, 2], [3]]


@pytest.mark.spec("PRJ-12")
def test_a_file_with_ids_is_never_mapped_by_name():
    mapping = parse_name_mapping([{"field-id": 1, "names": ["a"]}, {"field-id": 2, "names": ["b"]}])
    misleading = pa.schema([with_field_id(pa.field("a", pa.int32()), 2), pa.field("b", pa.int32())])
    assert mapping.apply(misleading) is misleading
    nested = pa.schema([pa.field("a", pa.struct([with_field_id(pa.field("x", pa.int32()), 9)]))])
    assert mapping.apply(nested) is nested


@pytest.mark.spec("PRJ-09", "PRJ-13")
def test_what_is_not_mapped_gets_no_id():
    mapping = [{"field-id": 1, "names": ["s"]}]
    file = parse_name_mapping(mapping).apply(table(("s", pa.struct([("s", pa.int32())])), ("t", pa.int32())))
    assert [list(ids_of(field)) for field in file] == [[1, None], [None]]


@pytest.mark.spec("PRJ-21")
def test_unknown_keys_fall_away_and_names_keep_their_order():
    mapping = parse_name_mapping('[{"names": ["b", "a", "b"], "field-id": 1, "more": 1, "fields": []}]')
    assert mapping.to_json() == [{"field-id": 1, "names": ["b", "a"]}]
    assert "ü" in parse_name_mapping([{"names": ["ü"]}]).to_string()


@pytest.mark.parametrize(
    "wrong",
    [
        "", "{", "{}", "null", "5", '["a"]', '[{"field-id": 1}]', '[{"names": "a"}]', '[{"names": [1]}]',
        '[{"names": ["a"], "field-id": "1"}]', '[{"names": ["a"], "field-id": true}]',
        '[{"names": ["a"], "field-id": -1}]', '[{"names": ["a"], "field-id": 1.0}]',
        '[{"names": ["a"], "fields": {}}]', '[{"names": ["a"]}, {"names": ["b", "a"]}]',
        '[{"names": ["a"], "field-id": 1}, {"names": ["b"], "fields": [{"names": ["c"], "field-id": 1}]}]',
        "[" * 100_000, '[{"names":["a"],"fields":' * 101 + "[]" + "}]" * 101,
        '[{"names":["a"],"fields":' * 5000 + "[]" + "}]" * 5000, "[" + "1" * 5000 + "]",
    ],
    ids=lambda text: text[:40],
)  # fmt: skip
def test_a_wrong_mapping_is_one_typed_error(wrong):
    with pytest.raises(InvalidSchema, match="name mapping") as caught:
        parse_name_mapping(wrong)
    assert len(str(caught.value)) < 1000


def column(id_, name, kind="int"):
    return NestedField(id_, name, kind)


@pytest.mark.spec("SCH-29", "PRJ-10")
def test_a_renamed_column_keeps_its_old_name_next_to_the_new():
    before = Schema(column(1, "a"), column(2, "s", StructType(column(3, "x"))))
    after = Schema(column(1, "b"), column(2, "s", StructType(column(3, "y"))))
    updated = update_name_mapping(create_name_mapping(before), after)
    assert updated.find("a").names == ("a", "b")
    assert updated.find("s", "x").names == ("x", "y")
    assert update_name_mapping(updated, after) == updated
    assert update_name_mapping(updated, before) == updated


@pytest.mark.spec("SCH-29")
def test_a_new_column_is_mapped_with_all_that_is_in_it():
    updated = update_name_mapping(
        create_name_mapping(Schema(column(1, "a"))),
        Schema(column(1, "a"), column(2, "m", MapType(3, "int", 4, ListType(5, StructType(column(6, "x")))))),
    )
    assert updated.find("m", "value", "element", "x").field_id == 6
    inner = update_name_mapping(
        create_name_mapping(Schema(column(1, "s", StructType(column(2, "x"))))),
        Schema(column(1, "s", StructType(column(2, "x"), column(3, "y")))),
    )
    assert inner.find("s", "y").field_id == 3


@pytest.mark.spec("SCH-29", "SCH-07")
def test_old_files_of_a_dropped_column_never_pass_for_a_new_one_of_its_name():
    mapping = create_name_mapping(Schema(column(1, "a"), column(2, "b")))
    dropped = update_name_mapping(mapping, Schema(column(1, "a")))
    assert dropped.find("b").field_id == 2
    again = update_name_mapping(dropped, Schema(column(1, "a"), column(3, "b")))
    assert again.find("b").field_id == 2
    assert (again.fields[-1].field_id, again.fields[-1].names) == (3, ())


@pytest.mark.spec("SCH-29")
def test_columns_that_swap_their_names_keep_reading_their_own_values():
    mapping = create_name_mapping(Schema(column(1, "a"), column(2, "b")))
    swapped = update_name_mapping(mapping, Schema(column(1, "b"), column(2, "a")))
    assert (swapped.find("a").field_id, swapped.find("b").field_id) == (1, 2)


def test_parts_of_a_mapping_can_be_looked_at():
    mapping = NameMapping([MappedField(("a",), 1, (MappedField(("x",), 2),)), MappedField(("b",))])
    assert [field.names for field in mapping.fields] == [("a",), ("b",)]
    assert mapping.find() is None
    assert mapping.find("a", "x", "y") is None
    assert "MappedField" in repr(mapping)
    assert mapping != NameMapping()
    assert mapping != 5


def test_a_mapped_file_reads_under_its_tables_schema():
    schema = Schema(column(4, "a"), column(7, "b", ListType(9, "string")))
    file = no_ids(schema_to_arrow(schema))
    assert schema_from_arrow(create_name_mapping(schema).apply(file)) == schema


def test_a_file_nested_beyond_the_limit_is_one_typed_error():
    arrow = pa.int32()
    for _ in range(1500):
        arrow = pa.list_(arrow)
    with pytest.raises(InvalidSchema, match="100 levels"):
        NameMapping([MappedField(("a",), 1)]).apply(table(("a", arrow)))


@pytest.mark.parametrize(
    ("mapping", "said"),
    [
        (json.dumps([{"names": ["a" * 65_537], "field-id": 1}]), "65,536 characters"),
        ("[" + '{"names":["a"]},' * 1_100_000, "16,777,216 are the most"),
        ("[" * 100_000, "not JSON"),
    ],
    ids=["a long name", "a long mapping", "a deep mapping"],
)
def test_a_mapping_that_is_very_long_or_deep_is_refused_soon(mapping, said):
    with bounded(seconds=1, megabytes=64), pytest.raises(InvalidSchema, match=said):
        parse_name_mapping(mapping)


def test_an_id_of_a_mapping_has_31_bits():
    for id_, is_right in ((0, True), (2**31 - 1, True), (2**31, False), (-1, False), (True, False)):
        text = json.dumps([{"field-id": id_, "names": ["a"]}])
        if is_right:
            assert parse_name_mapping(text).fields[0].field_id == id_
        else:
            with pytest.raises(InvalidSchema, match="'field-id' is no id"):
                parse_name_mapping(text)


def test_a_mapping_may_be_nested_as_deep_as_a_schema():
    def nested(levels):
        field = {"field-id": levels, "names": ["x"]}
        for id_ in reversed(range(levels)):
            field = {"field-id": id_, "names": ["x"], "fields": [field]}
        return [field]

    parse_name_mapping(nested(MAX_NESTING_DEPTH))
    with pytest.raises(InvalidSchema, match="nested deeper than 100 levels"):
        parse_name_mapping(nested(MAX_NESTING_DEPTH + 1))


def test_ids_are_looked_for_down_to_the_deepest_level_that_a_schema_may_have():
    kind = pa.int64()
    for _ in range(MAX_NESTING_DEPTH):
        kind = pa.struct([("x", kind)])
    assert not carries_ids([pa.field("x", kind)])
    with pytest.raises(InvalidSchema, match="nested deeper"):
        carries_ids([pa.field("x", pa.struct([("x", kind)]))])
