"""Types of columns change by the promotions of the format, and by no other."""

import pyarrow as pa
import pytest
from evolving_schemas import POINT, example, single, update
from icefield.errors import IcefieldError, InvalidSchema
from icefield.types import (
    DateType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StructType,
    TimestampNanoType,
    TimestampType,
    parse_type,
)
from vectors import VECTORS


@pytest.mark.spec("SCH-03", "SCH-10", "SCH-11", "SCH-12")
@pytest.mark.parametrize(
    ("where", "new"),
    [("place.lat", "double"), ("points.x", "long"), ("points.element.y", LongType()), ("place.lon", pa.float64())],
)
def test_a_fields_type_is_promoted_wherever_it_lies(where, new):
    before = example().find_field(where)
    after = update().update_column(where, new).result().find_field(before.field_id)
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
    result = update(single(spelled(old)), format_version=3).update_column("a", spelled(new)).result()
    assert str(result.find_type("a")).partition("<")[0] == new
    for version in range(1, since):
        with pytest.raises(IcefieldError):
            update(single(spelled(old)), format_version=version).update_column("a", spelled(new)).result()


@pytest.mark.spec("SCH-13", "SCH-17")
@pytest.mark.parametrize(("old", "new"), VECTORS["type_promotion"]["rejected"])
def test_every_other_change_of_type_is_refused(old, new):
    changes = update(single(spelled(old)), format_version=3).allow_incompatible_changes()
    with pytest.raises(InvalidSchema, match="cannot change 'a'"):
        changes.update_column("a", spelled(new))
    assert changes.result() is changes._schema


@pytest.mark.spec("SCH-17")
def test_values_of_a_map_do_not_become_structs_nor_structs_values():
    with pytest.raises(InvalidSchema):
        update(single(spelled("map<string,int>"))).update_column("a.value", spelled("struct<int>"))
    with pytest.raises(InvalidSchema):
        update(single(spelled("map<string,struct<int>>"))).update_column("a.value", "int")


@pytest.mark.spec("SCH-14", "SCH-04")
def test_an_unknown_column_becomes_any_type_under_new_ids():
    changed = update(single("unknown"), format_version=3, last_column_id=70)
    result = changed.update_column("a", ListType(1, POINT)).result()
    assert result.field_ids == {1, 71, 72, 73}
    assert changed.last_column_id == 73


@pytest.mark.spec("SCH-15")
@pytest.mark.parametrize("new", [TimestampType(), TimestampNanoType()], ids=str)
@pytest.mark.parametrize("uses", ["partition_source_ids", "all_partition_source_ids"])
def test_a_date_that_any_spec_partitions_by_is_not_promoted(new, uses):
    with pytest.raises(InvalidSchema, match="partition"):
        update(single("date"), format_version=3, **{uses: [1]}).update_column("a", new)
    assert update(single("date"), format_version=3, sort_source_ids=[1]).update_column("a", new).result()


@pytest.mark.spec("SCH-15")
@pytest.mark.parametrize(("old", "new"), [("int", "long"), ("float", "double"), ("decimal(9,2)", "decimal(18,2)")])
def test_promotions_that_keep_partition_values_are_made(old, new):
    result = update(single(old), partition_source_ids=[1]).update_column("a", new).result()
    assert str(result.find_type("a")) == new


def test_dates_stay_dates_unless_they_are_promoted():
    assert update(single("date")).update_column("a", DateType()).result() is not None
