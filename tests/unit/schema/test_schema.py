import itertools
import pickle

import pytest
from format_strategies import schemas
from hypothesis import given
from hypothesis import strategies as st
from icefield.errors import InvalidArgument, InvalidSchema, UnsupportedFeature
from icefield.schema import Schema, assign_fresh_ids, check_schema
from icefield.types import DecimalType, ListType, LongType, MapType, NestedField, StringType, StructType
from icefield.types.reserved import MAX_USER_FIELD_ID, ROW_ID
from vectors import VECTORS

POINT = StructType(NestedField(11, "x", "int", required=True), NestedField(12, "y", "int"))


def example():
    return Schema(
        NestedField(1, "id", "long", required=True),
        NestedField(2, "place", StructType(NestedField(3, "lat", "double"), NestedField(4, "Lon", "double"))),
        NestedField(5, "points", ListType(10, POINT)),
        NestedField(6, "tags", MapType(7, "string", 8, StructType(NestedField(9, "since", "date")))),
        schema_id=4,
        identifier_field_ids=[1],
    )


def leaves(schema):
    return {id_ for id_, field in schema.id_to_field.items() if not field.field_type.is_nested}


@pytest.mark.spec("JSON-10")
@pytest.mark.parametrize("case", [c for c in VECTORS["schema_json"] if "expect" in c])
def test_names_and_ids_are_those_of_the_vector(case):
    from icefield.schema import schema_from_json

    schema = schema_from_json(case["json"])
    assert schema.highest_field_id == case["expect"]["highest_field_id"]
    assert {name: schema.find_field(name).field_id for name in schema.column_names} == case["expect"]["names_to_ids"]


@pytest.mark.spec("TYP-16", "SCH-02")
@pytest.mark.parametrize(
    "again",
    [
        NestedField(1, "b", "int"),
        NestedField(2, "b", StructType(NestedField(1, "c", "int"))),
        NestedField(2, "b", ListType(1, "int")),
        NestedField(2, "b", MapType(1, "int", 3, "int")),
        NestedField(2, "b", MapType(3, "int", 1, "int")),
        NestedField(2, "b", ListType(2, "int")),
        NestedField(2, "b", ListType(4, StructType(NestedField(5, "c", MapType(6, "int", 1, "int"))))),
    ],
    ids=str,
)
def test_an_id_that_is_there_twice_is_refused_wherever_it_lies(again):
    with pytest.raises(InvalidSchema, match="same id") as caught:
        Schema(NestedField(1, "a", "int"), again)
    assert caught.value.field_id in (1, 2)


@pytest.mark.spec("SCH-01")
def test_columns_keep_their_order_and_two_of_one_name_are_refused():
    schema = Schema(NestedField(2, "b", "int"), NestedField(1, "a", "int"))
    assert [field.name for field in schema.fields] == ["b", "a"]
    assert schema != Schema(NestedField(1, "a", "int"), NestedField(2, "b", "int"))
    with pytest.raises(InvalidSchema, match="'a'"):
        Schema(NestedField(2, "a", "int"), NestedField(1, "a", "int"))


@pytest.mark.spec("SCH-01")
@pytest.mark.parametrize(
    ("name", "id_"),
    [("id", 1), ("place", 2), ("place.lat", 3), ("points", 5), ("points.element", 10), ("points.element.x", 11),
     ("points.x", 11), ("tags.key", 7), ("tags.value", 8), ("tags.value.since", 9), ("tags.since", 9),
     (("place", "lat"), 3), (("points", "x"), 11), (("points", "element", "x"), 11), (("tags", "since"), 9), (7, 7)],
)  # fmt: skip
def test_a_field_is_found_by_id_full_name_short_name_and_path(name, id_):
    assert example().find_field(name).field_id == id_
    assert example().find_type(name) == example().id_to_field[id_].field_type


