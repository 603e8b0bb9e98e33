import json

import pytest
from format_strategies import primitives, same, schemas, types, values
from hypothesis import example, given
from hypothesis import strategies as st
from icefield.base.limits import MAX_NAME_LENGTH
from icefield.errors import InvalidSchema, UnsupportedFeature
from icefield.schema import Schema, schema_from_json, schema_to_json
from icefield.schema.json import type_from_json, type_to_json
from icefield.types import DecimalType, ListType, MapType, NestedField, StructType
from outcomes import counted_outcomes
from pyiceberg.schema import Schema as PeerSchema
from vectors import VECTORS


def through_text(obj):
    return json.loads(json.dumps(obj, ensure_ascii=False).encode().decode())


@pytest.mark.spec("JSON-06", "JSON-07", "JSON-08", "JSON-09", "JSON-10", "JSON-13", "DEF-13", "IDF-01")
@pytest.mark.parametrize("case", VECTORS["schema_json"], ids=lambda case: case["req"])
def test_a_schema_reads_and_writes_as_the_vector_has_it(case):
    assert schema_to_json(schema_from_json(case["json"])) == case["json"]


@pytest.mark.spec("JSON-01", "JSON-02", "JSON-03", "JSON-04")
@pytest.mark.parametrize("case", VECTORS["type_json"]["valid"], ids=lambda case: case["json"])
def test_a_types_json_is_its_string(case):
    assert type_from_json(type_to_json(type_from_json(case["json"]))) == type_from_json(case["json"])
    assert isinstance(type_to_json(type_from_json(case["json"])), str)


@pytest.mark.spec("JSON-03")
def test_a_decimal_is_written_without_blank():
    assert type_to_json(DecimalType(9, 2)) == "decimal(9,2)"


@pytest.mark.spec("JSON-25", "JSON-06", "JSON-07", "JSON-08", "JSON-09", "JSON-26", "TYP-17", "TYP-18", "SCH-02")
@given(schemas(), st.integers(0, 100))
def test_every_schema_survives_its_json_string(schema, schema_id):
    schema = schema.with_schema_id(schema_id)
    back = schema_from_json(through_text(schema_to_json(schema)))
    assert back == schema
    assert back.schema_id == schema_id


@given(types())
def test_every_type_survives_its_json_string(kind):
    assert type_from_json(through_text(type_to_json(kind))) == kind


@pytest.mark.spec("JSON-26")
@given(schemas())
def test_another_implementation_reads_and_writes_the_same_schema(schema):
    peer = PeerSchema.model_validate(through_text(schema_to_json(schema)))
    assert [field.field_id for field in peer.fields] == [field.field_id for field in schema.fields]
    assert {id_: peer.find_column_name(id_) for id_ in schema.field_ids} == {
        id_: schema.find_column_name(id_) for id_ in schema.field_ids
    }
    assert schema_from_json(json.loads(peer.model_dump_json())) == schema


@pytest.mark.spec("JSON-13", "DEF-01", "DEF-13", "TYP-20")
@given(st.data())
def test_defaults_of_every_type_survive_json_string(data):
    kind = data.draw(st.one_of(primitives(), types()).filter(lambda kind: not isinstance(kind, StructType)))
    initial, write = (data.draw(st.none() | values(kind, finite=True)) for _ in range(2))
    schema = Schema(NestedField(10**6, "a", kind, initial_default=initial, write_default=write))
    (back,) = schema_from_json(through_text(schema_to_json(schema))).fields
    assert same(back.initial_default, initial)
    assert same(back.write_default, write)


def column(**keys):
    return {"type": "struct", "fields": [{"id": 1, "name": "a", "required": False, "type": "int", **keys}]}


@pytest.mark.spec("DEF-06", "DEF-12")
def test_absent_defaults_are_null_and_those_in_older_tables_are_read():
    (plain,) = schema_from_json(column()).fields
    assert (plain.initial_default, plain.write_default) == (None, None)
    assert "initial-default" not in schema_to_json(schema_from_json(column()))["fields"][0]
    (null,) = schema_from_json(column(**{"initial-default": None, "write-default": 5})).fields
    assert (null.initial_default, null.write_default) == (None, 5)


