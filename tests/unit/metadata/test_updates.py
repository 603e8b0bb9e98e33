"""Updates of the table itself: identity, version, location, properties, schemas, specs and sort orders."""

from dataclasses import replace

import pytest
from icefield.errors import InvalidArgument, InvalidSchema, UnsupportedFeature
from icefield.metadata import apply_updates, decode_metadata, encode_metadata
from icefield.metadata.entries import EncryptedKey, PartitionStatisticsFile, StatisticsFile
from icefield.metadata.refs import MAIN_BRANCH, branch
from icefield.metadata.updates.base import TableUpdate
from icefield.metadata.updates.definitions import (
    AddPartitionSpec,
    AddSchema,
    AddSortOrder,
    RemovePartitionSpecs,
    RemoveSchemas,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    choose_schema,
    choose_sort_order,
    choose_spec,
)
from icefield.metadata.updates.snapshots import (
    AddSnapshot,
    RemovePartitionStatistics,
    RemoveSnapshotRef,
    RemoveStatistics,
    SetPartitionStatistics,
    SetSnapshotRef,
    SetStatistics,
)
from icefield.metadata.updates.table import (
    AddEncryptionKey,
    AssignUUID,
    RemoveEncryptionKey,
    RemoveProperties,
    SetLocation,
    SetProperties,
    UpgradeFormatVersion,
)
from icefield.partitioning import UNSORTED, PartitionField, PartitionSpec, SortField, SortOrder
from icefield.schema import Schema
from icefield.types import LongType, NestedField, StringType, TimestampNanoType
from metadata_examples import (
    BY_DAY,
    LOCATION,
    NOW_MS,
    V1_INLINE,
    V1_LOGGED,
    V1_MINIMAL,
    V2,
    document,
    load,
    new_table,
    snapshot_for,
    written,
)

EXTRA = NestedField(4, "extra", StringType())


def with_column(schema: Schema, *fields: NestedField) -> Schema:
    return Schema(*schema.fields, *fields)


def test_nothing_to_do_gives_the_very_same_metadata():
    metadata = new_table(properties={"a": "b"})
    for updates in (
        [],
        [SetProperties({"a": "b"}), RemoveProperties(["never"]), SetLocation("s3://b/wh/t/")],
        [AssignUUID(metadata.table_uuid.upper()), UpgradeFormatVersion(2), RemoveSnapshotRef("never")],
        [SetDefaultSpec(0), SetCurrentSchema(0), SetDefaultSortOrder(0), AddSortOrder(UNSORTED)],
        [RemoveStatistics(5), RemovePartitionStatistics(5), RemoveSchemas([]), RemoveEncryptionKey("never")],
    ):
        assert apply_updates(metadata, updates) is metadata


def test_every_update_says_its_name_in_the_rest_protocol():
    for update in (AssignUUID(""), SetLocation(""), SetProperties({}), AddSnapshot(None), SetSnapshotRef("", None)):
        assert isinstance(update, TableUpdate)
        assert update.action == update.action.lower()


@pytest.mark.spec("META-06", "META-25")
@pytest.mark.parametrize(("clock", "expected"), [(NOW_MS + 5, NOW_MS + 5), (NOW_MS - 3_600_000, NOW_MS)])
def test_the_time_of_a_change_never_runs_backwards(clock, expected):
    changed = apply_updates(new_table(), [SetProperties({"a": "b"})], now_ms=clock)
    assert changed.last_updated_ms == expected
    assert new_table().next_timestamp_ms(clock) == expected


@pytest.mark.spec("META-03")
def test_a_uuid_is_given_once():
    metadata = load(V1_MINIMAL)
    uuid = "fb072c92-a02b-11e9-ae9c-1bb7bc9eca94"
    assert apply_updates(metadata, [AssignUUID(uuid.upper())]).table_uuid == uuid
    with pytest.raises(InvalidArgument, match="cannot change"):
        apply_updates(load(V2), [AssignUUID("00000000-0000-4000-8000-000000000000")])
    for wrong in ("", "nonsense", None):
        with pytest.raises(InvalidArgument, match="no uuid"):
            apply_updates(metadata, [AssignUUID(wrong)])


