"""Changes of partitioning and sort order as commits."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from icefield.errors import InvalidArgument, InvalidSchema, UnsupportedFeature, ValidationFailed
from icefield.partitioning.transforms import BucketTransform
from tables import again, ids, manifests, meddled, new_table, rows


@pytest.mark.spec("PART-06", "PART-09")
def test_every_spec_is_kept_and_the_default_is_for_new_files():
    table = new_table("kind")
    table.append(rows([1]))
    table.update_spec().add_field("id", "bucket[8]").commit()
    table.append(rows([2]))
    table.update_spec().remove_field("kind").add_field("value", "identity").commit()
    table.append(rows([3]))
    assert sorted(table.specs()) == [0, 1, 2]
    assert table.spec().spec_id == 2
    assert [manifest.partition_spec_id for manifest in manifests(table)] == [0, 1, 2]
    used = [field.field_id for spec in table.specs().values() for field in spec.fields]
    assert sorted(set(used)) == [1000, 1001, 1002]
    assert table.metadata.last_partition_id == 1002
    assert ids(table) == [1, 2, 3]


@pytest.mark.spec("PART-23", "PART-07", "PART-08")
def test_another_bucket_count_is_another_spec_and_both_prune():
    table = new_table("bucket[8](id)")
    for number in range(20):
        table.append(rows([number]))
    files = {task.file.file_path for task in table.scan().plan_files()}
    table.update_spec().remove_field("id_bucket_8").add_field("id", BucketTransform(16)).commit()
    for number in range(20):
        table.append(rows([number]))
    assert files < {task.file.file_path for task in table.scan().plan_files()}
    planned = {task.spec_id for task in table.scan("id = 7").plan_files()}
    assert planned == {0, 1}
    assert len(list(table.scan("id = 7").plan_files())) < 20
    assert ids(table, "id = 7") == [7, 7]


@pytest.mark.spec("PART-14", "PART-15", "COMMIT-26", "COMMIT-28")
def test_an_equivalent_spec_is_used_again_and_a_change_to_itself_makes_no_version():
    table = new_table("kind")
    table.update_spec().add_field("id", "bucket[4]").commit()
    table.update_spec().remove_field("id_bucket_4").commit()
    assert table.spec().spec_id == 0
    before = table.metadata_location
    table.update_spec().commit()
    table.update_spec().remove_field("kind").add_identity("kind").commit()
    assert table.refresh().metadata_location == before
    table.update_spec().add_field("id", "bucket[4]").commit()
    assert (table.spec().spec_id, table.spec().fields[1].field_id) == (1, 1001)


@pytest.mark.spec("PART-20", "COMMIT-26")
def test_an_unknown_transform_is_not_written():
    table = new_table()
    with pytest.raises((InvalidSchema, UnsupportedFeature)):
        table.update_spec().add_field("id", "zorder[3]").commit()
    with pytest.raises(InvalidArgument):
        new_table(["zorder(id)"])


@pytest.mark.spec("PART-12")
def test_version_1_leaves_a_void_field_where_one_was_removed():
    table = new_table(["kind", "id"], **{"format-version": "1"})
    table.append(rows([1], "a"))
    table.update_spec().remove_field("kind").commit()
    assert [str(field.transform) for field in table.spec().fields] == ["void", "identity"]
    table.append(rows([2], "b"))
    assert [task.file.partition for task in table.scan("id = 2").plan_files()] == [(None, 2)]
    assert ids(table, "kind = 'a'") == [1]


@pytest.mark.spec("PART-25", "COMMIT-16")
def test_a_spec_change_fails_when_the_schema_or_the_spec_changed_meanwhile():
    def schema(other):
        other.update_schema().add_column("x", "int").commit()

    def spec(other):
        other.update_spec().add_field("value", "identity").commit()

    def append(other):
        other.append(rows([1]))

    table = new_table()
    holder = meddled(table, append)
    holder.update_spec().add_field("id", "bucket[2]").commit()
    for meddle, what in ((schema, "current schema"), (spec, "default partition spec")):
        with pytest.raises(ValidationFailed, match=what):
            meddled(table.refresh(), meddle).update_spec().add_field("kind", "truncate[2]").commit()
    assert not any("kind" in field.name for field in table.refresh().spec().fields)


def test_fields_are_renamed():
    table = new_table("kind")
    table.update_spec().rename_field("kind", "sort").commit()
    assert [field.name for field in table.spec().fields] == ["sort"]


@pytest.mark.spec("SORT-02", "SORT-03", "SORT-08")
def test_the_first_order_has_id_1_and_an_identical_one_is_used_again():
    table = new_table()
    assert table.sort_order().order_id == 0
    table.update_sort_order().asc("id").desc("kind", "truncate[1]", "nulls-first").commit()
    assert table.sort_order().order_id == 1
    table.update_sort_order().desc("value").commit()
    assert table.sort_order().order_id == 2
    before = table.metadata_location
    table.update_sort_order().desc("value").commit()
    assert table.metadata_location == before
    table.update_sort_order().asc("id").desc("kind", "truncate[1]", "nulls-first").commit()
    assert table.sort_order().order_id == 1
    table.update_sort_order().commit()
    assert table.sort_order().order_id == 0
    assert sorted(table.sort_orders()) == [0, 1, 2]


def test_an_order_change_fails_when_the_order_changed_meanwhile():
    table = new_table()
    stale = again(table)
    table.update_sort_order().asc("id").commit()
    with pytest.raises(ValidationFailed, match="default sort order"):
        stale.update_sort_order().asc("kind").commit()


def test_days_and_months_follow_one_another():
    schema = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us"))])
    table = new_table([("ts", "month")], schema=schema)
    for day in (1, 2):
        table.append(pa.table({"id": [day], "ts": [dt.datetime(2024, 3, day)]}, schema=schema))
        if day == 1:
            table.update_spec().remove_field(("ts", "month")).add_field("ts", "day").commit()
    assert ids(table, "ts = '2024-03-01'") == [1]
    assert ids(table, "ts = '2024-03-02'") == [2]


TIMED = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us")), ("on", pa.date32())])


def timed(*numbers: int) -> pa.Table:
    count = len(numbers)
    at, on = [dt.datetime(2024, 1, 2, 3)] * count, [dt.date(2024, 1, 2)] * count
    return pa.table({"id": list(numbers), "at": at, "on": on}, schema=TIMED)


@pytest.mark.parametrize(
    ("source", "transform", "value"),
    [
        ("at", "year", 54),
        ("at", "month", 648),
        ("at", "day", dt.date(2024, 1, 2)),
        ("at", "hour", 473_379),
        ("on", "month", 648),
        ("id", "bucket[4]", None),
        ("id", "truncate[2]", 0),
        ("at", "identity", dt.datetime(2024, 1, 2, 3)),
    ],
)
@pytest.mark.parametrize("forgotten", [False, True])
def test_a_dropped_field_of_version_1_keeps_the_values_and_the_type_that_it_had(
    source: str, transform: str, value: object, forgotten: bool
):
    table = new_table([(source, transform, "part")], schema=TIMED, **{"format-version": "1"})
    table.append(timed(1))
    before = table.scan().plan_arrow()["partition"].combine_chunks().field("part")
    assert value is None or before.to_pylist() == [value]
    table.update_spec().remove_field("part").commit()
    table.append(timed(2))
    if forgotten and source != "id":
        table.update_schema().delete_column(source).commit()
    expected = sorted([*before.to_pylist(), None], key=lambda found: found is None)
    for plan in (
        table.scan().plan_arrow(),
        table.inspect.files(),
        table.inspect.partitions(),
        table.inspect.all_files(),
    ):
        found = plan["partition"].combine_chunks().field("part")
        assert found.type == before.type
        assert sorted(found.to_pylist(), key=lambda found: found is None) == expected
    entries = table.inspect.entries()["data_file"].combine_chunks().field("partition").field("part")
    assert sorted(entries.to_pylist(), key=lambda found: found is None) == expected
    shown = table.scan(selected_fields=("id", "_partition")).to_arrow().sort_by("id")["_partition"].combine_chunks()
    assert shown.field("part").to_pylist() == expected
    assert ids(table, "id = 1") == [1]


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_a_void_field_may_be_in_a_new_spec(version: str):
    table = new_table(["void(kind)", ("id", "bucket[2]")], **{"format-version": version})
    assert [(field.name, str(field.transform)) for field in table.spec().fields] == [
        ("kind_null", "void"),
        ("id_bucket_2", "bucket[2]"),
    ]
    table.append(rows([1], "a"))
    table.append(rows([2], "b"))
    assert table.inspect.files()["partition"].combine_chunks().field("kind_null").to_pylist() == [None, None]
    assert ids(table, "kind = 'a'") == [1]
