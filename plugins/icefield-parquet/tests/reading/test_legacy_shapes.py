"""Lists and maps as older writers laid them out: the same rows by field id and, without ids, by name mapping."""

import re

import pyarrow as pa
import pytest
from icefield import MemoryFileSystem
from icefield.schema import Schema, create_name_mapping, parse_name_mapping
from icefield.types import ListType, MapType, NestedField, StructType, parse_type
from parquet_files import read_as, reader_of
from parquet_forge import forge
from tables import new_table
from vectors import VECTORS

INT, TEXT = parse_type("int"), parse_type("string")
STR_NUM = StructType(NestedField(3, "str", TEXT), NestedField(4, "num", INT))
STR = StructType(NestedField(3, "str", TEXT))
MAP = MapType(2, TEXT, 3, INT)

# What the column is in the table; the message; rows as they are stored and as they are read.
SHAPES = {
    "elements that are no group": (
        ListType(2, INT), "optional group v (LIST) = 1 { repeated int32 element = 2; }",
        [{"element": [1, 2]}, {"element": []}, None], [[1, 2], [], None]),
    "elements under any name": (
        ListType(2, INT), "optional group v (LIST) = 1 { repeated int32 bag = 2; }",
        [{"bag": [1]}, None], [[1], None]),
    "groups of several fields": (
        ListType(2, STR_NUM),
        "optional group v (LIST) = 1 { repeated group element = 2 { required binary str (UTF8) = 3; "
        "required int32 num = 4; } }",
        [{"element": [{"str": b"a", "num": 1}, {"str": b"b", "num": 2}]}, None],
        [[{"str": "a", "num": 1}, {"str": "b", "num": 2}], None]),
    "a group called array": (
        ListType(2, STR),
        "optional group v (LIST) = 1 { repeated group array = 2 { required binary str (UTF8) = 3; } }",
        [{"array": [{"str": b"a"}]}, None], [[{"str": "a"}], None]),
    "a group called after the list": (
        ListType(2, STR),
        "optional group v (LIST) = 1 { repeated group v_tuple = 2 { required binary str (UTF8) = 3; } }",
        [{"v_tuple": [{"str": b"a"}]}, {"v_tuple": []}], [[{"str": "a"}], []]),
    "a group between, under any names": (
        ListType(2, TEXT),
        "optional group v (LIST) = 1 { repeated group element { optional binary str (UTF8) = 2; } }",
        [{"element": [{"str": b"a"}, {"str": None}]}, None], [["a", None], None]),
    "a group called after another list": (
        ListType(2, TEXT),
        "optional group v (LIST) = 1 { repeated group w_tuple { required binary str (UTF8) = 2; } }",
        [{"w_tuple": [{"str": b"a"}]}], [["a"]]),
    "two levels in two levels": (
        ListType(2, ListType(3, INT)),
        "optional group v (LIST) = 1 { repeated group array (LIST) = 2 { repeated int32 array = 3; } }",
        [{"array": [{"array": [1, 2]}, {"array": []}]}, None], [[[1, 2], []], None]),
    "three levels of lists": (
        ListType(2, ListType(3, INT)),
        "optional group v (LIST) = 1 { repeated group list { required group element (LIST) = 2 { repeated group list "
        "{ required int32 element = 3; } } } }",
        [{"list": [{"element": {"list": [{"element": 1}]}}]}, None], [[[1]], None]),
    "numbers that repeat": (
        ListType(2, INT), "repeated int32 v = 1;", [[1, 2], []], [[1, 2], []]),
    "groups that repeat": (
        ListType(2, STR_NUM), "repeated group v = 1 { required int32 num = 4; optional binary str (UTF8) = 3; }",
        [[{"num": 1, "str": b"a"}, {"num": 2, "str": None}], []],
        [[{"str": "a", "num": 1}, {"str": None, "num": 2}], []]),
    "a map under any names": (
        MAP, "optional group v (MAP) = 1 { repeated group map { required binary str (UTF8) = 2; "
        "required int32 num = 3; } }",
        [{"map": [{"str": b"a", "num": 1}]}, {"map": []}, None], [[("a", 1)], [], None]),
    "a map that is called its pairs": (
        MAP, "optional group v (MAP_KEY_VALUE) = 1 { repeated group map { required binary key (UTF8) = 2; "
        "optional int32 value = 3; } }",
        [{"map": [{"key": b"a", "value": None}]}, None], [[("a", None)], None]),
    "pairs with an annotation of their own": (
        MAP, "optional group v (MAP) = 1 { repeated group key_value (MAP_KEY_VALUE) { "
        "required binary key (UTF8) = 2; optional int32 value = 3; } }",
        [{"key_value": [{"key": b"a", "value": 1}]}, None], [[("a", 1)], None]),
    "both annotations, outside and inside": (
        MAP, "optional group v (MAP_KEY_VALUE) = 1 { repeated group map (MAP_KEY_VALUE) { "
        "required binary key (UTF8) = 2; optional int32 value = 3; } }",
        [{"map": [{"key": b"a", "value": 1}]}, None], [[("a", 1)], None]),
    "a map of old maps": (
        MapType(2, TEXT, 3, MapType(4, TEXT, 5, INT)),
        "optional group v (MAP) = 1 { repeated group map { required binary k (UTF8) = 2; required group w "
        "(MAP_KEY_VALUE) = 3 { repeated group map { required binary k (UTF8) = 4; required int32 n = 5; } } } }",
        [{"map": [{"k": b"a", "w": {"map": [{"k": b"b", "n": 1}]}}]}], [[("a", [("b", 1)])]]),
    "keys alone": (
        MAP, "optional group v (MAP) = 1 { repeated group key_value { required binary key (UTF8) = 2; } }",
        [{"key_value": [{"key": b"a"}, {"key": b"b"}]}, None], [[("a", None), ("b", None)], None]),
    "a key twice": (
        MAP, "optional group v (MAP) = 1 { repeated group key_value { required binary key (UTF8) = 2; "
        "optional int32 value = 3; } }",
        [{"key_value": [{"key": b"a", "value": 1}, {"key": b"b", "value": 2}, {"key": b"a", "value": 3}]}],
        [[("b", 2), ("a", 3)]]),
    "values that repeat": (
        MapType(2, TEXT, 3, ListType(4, INT)),
        "optional group v (MAP) = 1 { repeated group map { required binary k (UTF8) = 2; repeated int32 value = 3; } }",
        [{"map": [{"k": b"a", "value": [1, 2]}, {"k": b"b", "value": []}]}], [[("a", [1, 2]), ("b", [])]]),
}  # fmt: skip
SPECS = pytest.mark.spec(
    "PARQ-17", "PLT-46", "PLT-49", "PLT-50", "PLT-51", "PLT-52", "PLT-53", "PLT-54", "PLT-56", "PLT-58", "PLT-59",
    "PLT-60", "PLT-61", "PLT-67",
)  # fmt: skip