def test_a_field_is_found_whatever_its_case_only_when_asked_so():
    assert example().find_field("PLACE.LON", case_sensitive=False).field_id == 4
    assert example().find_field(("Place", "lon"), case_sensitive=False).field_id == 4
    assert example().find_field("POINTS.Y", case_sensitive=False).field_id == 12
    with pytest.raises(InvalidArgument, match=r"place\.Lon"):
        example().find_field("place.lon")
    twice = Schema(NestedField(1, "a", "int"), NestedField(2, "A", "int"))
    assert twice.find_field("A").field_id == 2
    with pytest.raises(InvalidArgument, match="case"):
        twice.find_field("a", case_sensitive=False)


@pytest.mark.parametrize("name", ["", "nope", "place.x", "id.x", (), ("place.lat",), ("place", "lat", "x"), 99, ("x",)])
def test_what_is_not_there_is_a_typed_error(name):
    with pytest.raises(InvalidArgument):
        example().find_field(name)


@pytest.mark.parametrize("name", [None, 1.5, ["a"], (1,)])
def test_a_name_is_strings_or_a_tuple_of_strings(name):
    with pytest.raises(InvalidArgument):
        example().find_field(name)


@pytest.mark.spec("SCH-24")
def test_a_name_with_a_dot_is_not_confused_with_a_path():
    both = Schema(NestedField(1, "a.b", "int"), NestedField(2, "a", StructType(NestedField(3, "b", "string"))))
    assert both.find_field(("a.b",)).field_id == 1
    assert both.find_field(("a", "b")).field_id == 3
    for name, exactly in (("a.b", True), ("a.b", False), ("A.B", False)):
        with pytest.raises(InvalidArgument, match="tuple"):
            both.find_field(name, case_sensitive=exactly)
    literal = Schema(NestedField(1, "a.b", "int"), NestedField(2, "a", "int"))
    assert literal.find_field("a.b").field_id == 1
    with pytest.raises(InvalidArgument):
        literal.find_field(("a", "b"))


def test_a_full_name_goes_before_a_short_one():
    points = ListType(2, StructType(NestedField(3, "element", "int"), NestedField(4, "x", "int")))
    schema = Schema(NestedField(1, "p", points))
    assert schema.find_field("p.element").field_id == 2
    assert schema.find_field(("p", "element")).field_id == 2
    assert schema.find_field("p.element.element").field_id == 3


@given(schemas())
def test_every_field_is_found_by_its_path_and_knows_its_parent(schema):
    for id_, field in schema.id_to_field.items():
        assert schema.find_field(schema.name_path(id_)).field_id == id_
        assert schema.find_field(id_) is field
        assert schema.find_column_name(id_) == ".".join(schema.name_path(id_))
        parent = schema.parent_of(id_)
        siblings = schema.fields if parent is None else schema.find_field(parent).field_type.children
        assert field in siblings
    assert schema.field_ids == set(schema.id_to_field)
    assert schema.highest_field_id == max(schema.field_ids, default=0)
    assert schema.find_column_name(-1) is None


def test_a_rows_value_is_reached_through_structs_only():
    assert example().accessor_path(3) == ("place", "lat")
    assert example().accessor_path(5) == ("points",)
    for id_ in (10, 11, 7, 9):
        with pytest.raises(InvalidArgument, match="list or map"):
            example().accessor_path(id_)


@given(schemas(), st.data())
def test_selected_ids_keep_their_fields_order_and_surroundings(schema, data):
    wanted = data.draw(st.sets(st.sampled_from(sorted(schema.field_ids)))) if schema.field_ids else set()
    selected = schema.select_ids(wanted | {10**6})
    assert wanted <= selected.field_ids
    order = list(schema.id_to_field)
    assert list(selected.id_to_field) == sorted(selected.field_ids, key=order.index)
    for id_, field in selected.id_to_field.items():
        whole = schema.find_field(id_)
        assert (field.name, field.required, field.doc) == (whole.name, whole.required, whole.doc)
        assert selected.parent_of(id_) == schema.parent_of(id_)
        ancestors = {id_, *(step.field_id for step in schema._ancestors(id_))}
        descendants = {other for other in schema.field_ids if id_ in {s.field_id for s in schema._ancestors(other)}}
        in_a_key = any(isinstance(schema.find_field(step).field_type, MapType) for step in (ancestors - {id_}))
        assert wanted & (ancestors | descendants) or in_a_key
    assert schema.select_ids(schema.field_ids) == schema


