"""New tables: field ids are assigned, and the format version follows from the argument or the properties."""

import time
from dataclasses import replace
from uuid import UUID

import pytest
from icefield.errors import InvalidArgument, InvalidSchema, UnsupportedFeature
from icefield.metadata import RefType, SnapshotRef, new_table_metadata
from icefield.metadata.updates.apply import created_by, creation_updates
from icefield.metadata.updates.definitions import SetCurrentSchema, SetDefaultSortOrder, SetDefaultSpec
from icefield.metadata.updates.snapshots import AddSnapshot, SetSnapshotRef
from icefield.metadata.updates.table import AssignUUID, SetLocation, SetProperties, UpgradeFormatVersion
from icefield.partitioning import UNPARTITIONED, UNSORTED, PartitionField, PartitionSpec, SortField, SortOrder
from icefield.schema import Schema
from icefield.types import ListType, LongType, NestedField, StringType, StructType, TimestampNanoType
from metadata_examples import BY_DAY, NOW_MS, SCHEMA, new_table, snapshot_for, written

ODD = Schema(
    NestedField(70, "id", LongType(), True),
    NestedField(30, "list", ListType(31, StructType(NestedField(90, "x", StringType())), False)),
    NestedField(5, "name", StringType()),
    schema_id=8,
    identifier_field_ids=[70],
)


@pytest.mark.spec("SCH-27", "META-07", "SCH-05", "PART-17", "SORT-03", "META-12", "META-20")
def test_ids_are_given_afresh_and_the_spec_and_order_follow():
    spec = PartitionSpec(PartitionField(5, 4711, "bucket[4]", "b"), PartitionField(70, 3, "identity", "id"), spec_id=6)
    order = SortOrder(SortField(5, "identity", "asc", "nulls-first"), order_id=9)
    metadata = new_table_metadata(ODD, spec, order, "s3://b/t", {"a": "b"})
    schema = metadata.schema()
    assert sorted(schema.field_ids) == list(range(1, 6))
    assert (schema.schema_id, metadata.last_column_id) == (0, 5)
    assert schema.identifier_field_ids == (schema.find_field("id").field_id,)
    first, second = metadata.spec().fields
    assert (first.field_id, first.source_id) == (1000, schema.find_field("name").field_id)
    assert (second.field_id, second.source_id) == (1001, schema.find_field("id").field_id)
    assert (metadata.default_spec_id, metadata.last_partition_id) == (0, 1001)
    assert (metadata.default_sort_order_id, metadata.sort_order().fields[0].source_id) == (1, first.source_id)
    assert metadata.properties == {"a": "b"}


@pytest.mark.spec("PART-17", "SORT-02", "PART-16", "META-15", "META-06")
@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_a_plain_new_table_is_unpartitioned_unsorted_and_empty(format_version):
    before = time.time_ns() // 1_000_000
    metadata = new_table_metadata(SCHEMA, UNPARTITIONED, UNSORTED, "s3://b/t/", {}, format_version)
    assert before <= metadata.last_updated_ms <= time.time_ns() // 1_000_000
    assert (metadata.last_partition_id, metadata.default_spec_id, metadata.spec().fields) == (999, 0, ())
    assert (metadata.default_sort_order_id, metadata.sort_order()) == (0, UNSORTED)
    assert (metadata.last_sequence_number, metadata.next_row_id) == (0, 0)
    assert metadata.current_snapshot() is None
    assert dict(metadata.refs) == {}
    assert metadata.location == "s3://b/t"
    assert UUID(metadata.table_uuid).version == 4
    assert written(metadata)["last-partition-id"] == 999
    assert written(metadata)["sort-orders"] == [{"order-id": 0, "fields": []}]


@pytest.mark.spec("META-38", "META-02")
@pytest.mark.parametrize(
    ("given", "stated", "expected"), [(None, None, 2), (None, "1", 1), (None, "3", 3), (1, None, 1), (3, "3", 3)]
)
def test_the_format_version_is_the_given_one_or_the_property_which_is_not_stored(given, stated, expected):
    properties = {} if stated is None else {"format-version": stated}
    metadata = new_table(given, properties={**properties, "a": "b"})
    assert metadata.format_version == expected
    assert metadata.properties == {"a": "b"}


