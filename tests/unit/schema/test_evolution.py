import pyarrow as pa
import pytest
from evolving_schemas import POINT, example, single, update
from format_strategies import schemas
from hypothesis import given
from hypothesis import strategies as st
from icefield.errors import IcefieldError, InvalidArgument, InvalidSchema, UnsupportedFeature
from icefield.schema import Schema, schema_from_json, schema_to_json
from icefield.schema.evolution import SchemaUpdate, check_evolution
from icefield.types import (
    DateType,
    DecimalType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StructType,
    TimestampNanoType,
    TimestampType,
    parse_type,
)
from outcomes import counted_outcomes
from vectors import VECTORS

outcomes = counted_outcomes()


STRUCTS = {"top": (), "struct": ("place",), "list": ("points",), "map": ("tags",)}


@pytest.mark.spec("SCH-03", "SCH-04", "SCH-05")
@pytest.mark.parametrize("where", STRUCTS)
def test_a_field_is_added_last_in_its_struct_under_a_new_id(where):
    changed = update().add_column((*STRUCTS[where], "new"), "string", doc="why")
    added = changed.apply().find_field((*STRUCTS[where], "new"))
    assert added == NestedField(13, "new", "string", False, "why")
    siblings = changed.apply().parent_of(13)
    assert siblings == {"top": None, "struct": 2, "list": 10, "map": 8}[where]
    assert changed.last_column_id == 13
    assert changed.apply().select_ids(example().field_ids - {2, 5, 6, 8, 10}) == example()


@pytest.mark.spec("SCH-03", "SCH-06")
@pytest.mark.parametrize("where", ["place.lat", "points.x", ("points", "element", "x"), "tags.value.since", "id"])
def test_a_rename_changes_the_name_and_nothing_else(where):
    before = example().find_field(where)
    result = update().rename_column(where, "new.name").apply()
    after = result.find_field(before.field_id)
    assert after.name == "new.name"
    assert (after.field_type, after.required, after.doc) == (before.field_type, before.required, before.doc)
    assert list(result.id_to_field) == list(example().id_to_field)
    assert result.identifier_field_ids == (1,)


@pytest.mark.spec("SCH-03", "SCH-07")
@pytest.mark.parametrize("where", ["place", "place.lat", "points.x", "tags.since"])
def test_a_delete_takes_the_field_and_what_is_in_it_out_of_the_schema_only(where):
    gone = example().find_field(where)
    result = update().delete_column(where).apply()
    inside = {gone.field_id} | (set(Schema(gone).field_ids))
    assert result.field_ids == example().field_ids - inside
    assert example().find_field(where) == gone


@pytest.mark.spec("SCH-03", "SCH-09")
@pytest.mark.parametrize(
    ("move", "order"),
    [
        (lambda u: u.move_first("tags"), ["tags", "id", "place", "points"]),
        (lambda u: u.move_before("tags", "place"), ["id", "tags", "place", "points"]),
        (lambda u: u.move_after("id", "points"), ["place", "points", "id", "tags"]),
        (lambda u: u.move_after("id", "tags").move_first("points"), ["points", "place", "tags", "id"]),
        (lambda u: u.add_column("new", "int").move_before("new", "id"), ["new", "id", "place", "points", "tags"]),
    ],
)
def test_columns_move_inside_their_struct_and_stay_what_they_are(move, order):
    result = move(update()).apply()
    assert [field.name for field in result.fields] == order
    for field in example().fields:
        assert result.find_field(field.field_id) == field


@pytest.mark.spec("SCH-03", "SCH-09")
@pytest.mark.parametrize("path", [("place", "lon"), ("points", "y")])
def test_nested_fields_move_too(path):
    result = update().move_first(path).apply()
    parent = result.find_field(result.parent_of(result.find_field(path).field_id))
    assert parent.field_type.children[0].name == path[-1]


@pytest.mark.spec("SCH-03", "SCH-10", "SCH-11", "SCH-12")
@pytest.mark.parametrize(
    ("where", "new"),
    [("place.lat", "double"), ("points.x", "long"), ("points.element.y", LongType()), ("place.lon", pa.float64())],
)
def test_a_fields_type_is_promoted_wherever_it_lies(where, new):
    before = example().find_field(where)
    after = update().update_column(where, new).apply().find_field(before.field_id)
    assert str(after.field_type) in ("double", "long")
    assert (after.name, after.required) == (before.name, before.required)