@pytest.mark.spec("PRJ-14")
def test_a_nested_field_is_selected_without_its_siblings():
    place = example().select("place.Lon")
    assert place.column_names == ["place", "place.Lon"]
    assert place.find_field("place").required is example().find_field("place").required
    assert example().select("points.x").column_names == ["points", "points.element", "points.element.x"]
    assert example().select("tags.since").find_field("tags.key").field_id == 7
    assert example().select("tags.key").find_field("tags") == example().find_field("tags")
    assert example().select("points").find_field("points") == example().find_field("points")


def test_selection_keeps_the_schemas_order_and_what_is_left_of_the_identifier():
    picked = example().select("tags", "id")
    assert [field.name for field in picked.fields] == ["id", "tags"]
    assert picked.identifier_field_ids == (1,)
    assert picked.schema_id == 4
    assert example().select("tags").identifier_field_ids == ()
    assert example().select("*", "id") == example()
    assert example().select("ID", case_sensitive=False).column_names == ["id"]
    with pytest.raises(InvalidArgument, match="did you mean 'tags'"):
        example().select("tag")


def test_whoever_asks_for_a_column_that_is_not_there_is_stated_which_are():
    place = NestedField(3, "place", StructType(NestedField(4, "lat", "double")))
    schema = Schema(NestedField(1, "id", "long"), NestedField(2, "Kind", "string"), place)
    for name, told in {
        "ID": "names are compared exactly here, and there is a 'id'",
        "place.LAT": "names are compared exactly here, and there is a 'place.lat'",
        "kinds": "did you mean 'Kind'",
        "lat": "did you mean 'place.lat'",
        "nosuch": "there are id, Kind, place$",
    }.items():
        with pytest.raises(InvalidArgument, match=f"no column is named '{name}'; {told}"):
            schema.find_field(name)
    wide = Schema(*(NestedField(n, f"column_{n}", "int") for n in range(1, 41)))
    with pytest.raises(InvalidArgument, match=r"there are column_1, .*, column_20, \.\.\.$"):
        wide.find_field("x")


@pytest.mark.spec("IDF-01")
def test_a_schema_lists_the_fields_that_identify_a_row():
    assert example().identifier_field_ids == (1,)
    assert example().identifier_field_names() == {"id"}
    fields = [NestedField(1, "a", "long", required=True), NestedField(2, "b", "string", required=True)]
    schema = Schema(*fields, identifier_field_ids=[2, 1, 2])
    assert schema.identifier_field_ids == (2, 1)
    assert schema == Schema(*fields, identifier_field_ids=[1, 2])
    assert schema != Schema(*fields)


@pytest.mark.spec("IDF-03", "IDF-04", "IDF-05", "IDF-01")
@pytest.mark.parametrize(
    ("column", "id_", "reason"),
    [
        (NestedField(1, "a", "float", required=True), 1, "type float"),
        (NestedField(1, "a", "double", required=True), 1, "type double"),
        (NestedField(1, "a", "int"), 1, "optional"),
        (NestedField(1, "a", ListType(2, "int", element_required=True), required=True), 2, "list or map"),
        (NestedField(1, "a", MapType(2, "int", 3, "int", value_required=True), required=True), 2, "list or map"),
        (NestedField(1, "a", MapType(2, "int", 3, "int", value_required=True), required=True), 3, "list or map"),
        (NestedField(1, "a", StructType(NestedField(2, "b", "int", required=True))), 2, "optional struct"),
        (NestedField(1, "a", StructType(NestedField(2, "b", "int", required=True)), required=True), 1, "type struct"),
        (NestedField(1, "a", "variant", required=True), 1, "type variant"),
        (NestedField(1, "a", "int", required=True), 7, "not in the schema"),
    ],
    ids=str,
)
def test_an_identifier_field_is_a_required_primitive_outside_lists_and_maps(column, id_, reason):
    with pytest.raises(InvalidSchema, match=reason):
        Schema(column, identifier_field_ids=[id_])