@pytest.mark.spec("VER-07", "VER-08", "VER-02", "META-38", "ROW-11", "META-03", "SNAP-16")
@pytest.mark.parametrize("name", [V1_MINIMAL, V1_LOGGED, V1_INLINE])
@pytest.mark.parametrize("as_property", [False, True])
def test_a_table_is_upgraded_from_1_to_2_to_3_by_its_metadata_alone(name, as_property):
    first = load(name)

    def upgraded(metadata, version):
        update = SetProperties({"format-version": str(version)}) if as_property else UpgradeFormatVersion(version)
        return decode_metadata(encode_metadata(apply_updates(metadata, [update])), LOCATION)

    second = upgraded(first, 2)
    third = upgraded(second, 3)
    assert (second.format_version, third.format_version) == (2, 3)
    assert second.table_uuid is not None
    assert third.table_uuid == second.table_uuid
    assert (third.last_sequence_number, third.next_row_id) == (0, 0)
    assert "format-version" not in third.properties
    for metadata in (second, third):
        assert metadata.schema() == first.schema()
        assert metadata.spec() == first.spec()
        assert metadata.current_snapshot_id == first.current_snapshot_id
        assert metadata.refs == first.refs
        for before, after, source in zip(
            first.snapshots, metadata.snapshots, written(metadata)["snapshots"], strict=True
        ):
            assert after.sequence_number == source["sequence-number"] == 0
            assert (after.manifest_list, after.manifests) == (before.manifest_list, before.manifests)
            assert "operation" in source["summary"]
            assert after.operation == before.operation


@pytest.mark.spec("META-39", "VER-11", "META-38")
def test_a_format_version_is_neither_lowered_nor_raised_beyond_3():
    for wrong in (UpgradeFormatVersion(1), SetProperties({"format-version": "1"})):
        with pytest.raises(InvalidArgument, match="cannot be lowered"):
            apply_updates(new_table(2), [wrong])
    for beyond in (UpgradeFormatVersion(4), SetProperties({"format-version": "4"})):
        with pytest.raises(UnsupportedFeature, match="4"):
            apply_updates(new_table(2), [beyond])


@pytest.mark.spec("META-04")
@pytest.mark.parametrize("wrong", ["", "relative/path", "./x", None, 7, "s3"])
def test_a_location_must_be_absolute(wrong):
    with pytest.raises(InvalidArgument, match="location"):
        apply_updates(new_table(), [SetLocation(wrong)])
    with pytest.raises(InvalidArgument, match="location"):
        new_table(location=wrong)


@pytest.mark.spec("META-04", "FS-15")
@pytest.mark.parametrize(
    "right", ["s3://b/t", "file:///tmp/t", "/tmp/t", "hdfs://nn:8020/wh/t", "memory://t", "file:/t"]
)
def test_a_location_loses_the_slashes_at_its_end(right):
    assert apply_updates(new_table(), [SetLocation(right + "//")]).location == right


@pytest.mark.spec("META-13")
def test_properties_are_strings_that_are_set_and_removed():
    metadata = apply_updates(new_table(properties={"a": "1", "b": "2"}), [SetProperties({"b": "3", "c": "4"})])
    assert metadata.properties == {"a": "1", "b": "3", "c": "4"}
    metadata = apply_updates(metadata, [RemoveProperties(iter(["a", "nothing"])), RemoveProperties("b")])
    assert metadata.properties == {"c": "4"}


@pytest.mark.spec("META-13")
@pytest.mark.parametrize("wrong", [{"a": 1}, {"a": None}, {"a": True}, {1: "a"}, {"": "a"}, {"a": b"b"}])
def test_a_property_that_is_no_string_is_refused(wrong):
    with pytest.raises(InvalidArgument, match="string"):
        apply_updates(new_table(), [SetProperties(wrong)])
    with pytest.raises(InvalidArgument, match="string"):
        new_table(properties=wrong)


