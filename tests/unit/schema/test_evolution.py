import contextlib

import pytest
from evolving_schemas import POINT, check_evolution, example, single, update
from format_strategies import schemas
from hypothesis import given
from hypothesis import strategies as st
from icefield.errors import IcefieldError, InvalidArgument, InvalidSchema
from icefield.schema import Schema, schema_from_json, schema_to_json
from icefield.schema.evolution import SchemaUpdate
from icefield.types import ListType, LongType, MapType, NestedField, StructType
from outcomes import counted_outcomes

outcomes = counted_outcomes()
STRUCTS = {"top": (), "struct": ("place",), "list": ("points",), "map": ("tags",)}


@pytest.mark.spec("SCH-03", "SCH-04", "SCH-05")
@pytest.mark.parametrize("where", STRUCTS)
def test_a_field_is_added_last_in_its_struct_under_a_new_id(where):
    changed = update().add_column((*STRUCTS[where], "new"), "string", doc="why")
    added = changed.result().find_field((*STRUCTS[where], "new"))
    assert added == NestedField(13, "new", "string", False, "why")
    siblings = changed.result().parent_of(13)
    assert siblings == {"top": None, "struct": 2, "list": 10, "map": 8}[where]
    assert changed.last_column_id == 13
    assert changed.result().select_ids(example().field_ids - {2, 5, 6, 8, 10}) == example()


@pytest.mark.spec("SCH-03", "SCH-06")
@pytest.mark.parametrize("where", ["place.lat", "points.x", ("points", "element", "x"), "tags.value.since", "id"])
def test_a_rename_changes_the_name_and_nothing_else(where):
    before = example().find_field(where)
    result = update().rename_column(where, "new.name").result()
    after = result.find_field(before.field_id)
    assert after.name == "new.name"
    assert (after.field_type, after.required, after.doc) == (before.field_type, before.required, before.doc)
    assert list(result.id_to_field) == list(example().id_to_field)
    assert result.identifier_field_ids == (1,)


@pytest.mark.spec("SCH-03", "SCH-07")
@pytest.mark.parametrize("where", ["place", "place.lat", "points.x", "tags.since"])
def test_a_delete_takes_the_field_and_what_is_in_it_out_of_the_schema_only(where):
    gone = example().find_field(where)
    result = update().delete_column(where).result()
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
    result = move(update()).result()
    assert [field.name for field in result.fields] == order
    for field in example().fields:
        assert result.find_field(field.field_id) == field


@pytest.mark.spec("SCH-03", "SCH-09")
@pytest.mark.parametrize("path", [("place", "lon"), ("points", "y")])
def test_nested_fields_move_too(path):
    result = update().move_first(path).result()
    parent = result.find_field(result.parent_of(result.find_field(path).field_id))
    assert parent.field_type.children[0].name == path[-1]


@pytest.mark.spec("SCH-04", "SCH-05")
def test_everything_in_an_added_field_gets_an_id_above_the_tables_last():
    kind = StructType(NestedField(1, "l", ListType(2, StructType(NestedField(1, "m", MapType(1, "int", 1, "int"))))))
    changed = update(last_column_id=100).add_column("new", kind)
    added = changed.result().field_ids - example().field_ids
    assert added == set(range(101, 107))
    assert changed.result().find_field("new").field_id == 101
    assert changed.last_column_id == 106


@pytest.mark.spec("SCH-05", "SCH-07")
def test_ids_of_deleted_columns_are_never_used_again():
    first = update(single("int"))
    two = first.add_column("b", "int").add_column("c", "int").result()
    without = SchemaUpdate(two, last_column_id=first.last_column_id, format_version=2).delete_column("c")
    again = SchemaUpdate(without.result(), last_column_id=without.last_column_id, format_version=2)
    assert again.add_column("c", "int").result().find_field("c").field_id == 4
    same_update = update(two, last_column_id=3).delete_column("c").add_column("c", "int")
    assert same_update.result().find_field("c").field_id == 4
    assert update(two, last_column_id=3).add_column("d", "int").delete_column("d").last_column_id == 4


