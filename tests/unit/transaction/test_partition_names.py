"""No column gets the name of a partition field, or the reverse, because Java would refuse the table."""

from __future__ import annotations

import json

import icefield
import pyarrow as pa
import pytest
from icefield.builtin.memory import MemoryFileSystem
from icefield.catalog import Table
from icefield.errors import InvalidSchema
from icefield.metadata import apply_updates, encode_metadata
from icefield.metadata.updates.definitions import AddPartitionSpec, AddSchema, SetCurrentSchema
from icefield.partitioning import PartitionField, PartitionSpec
from icefield.schema import Schema
from icefield.types import NestedField, StructType
from tables import ids, memory_catalog, new_table, rows

NESTED = Schema(
    NestedField(1, "id", "long"),
    NestedField(2, "kind", "string"),
    NestedField(3, "where", StructType(NestedField(4, "city", "string"))),
)


def test_a_column_cannot_be_added_under_the_name_of_a_partition_field():
    table = new_table("bucket[4](id)")
    with pytest.raises(InvalidSchema, match="'id_bucket_4' has the name of a partition field, whose source is 'id'"):
        table.update_schema().add_column("id_bucket_4", "int").commit()
    with pytest.raises(InvalidSchema, match="would refuse the table"):
        table.update_schema().union_by_name(pa.schema([("id_bucket_4", pa.int32())])).commit()
    with pytest.raises(InvalidSchema, match="would refuse the table"):
        table.update_schema().rename_column("value", "id_bucket_4").commit()
    table.update_schema().add_column("ID_bucket_4", "int").commit()  # Java minds the case
    assert table.schema().column_names == ["id", "kind", "value", "ID_bucket_4"]


def test_the_name_of_a_former_specs_field_is_taken_as_well():
    table = new_table("kind")
    table.append(rows([1]))
    table.update_spec().remove_field("kind").commit()
    table.update_schema().delete_column("kind").commit()
    with pytest.raises(InvalidSchema, match="of the former partition spec 0, whose source is column 2, which was dele"):
        table.update_schema().add_column("kind", "string").commit()
    table.update_schema().undelete_column("kind").commit()
    assert table.scan().to_arrow()["kind"].to_pylist() == rows([1])["kind"].to_pylist()


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_column_that_was_renamed_away_from_its_partition_field_keeps_the_name_taken(version: str):
    table = new_table("kind", **{"format-version": version})
    table.update_schema().rename_column("kind", "sort").commit()
    with pytest.raises(InvalidSchema, match="whose source is 'sort'"):
        table.update_schema().add_column("kind", "string").commit()
    table.update_schema().rename_column("sort", "kind").commit()


def test_names_of_nested_fields_count_in_full():
    catalog = memory_catalog()
    with pytest.raises(InvalidSchema, match="name it otherwise"):
        catalog.create_table("db.t", NESTED, partition_spec=[("id", "bucket[4]", "where.city")])
    table = catalog.create_table("db.t", NESTED, partition_spec=[("id", "bucket[4]", "where.zip")])
    with pytest.raises(InvalidSchema, match=r"'where\.zip' has the name of a partition field"):
        table.update_schema().add_column(("where", "zip"), "string").commit()
    with pytest.raises(InvalidSchema, match=r"'where\.zip' has the name of a partition field"):
        table.update_schema().rename_column(("where", "city"), "zip").commit()
    table.update_schema().add_column("zip", "string").commit()
    with pytest.raises(InvalidSchema, match="name it otherwise"):
        table.update_spec().rename_field("where.zip", "where.city").commit()
    with pytest.raises(InvalidSchema, match="name it otherwise"):
        table.update_spec().add_field("kind", "bucket[2]", "zip").commit()
    table.update_spec().add_identity(("where", "city")).commit()
    assert [field.name for field in table.spec().fields] == ["where.zip", "where.city"]


def test_a_spec_and_a_column_of_one_transaction_may_not_share_a_name():
    table = new_table()
    transaction = table.transaction()
    transaction.update_schema().add_column("extra", "int").commit()
    with pytest.raises(InvalidSchema, match="name it otherwise"):
        transaction.update_spec().add_field("id", "bucket[4]", "extra").commit()
    transaction = table.transaction()
    transaction.update_spec().add_field("id", "bucket[4]", "extra").commit()
    with pytest.raises(InvalidSchema, match="has the name of a partition field"):
        transaction.update_schema().add_column("extra", "int").commit()


def test_updates_of_metadata_are_checked_by_what_they_lead_to():
    metadata = new_table("bucket[4](id)").metadata
    schema = metadata.schema()
    added = Schema(*schema.fields, NestedField(9, "p", "int"))
    spec = PartitionSpec(PartitionField(1, 1001, "bucket[8]", "p"))
    with pytest.raises(InvalidSchema, match="'p' has the name of a partition field of the former partition spec 1"):
        apply_updates(metadata, [AddPartitionSpec(spec), AddSchema(added, 9), SetCurrentSchema()])
    # Only the current schema counts.
    assert len(apply_updates(metadata, [AddPartitionSpec(spec), AddSchema(added, 9)]).schemas) == 2


def misnamed_table() -> Table:
    """A table as another writer could have left it: column ``value`` renamed to the partition field's name."""
    catalog = memory_catalog()
    table = new_table("bucket[4](id)", catalog=catalog)
    table.append(rows([1, 2]))
    data, *more = MemoryFileSystem.files[table.metadata_location]
    data = data.replace(b'"name":"value"', b'"name":"id_bucket_4"')
    MemoryFileSystem.files[table.metadata_location] = (data, *more)
    return catalog.load_table(table.name())


def test_a_table_of_another_writer_with_such_a_name_is_read_changed_and_mended():
    table = misnamed_table()
    opened = icefield.open_table(table.metadata_location)
    assert opened.schema().column_names == ["id", "kind", "id_bucket_4"]
    assert ids(opened) == [1, 2]
    table.update_schema().add_column("more", "int").commit()
    table.append(pa.table({"id": [3], "more": pa.array([1], pa.int32())}))
    assert table.schema().column_names == ["id", "kind", "id_bucket_4", "more"]
    assert ids(table) == [1, 2, 3]
    table.update_spec().rename_field("id_bucket_4", "id_bucket").commit()
    table.append(pa.table({"id": [4]}))
    assert ids(table) == [1, 2, 3, 4]


def test_a_table_with_such_a_name_is_not_registered():
    metadata = json.loads(encode_metadata(new_table("bucket[4](id)").metadata))
    metadata["schemas"][0]["fields"][2]["name"] = "id_bucket_4"
    location = f"{metadata['location']}/elsewhere.metadata.json"
    catalog = memory_catalog()
    catalog.io.put(location, json.dumps(metadata).encode(), icefield.abc.PutMode.CREATE)
    with pytest.raises(InvalidSchema, match="choose another name"):
        catalog.register_table("db.other", location)
    assert not catalog.table_exists("db.other")