def spelled(text):
    known = {"struct": POINT, "struct<int>": StructType(NestedField(2, "x", "int")), "list<int>": ListType(2, "int")}
    known["map<string,int>"] = MapType(3, "string", 4, "int")
    known["map<string,struct<int>>"] = MapType(3, "string", 4, known["struct<int>"])
    return known.get(text) or parse_type(text.replace("fixed(4)", "fixed[4]").replace("fixed(8)", "fixed[8]"))


@pytest.mark.spec("SCH-10", "SCH-11", "SCH-12", "SCH-14")
@pytest.mark.parametrize(("old", "new", "since"), VECTORS["type_promotion"]["allowed"])
def test_every_promotion_of_the_vector_is_made_from_its_version_on(old, new, since):
    result = update(single(spelled(old)), format_version=3).update_column("a", spelled(new)).apply()
    assert str(result.find_type("a")).partition("<")[0] == new
    for version in range(1, since):
        with pytest.raises(IcefieldError):
            update(single(spelled(old)), format_version=version).update_column("a", spelled(new)).apply()


@pytest.mark.spec("SCH-13", "SCH-17")
@pytest.mark.parametrize(("old", "new"), VECTORS["type_promotion"]["rejected"])
def test_every_other_change_of_type_is_refused(old, new):
    changes = update(single(spelled(old)), format_version=3).allow_incompatible_changes()
    with pytest.raises(InvalidSchema, match="cannot change 'a'"):
        changes.update_column("a", spelled(new))
    assert changes.apply() is changes._schema


@pytest.mark.spec("SCH-17")
def test_values_of_a_map_do_not_become_structs_nor_structs_values():
    with pytest.raises(InvalidSchema):
        update(single(spelled("map<string,int>"))).update_column("a.value", spelled("struct<int>"))
    with pytest.raises(InvalidSchema):
        update(single(spelled("map<string,struct<int>>"))).update_column("a.value", "int")


@pytest.mark.spec("SCH-14", "SCH-04")
def test_an_unknown_column_becomes_any_type_under_new_ids():
    changed = update(single("unknown"), format_version=3, last_column_id=70)
    result = changed.update_column("a", ListType(1, POINT)).apply()
    assert result.field_ids == {1, 71, 72, 73}
    assert changed.last_column_id == 73


@pytest.mark.spec("SCH-15")
@pytest.mark.parametrize("new", [TimestampType(), TimestampNanoType()], ids=str)
@pytest.mark.parametrize("uses", ["partition_source_ids", "all_partition_source_ids"])
def test_a_date_that_any_spec_partitions_by_is_not_promoted(new, uses):
    with pytest.raises(InvalidSchema, match="partition"):
        update(single("date"), format_version=3, **{uses: [1]}).update_column("a", new)
    assert update(single("date"), format_version=3, sort_source_ids=[1]).update_column("a", new).apply()


@pytest.mark.spec("SCH-15")
@pytest.mark.parametrize(("old", "new"), [("int", "long"), ("float", "double"), ("decimal(9,2)", "decimal(18,2)")])
def test_promotions_that_keep_partition_values_are_made(old, new):
    result = update(single(old), partition_source_ids=[1]).update_column("a", new).apply()
    assert str(result.find_type("a")) == new


@pytest.mark.spec("SCH-04", "SCH-05")
def test_everything_in_an_added_field_gets_an_id_above_the_tables_last():
    kind = StructType(NestedField(1, "l", ListType(2, StructType(NestedField(1, "m", MapType(1, "int", 1, "int"))))))
    changed = update(last_column_id=100).add_column("new", kind)
    added = changed.apply().field_ids - example().field_ids
    assert added == set(range(101, 107))
    assert changed.apply().find_field("new").field_id == 101
    assert changed.last_column_id == 106