def test_an_update_can_be_applied_more_than_once():
    drop = RemoveProperties(name for name in ["a"])
    metadata = new_table(properties={"a": "1"})
    assert apply_updates(metadata, [drop]).properties == apply_updates(metadata, [drop]).properties == {}


@pytest.mark.spec("SCH-18", "SCH-19", "SCH-05", "META-07", "META-09")
def test_a_schema_gets_the_next_id_and_an_identical_one_is_chosen_by_its_own():
    metadata = new_table()
    wider = with_column(metadata.schema(), EXTRA)
    second = apply_updates(metadata, [AddSchema(wider), SetCurrentSchema(-1)])
    assert [schema.schema_id for schema in second.schemas] == [0, 1]
    assert second.current_schema_id == second.schema().schema_id == 1
    assert second.schema() == wider
    assert second.last_column_id == 4
    assert apply_updates(second, [AddSchema(metadata.schema())]) is second
    third = apply_updates(second, choose_schema(second, metadata.schema(), 4))
    assert (len(third.schemas), third.current_schema_id, third.last_column_id) == (2, 0, 4)
    assert decode_metadata(encode_metadata(third), LOCATION) == third


@pytest.mark.spec("SCH-05", "META-07")
def test_the_last_column_id_never_falls():
    metadata = new_table()
    wider = apply_updates(metadata, [AddSchema(with_column(metadata.schema(), EXTRA), last_column_id=9)])
    assert wider.last_column_id == 9
    assert apply_updates(wider, [AddSchema(metadata.schema())]) is wider
    with pytest.raises(InvalidArgument, match="below 9"):
        apply_updates(wider, [AddSchema(metadata.schema(), last_column_id=3)])


@pytest.mark.spec("DEF-12", "TYP-27", "VER-10", "SCH-28")
def test_a_schema_that_the_format_version_cannot_hold_is_refused():
    for format_version, fits in ((1, False), (2, False), (3, True)):
        metadata = new_table(format_version)
        for field in (NestedField(4, "ns", TimestampNanoType()), NestedField(4, "d", LongType(), False, None, 7, 7)):
            update = AddSchema(with_column(metadata.schema(), field))
            if fits:
                assert len(apply_updates(metadata, [update]).schemas) == 2
            else:
                with pytest.raises((InvalidSchema, UnsupportedFeature), match=rf"{field.name}.*3"):
                    apply_updates(metadata, [update])
    with pytest.raises(InvalidSchema, match="2147483448"):
        apply_updates(new_table(), [AddSchema(with_column(new_table().schema(), replace(EXTRA, field_id=2147483448)))])


@pytest.mark.spec("SCH-25")
def test_a_schema_without_a_column_that_the_default_spec_or_order_needs_is_refused():
    metadata = new_table(sort_order=SortOrder(SortField(3, "identity", "asc", "nulls-first"), order_id=1))
    without_ts = Schema(*(field for field in metadata.schema().fields if field.name != "ts"))
    without_name = Schema(*(field for field in metadata.schema().fields if field.name != "name"))
    with pytest.raises(InvalidSchema, match=r"'ts_day'.*column 2"):
        apply_updates(metadata, [AddSchema(without_ts), SetCurrentSchema()])
    with pytest.raises(InvalidSchema, match=r"sort field 0.*column 3"):
        apply_updates(metadata, [AddSchema(without_name), SetCurrentSchema()])
    text = Schema(*(replace(f, field_type=StringType()) if f.name == "ts" else f for f in metadata.schema().fields))
    with pytest.raises(InvalidSchema, match="day"):
        apply_updates(metadata, [AddSchema(text), SetCurrentSchema()])
    respecified = [AddPartitionSpec(PartitionSpec()), SetDefaultSpec(), AddSchema(without_ts), SetCurrentSchema()]
    assert apply_updates(metadata, respecified).schema() == without_ts
    assert apply_updates(metadata, [AddSchema(without_ts)]).schema() == metadata.schema()