@pytest.mark.spec("IDF-03")
def test_an_identifier_field_may_are_in_required_structs():
    inner = StructType(NestedField(3, "c", "int", required=True))
    outer = StructType(NestedField(2, "b", inner, required=True))
    assert Schema(NestedField(1, "a", outer, required=True), identifier_field_ids=[3]).identifier_field_names() == {
        "a.b.c"
    }


@given(schemas())
def test_schemas_are_equal_by_content_hashable_picklable_and_immutable(schema):
    twin = pickle.loads(pickle.dumps(schema.with_schema_id(9)))
    assert twin == schema
    assert twin.schema_id == 9
    assert hash(twin) == hash(schema)
    assert str(twin) == str(schema)
    assert bool(schema)
    assert len(schema) == len(schema.fields)
    for name in ("schema_id", "_struct", "anything"):
        with pytest.raises(AttributeError):
            setattr(schema, name, 1)
    with pytest.raises(AttributeError):
        del schema._struct
    with pytest.raises(TypeError):
        schema.id_to_field[1] = None


def test_a_schema_is_no_other_thing():
    assert Schema() != StructType()
    assert Schema().highest_field_id == 0
    assert "id" in repr(example())


@pytest.mark.spec("SCH-27", "SCH-04", "SCH-02")
@given(schemas(), st.integers(1, 1000))
def test_fresh_ids_are_consecutive_and_change_nothing_else(schema, first):
    fresh, mapping = assign_fresh_ids(schema, first)
    assert set(mapping) == schema.field_ids
    assert sorted(mapping.values()) == list(range(first, first + len(mapping)))
    for old, new in mapping.items():
        before, after = schema.find_field(old), fresh.find_field(new)
        assert (before.name, before.required, before.doc) == (after.name, after.required, after.doc)
        assert schema.name_path(old) == fresh.name_path(new)
        assert before.field_type.is_nested or before.field_type == after.field_type
    counted = itertools.count(first)
    assert assign_fresh_ids(schema, lambda: next(counted)) == (fresh, mapping)


@pytest.mark.spec("SCH-27", "SCH-04")
def test_a_structs_fields_are_numbered_before_what_is_in_them():
    fresh, mapping = assign_fresh_ids(example())
    assert [field.field_id for field in fresh.fields] == [1, 2, 3, 4]
    assert fresh.find_field("place.lat").field_id == 5
    assert fresh.identifier_field_ids == (mapping[1],)
    assert fresh.schema_id == 4


@pytest.mark.spec("DEF-13")
def test_defaults_may_be_pythons_objects_when_ids_are_assigned():
    from datetime import date

    column = NestedField(5, "d", "date", initial_default=date(1970, 1, 2), write_default="1970-01-03")
    fresh, _ = assign_fresh_ids(Schema(column))
    assert (fresh.fields[0].initial_default, fresh.fields[0].write_default) == (1, 2)
    with pytest.raises(InvalidArgument, match="'d'"):
        assign_fresh_ids(Schema(NestedField(5, "d", "date", write_default="yesterday")))


@pytest.mark.spec("TYP-27")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("kind", ["unknown", "timestamp_ns", "timestamptz_ns", "variant", "geometry", "geography"])
def test_types_of_version_3_are_refused_in_older_tables_wherever_they_lie(kind, version):
    flat = Schema(NestedField(1, "a", kind))
    nested = Schema(NestedField(1, "a", StructType(NestedField(2, "b", ListType(3, kind)))))
    for schema, name in ((flat, "'a'"), (nested, "'a.b.element'")):
        with pytest.raises(UnsupportedFeature, match=f"field {name} .* format version 3"):
            check_schema(schema, version)
        check_schema(schema, 3)


@pytest.mark.spec("DEF-12")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("which", ["initial_default", "write_default"])
def test_defaults_are_refused_in_older_tables_unless_they_are_there(version, which):
    schema = Schema(NestedField(1, "s", StructType(NestedField(2, "a", "int", **{which: 5}))))
    with pytest.raises(UnsupportedFeature, match=r"'s\.a' has a default"):
        check_schema(schema, version)
    check_schema(schema, 3)
    check_schema(schema, version, known=[schema])