@pytest.mark.spec("SCH-08")
def test_a_nullable_field_comes_back_under_its_old_id():
    old = example().with_schema_id(3)
    gone = update(old).delete_column("place").delete_column("points.x").result()
    changed = update(gone, last_column_id=20, history=[old])
    result = changed.undelete_column("place").undelete_column(("points", "x")).result()
    assert result.find_field("place") == old.find_field("place")
    assert result.find_field(11) == old.find_field(11)
    assert changed.last_column_id == 20
    assert result.field_ids == old.field_ids


@pytest.mark.spec("SCH-08")
def test_a_required_field_comes_back_only_while_nothing_was_written():
    old = Schema(NestedField(1, "a", "int", required=True), NestedField(2, "b", "int"), schema_id=1)
    gone = update(old).delete_column("a").result()
    with pytest.raises(InvalidSchema, match="required"):
        update(gone, history=[old]).undelete_column("a")

    class Unwritten(SchemaUpdate):
        def _is_unwritten(self, path: object) -> bool:
            return True

    changed = Unwritten(gone, last_column_id=2, format_version=2, history=[old])
    back = changed.undelete_column("a").move_first("a").result()
    assert back == old
    assert back.schema_id == 1


@pytest.mark.spec("SCH-08")
def test_only_what_was_deleted_comes_back_and_only_where_it_was():
    old = example()
    gone = update(old).delete_column("place").result()
    with pytest.raises(InvalidArgument, match="no deleted column"):
        update(gone, history=[old]).undelete_column("id")
    with pytest.raises(InvalidArgument, match="no deleted column"):
        update(gone, history=[]).undelete_column("place")
    with pytest.raises(InvalidSchema, match="is gone"):
        update(gone, history=[old]).undelete_column("place.lat")
    taken = update(gone, history=[old], last_column_id=20).add_column("place", "int")
    with pytest.raises(InvalidSchema, match="exists"):
        taken.undelete_column("place")


@pytest.mark.spec("SCH-08")
def test_the_newest_form_of_a_deleted_field_comes_back():
    first = Schema(NestedField(1, "a", "int"), NestedField(2, "b", "int"), schema_id=0)
    second = Schema(NestedField(1, "a", "long"), NestedField(2, "b", "int"), schema_id=1)
    third = Schema(NestedField(2, "b", "int"), schema_id=2)
    assert update(third, history=[second, first, third]).undelete_column("a").result().find_type("a") == LongType()


@pytest.mark.spec("SCH-21")
def test_required_becomes_optional_and_back_only_by_force():
    schema = Schema(NestedField(1, "a", "int", required=True), NestedField(2, "b", "int"))
    assert update(schema).make_column_optional("a").result().find_field("a").optional
    assert update(schema).update_column("a", required=False).result().find_field("a").optional
    with pytest.raises(InvalidSchema, match="optional"):
        update(schema).update_column("b", required=True)
    assert (
        update(schema).allow_incompatible_changes().update_column("b", required=True).result().find_field("b").required
    )
    assert update(schema).update_column("a", required=True).result() == schema


@pytest.mark.spec("SCH-18", "SCH-19")
def test_a_new_schema_has_an_id_of_its_own_and_an_equal_one_keeps_its():
    first = single("int").with_schema_id(0)
    second = update(first, history=[first]).rename_column("a", "b").result()
    assert second.schema_id == 1
    third = update(second, history=[first, second]).rename_column("b", "c").result()
    assert third.schema_id == 2
    assert update(third, history=[first, second, third]).rename_column("c", "a").result().schema_id == 0
    assert update(second, history=[first, second, third]).rename_column("b", "d").result().schema_id == 3
    assert update(second, history=[first, second]).result() is second


