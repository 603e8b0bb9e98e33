"""Schema changes as commits: the stored schemas, refused changes, and other metadata that follows."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from icefield.builtin.memory import MemoryFileSystem
from icefield.errors import InvalidArgument, InvalidSchema, ValidationFailed
from icefield.schema import create_name_mapping
from icefield.types import NestedField, StringType
from tables import again, around, ids, meddled, new_table, rows, stored_files, strategy_of


@pytest.mark.spec("SCH-18", "SCH-19")
def test_a_change_appends_a_schema_with_the_next_id_and_makes_it_current():
    table = new_table()
    table.append(rows([1]))
    with table.update_schema() as update:
        update.add_column("extra", "int", doc="more")
    with table.update_schema() as update:
        update.add_column("further", StringType())
    assert sorted(table.schemas()) == [0, 1, 2]
    assert table.schema().schema_id == 2
    assert [field.name for field in table.schemas()[0].fields] == ["id", "kind", "value"]
    assert [field.name for field in table.schemas()[1].fields] == ["id", "kind", "value", "extra"]
    assert table.schema().find_field("extra").doc == "more"
    assert table.current_snapshot().schema_id == 0
    table.append(pa.table({"id": [2], "extra": pa.array([5], pa.int32())}))
    assert table.current_snapshot().schema_id == 2


@pytest.mark.spec("SCH-19")
def test_going_back_to_a_stored_schema_uses_its_id_again():
    table = new_table()
    table.update_schema().rename_column("kind", "sort").commit()
    table.update_schema().rename_column("sort", "kind").commit()
    assert table.schema().schema_id == 0
    assert sorted(table.schemas()) == [0, 1]


@pytest.mark.spec("SCH-20", "VER-01")
def test_version_1_metadata_holds_the_current_schema_next_to_the_list():
    table = new_table(**{"format-version": "1"})
    table.update_schema().add_column("extra", "int").commit()
    stored = json.loads(MemoryFileSystem.files[table.metadata_location][0])
    assert [field["name"] for field in stored["schema"]["fields"]] == ["id", "kind", "value", "extra"]
    assert stored["current-schema-id"] == 1
    assert [schema["schema-id"] for schema in stored["schemas"]] == [0, 1]


@pytest.mark.spec("SCH-05")
def test_the_id_of_a_deleted_column_is_never_given_again():
    table = new_table()
    table.update_schema().add_column("a", "int").add_column("b", "int").commit()
    table.update_schema().delete_column("b").commit()
    table.update_schema().add_column("b", "int").commit()
    assert table.schema().find_field("b").field_id == 6
    assert table.metadata.last_column_id == 6


@pytest.mark.spec("SCH-07", "SCH-01")
def test_a_column_that_is_dropped_and_added_again_is_another_column():
    table = new_table()
    table.append(rows([1], "old"))
    table.update_schema().delete_column("kind").commit()
    assert table.scan().to_arrow().column_names == ["id", "value"]
    table.update_schema().add_column("kind", "string").commit()
    assert table.scan().to_arrow()["kind"].to_pylist() == [None]


@pytest.mark.spec("SCH-06", "SCH-09", "SCH-01")
def test_renamed_and_moved_columns_read_from_old_files():
    table = new_table()
    table.append(rows([1], "x"))
    files = stored_files(table)
    with table.update_schema() as update:
        update.rename_column("kind", "sort").move_first("sort").move_after("value", "sort").move_before("id", "value")
    assert table.scan().to_arrow().to_pylist() == [{"sort": "x", "id": 1, "value": 1.0}]
    assert {name for name in stored_files(table) - files if name.endswith((".avro", ".parquet"))} == set()


@pytest.mark.spec("SCH-10", "SCH-11", "SCH-13", "PRJ-16")
def test_a_type_is_promoted_and_never_narrowed():
    schema = pa.schema([("i", pa.int32()), ("f", pa.float32())])
    table = new_table(schema=schema)
    table.append(pa.table({"i": [1], "f": [0.5]}, schema=schema))
    table.update_schema().update_column("i", "long").update_column("f", "double").commit()
    table.append(pa.table({"i": [2**40], "f": [0.25]}))
    assert table.scan("i > 0").to_arrow().sort_by("i").to_pylist() == [{"i": 1, "f": 0.5}, {"i": 2**40, "f": 0.25}]
    for column, narrower in (("i", "int"), ("f", "float"), ("i", "string")):
        with pytest.raises(InvalidSchema):
            table.update_schema().update_column(column, narrower)


@pytest.mark.spec("SCH-21", "SCH-22")
def test_a_column_may_become_optional_and_required_only_when_forced():
    table = new_table(schema=pa.schema([pa.field("id", pa.int64(), nullable=False), ("kind", pa.string())]))
    with pytest.raises(InvalidSchema):
        table.update_schema().update_column("kind", required=True)
    with pytest.raises(InvalidSchema, match="required"):
        table.update_schema().add_column("more", "int", required=True)
    table.update_schema().make_column_optional("id").commit()
    assert not table.schema().find_field("id").required
    table.update_schema(allow_incompatible_changes=True).update_column("id", required=True).commit()
    assert table.schema().find_field("id").required
    table.update_schema().allow_incompatible_changes().add_column("more", "int", required=True).commit()
    assert table.schema().find_field("more").required


@pytest.mark.spec("SCH-23")
def test_map_keys_and_the_frames_of_lists_and_maps_cannot_be_changed():
    schema = pa.schema(
        [("m", pa.map_(pa.struct([("k", pa.int32())]), pa.struct([("v", pa.int32())]))), ("l", pa.list_(pa.int32()))]
    )
    table = new_table(schema=schema)
    for path in (("m", "key"), ("m", "value"), ("l", "element"), ("m", "key", "k")):
        with pytest.raises(InvalidSchema):
            table.update_schema().delete_column(path)
    with pytest.raises(InvalidSchema):
        table.update_schema().add_column(("m", "key", "more"), "int")
    table.update_schema().add_column(("m", "value", "w"), "int").update_column(("l", "element"), "long").commit()
    assert str(table.schema().find_type("l")) == "list<long>"


@pytest.mark.spec("SCH-24")
def test_a_name_that_is_taken_is_refused_and_a_dot_in_a_name_is_a_dot():
    table = new_table(schema=pa.schema([("a.b", pa.int32()), ("a", pa.struct([("b", pa.int32())]))]))
    with pytest.raises(InvalidSchema):
        table.update_schema().add_column(("a", "b"), "int")
    with pytest.raises(InvalidSchema):
        table.update_schema().add_column(("a.b",), "int")
    with pytest.raises(InvalidArgument, match="dot"):
        table.update_schema().add_column("a.c", "int")
    table.update_schema().rename_column(("a.b",), "flat").rename_column(("a", "b"), "nested").commit()
    assert table.schema().column_names == ["flat", "a", "a.nested"]


@pytest.mark.spec("SCH-25")
def test_a_column_of_the_current_spec_or_order_cannot_be_dropped_but_one_of_an_old_spec_can():
    table = new_table("kind")
    table.append(rows([1], "a"))
    table.append(rows([2], "b"))
    with pytest.raises(InvalidSchema, match="partition spec"):
        table.update_schema().delete_column("kind")
    table.update_sort_order().asc("value").commit()
    with pytest.raises(InvalidSchema, match="sort order"):
        table.update_schema().delete_column("value")
    table.update_spec().remove_field("kind").commit()
    table.update_schema().delete_column("kind").commit()
    # The old manifests are still planned, read, filtered and rewritten, although a source column is gone.
    assert ids(table) == [1, 2]
    assert ids(table, "id = 2") == [2]
    table.delete("id = 1")
    table.append(pa.table({"id": [3]}))
    assert ids(table) == [2, 3]
    assert table.inspect.partitions().num_rows == 2


@pytest.mark.spec("SCH-26", "COMMIT-16")
def test_of_two_concurrent_schema_changes_one_fails_and_a_concurrent_append_lets_it_retry():
    table = new_table()
    table.append(rows([1]))
    holder = meddled(table, lambda other: other.append(rows([2])))
    holder.update_schema().add_column("mine", "int").commit()
    assert holder.schema().has_field("mine")
    assert ids(holder) == [1, 2]
    loser = meddled(table.refresh(), lambda other: other.update_schema().add_column("theirs", "int").commit())
    with pytest.raises(ValidationFailed, match="current schema"):
        loser.update_schema().add_column("ours", "int").commit()
    assert not table.refresh().schema().has_field("ours")
    stale = again(table)
    table.update_schema().add_column("z", "int").commit()
    with pytest.raises(ValidationFailed):
        stale.update_schema().rename_column("value", "v").commit()


@pytest.mark.spec("SCH-26", "COMMIT-16")
def test_a_column_that_was_added_and_taken_away_meanwhile_is_a_conflict_for_its_id():
    table = new_table()

    def there_and_back(other):
        other.update_schema().add_column("brief", "int").commit()
        other.update_schema().delete_column("brief").commit()

    with pytest.raises(ValidationFailed, match="last assigned column id"):
        meddled(table, there_and_back).update_schema().add_column("mine", "int").commit()


@pytest.mark.spec("SCH-29")
def test_the_name_mapping_and_the_properties_of_a_column_follow_its_name():
    table = new_table()
    table.set_properties(
        {
            "schema.name-mapping.default": create_name_mapping(table.schema()).to_string(),
            "write.metadata.metrics.column.kind": "full",
            "write.metadata.metrics.column.value": "none",
            "write.parquet.bloom-filter-enabled.column.kind": "true",
            "write.metadata.metrics.column.nowhere": "counts",
        }
    )
    table.update_schema().rename_column("kind", "sort").delete_column("value").add_column("new", "int").commit()
    assert table.properties["write.metadata.metrics.column.sort"] == "full"
    assert table.properties["write.parquet.bloom-filter-enabled.column.sort"] == "true"
    assert table.properties["write.metadata.metrics.column.nowhere"] == "counts"
    assert not {f"write.metadata.metrics.column.{name}" for name in ("kind", "value")} & table.properties.keys()
    mapping = table.name_mapping()
    assert mapping.find("kind").field_id == mapping.find("sort").field_id == 2
    assert mapping.find("new").field_id == 4


@pytest.mark.spec("SCH-29")
def test_properties_of_swapped_columns_are_swapped():
    table = new_table()
    prefix = "write.metadata.metrics.column."
    table.set_properties({f"{prefix}id": "none", f"{prefix}value": "full"})
    with table.update_schema() as update:
        update.rename_column("id", "tmp").rename_column("value", "id").rename_column("tmp", "value")
    assert (table.properties[f"{prefix}id"], table.properties[f"{prefix}value"]) == ("full", "none")


@pytest.mark.spec("SCH-08")
def test_a_deleted_column_comes_back_if_no_row_could_lack_it():
    table = new_table(schema=pa.schema([pa.field("id", pa.int64(), nullable=False), ("kind", pa.string())]))
    table.append(pa.table({"id": [1], "kind": ["a"]}))
    table.update_schema().delete_column("kind").commit()
    table.append(pa.table({"id": [2]}))
    table.update_schema().undelete_column("kind").commit()
    assert table.scan().to_arrow().sort_by("id")["kind"].to_pylist() == ["a", None]
    table.update_schema().delete_column("id").commit()
    back = table.update_schema().undelete_column("id")
    with pytest.raises(ValidationFailed):
        meddled(table, lambda other: other.append(pa.table({"kind": ["x"]}))).stage(back)
    table.refresh()
    with pytest.raises(InvalidSchema, match="cannot bring back required"):
        table.update_schema().undelete_column("id")


@pytest.mark.spec("SCH-30", "SCAN-63")
def test_time_travel_shows_the_columns_of_its_time_and_a_branch_the_current_ones():
    table = new_table()
    table.append(rows([1], "gone"))
    before = table.current_snapshot().snapshot_id
    table.manage_snapshots().create_branch(before, "dev").create_tag(before, "v1").commit()
    table.update_schema().delete_column("kind").add_column("new", "int").commit()
    assert table.scan(snapshot_id=before).to_arrow().to_pylist() == [{"id": 1, "kind": "gone", "value": 1.0}]
    assert table.scan(ref="v1").to_arrow().column_names == ["id", "kind", "value"]
    assert table.scan(ref="dev").to_arrow().to_pylist() == [{"id": 1, "value": 1.0, "new": None}]
    assert table.scan().to_arrow().column_names == ["id", "value", "new"]


def test_schemas_are_united_by_name():
    table = new_table()
    table.update_schema().union_by_name(
        pa.schema([("id", pa.int64()), ("more", pa.struct([("x", pa.int32())]))])
    ).commit()
    assert str(table.schema().find_type("more")) == "struct<6: x: optional int>" or table.schema().has_field("more.x")


def test_defaults_of_version_3_and_identifier_fields_are_stored():
    table = new_table(schema=pa.schema([pa.field("id", pa.int64(), nullable=False)]), **{"format-version": "3"})
    table.append(pa.table({"id": [1]}))
    table.update_schema().add_column("n", "int", default_value=7).set_identifier_fields("id").commit()
    table.update_schema().set_default_value("n", 8).commit()
    assert table.schema().identifier_field_ids == (1,)
    assert table.scan().to_arrow()["n"].to_pylist() == [7]
    table.append(pa.table({"id": [2]}))
    assert sorted(table.scan().to_arrow()["n"].to_pylist()) == [7, 8]


@pytest.mark.spec("COMMIT-28")
def test_a_change_that_amounts_to_none_makes_no_version():
    table = new_table()
    before = table.metadata_location
    with table.update_schema():
        pass
    table.update_schema().rename_column("id", "x").rename_column("x", "id").commit()
    assert table.refresh().metadata_location == before


def test_a_field_object_is_no_type():
    with pytest.raises((InvalidArgument, InvalidSchema)):
        new_table().update_schema().add_column("x", NestedField(1, "x", StringType()))


def test_a_failed_block_commits_nothing():
    table = new_table()
    holder = around(table)

    def change_and_fail():
        with holder.update_schema() as update:
            update.add_column("x", "int")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        change_and_fail()
    assert strategy_of(holder).proposed == []