@pytest.mark.spec("SCH-25", "PART-19")
def test_a_foreign_table_whose_spec_lost_its_column_can_still_be_changed():
    source = document(V2)
    source["schemas"][0]["fields"].pop()
    metadata = load(source)
    changed = apply_updates(metadata, [AddSchema(with_column(metadata.schema(), EXTRA)), SetCurrentSchema()])
    assert changed.current_schema_id == 1
    assert changed.spec() == metadata.spec()


@pytest.mark.spec("PART-06", "PART-09", "PART-14", "META-12", "COMMIT-26", "META-11")
def test_a_spec_gets_the_next_id_and_an_equivalent_one_is_chosen_by_its_own():
    metadata = new_table()
    by_name = PartitionSpec(PartitionField(3, 1001, "bucket[4]", "name_bucket"))
    second = apply_updates(metadata, [AddPartitionSpec(by_name), SetDefaultSpec(-1)])
    assert [spec.spec_id for spec in second.partition_specs] == [0, 1]
    assert second.default_spec_id == second.spec().spec_id == 1
    assert second.last_partition_id == 1001
    assert apply_updates(second, [AddPartitionSpec(by_name)]) is second
    renumbered = PartitionSpec(PartitionField(2, 1007, "day", "ts_day"), spec_id=9)
    third = apply_updates(second, choose_spec(second, renumbered))
    assert (len(third.partition_specs), third.default_spec_id, third.last_partition_id) == (2, 0, 1001)
    assert decode_metadata(encode_metadata(third), LOCATION) == third


@pytest.mark.spec("PART-20", "COMMIT-26", "PART-18", "PART-02")
@pytest.mark.parametrize(
    ("source_id", "transform", "name"),
    [(2, "zorder[8]", "z"), (99, "identity", "x"), (3, "day", "x"), (2, "day", "id"), (2, "day", "")],
)
def test_a_spec_that_cannot_be_written_is_refused(source_id, transform, name):
    spec = PartitionSpec(PartitionField(source_id, 1001, transform, name))
    with pytest.raises((InvalidSchema, UnsupportedFeature)):
        apply_updates(new_table(), [AddPartitionSpec(spec)])


@pytest.mark.spec("PART-11", "PART-12")
def test_v1_counts_partition_fields_from_1000_in_order():
    with pytest.raises(InvalidSchema, match="1000, 1001"):
        apply_updates(new_table(1), [AddPartitionSpec(PartitionSpec(PartitionField(3, 1001, "identity", "n")))])
    two = PartitionSpec(*BY_DAY.fields, PartitionField(3, 1001, "bucket[4]", "name_bucket"))
    assert apply_updates(new_table(1), [AddPartitionSpec(two)]).last_partition_id == 1001


def test_a_spec_may_use_a_column_that_the_same_change_adds():
    metadata = new_table()
    spec = PartitionSpec(PartitionField(4, 1001, "identity", "extra"))
    updates = [
        AddSchema(with_column(metadata.schema(), EXTRA)),
        SetCurrentSchema(),
        AddPartitionSpec(spec),
        SetDefaultSpec(),
    ]
    changed = apply_updates(metadata, updates)
    assert changed.spec().fields == spec.fields
    with pytest.raises(InvalidSchema):
        apply_updates(metadata, [updates[0], *updates[2:]])