@pytest.mark.spec("META-38", "VER-11")
def test_a_format_version_that_is_none_or_contradicted_is_refused():
    with pytest.raises(InvalidArgument, match="disagree"):
        new_table(1, properties={"format-version": "2"})
    for wrong in (0, -1, "two", True, 2.5):
        with pytest.raises(InvalidArgument):
            new_table(wrong)
    with pytest.raises(InvalidArgument, match="format-version"):
        new_table(None, properties={"format-version": "two"})
    for beyond in ({"format_version": 4}, {"format_version": None, "properties": {"format-version": "4"}}):
        with pytest.raises(UnsupportedFeature, match="4"):
            new_table(**beyond)


@pytest.mark.spec("TYP-27", "DEF-12")
def test_a_new_table_cannot_hold_what_its_version_lacks():
    nanos = Schema(NestedField(1, "ns", TimestampNanoType()))
    default = Schema(NestedField(1, "n", LongType(), False, None, 5, 5))
    for schema in (nanos, default):
        for format_version in (1, 2):
            with pytest.raises(UnsupportedFeature, match="3"):
                new_table(format_version, schema=schema, spec=UNPARTITIONED)
        assert new_table(3, schema=schema, spec=UNPARTITIONED).schema() == schema


@pytest.mark.spec("PART-18", "PART-20")
def test_a_spec_or_order_that_does_not_fit_is_refused():
    for spec in (
        PartitionSpec(PartitionField(99, 1000, "identity", "x")),
        PartitionSpec(PartitionField(3, 1000, "day", "x")),
        PartitionSpec(PartitionField(3, 1000, "zorder", "x")),
        PartitionSpec(*BY_DAY.fields, PartitionField(3, 1001, "identity", "ts_day")),
    ):
        with pytest.raises((InvalidSchema, UnsupportedFeature)):
            new_table(spec=spec)
    with pytest.raises(InvalidSchema):
        new_table(sort_order=SortOrder(SortField(99, "identity", "asc", "nulls-first"), order_id=1))


@pytest.mark.spec("META-03")
def test_a_uuid_can_be_given_and_must_be_one():
    uuid = "fb072c92-a02b-11e9-ae9c-1bb7bc9eca94"
    assert new_table(table_uuid=uuid.upper()).table_uuid == uuid
    with pytest.raises(InvalidArgument, match="uuid"):
        new_table(table_uuid="x")
    assert new_table().table_uuid != new_table().table_uuid
    assert new_table().last_updated_ms == NOW_MS


@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_updates_of_a_creation_lead_to_the_same_metadata(version):
    given = new_table_metadata(SCHEMA, BY_DAY, UNSORTED, "s3://b/t", {"a": "b"}, version, now_ms=NOW_MS)
    assert written(created_by(creation_updates(given), now_ms=NOW_MS)) == written(given)
    bare = new_table_metadata(Schema(), location="s3://b/t", format_version=version, now_ms=NOW_MS)
    assert bare.last_column_id == 0
    assert written(created_by(creation_updates(bare), now_ms=NOW_MS)) == written(bare)


def test_a_creation_without_uuid_and_version_has_a_new_uuid_and_the_usual_version():
    given = new_table_metadata(SCHEMA, location="s3://b/t")
    updates = [each for each in creation_updates(given) if not isinstance(each, AssignUUID | UpgradeFormatVersion)]
    made = created_by(updates)
    assert UUID(made.table_uuid).version == 4
    assert made.format_version == 2
    assert not any(isinstance(each, SetProperties) for each in creation_updates(given))
    unnamed = replace(given, table_uuid=None, format_version=1)
    assert not any(isinstance(each, AssignUUID) for each in creation_updates(unnamed))


def test_a_creation_that_leaves_something_out_is_refused_and_the_part_is_named():
    updates = creation_updates(new_table_metadata(SCHEMA, location="s3://b/t"))
    for kind, part in [
        (SetLocation, "a location"),
        (SetCurrentSchema, "a current schema"),
        (SetDefaultSpec, "a default partition spec"),
        (SetDefaultSortOrder, "a default sort order"),
    ]:
        with pytest.raises(InvalidArgument, match=f"leave out {part}$"):
            created_by([each for each in updates if not isinstance(each, kind)])


def test_a_creation_may_end_with_an_append_and_a_version_above_three_is_refused():
    given = new_table_metadata(SCHEMA, location="s3://b/t")
    updates, first = creation_updates(given), snapshot_for(given, 1)
    made = created_by([*updates, AddSnapshot(first), SetSnapshotRef("main", SnapshotRef(1, RefType.BRANCH))])
    assert made.current_snapshot_id == 1
    assert [entry.snapshot_id for entry in made.snapshot_log] == [1]
    with pytest.raises(UnsupportedFeature):
        created_by([UpgradeFormatVersion(4), *updates])