def test_changes_name_fields_as_they_are_by_then_or_were_before():
    changes = update().rename_column("place", "spot").delete_column("spot.lat").update_column("place.lon", "double")
    result = changes.add_column(("spot", "alt"), "int").update_column("id", doc="the key").result()
    assert result.column_names[:4] == ["id", "spot", "spot.lon", "spot.alt"]
    assert result.find_field("id").doc == "the key"
    swapped = update().rename_column("id", "t").rename_column("place", "id").rename_column("t", "place").result()
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
    result = changes.result()
    check_evolution(schema, result, last_column_id=last, format_version=2)
    assert max(result.field_ids, default=0) <= changes.last_column_id
    assert schema_from_json(schema_to_json(result)) == result


DOTTED = Schema(
    NestedField(1, "a.b", "int"),
    NestedField(
        2, "a", StructType(NestedField(3, "b", "int"), NestedField(4, "B.c", "int"), NestedField(5, "C", "int"))
    ),
    NestedField(6, "A", ListType(7, StructType(NestedField(8, "element", "int"), NestedField(9, "b", "int")))),
    NestedField(
        10,
        "m",
        MapType(
            11,
            "string",
            12,
            StructType(NestedField(13, "key", "int"), NestedField(14, "x", StructType(NestedField(20, "a", "int")))),
        ),
    ),
    NestedField(15, "value", ListType(16, ListType(17, StructType(NestedField(18, "value", "int"))))),
)


@given(schemas() | st.sampled_from([example(), DOTTED]), st.data())
def test_names_are_found_while_a_schema_changes_as_they_are_in_the_finished_schema(schema, data):
    changes = SchemaUpdate(schema, last_column_id=schema.highest_field_id, format_version=2)
    words = st.sampled_from(["a", "b", "A", "a.b", "B.c", "x", "key", "value", "element", "value.x", "m"])
    for _ in range(data.draw(st.integers(0, 6))):
        paths = sorted(map(changes._current().name_path, changes._current().field_ids))
        path = data.draw(st.sampled_from([*paths, ("a",)]))
        word = data.draw(words)
        change = data.draw(
            st.sampled_from(
                [
                    lambda u, p, w: u.rename_column(p, w),
                    lambda u, p, w: u.delete_column(p),
                    lambda u, p, w: u.move_first(p),
                    lambda u, p, w: u.move_after(p, (*p[:-1], w)),
                    lambda u, p, w: u.move_before(p, (*p[:-1], w)),
                    lambda u, p, w: u.add_column((*p, w), ListType(1, POINT)),
                    lambda u, p, w: u.add_column((*p[:-1], w), POINT),
                    lambda u, p, w: u.union_by_name(Schema(NestedField(1, w, "long"), NestedField(2, "a", POINT))),
                ]
            )
        )
        with contextlib.suppress(IcefieldError):
            change(changes, path, word)
    frozen = changes._current()
    names = [frozen.name_path(id_) for id_ in frozen.field_ids]
    without = [tuple(part for part in path if part not in ("element", "value")) for path in names]
    drawn = data.draw(st.lists(st.lists(words, min_size=1, max_size=4).map(tuple), max_size=5))
    for path in [*names, *without, *drawn]:
        for each in (path, tuple(map(str.upper, path)), path[1:]):
            for sensitive in (True, False):
                for name in (each, ".".join(each)):
                    found = [node.id for node in changes._root.find(name, sensitive)]
                    assert sorted(found) == sorted(frozen._lookup(name, sensitive)), (name, sensitive)


@given(schemas() | st.sampled_from([example(), DOTTED]), schemas(), st.sampled_from([2, 3]))
def test_a_union_that_is_refused_changes_nothing(schema, other, version):
    changes = SchemaUpdate(schema, last_column_id=schema.highest_field_id, format_version=version)
    before, last = changes._current(), changes.last_column_id
    try:
        changes.union_by_name(other)
    except IcefieldError:
        assert (changes._current(), changes.last_column_id) == (before, last)