@pytest.mark.spec("SORT-02", "SORT-03", "SORT-08", "META-20", "SORT-01")
def test_the_first_sort_order_has_id_1_and_replaced_ones_stay():
    metadata = new_table()
    assert [order.order_id for order in metadata.sort_orders] == [0]
    by_id = SortOrder(SortField(1, "identity", "asc", "nulls-first"), order_id=7)
    by_name = SortOrder(SortField(3, "identity", "desc", "nulls-last"), order_id=7)
    changed = metadata
    for order in (by_id, by_name, UNSORTED, by_id):
        changed = apply_updates(changed, choose_sort_order(changed, order))
    assert [order.order_id for order in changed.sort_orders] == [0, 1, 2]
    assert changed.default_sort_order_id == 1
    assert changed.sort_order().fields == by_id.fields
    assert decode_metadata(encode_metadata(changed), LOCATION) == changed
    with pytest.raises(InvalidSchema):
        apply_updates(metadata, [AddSortOrder(SortOrder(SortField(77, "identity", "asc", "nulls-first"), order_id=1))])


@pytest.mark.spec("SORT-02")
def test_a_table_that_was_created_sorted_keeps_id_0_for_unsorted():
    metadata = new_table(sort_order=SortOrder(SortField(1, "identity", "asc", "nulls-first"), order_id=5))
    assert metadata.default_sort_order_id == 1
    unsorted = apply_updates(metadata, [AddSortOrder(UNSORTED), SetDefaultSortOrder()])
    assert unsorted.default_sort_order_id == 0
    assert {order.order_id for order in unsorted.sort_orders} == {0, 1}


@pytest.mark.parametrize("update", [SetCurrentSchema(5), SetDefaultSpec(5), SetDefaultSortOrder(5)])
def test_what_does_not_exist_cannot_become_current(update):
    with pytest.raises(InvalidArgument, match=r"no .* 5"):
        apply_updates(new_table(), [update])


@pytest.mark.parametrize("update", [SetCurrentSchema(), SetDefaultSpec(), SetDefaultSortOrder()])
def test_minus_one_needs_something_added_in_the_same_change(update):
    with pytest.raises(InvalidArgument, match="-1"):
        apply_updates(new_table(), [update])


NAMED = with_column(new_table().schema(), EXTRA)
BY_NAME = PartitionSpec(PartitionField(3, 1001, "bucket[4]", "name_bucket"))
SORTED = SortOrder(SortField(1, "identity", "asc", "nulls-first"), order_id=1)
KNOWN = {
    "schema": (AddSchema(new_table().schema()), AddSchema(NAMED), SetCurrentSchema),
    "spec": (AddPartitionSpec(new_table().spec()), AddPartitionSpec(BY_NAME), SetDefaultSpec),
    "order": (AddSortOrder(UNSORTED), AddSortOrder(SORTED), SetDefaultSortOrder),
}


@pytest.mark.parametrize("kind", KNOWN)
def test_minus_one_is_nothing_after_adding_again_what_the_table_has(kind):
    known, new, choose = KNOWN[kind]
    metadata = new_table()
    with pytest.raises(InvalidArgument, match="-1 stands for"):
        apply_updates(metadata, [known, choose()])
    other = apply_updates(metadata, [new, choose()])
    with pytest.raises(InvalidArgument, match="-1 stands for"):
        apply_updates(other, [known, choose()])
    with pytest.raises(InvalidArgument, match="-1 stands for"):
        apply_updates(other, [new, choose()])
    again = apply_updates(metadata, [new, choose(), new, choose(), choose(0), new, choose()])
    assert again.current_schema_id + again.default_spec_id + again.default_sort_order_id == 1


@pytest.mark.parametrize("kind", KNOWN)
def test_what_a_table_has_already_is_chosen_by_its_id_and_what_is_chosen_already_is_left(kind):
    known, new, choose = KNOWN[kind]
    pick = {
        "schema": lambda table, update: choose_schema(table, update.schema, table.last_column_id + 1),
        "spec": lambda table, update: choose_spec(table, update.spec),
        "order": lambda table, update: choose_sort_order(table, update.sort_order),
    }[kind]
    metadata = new_table()
    assert pick(metadata, known) == ()
    assert pick(metadata, new)[1] == choose(-1)
    second = apply_updates(metadata, pick(metadata, new))
    assert pick(second, new) == ()
    assert pick(second, known) == (choose(0),)
    third = apply_updates(second, pick(second, known))
    assert pick(third, new) == (choose(1),)