@pytest.mark.spec("SCH-05", "SCH-07")
def test_ids_of_deleted_columns_are_never_used_again():
    first = update(single("int"))
    two = first.add_column("b", "int").add_column("c", "int").apply()
    without = SchemaUpdate(two, last_column_id=first.last_column_id, format_version=2).delete_column("c")
    again = SchemaUpdate(without.apply(), last_column_id=without.last_column_id, format_version=2)
    assert again.add_column("c", "int").apply().find_field("c").field_id == 4
    same_update = update(two, last_column_id=3).delete_column("c").add_column("c", "int")
    assert same_update.apply().find_field("c").field_id == 4
    assert update(two, last_column_id=3).add_column("d", "int").delete_column("d").last_column_id == 4


@pytest.mark.spec("SCH-08")
def test_a_nullable_field_comes_back_under_its_old_id():
    old = example().with_schema_id(3)
    gone = update(old).delete_column("place").delete_column("points.x").apply()
    changed = update(gone, last_column_id=20, history=[old])
    result = changed.undelete("place").undelete(("points", "x")).apply()
    assert result.find_field("place") == old.find_field("place")
    assert result.find_field(11) == old.find_field(11)
    assert changed.last_column_id == 20
    assert result.field_ids == old.field_ids


@pytest.mark.spec("SCH-08")
def test_a_required_field_comes_back_only_while_nothing_was_written():
    old = Schema(NestedField(1, "a", "int", required=True), NestedField(2, "b", "int"), schema_id=1)
    gone = update(old).delete_column("a").apply()
    with pytest.raises(InvalidSchema, match="required"):
        update(gone, history=[old]).undelete("a")
    back = update(gone, history=[old]).undelete("a", snapshot_unchanged=True).move_first("a").apply()
    assert back == old
    assert back.schema_id == 1


@pytest.mark.spec("SCH-08")
def test_only_what_was_deleted_comes_back_and_only_where_it_was():
    old = example()
    gone = update(old).delete_column("place").apply()
    with pytest.raises(InvalidArgument, match="no deleted column"):
        update(gone, history=[old]).undelete("id")
    with pytest.raises(InvalidArgument, match="no deleted column"):
        update(gone, history=[]).undelete("place")
    with pytest.raises(InvalidSchema, match="is gone"):
        update(gone, history=[old]).undelete("place.lat")
    taken = update(gone, history=[old], last_column_id=20).add_column("place", "int")
    with pytest.raises(InvalidSchema, match="exists"):
        taken.undelete("place")


@pytest.mark.spec("SCH-08")
def test_the_newest_form_of_a_deleted_field_comes_back():
    first = Schema(NestedField(1, "a", "int"), NestedField(2, "b", "int"), schema_id=0)
    second = Schema(NestedField(1, "a", "long"), NestedField(2, "b", "int"), schema_id=1)
    third = Schema(NestedField(2, "b", "int"), schema_id=2)
    assert update(third, history=[second, first, third]).undelete("a").apply().find_type("a") == LongType()


@pytest.mark.spec("SCH-16")
@pytest.mark.parametrize(
    "move",
    [
        lambda u: u.move_before("id", "place.lat"),
        lambda u: u.move_after("place.lat", "id"),
        lambda u: u.move_after("place.lat", "points.x"),
    ],
)
def test_a_field_does_not_move_into_or_out_of_a_struct(move):
    with pytest.raises(InvalidSchema, match="different structs"):
        move(update())


def test_a_field_does_not_move_next_to_itself():
    with pytest.raises(InvalidSchema, match="itself"):
        update().move_before("id", "id")


@pytest.mark.spec("SCH-23")
@pytest.mark.parametrize("path", ["tags.key", "tags.value", "points.element"])
@pytest.mark.parametrize(
    "change",
    [
        lambda u, p: u.delete_column(p),
        lambda u, p: u.rename_column(p, "x"),
        lambda u, p: u.move_first(p),
        lambda u, p: u.move_after(p, p),
        lambda u, p: u.set_default_value(p, None),
    ],
)
def test_elements_keys_and_values_are_not_fields_to_move_rename_or_delete(path, change):
    with pytest.raises(InvalidSchema):
        change(update(), path)


