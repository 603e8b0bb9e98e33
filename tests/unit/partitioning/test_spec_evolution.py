"""Changing the partitioning of a table, from one spec to the next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyiceberg.types as peer_types
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from icefield.errors import InvalidArgument, InvalidSchema, UnsupportedFeature
from icefield.partitioning import UNPARTITIONED, PartitionField, PartitionSpec
from icefield.partitioning.spec import spec_to_json, validate_spec
from icefield.partitioning.spec_evolution import SpecUpdate, build_spec
from icefield.partitioning.transforms import BucketTransform, VoidTransform
from icefield.schema import Schema
from icefield.types import (
    DateType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    UUIDType,
)
from outcomes import Outcomes, counted_outcomes
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema as PeerSchema
from pyiceberg.types import NestedField as PeerField

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "name", StringType()),
    NestedField(3, "ts", TimestampType()),
    NestedField(4, "at", StructType(NestedField(5, "city", StringType()), NestedField(6, "day", DateType()))),
    NestedField(7, "tags", ListType(8, StringType())),
    NestedField(9, "key", UUIDType()),
)
DAY = PartitionField(3, 1000, "day", "ts_day")
BUCKET = PartitionField(1, 1001, "bucket[16]", "id_bucket_16")
BASE = PartitionSpec(DAY, BUCKET, spec_id=1)


def update(*specs: PartitionSpec, version: int = 2, last: int | None = None, default: int | None = None) -> SpecUpdate:
    specs = specs or (UNPARTITIONED, BASE)
    return SpecUpdate(specs, specs[-1].spec_id if default is None else default, SCHEMA, last, version)


def shown(spec: PartitionSpec) -> list[str]:
    return [str(field) for field in spec.fields]


@pytest.mark.spec("PART-09", "PART-13", "PART-17", "PART-06")
def test_new_fields_get_the_next_ids_and_kept_ones_keep_theirs() -> None:
    first = SpecUpdate((UNPARTITIONED,), 0, SCHEMA, 999, 2).add_field("ts", "day").result()
    assert shown(first) == ["1000: ts_day: day(3)"]
    assert first.spec_id == 1
    second = update(UNPARTITIONED, first).add_field("id", "bucket[16]").add_field("name", "truncate[3]").result()
    assert shown(second) == [
        "1000: ts_day: day(3)",
        "1001: id_bucket_16: bucket[16](1)",
        "1002: name_trunc_3: truncate[3](2)",
    ]
    third = update(UNPARTITIONED, first, second).remove_field("id_bucket_16").rename_field("ts_day", "d").result()
    assert shown(third) == ["1000: d: day(3)", "1002: name_trunc_3: truncate[3](2)"]
    fourth = update(UNPARTITIONED, first, second, third).add_identity("name").result()
    assert shown(fourth)[-1] == "1003: name: identity(2)"
    assert [spec.spec_id for spec in (UNPARTITIONED, first, second, third, fourth)] == [0, 1, 2, 3, 4]


@pytest.mark.spec("PART-09")
def test_an_id_that_was_ever_given_out_is_not_given_again() -> None:
    assert update(last=1017).add_identity("name").result().last_assigned_field_id == 1018
    # Metadata that forgot the last id still has its specs.
    assert update(last=None).add_identity("name").result().last_assigned_field_id == 1002
    changing = update(last=1001)
    changing.add_identity("name").add_field("key", "bucket[2]")
    assert changing.last_partition_id == 1003


@pytest.mark.parametrize(
    ("source", "transform", "name"),
    [
        ("ts", "year", "ts_year"),
        ("ts", "month", "ts_month"),
        ("ts", "day", "ts_day"),
        ("ts", "hour", "ts_hour"),
        ("id", "bucket[16]", "id_bucket_16"),
        ("name", "truncate[3]", "name_trunc_3"),
        ("name", "identity", "name"),
        ("at.city", "identity", "at.city"),
        (("at", "day"), "month", "at.day_month"),
        (1, BucketTransform(2), "id_bucket_2"),
    ],
)
def test_names_by_default_are_those_of_other_implementations(source: Any, transform: Any, name: str) -> None:
    spec = update(UNPARTITIONED).add_field(source, transform).result()
    assert [field.name for field in spec.fields] == [name]
    validate_spec(spec, SCHEMA)
    assert update(UNPARTITIONED).add_field(source, transform, "mine").result().fields[0].name == "mine"


@pytest.mark.spec("PART-15", "PART-13")
def test_a_field_that_comes_back_gets_its_id_again() -> None:
    without = update().remove_field("ts_day").result()
    assert shown(without) == ["1001: id_bucket_16: bucket[16](1)"]
    again = update(UNPARTITIONED, BASE, without, last=1001).add_field("ts", "day").result()
    assert shown(again) == ["1001: id_bucket_16: bucket[16](1)", "1000: ts_day: day(3)"]
    # Under another name it is another field.
    other = update(UNPARTITIONED, BASE, without, last=1001).add_field("ts", "day", "d").result()
    assert shown(other)[-1] == "1002: d: day(3)"


@pytest.mark.spec("PART-14", "PART-15")
def test_a_change_that_leads_to_a_known_spec_gives_that_one_back() -> None:
    without = update().remove_field("ts_day").result()
    back = update(UNPARTITIONED, BASE, without).remove_field("id_bucket_16").result()
    assert back is UNPARTITIONED
    changed = PartitionSpec(BUCKET, spec_id=2)
    assert update(BASE, changed).add_field("ts", "day").result().spec_id == 3  # another order is another spec
    renamed = update().rename_field("ts_day", "d").result()
    assert update(UNPARTITIONED, BASE, renamed).rename_field("d", "ts_day").result() is BASE
    assert update().result() is BASE


@pytest.mark.spec("PART-13")
def test_removing_and_adding_a_field_in_one_change_keeps_it() -> None:
    assert update().remove_field("ts_day").add_field("ts", "day").result() is BASE
    renamed = update().remove_field("ts_day").add_field("ts", "day", "d").result()
    assert shown(renamed) == ["1000: d: day(3)", "1001: id_bucket_16: bucket[16](1)"]


@pytest.mark.spec("PART-23")
def test_another_number_of_buckets_is_another_spec() -> None:
    changed = update().remove_field(("id", "bucket[16]")).add_field("id", "bucket[32]").result()
    assert shown(changed) == ["1000: ts_day: day(3)", "1002: id_bucket_32: bucket[32](1)"]
    assert changed.spec_id == 2
    same_name = update().remove_field("id_bucket_16").add_field("id", "bucket[32]", "id_bucket_16").result()
    assert shown(same_name)[-1] == "1002: id_bucket_16: bucket[32](1)"


@pytest.mark.spec("PART-12", "PART-10")
def test_version_1_replaces_a_dropped_field_by_void_and_adds_at_the_end_only() -> None:
    dropped = update(version=1).remove_field("ts_day").result()
    assert shown(dropped) == ["1000: ts_day: void(3)", "1001: id_bucket_16: bucket[16](1)"]
    validate_spec(dropped, SCHEMA)
    added = update(UNPARTITIONED, BASE, dropped, version=1, last=1001).add_identity("name").result()
    assert shown(added) == [*shown(dropped), "1002: name: identity(2)"]
    # The id of a field is its place: nothing is reused.
    again = update(UNPARTITIONED, BASE, dropped, added, version=1, last=1002).add_field("ts", "month", "m").result()
    assert [field.field_id for field in again.fields] == [1000, 1001, 1002, 1003]


@pytest.mark.spec("PART-12", "PART-18")
def test_version_1_lets_a_void_field_s_name_be_taken() -> None:
    dropped = update(version=1).remove_field("ts_day").result()
    again = update(UNPARTITIONED, BASE, dropped, version=1, last=1001).add_field("ts", "day").result()
    assert shown(again) == ["1000: ts_day_1000: void(3)", "1001: id_bucket_16: bucket[16](1)", "1002: ts_day: day(3)"]
    at_once = update(version=1).remove_field("id_bucket_16").add_field("id", "bucket[4]", "id_bucket_16").result()
    assert shown(at_once)[1:] == ["1001: id_bucket_16_1001: void(1)", "1002: id_bucket_16: bucket[4](1)"]
    identity = PartitionSpec(PartitionField(2, 1000, "identity", "name"), spec_id=1)
    gone = update(identity, version=1).remove_field("name").result()
    assert shown(gone) == ["1000: name: void(2)"]
    assert gone.is_unpartitioned
    renamed = update(identity, gone, version=1).rename_field("name", "old").result()
    assert isinstance(renamed.fields[0].transform, VoidTransform)


outcomes = counted_outcomes()


@pytest.mark.spec("PART-12")
@settings(max_examples=60)
@given(st.lists(st.sampled_from(["ts", "id", "name", "key", "drop 0", "drop 1", "drop 2"]), max_size=8))
@example(["ts", "ts", "drop 0", "drop 2"])
def test_version_1_specs_grow_only_at_their_end(outcomes: Outcomes, steps: list[str]) -> None:
    specs = [UNPARTITIONED]
    for step in steps:
        base = specs[-1]
        change = update(*specs, version=1, default=base.spec_id)
        following = None
        with outcomes.of("version 1", InvalidSchema, IndexError):
            if step.startswith("drop"):
                change.remove_field(base.fields[int(step[-1])].name)
            else:
                change.add_field(step, "bucket[8]")
            following = change.result()
        if following is None:
            continue
        assert [f.field_id for f in following.fields] == list(range(1000, 1000 + len(following)))
        assert len(following) >= len(base)
        for old, new in zip(base.fields, following.fields, strict=False):
            assert old.source_ids == new.source_ids
            assert new.transform in (old.transform, VoidTransform())
        if following.spec_id != base.spec_id and following not in specs:
            specs.append(following)
        else:
            specs = [*(spec for spec in specs if spec is not following), following]


STEPS = st.tuples(st.sampled_from(["add", "drop", "rename"]), st.integers(0, 4), st.integers(0, 3))


@pytest.mark.spec("PART-09", "PART-13", "PART-14", "PART-15")
@settings(max_examples=100)
@given(st.lists(STEPS, max_size=12))
@example([("add", 0, 0), ("add", 0, 0), ("drop", 0, 0), ("drop", 0, 0)])
def test_version_2_ids_belong_to_one_field_forever(outcomes: Outcomes, steps: list[tuple[str, int, int]]) -> None:
    terms = [("ts", "day"), ("id", "bucket[4]"), ("id", "bucket[8]"), ("name", "identity"), ("name", "truncate[2]")]
    specs, default, last = [UNPARTITIONED], 0, 999
    meaning: dict[int, tuple[Any, Any]] = {}
    for kind, first, second in steps:
        base = next(spec for spec in specs if spec.spec_id == default)
        change = SpecUpdate(specs, default, SCHEMA, last, 2)
        following = None
        with outcomes.of("version 2", InvalidSchema, IndexError):
            if kind == "add":
                change.add_field(*terms[first])
            elif kind == "drop":
                change.remove_field(base.fields[first].name)
            else:
                change.rename_field(base.fields[first].name, f"r{second}")
            following = change.result()
        if following is None:
            continue
        for field in following.fields:
            definition = field.source_ids, field.transform
            assert meaning.setdefault(field.field_id, definition) == definition
        if all(spec.spec_id != following.spec_id for spec in specs):
            assert not any(spec.compatible_with(following) for spec in specs)
            specs.append(following)
        default, last = following.spec_id, max(last, following.last_assigned_field_id)
    assert len({spec.spec_id for spec in specs}) == len(specs)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda u: u.add_field("ts", "day"), "is day of 'ts' already"),
        (lambda u: u.add_field("ts", "day", "again"), "already"),
        (lambda u: u.add_field("name", "bucket[3]", "ts_day"), "named 'ts_day' already"),
        (lambda u: u.add_identity("name").add_identity("name"), "already"),
        (lambda u: u.add_field("name", "bucket[2]", "x").add_field("name", "bucket[3]", "x"), "named 'x' already"),
        (lambda u: u.add_field("at.day", "day").add_field("at.day", "year"), "times of one column"),
        (lambda u: u.remove_field("nope"), "no partition field 'nope'; the current spec has ts_day, id_bucket_16"),
        (lambda u: u.remove_field(("id", "bucket[3]")), "no partition field"),
        (lambda u: u.add_identity("name").remove_field("name"), "do not add it"),
        (lambda u: u.rename_field("ts_day", "d").remove_field("ts_day"), "is renamed"),
        (lambda u: u.remove_field("ts_day").rename_field("ts_day", "d"), "is removed"),
        (lambda u: u.rename_field("ts_day", "id_bucket_16"), "already"),
        (lambda u: u.rename_field("nope", "x"), "no partition field"),
        (lambda u: u.add_identity("name").rename_field("name", "x"), "add it under the new name"),
        (lambda u: u.add_identity("tags"), "must be primitive"),
        (lambda u: u.add_identity("tags.element"), "inside a list"),
        (lambda u: u.add_field("name", "day"), "does not apply"),
        (lambda u: u.add_field("id", "void"), "cannot be added"),
        (lambda u: u.rename_field("ts_day", "name").result(), "name it otherwise"),
        (lambda u: u.add_field("id", "bucket[3]", "name").result(), "name it otherwise"),
        (lambda u: u.add_field("id", "bucket[3]", "").result(), "needs a name"),
    ],
)
def test_a_change_that_cannot_be_is_refused(change: Any, match: str) -> None:
    with pytest.raises(InvalidSchema, match=match):
        change(update())


@pytest.mark.spec("PART-20")
def test_an_unknown_transform_is_not_added_and_not_kept_in_a_new_spec() -> None:
    with pytest.raises(InvalidSchema, match="cannot be added"):
        update().add_field("id", "zorder")
    odd = PartitionSpec(PartitionField(1, 1000, "zorder", "z"), PartitionField(3, 1001, "day", "ts_day"), spec_id=5)
    with pytest.raises(UnsupportedFeature, match="zorder"):
        update(odd).add_identity("name").result()
    assert update(odd).result() is odd
    assert shown(update(odd).remove_field("z").result()) == ["1001: ts_day: day(3)"]


def test_names_are_found_without_regard_to_case_when_asked() -> None:
    with pytest.raises(InvalidArgument, match="NAME"):
        update().add_identity("NAME")
    folded = SpecUpdate((UNPARTITIONED,), 0, SCHEMA, 999, 2, case_sensitive=False)
    assert shown(folded.add_identity("NAME").result()) == ["1000: name: identity(2)"]


def test_a_default_spec_that_is_not_there_is_an_error() -> None:
    with pytest.raises(InvalidSchema, match="no partition spec with id 7"):
        SpecUpdate((BASE,), 7, SCHEMA, 1001, 2)


@pytest.mark.spec("PART-17")
def test_the_first_spec_of_a_table_is_built_from_terms() -> None:
    spec = build_spec(SCHEMA, [("ts", "day"), ("id", "bucket[16]"), ("name", "truncate[3]", "n")])
    assert spec.spec_id == 0
    assert shown(spec) == ["1000: ts_day: day(3)", "1001: id_bucket_16: bucket[16](1)", "1002: n: truncate[3](2)"]
    assert build_spec(SCHEMA, []) == UNPARTITIONED
    assert spec.partition_type(SCHEMA).fields[1].field_type == IntegerType()


@pytest.mark.spec("PART-09", "PART-12", "PART-13", "PART-14", "PART-15")
@pytest.mark.parametrize("version", [1, 2])
def test_a_chain_of_changes_leads_where_pyiceberg_s_does(version: int, tmp_path: Path) -> None:
    catalog = SqlCatalog("peer", uri="sqlite:///:memory:", warehouse=tmp_path.as_uri())
    catalog.create_namespace("db")
    columns = PeerSchema(
        PeerField(1, "id", peer_types.LongType()),
        PeerField(2, "name", peer_types.StringType()),
        PeerField(3, "ts", peer_types.TimestampType()),
    )
    table = catalog.create_table("db.t", columns, properties={"format-version": str(version)})
    schema = SCHEMA.select("id", "name", "ts")
    specs, default, last = [UNPARTITIONED], 0, 999
    chain: list[Callable[[Any], Any]] = [
        lambda u: u.add_field("ts", "day").add_field("id", "bucket[16]"),
        lambda u: u.add_field("name", "truncate[3]"),
        lambda u: u.remove_field("ts_day"),
        lambda u: u.add_field("ts", "hour"),
        lambda u: u.rename_field("id_bucket_16", "shard"),
        lambda u: u.remove_field("shard").add_identity("name"),
    ]
    for change in chain:
        with table.update_spec() as theirs:
            change(theirs)
        ours = SpecUpdate(specs, default, schema, last, version)
        following = change(ours).result()
        specs = [spec for spec in specs if spec.spec_id != following.spec_id] + [following]
        default, last = following.spec_id, max(last, following.last_assigned_field_id)
        assert spec_to_json(following) == table.spec().model_dump(by_alias=True, mode="json")
        assert last == table.metadata.last_partition_id
