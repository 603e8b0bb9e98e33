"""Defaults of fields when a schema evolves."""

import pytest
from evolving_schemas import POINT, single, update
from icefield.errors import InvalidArgument, InvalidSchema, UnsupportedFeature
from icefield.schema import Schema, schema_from_json, schema_to_json
from icefield.types import (
    ListType,
    MapType,
    NestedField,
    StructType,
)


@pytest.mark.spec("SCH-22", "DEF-05")
@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_required_column_without_a_default_is_not_added(version):
    with pytest.raises(InvalidSchema, match="without a default"):
        update(format_version=version).add_column("new", "int", required=True)
    forced = update(format_version=version).allow_incompatible_changes().add_column("new", "int", required=True)
    assert forced.result().find_field("new").required


@pytest.mark.spec("DEF-12")
@pytest.mark.parametrize("version", [1, 2])
def test_defaults_are_not_given_in_older_tables(version):
    with pytest.raises(UnsupportedFeature, match="format version 3"):
        update(format_version=version).add_column("new", "int", default_value=5)
    with pytest.raises(UnsupportedFeature, match="format version 3"):
        update(format_version=version).set_default_value("id", 5)
    inside = StructType(NestedField(1, "x", "int", write_default=5))
    with pytest.raises(UnsupportedFeature, match="format version 3"):
        update(format_version=version).add_column("new", inside).result()


@pytest.mark.spec("DEF-01", "DEF-03", "DEF-04", "DEF-05")
def test_a_default_is_set_twice_when_added_and_only_one_of_them_changes_later():
    added = update(format_version=3).add_column("new", "date", required=True, default_value="1970-01-08").result()
    field = added.find_field("new")
    assert (field.initial_default, field.write_default, field.required) == (7, 7, True)
    later = update(added, format_version=3).set_default_value("new", 8).result().find_field("new")
    assert (later.initial_default, later.write_default) == (7, 8)
    within = update(format_version=3).add_column("new", "int", default_value=7).set_default_value("new", 8).result()
    assert (within.find_field("new").initial_default, within.find_field("new").write_default) == (8, 8)
    assert schema_from_json(schema_to_json(added)) == added


@pytest.mark.spec("DEF-06")
def test_an_optional_columns_defaults_may_be_null_and_become_null():
    added = update(format_version=3).add_column("new", "int").result().find_field("new")
    assert not added.has_default
    schema = single("int", initial_default=5, write_default=5)
    cleared = update(schema, format_version=3).set_default_value("a", None).result().find_field("a")
    assert (cleared.initial_default, cleared.write_default) == (5, None)


@pytest.mark.spec("DEF-05")
def test_a_new_required_column_does_not_lose_its_default():
    changes = update(format_version=3).add_column("new", "int", required=True, default_value=5)
    with pytest.raises(InvalidSchema, match="needs a default"):
        changes.set_default_value("new", None)
    assert changes.result().find_field("new").write_default == 5


def test_a_new_column_with_a_default_may_become_required():
    changes = update(format_version=3).add_column("new", "int", default_value=5).update_column("new", required=True)
    assert changes.result().find_field("new").required


@pytest.mark.spec("DEF-09")
def test_a_structs_default_is_null_or_empty():
    with pytest.raises(InvalidSchema, match="null or empty"):
        update(format_version=3).add_column("p", POINT, default_value={"x": 1})
    with pytest.raises(InvalidSchema, match="null or empty"):
        update(format_version=3).set_default_value("place", {"lat": 1.0})
    added = update(format_version=3).add_column("p", POINT, default_value={}).result().find_field("p")
    assert (added.initial_default, added.write_default) == ((), ())


@pytest.mark.spec("DEF-11")
@pytest.mark.parametrize("kind", ["unknown", "variant", "geometry", "geography"])
def test_types_without_defaults_get_none(kind):
    value = (b"\1", b"\0") if kind == "variant" else "POINT (1 2)"
    with pytest.raises(InvalidArgument):
        update(format_version=3).add_column("new", kind, default_value=value)
    assert update(format_version=3).add_column("new", kind).result().find_field("new").optional


@pytest.mark.parametrize(
    ("kind", "value"), [("int", "x"), ("int", 2**31), ("decimal(3,1)", "1.25"), ("fixed[2]", b"a")]
)
def test_a_default_is_a_value_of_the_type(kind, value):
    with pytest.raises(InvalidArgument, match="'new'"):
        update(format_version=3).add_column("new", kind, default_value=value)


@pytest.mark.spec("DEF-14", "SCH-14")
@pytest.mark.parametrize(
    ("old", "new", "before", "after"),
    [("int", "long", 7, 7), ("date", "timestamp", 1, 86_400_000_000), ("date", "timestamp_ns", 1, 86_400 * 10**9)],
)
def test_defaults_follow_a_promotion(old, new, before, after):
    schema = single(old, initial_default=before, write_default=before)
    field = update(schema, format_version=3).update_column("a", new).result().find_field("a")
    assert (field.initial_default, field.write_default) == (after, after)


@pytest.mark.spec("DEF-14")
def test_a_default_that_the_promoted_type_cannot_hold_refuses_the_promotion():
    schema = single("date", initial_default=2**31 - 1)
    changes = update(schema, format_version=3)
    with pytest.raises(InvalidArgument, match="range"):
        changes.update_column("a", "timestamp_ns")
    assert changes.result() is schema


@pytest.mark.spec("DEF-16")
def test_elements_keys_and_values_get_no_defaults():
    schema = Schema(NestedField(1, "m", MapType(2, "string", 3, ListType(4, "int"))))
    for path in ("m.key", "m.value", "m.value.element"):
        with pytest.raises(InvalidSchema):
            update(schema, format_version=3).set_default_value(path, 5)