@pytest.mark.spec("DEF-12")
def test_a_default_that_is_there_may_be_renamed_but_not_changed_in_an_older_table():
    before = Schema(NestedField(1, "a", "int", initial_default=5, write_default=5))
    check_schema(Schema(NestedField(1, "b", "int", initial_default=5, write_default=5)), 2, known=[before])
    with pytest.raises(UnsupportedFeature):
        check_schema(Schema(NestedField(1, "a", "int", initial_default=5, write_default=6)), 2, known=[before])


@pytest.mark.spec("DEF-09")
def test_a_structs_own_default_is_null_or_empty():
    check_schema(Schema(NestedField(1, "p", POINT, initial_default=(), write_default=())), 3)
    with pytest.raises(InvalidSchema, match="null or empty"):
        check_schema(Schema(NestedField(1, "p", POINT, write_default=(1, 2))), 3)


@pytest.mark.spec("DEF-13")
def test_a_default_is_a_value_of_its_type():
    with pytest.raises(InvalidArgument, match="'a'"):
        check_schema(Schema(NestedField(1, "a", "int", initial_default="x")), 3)


@pytest.mark.spec("TYP-07")
@pytest.mark.parametrize(("scale", "why"), [(-2, "negative scale"), (10, "scale above its precision")])
def test_a_scale_out_of_bounds_can_be_read_but_not_put_into_a_table(scale, why):
    schema = Schema(NestedField(1, "a", DecimalType(9, scale)))
    with pytest.raises(InvalidSchema, match=why):
        check_schema(schema, 3)
    check_schema(schema, 2, known=[schema])
    check_schema(Schema(NestedField(1, "a", DecimalType(9, 0)), NestedField(2, "b", DecimalType(9, 9))), 3)


@pytest.mark.spec("RSV-01")
def test_a_reserved_id_is_for_the_metadata_column_alone():
    assert Schema(ROW_ID, NestedField(MAX_USER_FIELD_ID, "a", "int")).highest_field_id == MAX_USER_FIELD_ID
    for field in (NestedField(ROW_ID.field_id, "a", "long"), NestedField(MAX_USER_FIELD_ID + 1, "a", "long")):
        with pytest.raises(InvalidSchema, match="is reserved"):
            Schema(field)


def test_pieces_of_a_schema_are_what_they_were_given_as():
    schema = example()
    assert schema.as_struct().fields == schema.fields
    assert schema.find_type("id") == LongType()
    assert schema.find_type("tags.key") == StringType()
    assert schema.has_field("place.lat")
    assert not schema.has_field("lat")


def test_an_unknown_column_is_named_as_it_was_given_and_a_like_name_is_suggested():
    for name, shown in [("idd", "'idd'"), (("place", "latt"), r"\('place', 'latt'\)")]:
        with pytest.raises(InvalidArgument, match=rf"^no column is named {shown}; did you mean '(id|place\.lat)'\?"):
            example().find_field(name)


@pytest.mark.parametrize("width", [7, 8, 9])
def test_a_path_is_followed_in_narrow_and_wide_structs_with_and_without_case(width):
    inner = StructType(*(NestedField(100 + i, f"In{i}", "int") for i in range(width)))
    schema = Schema(*(NestedField(i, f"Col{i}", "int") for i in range(1, width)), NestedField(99, "s", inner))
    for case_sensitive in (True, False, True):
        assert schema.find_field(("s", "In3"), case_sensitive).field_id == 103
        assert schema.find_field(("Col2",), case_sensitive).field_id == 2
    assert schema.find_field(("S", "iN4"), case_sensitive=False).field_id == 104
    assert not schema.has_field(("s", "in3"))


def test_ids_that_a_caller_gives_end_below_the_reserved_ones():
    schema = Schema(NestedField(1, "a", "int"))
    assert assign_fresh_ids(schema, MAX_USER_FIELD_ID)[1] == {1: MAX_USER_FIELD_ID}
    with pytest.raises(InvalidSchema, match="no id is left for field 'a'"):
        assign_fresh_ids(schema, MAX_USER_FIELD_ID + 1)


def test_a_metadata_column_is_no_column_of_a_table():
    with pytest.raises(InvalidSchema, match="'_row_id' is reserved for metadata columns"):
        check_schema(Schema(ROW_ID), 3)