@pytest.mark.spec("SCH-23")
def test_keys_of_a_map_never_change():
    keyed = Schema(NestedField(1, "m", MapType(2, StructType(NestedField(4, "k", "int", required=True)), 3, "int")))
    for change in (
        lambda u: u.update_column("m.key.k", "long"),
        lambda u: u.update_column("m.key", doc="x"),
        lambda u: u.make_column_optional("m.key.k"),
        lambda u: u.add_column(("m", "key", "new"), "int"),
        lambda u: u.delete_column("m.key.k"),
        lambda u: u.rename_column("m.key.k", "z"),
        lambda u: u.move_first("m.key.k"),
    ):
        with pytest.raises(InvalidSchema, match="keys never change"):
            change(update(keyed))
    assert update(keyed).update_column("m.value", "long").apply().find_type("m.value") == LongType()


@pytest.mark.spec("SCH-21")
def test_required_becomes_optional_and_back_only_by_force():
    schema = Schema(NestedField(1, "a", "int", required=True), NestedField(2, "b", "int"))
    assert update(schema).make_column_optional("a").apply().find_field("a").optional
    assert update(schema).update_column("a", required=False).apply().find_field("a").optional
    with pytest.raises(InvalidSchema, match="optional"):
        update(schema).update_column("b", required=True)
    assert (
        update(schema).allow_incompatible_changes().update_column("b", required=True).apply().find_field("b").required
    )
    assert update(schema).update_column("a", required=True).apply() == schema


@pytest.mark.spec("SCH-18", "SCH-19")
def test_a_new_schema_has_an_id_of_its_own_and_an_equal_one_keeps_its():
    first = single("int").with_schema_id(0)
    second = update(first, history=[first]).rename_column("a", "b").apply()
    assert second.schema_id == 1
    third = update(second, history=[first, second]).rename_column("b", "c").apply()
    assert third.schema_id == 2
    assert update(third, history=[first, second, third]).rename_column("c", "a").apply().schema_id == 0
    assert update(second, history=[first, second, third]).rename_column("b", "d").apply().schema_id == 3
    assert update(second, history=[first, second]).apply() is second


@pytest.mark.spec("SCH-24")
def test_a_name_that_is_taken_is_refused():
    for path, kind in ((("id",), "int"), (("place", "lat"), "int"), (("points", "x"), "int")):
        with pytest.raises(InvalidSchema, match="exists"):
            update().add_column(path, kind)
    with pytest.raises(InvalidSchema, match="exists"):
        update().rename_column("id", "place")
    with pytest.raises(InvalidSchema, match="exists"):
        update(case_sensitive=False).add_column("ID", "int")
    assert update().add_column("ID", "int").apply().find_field("ID").field_id == 13
    assert update(case_sensitive=False).rename_column("id", "ID").apply().find_field("ID").field_id == 1


@pytest.mark.spec("SCH-24")
def test_a_name_with_a_dot_is_not_confused_with_a_path():
    with pytest.raises(InvalidSchema, match=r"'place\.lat' exists"):
        update().add_column(("place.lat",), "int")
    literal = Schema(NestedField(1, "place", POINT), NestedField(2, "place.z", "int"))
    with pytest.raises(InvalidSchema, match=r"'place\.z' exists"):
        update(literal, last_column_id=20).add_column(("place", "z"), "int")
    with pytest.raises(InvalidArgument, match=r"\('place', 'w'\) or \('place\.w',\)"):
        update().add_column("place.w", "int")
    assert update().add_column(("a.b",), "int").apply().find_field(("a.b",)).field_id == 13
    both = Schema(NestedField(1, "a.b", "int"), NestedField(2, "a", StructType(NestedField(3, "b", "int"))))
    assert update(both).update_column(("a", "b"), "long").apply().find_type(("a.b",)) == IntegerType()
    assert update(both).delete_column(("a.b",)).apply().field_ids == {2, 3}
    with pytest.raises(InvalidArgument, match="tuple"):
        update(both).delete_column("a.b")


@pytest.mark.spec("SCH-25")
@pytest.mark.parametrize(
    ("uses", "name"), [("partition_source_ids", "partition spec"), ("sort_source_ids", "sort order")]
)
def test_a_column_in_use_is_not_deleted(uses, name):
    for path in ("place", "place.lat"):
        with pytest.raises(InvalidSchema, match=f"{name} uses 'place.lat'"):
            update(**{uses: [3]}).delete_column(path)
    assert 4 not in update(**{uses: [3]}).delete_column("place.lon").apply().field_ids