@pytest.mark.spec("DEF-09", "DEF-08")
def test_a_structs_default_is_empty_or_in_the_old_form_goes_before_its_fields_own():
    point = {
        "type": "struct",
        "fields": [
            {"id": 2, "name": "x", "required": True, "type": "int", "initial-default": 7, "write-default": 8},
            {"id": 3, "name": "y", "required": False, "type": "int"},
        ],
    }
    (empty,) = schema_from_json(column(type=point, **{"initial-default": {}})).fields
    assert empty.initial_default == ()
    assert schema_to_json(Schema(empty))["fields"][0]["initial-default"] == {}
    (old,) = schema_from_json(column(type=point, **{"initial-default": {"3": 1}, "write-default": {"2": 5}})).fields
    assert old.initial_default == (7, 1)
    assert old.write_default == (5, None)
    assert schema_from_json(through_text(schema_to_json(Schema(old)))).fields == (old,)


@pytest.mark.spec("DEF-14", "SCH-14")
def test_a_default_written_before_a_promotion_is_read_as_promoted():
    (date,) = schema_from_json(column(type="timestamp", **{"initial-default": "1970-01-02"})).fields
    assert date.initial_default == 86_400_000_000
    (nano,) = schema_from_json(column(type="timestamp_ns", **{"write-default": "1970-01-02"})).fields
    assert nano.write_default == 86_400_000_000_000
    (wide,) = schema_from_json(column(type="long", **{"initial-default": 34})).fields
    assert wide.initial_default == 34
    with pytest.raises(InvalidSchema, match="initial-default"):
        schema_from_json(column(type="timestamptz", **{"initial-default": "1970-01-02"}))


@pytest.mark.spec("DEF-16")
def test_defaults_of_elements_keys_and_values_are_ignored():
    listed = {"type": "list", "element-id": 2, "element-required": False, "element": "int", "initial-default": 5}
    mapped = {
        "type": "map", "key-id": 3, "key": "int", "value-id": 4, "value-required": False, "value": listed,
        "write-default": 5,
    }  # fmt: skip
    kind = type_from_json(mapped)
    assert kind == MapType(3, "int", 4, ListType(2, "int"))
    assert not kind.value.has_default
    assert "default" not in json.dumps(type_to_json(kind))


@pytest.mark.spec("DEF-11")
@pytest.mark.parametrize("kind", ["unknown", "variant", "geometry", "geography"])
def test_types_without_defaults_refuse_one_in_json(kind):
    with pytest.raises(InvalidSchema):
        schema_from_json(column(type=kind, **{"initial-default": "POINT (1 2)"}))


@pytest.mark.spec("JSON-10")
def test_the_schema_id_of_version_1_is_0_and_an_empty_identifier_is_left_out():
    schema = schema_from_json(column())
    assert schema.schema_id == 0
    assert "identifier-field-ids" not in schema_to_json(schema)
    assert schema_from_json({**column(), "identifier-field-ids": None}) == schema
    assert schema_from_json({"fields": []}) == Schema()


@pytest.mark.spec("JSON-09", "JSON-25")
def test_docs_are_left_out_when_absent_and_survive_in_any_script():
    schema = schema_from_json(column(doc="Größe 漢字 💰", name="größe.漢"))
    assert schema.fields[0].doc == "Größe 漢字 💰"
    assert through_text(schema_to_json(schema)) == schema_to_json(schema)
    assert "doc" not in schema_to_json(schema_from_json(column()))["fields"][0]
    assert schema_to_json(schema_from_json(column(doc="")))["fields"][0]["doc"] == ""


LIST = {"type": "list", "element-id": 2, "element-required": False, "element": "int"}
MAP = {"type": "map", "key-id": 3, "key": "int", "value-id": 4, "value-required": False, "value": "int"}