def test_an_added_schema_spec_or_order_states_the_id_that_it_gets():
    metadata = new_table()
    schema, _ = choose_schema(metadata, NAMED.with_schema_id(0), 4)
    spec, _ = choose_spec(metadata, PartitionSpec(*BY_NAME.fields, spec_id=0))
    order, _ = choose_sort_order(metadata, SortOrder(*SORTED.fields, order_id=7))
    assert (schema.schema.schema_id, spec.spec.spec_id, order.sort_order.order_id) == (1, 1, 1)


def test_schemas_and_specs_that_nothing_uses_can_be_removed_and_current_ones_cannot():
    metadata = new_table()
    wider = with_column(metadata.schema(), EXTRA)
    spec = PartitionSpec(PartitionField(3, 1001, "identity", "name"))
    changed = apply_updates(metadata, [AddSchema(wider), SetCurrentSchema(), AddPartitionSpec(spec), SetDefaultSpec()])
    left = apply_updates(changed, [RemoveSchemas(iter([0])), RemovePartitionSpecs([0])])
    assert ([s.schema_id for s in left.schemas], [s.spec_id for s in left.partition_specs]) == ([1], [1])
    for update in (RemoveSchemas([1]), RemovePartitionSpecs([1])):
        with pytest.raises(InvalidArgument, match="cannot be removed"):
            apply_updates(changed, [update])


@pytest.mark.spec("META-21", "JSON-23", "JSON-24")
def test_statistics_are_set_replaced_and_removed():
    metadata = new_table()
    metadata = apply_updates(metadata, [AddSnapshot(snapshot_for(metadata, 5)), SetSnapshotRef(MAIN_BRANCH, branch(5))])
    one, two = (StatisticsFile(5, f"s3://{n}.puffin", n, n, ()) for n in (1, 2))
    partition = PartitionStatisticsFile(5, "s3://p.parquet", 3)
    changed = apply_updates(metadata, [SetStatistics(one), SetPartitionStatistics(partition), SetStatistics(two)])
    assert list(changed.statistics) == [two]
    assert list(changed.partition_statistics) == [partition]
    cleared = apply_updates(changed, [RemoveStatistics(5), RemovePartitionStatistics(5)])
    assert (len(cleared.statistics), len(cleared.partition_statistics)) == (0, 0)
    for update in (
        SetStatistics(StatisticsFile(6, "s3://x", 1, 1, ())),
        SetPartitionStatistics(PartitionStatisticsFile(6, "x", 1)),
    ):
        with pytest.raises(InvalidArgument, match="snapshot 6"):
            apply_updates(metadata, [update])


@pytest.mark.spec("ENC-02", "META-22")
def test_encryption_keys_are_added_and_removed_from_v3_on():
    key = EncryptedKey("k", "c2VjcmV0")
    metadata = apply_updates(new_table(3), [AddEncryptionKey(key)])
    assert list(metadata.encryption_keys) == [key]
    assert apply_updates(metadata, [AddEncryptionKey(key)]) is metadata
    assert len(apply_updates(metadata, [RemoveEncryptionKey("k")]).encryption_keys) == 0
    with pytest.raises(InvalidArgument, match="another"):
        apply_updates(metadata, [AddEncryptionKey(EncryptedKey("k", "b3RoZXI="))])
    with pytest.raises(InvalidArgument, match="version 3"):
        apply_updates(new_table(2), [AddEncryptionKey(key)])


@pytest.mark.parametrize("kind", KNOWN)
def test_minus_one_after_a_new_and_a_known_object_is_the_known_spec_or_order_but_no_schema(kind):
    known, new, choose = KNOWN[kind]
    if kind == "schema":
        with pytest.raises(InvalidArgument, match="-1 stands for"):
            apply_updates(new_table(), [new, known, choose()])
    else:
        made = apply_updates(new_table(), [new, choose(), known, choose()])
        assert made.default_spec_id + made.default_sort_order_id == 0