def without_ids(message):
    return re.sub(r" = \d+", "", message)


def read_by_name(schema, data, mapping=None):
    return read_as(schema, data, mapping=mapping or create_name_mapping(schema))


@SPECS
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("ids", [True, False], ids=["ids", "names"])
def test_each_shape_gives_its_rows(name, ids):
    kind, message, stored, rows = SHAPES[name]
    schema = Schema(NestedField(9, "before", "int"), NestedField(1, "v", kind), NestedField(8, "after", "int"))
    message = f"required int32 before = 9; {message} required int32 after = 8;"
    data = forge(
        message if ids else without_ids(message),
        [{"before": number, "v": value, "after": -number} for number, value in enumerate(stored)],
    )
    table = read_as(schema, data) if ids else read_by_name(schema, data)
    assert table.to_pylist() == [{"before": at, "v": row, "after": -at} for at, row in enumerate(rows)]


@SPECS
@pytest.mark.parametrize("name", SHAPES)
def test_the_ids_of_each_shape_survive(name):
    message = SHAPES[name][1]
    with reader_of(forge(message, [])) as reader:
        (column,) = reader.schema
    found = {number for number in range(1, 10) if f"PARQUET:field_id: '{number}'" in column_text(column)}
    assert found == {int(number) for number in re.findall(r" = (\d+)", message)}