@pytest.mark.spec("SCH-25")
def test_a_column_that_only_an_old_spec_uses_is_deleted():
    assert update(all_partition_source_ids=[3]).delete_column("place").apply().field_ids.isdisjoint({2, 3})


@pytest.mark.spec("IDF-06")
def test_an_identifier_field_is_deleted_only_after_it_is_one_no_more():
    with pytest.raises(InvalidSchema, match="'id': it is an identifier field"):
        update().delete_column("id").apply()
    assert update().set_identifier_fields().delete_column("id").apply().identifier_field_ids == ()
    nested = StructType(NestedField(2, "b", "int", required=True))
    schema = Schema(NestedField(1, "a", nested, required=True), NestedField(3, "c", "int"), identifier_field_ids=[2])
    with pytest.raises(InvalidSchema, match=r"'a\.b': it is an identifier field"):
        update(schema).delete_column("a").apply()
    assert update(schema).rename_column("a.b", "z").apply().identifier_field_names() == {"a.z"}


@pytest.mark.spec("IDF-01", "IDF-04", "IDF-06")
def test_identifier_fields_are_set_by_name_and_checked():
    schema = Schema(NestedField(1, "a", "int", required=True), NestedField(2, "b", "int"))
    assert update(schema).set_identifier_fields("a").apply().identifier_field_ids == (1,)
    assert update(schema).set_identifier_fields("a").rename_column("a", "z").apply().identifier_field_ids == (1,)
    with pytest.raises(InvalidSchema, match="optional"):
        update(schema).set_identifier_fields("b").apply()
    with pytest.raises(InvalidSchema, match="optional"):
        update().make_column_optional("id").apply()
    with pytest.raises(InvalidArgument, match="'zz'"):
        update(schema).set_identifier_fields("zz")


@pytest.mark.spec("TYP-27")
@pytest.mark.parametrize("kind", ["unknown", "timestamp_ns", "timestamptz_ns", "variant", "geometry", "geography"])
def test_newer_types_are_not_added_to_older_tables(kind):
    for added in (parse_type(kind), ListType(1, kind)):
        with pytest.raises(UnsupportedFeature, match="format version 3"):
            update().add_column("new", added).apply()
        assert update(format_version=3).add_column("new", added).apply().find_type("new").min_format_version == 3


@pytest.mark.spec("TYP-07")
def test_a_negative_scale_is_not_added():
    with pytest.raises(InvalidSchema, match="negative scale"):
        update().add_column("new", DecimalType(9, -1)).apply()


@pytest.mark.spec("SCH-28")
def test_ids_end_below_the_reserved_ones():
    changes = update(last_column_id=VECTORS["max_user_field_id"] - 1).add_column("last", "int")
    assert changes.apply().find_field("last").field_id == VECTORS["max_user_field_id"]
    with pytest.raises(InvalidSchema, match="no id is left"):
        changes.add_column("more", "int")
    short = update(last_column_id=VECTORS["max_user_field_id"] - 1)
    with pytest.raises(InvalidSchema, match="no id is left"):
        short.add_column("wide", POINT)
    assert short.last_column_id == VECTORS["max_user_field_id"] - 1


@pytest.mark.parametrize(
    "change",
    [
        lambda u: u.add_column("", "int"), lambda u: u.add_column((), "int"), lambda u: u.add_column(None, "int"),
        lambda u: u.add_column(("place", 5), "int"), lambda u: u.add_column(("nope", "x"), "int"),
        lambda u: u.add_column(("id", "x"), "int"), lambda u: u.add_column("new", "blob"),
        lambda u: u.add_column("new", 5), lambda u: u.add_column("new", pa.uint64()),
        lambda u: u.rename_column("id", ""), lambda u: u.rename_column("id", None),
        lambda u: u.rename_column("no", "x"),
        lambda u: u.delete_column("no"), lambda u: u.delete_column("place.no"), lambda u: u.update_column("no", "int"),
        lambda u: u.move_first("no"), lambda u: u.move_before("id", "no"), lambda u: u.set_default_value("no", 1),
        lambda u: u.undelete("no"), lambda u: u.union_by_name(5),
        lambda u: u.union_by_name(Schema(NestedField(1, "new", "int"), NestedField(2, "id", "string"))),
        lambda u: u.update_column("id", "int"), lambda u: u.update_column("place.lat", "double", required=True),
    ],
)  # fmt: skip
def test_a_change_that_is_refused_changes_nothing(change):
    changes = update(format_version=3)
    with pytest.raises(IcefieldError):
        change(changes)
    assert changes.apply() is changes._schema
    assert changes.last_column_id == 12


