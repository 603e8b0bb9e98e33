import pytest
from icefield.errors import InvalidSchema
from icefield.schema import Schema, assign_fresh_ids, check_schema
from icefield.types import NestedField, StructType
from icefield.types import reserved as reserved_fields
from icefield.types.reserved import MAX_USER_FIELD_ID, METADATA_COLUMNS, RESERVED_FIELDS, is_reserved_id
from vectors import VECTORS


@pytest.mark.spec("RSV-01", "RSV-02", "RSV-03", "RSV-04", "RSV-05", "RSV-06", "RSV-07", "RSV-08", "RSV-09")
@pytest.mark.parametrize("case", VECTORS["reserved_field_ids"], ids=lambda case: case["name"])
def test_a_reserved_field_has_its_id_name_and_type(case):
    field = RESERVED_FIELDS[case["id"]]
    assert field.name == case["name"]
    assert str(field.field_type).partition("<")[0] == case["type"]


@pytest.mark.spec("RSV-01", "SCH-28")
def test_every_reserved_id_is_above_the_users_and_all_are_listed():
    assert VECTORS["max_user_field_id"] == MAX_USER_FIELD_ID
    assert len(RESERVED_FIELDS) == len(VECTORS["reserved_field_ids"])
    assert all(is_reserved_id(id_) for id_ in RESERVED_FIELDS)
    assert not is_reserved_id(MAX_USER_FIELD_ID)


@pytest.mark.spec("RSV-01", "SCH-28")
def test_a_users_column_cannot_have_a_reserved_id():
    assert Schema(NestedField(MAX_USER_FIELD_ID, "a", "int")).highest_field_id == MAX_USER_FIELD_ID
    for id_ in (MAX_USER_FIELD_ID + 1, reserved_fields.POS.field_id):
        with pytest.raises(InvalidSchema, match="reserved"):
            Schema(NestedField(id_, "a", "int"))
        with pytest.raises(InvalidSchema, match="reserved"):
            Schema(NestedField(1, "s", StructType(NestedField(id_, "a", "int"))))


@pytest.mark.spec("RSV-01")
def test_metadata_columns_may_be_read_but_not_be_a_tables_own():
    schema = Schema(NestedField(1, "a", "int"), reserved_fields.FILE, reserved_fields.POS)
    assert schema.highest_field_id == 1
    with pytest.raises(InvalidSchema, match="reserved"):
        check_schema(schema, 2)


@pytest.mark.spec("SCH-28")
def test_ids_that_run_out_are_refused():
    with pytest.raises(InvalidSchema, match="highest"):
        assign_fresh_ids(Schema(NestedField(1, "a", "int"), NestedField(2, "b", "int")), MAX_USER_FIELD_ID)


def test_metadata_columns_are_those_with_an_underscore():
    assert set(METADATA_COLUMNS) == {field.name for field in RESERVED_FIELDS.values()} - {"file_path", "pos", "row"}


@pytest.mark.spec("RSV-06", "RSV-07")
def test_fields_whose_struct_depends_on_the_table_take_it():
    struct = StructType(NestedField(1000, "day", "date"))
    assert reserved_fields.partition_field(struct).field_type == struct
    assert reserved_fields.partition_field(struct).field_id == 2147483642
    assert reserved_fields.DELETE_FILE_ROW.field_id == 2147483544