def column_text(field):
    """Every id in a field, however Arrow prints it."""
    metadata = field.metadata or {}
    own = "".join(f"{key.decode()}: '{value.decode()}'" for key, value in metadata.items())
    kind = field.type
    inner = [kind.key_field, kind.item_field] if pa.types.is_map(kind) else []
    inner += [kind.value_field] if pa.types.is_list(kind) else []
    inner += list(kind) if pa.types.is_struct(kind) else []
    return own + "".join(map(column_text, inner))


@SPECS
def test_a_field_inside_an_old_shape_is_renamed_pruned_and_added():
    message = without_ids(SHAPES["groups of several fields"][1])
    data = forge(message, [{"v": {"element": [{"str": b"a", "num": 1}]}}])
    kind = StructType(NestedField(4, "number", "long"), NestedField(7, "new", TEXT, initial_default="x"))
    schema = Schema(NestedField(1, "list", ListType(2, kind)))
    mapping = parse_name_mapping(
        '[{"field-id": 1, "names": ["v", "list"], "fields": [{"field-id": 2, "names": ["element"], "fields": '
        '[{"field-id": 3, "names": ["str"]}, {"field-id": 4, "names": ["number", "num"]}]}]}]'
    )
    assert read_by_name(schema, data, mapping).to_pylist() == [{"list": [{"number": 1, "new": "x"}]}]


@SPECS
@pytest.mark.parametrize("name", SHAPES)
def test_files_of_each_shape_are_added_to_a_table(name):
    kind, message, stored, rows = SHAPES[name]
    location = f"memory://legacy-shapes/{name.replace(' ', '-')}.parquet"
    data = forge(without_ids(message), [{"v": value} for value in stored])
    MemoryFileSystem.files[location] = (data, 0)
    table = new_table(schema=Schema(NestedField(1, "v", kind)))
    table.add_files([location])
    assert table.scan().to_arrow()["v"].to_pylist() == rows
    (task,) = table.scan().plan_files(include_stats=True)
    assert task.file.record_count == len(rows)


@pytest.mark.spec("PARQ-17", "PLT-60", "PLT-61", "PLT-58")
@pytest.mark.parametrize("vector", VECTORS["parquet_map_rules"], ids=lambda vector: vector["schema"][:50])
def test_each_layout_of_maps_has_the_nullability_and_types_that_the_rules_say(vector):
    with reader_of(forge(vector["schema"], [])) as reader:
        (held,) = reader.schema
    assert held.nullable is vector["map_nullable"]
    names = {"string": pa.string(), "int": pa.int32()}
    if vector["value"] is None:
        assert pa.types.is_list(held.type)
        assert held.type.value_type == names[vector["key"]]
        return
    assert (held.type.key_type, held.type.item_type) == (names[vector["key"]], names[vector["value"]])
    assert held.type.item_field.nullable is vector["value_nullable"]


def test_what_no_rule_allows_is_damage():
    from icefield.errors import InvalidFile

    for message in (
        "repeated group v (LIST) { repeated int32 array; }",
        "optional group v (LIST) { optional group list { required int32 element; } }",
        "optional group v (LIST) { repeated group list { required int32 element; } required int32 x; }",
        "repeated group v (MAP) { repeated group map { required int32 key; required int32 value; } }",
        "optional group v (MAP) { repeated group map { required int32 a; required int32 b; required int32 c; } }",
    ):
        with pytest.raises(InvalidFile, match="memory://parquet/file"):
            reader_of(forge(message, []))