def test_changes_name_fields_as_they_are_by_then_or_were_before():
    changes = update().rename_column("place", "spot").delete_column("spot.lat").update_column("place.lon", "double")
    result = changes.add_column(("spot", "alt"), "int").update_column("id", doc="the key").apply()
    assert result.column_names[:4] == ["id", "spot", "spot.lon", "spot.alt"]
    assert result.find_field("id").doc == "the key"
    swapped = update().rename_column("id", "t").rename_column("place", "id").rename_column("t", "place").apply()
    assert swapped.find_field("place").field_id == 1


@given(schemas(), st.data())
def test_whatever_is_done_ids_stay_unique_fields_keep_theirs_and_nothing_is_used_again(outcomes, schema, data):
    last = schema.highest_field_id + data.draw(st.integers(0, 5))
    changes = SchemaUpdate(schema, last_column_id=last, format_version=2)
    for _ in range(data.draw(st.integers(1, 6))):
        names = [changes._current().name_path(id_) for id_ in changes._current().field_ids] or [("nope",)]
        path = data.draw(st.sampled_from(sorted(names)))
        other = data.draw(st.sampled_from(sorted(names)))
        change = data.draw(
            st.sampled_from(
                [
                    lambda u, p, o: u.add_column((*p, "new"), "int"),
                    lambda u, p, o: u.add_column((*p[:-1], "n"), ListType(1, POINT)),
                    lambda u, p, o: u.delete_column(p),
                    lambda u, p, o: u.rename_column(p, "renamed"),
                    lambda u, p, o: u.move_first(p),
                    lambda u, p, o: u.move_before(p, o),
                    lambda u, p, o: u.update_column(p, "long"),
                    lambda u, p, o: u.make_column_optional(p),
                ]
            )
        )
        with outcomes.of("changes", IcefieldError):
            change(changes, path, other)
    result = changes.apply()
    check_evolution(schema, result, last_column_id=last, format_version=2)
    assert max(result.field_ids, default=0) <= changes.last_column_id
    assert schema_from_json(schema_to_json(result)) == result


@pytest.mark.spec("DEF-03", "SCH-13", "SCH-16", "SCH-05")
@pytest.mark.parametrize(
    ("after", "reason"),
    [
        (Schema(NestedField(1, "a", "int", initial_default=8)), "initial default"),
        (Schema(NestedField(1, "a", "int")), "initial default"),
        (Schema(NestedField(1, "a", "string", initial_default="7")), "from int to string"),
        (Schema(NestedField(5, "s", StructType(NestedField(1, "a", "int", initial_default=7)))), "given before|struct"),
        (Schema(NestedField(9, "s", StructType(NestedField(1, "a", "int", initial_default=7)))), "struct"),
        (Schema(NestedField(3, "b", "int")), "given before"),
    ],
    ids=str,
)
def test_a_schema_that_did_not_evolve_from_the_one_before_is_reported(after, reason):
    before = Schema(NestedField(1, "a", "int", initial_default=7, write_default=7))
    with pytest.raises(InvalidSchema, match=reason):
        check_evolution(before, after, last_column_id=8, format_version=3)


@pytest.mark.spec("DEF-03", "DEF-04", "DEF-14")
def test_a_schema_that_did_evolve_passes():
    before = Schema(NestedField(1, "a", "date", initial_default=1, write_default=1), NestedField(2, "b", POINT))
    after = Schema(
        NestedField(9, "new", "int"),
        NestedField(2, "c", StructType(NestedField(12, "y", "long"))),
        NestedField(1, "a", "timestamp", initial_default=86_400_000_000),
    )
    check_evolution(before, after, last_column_id=8, format_version=3)
    with pytest.raises(InvalidSchema, match="from date"):
        check_evolution(before, after, last_column_id=8, format_version=2)


def test_dates_stay_dates_unless_they_are_promoted():
    assert update(single("date")).update_column("a", DateType()).apply() is not None