@pytest.mark.parametrize(
    ("obj", "place"),
    [
        (None, "schema"), ([], "schema"), ("struct", "schema"), ({}, "fields"), ({"fields": {}}, "fields"),
        ({"type": "list", "fields": []}, "struct"), ({"fields": [1]}, r"fields\[0\]"),
        (column(id="1"), "schema.a: 'id'"), (column(id=True), "'id'"), (column(id=1.0), "'id'"),
        (column(id=-1), "field id"), (column(id=2**31), "field id"), (column(name=None), "'name' is missing"),
        (column(name=5), "'name'"), (column(required="false"), "'required'"), (column(required=None), "'required'"),
        (column(doc=5), "'doc'"), (column(type=None), "schema.a"), (column(type=5), "schema.a"),
        (column(type="decimal(39,2)"), "schema.a: type 'decimal"), (column(type="x" * 2000), "schema.a"),
        (column(type="unknown", required=True), "schema.a"), ({**column(), "schema-id": "0"}, "'schema-id'"),
        ({**column(), "identifier-field-ids": [True]}, "identifier-field-ids is not a list of integers"),
        ({**column(), "identifier-field-ids": "1"}, "identifier-field-ids is not a list of integers"),
        ({**column(), "identifier-field-ids": [1]}, "schema: identifier"),
        ({**column(), "identifier-field-ids": [9]}, "schema: identifier"),
        (column(**{"initial-default": "x"}), "schema.a.initial-default"),
        (column(**{"write-default": 2**31}), "schema.a.write-default"),
        (column(type={**LIST, "element-id": "2"}), "schema.a: 'element-id'"),
        (column(type={**LIST, "element": None}), "schema.a.element"),
        (column(type={**LIST, "element-required": 1}), "element-required"),
        (column(type={**MAP, "key": 5}), "schema.a.key"), (column(type={**MAP, "value": [1]}), "schema.a.value"),
        (column(type={**MAP, "value-required": None}), "value-required"),
        (column(type={"type": "struct"}), "schema.a: 'fields'"), (column(type={**LIST, "element-id": 1}), "same id"),
        (column(type={"type": "struct", "fields": [column()["fields"][0]]}), "same id"),
        ({"fields": column()["fields"] * 2}, "named 'a'"),
    ],
    ids=lambda part: str(part)[:60],
)  # fmt: skip
def test_wrong_json_is_refused_and_its_place_named(obj, place):
    with pytest.raises(InvalidSchema, match=place):
        schema_from_json(obj)


@pytest.mark.spec("TYP-28", "TYP-01")
@pytest.mark.parametrize("kind", ["blob", "enum", {"type": "union"}, {"type": "enum", "symbols": []}, {}])
def test_an_unknown_type_is_unsupported_and_its_field_named(kind):
    with pytest.raises(UnsupportedFeature, match=r"schema\.a"):
        schema_from_json(column(type=kind))
    with pytest.raises(UnsupportedFeature, match=r"schema\.a\.element"):
        schema_from_json(column(type={**LIST, "element": kind}))


@pytest.mark.parametrize("shape", ["list", "struct", "map", "keys"])
def test_nesting_beyond_the_limit_is_one_typed_error(shape):
    def nested(levels):
        kind = "int"
        for id_ in range(1, levels + 1):
            if shape == "list":
                kind = {"type": "list", "element-id": id_, "element-required": False, "element": kind}
            elif shape == "map":
                kind = {**MAP, "key-id": id_, "value-id": id_ + 60_000, "value": kind}
            elif shape == "keys":
                kind = {**MAP, "key-id": id_, "value-id": id_ + 60_000, "key": kind}
            else:
                kind = {"type": "struct", "fields": [{"id": id_, "name": "n", "required": False, "type": kind}]}
        return kind

    assert type_from_json(nested(100)).depth == 100
    assert type_from_json(through_text(type_to_json(type_from_json(nested(100))))).depth == 100
    for levels in (101, 50_000):
        with pytest.raises(InvalidSchema, match="is nested deeper than 100 levels"):
            type_from_json(nested(levels))


outcomes = counted_outcomes()
BOOLS = st.booleans()


def json_fields(kinds):
    """Fields as JSON, whose types may be invalid."""
    return st.fixed_dictionaries({"id": st.integers(1, 9), "name": st.just("a"), "required": BOOLS, "type": kinds})


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["struct", "list", "int", "a"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["type", "fields", "id", "name", "required", "element", "element-id", "initial-default"]
                ),
                inner,
            )
            | st.fixed_dictionaries(
                {"type": st.just("list"), "element-id": st.integers(1, 9), "element": inner, "element-required": BOOLS}
            )
            | st.fixed_dictionaries({"type": st.just("struct"), "fields": st.lists(json_fields(inner), max_size=2)})
        ),
    )
)
@example({"type": "struct", "fields": []})
@example("int")
def test_no_json_whatever_makes_the_reader_fail_otherwise(outcomes, obj):
    for read in (schema_from_json, type_from_json):
        with outcomes.of(read.__name__, InvalidSchema, UnsupportedFeature):
            read(obj)


def test_a_name_has_a_longest_length():
    name = "x" * MAX_NAME_LENGTH
    assert schema_from_json(column(name=name)).column_names == [name]
    with pytest.raises(InvalidSchema, match="'name' has more than 65,536 characters"):
        schema_from_json(column(name=name + "x"))
