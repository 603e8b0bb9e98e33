"""Changes of a schema that the format forbids are refused, and change nothing."""

import pyarrow as pa
import pytest
from evolving_schemas import POINT, check_evolution, update
from icefield.errors import IcefieldError, InvalidArgument, InvalidSchema, UnsupportedFeature
from icefield.schema import Schema
from icefield.types import DecimalType, IntegerType, ListType, LongType, MapType, NestedField, StructType, parse_type
from vectors import VECTORS


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
    assert update(keyed).update_column("m.value", "long").result().find_type("m.value") == LongType()


@pytest.mark.spec("SCH-24")
def test_a_name_that_is_taken_is_refused():
    for path, kind in ((("id",), "int"), (("place", "lat"), "int"), (("points", "x"), "int")):
        with pytest.raises(InvalidSchema, match="exists"):
            update().add_column(path, kind)
    with pytest.raises(InvalidSchema, match="exists"):
        update().rename_column("id", "place")
    with pytest.raises(InvalidSchema, match="exists"):
        update(case_sensitive=False).add_column("ID", "int")
    assert update().add_column("ID", "int").result().find_field("ID").field_id == 13
    assert update(case_sensitive=False).rename_column("id", "ID").result().find_field("ID").field_id == 1


@pytest.mark.spec("SCH-24")
def test_a_name_with_a_dot_is_not_confused_with_a_path():
    with pytest.raises(InvalidSchema, match=r"'place\.lat' exists"):
        update().add_column(("place.lat",), "int")
    literal = Schema(NestedField(1, "place", POINT), NestedField(2, "place.z", "int"))
    with pytest.raises(InvalidSchema, match=r"'place\.z' exists"):
        update(literal, last_column_id=20).add_column(("place", "z"), "int")
    with pytest.raises(InvalidArgument, match=r"\('place', 'w'\) or \('place\.w',\)"):
        update().add_column("place.w", "int")
    assert update().add_column(("a.b",), "int").result().find_field(("a.b",)).field_id == 13
    both = Schema(NestedField(1, "a.b", "int"), NestedField(2, "a", StructType(NestedField(3, "b", "int"))))
    assert update(both).update_column(("a", "b"), "long").result().find_type(("a.b",)) == IntegerType()
    assert update(both).delete_column(("a.b",)).result().field_ids == {2, 3}
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
    assert 4 not in update(**{uses: [3]}).delete_column("place.lon").result().field_ids


@pytest.mark.spec("SCH-25")
def test_a_column_that_only_an_old_spec_uses_is_deleted():
    assert update(all_partition_source_ids=[3]).delete_column("place").result().field_ids.isdisjoint({2, 3})


@pytest.mark.spec("IDF-06")
def test_an_identifier_field_is_deleted_only_after_it_is_one_no_more():
    with pytest.raises(InvalidSchema, match="'id': it is an identifier field"):
        update().delete_column("id").result()
    assert update().set_identifier_fields().delete_column("id").result().identifier_field_ids == ()
    nested = StructType(NestedField(2, "b", "int", required=True))
    schema = Schema(NestedField(1, "a", nested, required=True), NestedField(3, "c", "int"), identifier_field_ids=[2])
    with pytest.raises(InvalidSchema, match=r"'a\.b': it is an identifier field"):
        update(schema).delete_column("a").result()
    assert update(schema).rename_column("a.b", "z").result().identifier_field_names() == {"a.z"}


@pytest.mark.spec("IDF-01", "IDF-04", "IDF-06")
def test_identifier_fields_are_set_by_name_and_checked():
    schema = Schema(NestedField(1, "a", "int", required=True), NestedField(2, "b", "int"))
    assert update(schema).set_identifier_fields("a").result().identifier_field_ids == (1,)
    assert update(schema).set_identifier_fields("a").rename_column("a", "z").result().identifier_field_ids == (1,)
    with pytest.raises(InvalidSchema, match="optional"):
        update(schema).set_identifier_fields("b").result()
    with pytest.raises(InvalidSchema, match="optional"):
        update().make_column_optional("id").result()
    with pytest.raises(InvalidArgument, match="'zz'"):
        update(schema).set_identifier_fields("zz")


@pytest.mark.spec("TYP-27")
@pytest.mark.parametrize("kind", ["unknown", "timestamp_ns", "timestamptz_ns", "variant", "geometry", "geography"])
def test_newer_types_are_not_added_to_older_tables(kind):
    for added in (parse_type(kind), ListType(1, kind)):
        with pytest.raises(UnsupportedFeature, match="format version 3"):
            update().add_column("new", added).result()
        assert update(format_version=3).add_column("new", added).result().find_type("new").min_format_version == 3


@pytest.mark.spec("TYP-07")
def test_a_negative_scale_is_not_added():
    with pytest.raises(InvalidSchema, match="negative scale"):
        update().add_column("new", DecimalType(9, -1)).result()


@pytest.mark.spec("SCH-28")
def test_ids_end_below_the_reserved_ones():
    changes = update(last_column_id=VECTORS["max_user_field_id"] - 1).add_column("last", "int")
    assert changes.result().find_field("last").field_id == VECTORS["max_user_field_id"]
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
        lambda u: u.undelete_column("no"), lambda u: u.union_by_name(5),
        lambda u: u.union_by_name(Schema(NestedField(1, "new", "int"), NestedField(2, "id", "string"))),
        lambda u: u.update_column("id", "int"), lambda u: u.update_column("place.lat", "double", required=True),
    ],
)  # fmt: skip
def test_a_change_that_is_refused_changes_nothing(change):
    changes = update(format_version=3)
    with pytest.raises(IcefieldError):
        change(changes)
    assert changes.result() is changes._schema
    assert changes.last_column_id == 12


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
