"""Writing metadata: the keys of each version, a string that was not touched, and nothing lost."""

import json
import pickle
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from icefield.base.secrets import holds_credential
from icefield.errors import InvalidArgument
from icefield.metadata import apply_updates, decode_metadata, encode_metadata
from icefield.metadata.entries import BlobMetadata, EncryptedKey, StatisticsFile
from icefield.metadata.refs import MAIN_BRANCH, branch, tag
from icefield.metadata.updates.snapshots import AddSnapshot, SetSnapshotRef, SetStatistics
from icefield.metadata.updates.table import AddEncryptionKey, SetLocation, SetProperties
from icefield.schema import Schema
from icefield.types import LongType, NestedField, StringType
from metadata_examples import (
    LOCATION,
    V1_INLINE,
    V1_LOGGED,
    V1_MINIMAL,
    V2,
    V3,
    document,
    load,
    new_table,
    snapshot_for,
    written,
)
from vectors import VECTORS

NAMES = [V1_MINIMAL, V1_LOGGED, V1_INLINE, V2, V3]


def committed(format_version: int) -> Any:
    """A table of a format version, with one snapshot."""
    metadata = new_table(format_version)
    snapshot = snapshot_for(metadata, 5)
    return apply_updates(metadata, [AddSnapshot(snapshot), SetSnapshotRef(MAIN_BRANCH, branch(5))])


def check_keys(keys: set[str], fields: list[dict[str, Any]], version: str) -> None:
    rules = {field["key"]: field[version] for field in fields}
    assert {key for key, rule in rules.items() if rule == "required"} <= keys
    assert not keys - {key for key, rule in rules.items() if rule is not None}


@pytest.mark.spec(
    "VER-01", "VER-15", "VER-05", "VER-12", "VER-04", "VER-09", "META-08", "META-10", "META-09", "META-11"
)
@pytest.mark.spec("META-05", "META-22", "SNAP-03", "SNAP-04", "SNAP-06", "SNAP-07", "SNAP-14", "SNAP-11")
@pytest.mark.parametrize("with_snapshot", [False, True])
@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_the_keys_of_a_new_table_are_those_of_its_version(format_version, with_snapshot):
    metadata = committed(format_version) if with_snapshot else new_table(format_version)
    source, version = written(metadata), f"v{format_version}"
    check_keys(set(source), VECTORS["table_metadata_fields"], version)
    for snapshot in source["snapshots"]:
        check_keys(set(snapshot), VECTORS["snapshot_fields"], version)
    assert ("schema" in source) == ("partition-spec" in source) == (format_version == 1)


@pytest.mark.spec("VER-12", "SCH-20", "META-08", "META-10", "JSON-12")
def test_v1_metadata_repeats_the_current_schema_and_spec_for_old_readers():
    source = written(new_table(1))
    assert source["schema"] == source["schemas"][0]
    assert source["partition-spec"] == source["partition-specs"][0]["fields"]
    assert source["partition-spec"] == [{"source-id": 2, "field-id": 1000, "name": "ts_day", "transform": "day"}]
    assert source["current-schema-id"] == source["default-spec-id"] == 0


@pytest.mark.spec("META-15", "VER-09")
@pytest.mark.parametrize(("format_version", "expected"), [(1, ...), (2, ...), (3, None)])
def test_no_current_snapshot_is_absent_before_v3_and_null_from_then_on(format_version, expected):
    assert written(new_table(format_version)).get("current-snapshot-id", ...) == expected


@pytest.mark.spec("JSON-26", "META-01", "META-21")
@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_reads_back_as_the_same_metadata(name, compress):
    metadata = load(name)
    data = encode_metadata(metadata, compress=compress)
    assert decode_metadata(data, LOCATION) == metadata
    assert encode_metadata(decode_metadata(data, LOCATION), compress=compress) == data
    assert (data[:2] == b"\x1f\x8b") is compress


@pytest.mark.spec("JSON-26")
@pytest.mark.parametrize("name", NAMES)
def test_a_rewrite_adds_only_what_the_version_requires_or_allows(name):
    source = document(name)
    result = written(load(name))
    if source.get("current-snapshot-id") == -1:
        del source["current-snapshot-id"]
    for key, value in source.items():
        if key in ("schema", "partition-spec"):  # completed with their ids
            continue
        assert result[key] == value, key
    for key in result.keys() - source.keys():
        assert key in {field["key"] for field in VECTORS["table_metadata_fields"]}


@pytest.mark.spec("META-23", "META-21")
def test_what_this_version_does_not_know_is_written_back_byte_for_byte():
    old = (
        '{"snapshot-id": 7, "timestamp-ms" :5, "sequence-number":1,"x":{"y":[1.50, 1E3]}, "n":12345678901234567890123}'
    )
    statistics = '[{"odd": true}]'
    source = document(V2, the_future={"a": [1, 2.50]}, snapshot_log=[])
    text = json.dumps(source).replace('"snapshots": [', f'"statistics":{statistics}, "snapshots": [ {old} ,')
    text = text.replace('"the-future": {', '"the-future":{  ')
    metadata = decode_metadata(text.encode(), LOCATION)
    changed = apply_updates(metadata, [SetProperties({"a": "b"})])
    changed = apply_updates(changed, [AddSnapshot(snapshot_for(changed, 9))])
    for result in (encode_metadata(metadata), encode_metadata(changed)):
        assert old.encode() in result
        assert b'"statistics":' + statistics.encode() in result
        assert b'"the-future":{  "a": [1, 2.5]}' in result
    assert changed.snapshot_by_id(7).timestamp_ms == 5
    assert b'"a": [1, 2.5]' in changed.extra["the-future"]


@pytest.mark.spec("REF-01")
def test_refs_that_were_found_in_a_v1_file_are_not_lost():
    refs = {"audit": {"snapshot-id": 3051729675574597004, "type": "tag"}}
    metadata = load(V1_LOGGED, refs=refs)
    assert metadata.refs.keys() == {"main", "audit"}
    assert written(metadata)["refs"]["audit"] == refs["audit"]
    assert "refs" not in written(load(V1_LOGGED))


@pytest.mark.spec("JSON-20", "REF-01")
def test_refs_are_written_as_the_vector_has_them():
    source = document(V2)
    source["snapshots"].append({"snapshot-id": 123456789000, "sequence-number": 1, "timestamp-ms": 1})
    source["refs"] = VECTORS["refs_json"]
    assert written(load(source))["refs"]["test"] == VECTORS["refs_json"]["test"]


@pytest.mark.spec("ENC-02", "JSON-21", "SNAP-15")
@pytest.mark.parametrize("key", ["spec_table_key", "spec_example_key"])
def test_encryption_keys_are_kept_under_the_key_of_the_spec_whichever_they_came_under(key):
    names = VECTORS["encryption_keys_json_example_conflict"]
    told = {"key-id": "k1", names[key]: "c2VjcmV0", "encrypted-by-id": "master", "properties": {"a": "b"}}
    metadata = load(V3, encryption_keys=[told])
    assert metadata.encryption_keys.find("k1") == EncryptedKey("k1", "c2VjcmV0", "master", {"a": "b"})
    expected = {
        "key-id": "k1",
        names["spec_table_key"]: "c2VjcmV0",
        "encrypted-by-id": "master",
        "properties": {"a": "b"},
    }
    assert written(metadata)["encryption-keys"] == [expected]


@pytest.mark.spec("ENC-02", "SNAP-15")
def test_the_key_of_a_snapshot_survives():
    metadata = apply_updates(new_table(3), [AddEncryptionKey(EncryptedKey("k1", "c2VjcmV0"))])
    metadata = apply_updates(metadata, [AddSnapshot(snapshot_for(metadata, 5, key_id="k1"))])
    again = decode_metadata(encode_metadata(metadata), LOCATION)
    assert again.snapshot_by_id(5).key_id == "k1"
    assert written(again)["snapshots"][0]["key-id"] == "k1"


@pytest.mark.spec("JSON-23", "JSON-24", "META-21")
def test_statistics_files_are_read_and_written():
    blob = {
        "type": "ndv",
        "snapshot-id": 3051729675574597004,
        "sequence-number": 1,
        "fields": [1],
        "properties": {"ndv": "3"},
    }
    file = {
        "snapshot-id": 3051729675574597004,
        "statistics-path": "s3://b/s.puffin",
        "file-size-in-bytes": 413,
        "file-footer-size-in-bytes": 42,
        "blob-metadata": [blob],
    }
    partition = {"snapshot-id": 3051729675574597004, "statistics-path": "s3://b/p.parquet", "file-size-in-bytes": 43}
    metadata = load(V2, statistics=[file], partition_statistics=[partition])
    [read] = metadata.statistics
    assert read.blob_metadata == (BlobMetadata("ndv", 3051729675574597004, 1, (1,), {"ndv": "3"}),)
    assert metadata.partition_statistics[0].file_size_in_bytes == 43
    other = StatisticsFile(3051729675574597004, "s3://b/2.puffin", 1, 1, read.blob_metadata)
    source = written(apply_updates(metadata, [SetStatistics(other)]))
    assert source["statistics"] == [
        {**file, "statistics-path": "s3://b/2.puffin", "file-size-in-bytes": 1, "file-footer-size-in-bytes": 1}
    ]
    assert source["partition-statistics"] == [partition]


@pytest.mark.spec("JSON-25", "JSON-09")
@settings(max_examples=30, deadline=None)
@given(st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=20))
def test_any_unicode_survives_in_names_docs_and_properties(text):
    assume(not holds_credential(f"p.{text}"))  # a property with the name of a secret is refused
    schema = Schema(NestedField(1, "id", LongType(), doc=text), NestedField(2, text + "é", StringType()))
    metadata = new_table(schema=schema, spec=new_table().spec().__class__(), properties={f"p.{text}": text})
    data = encode_metadata(metadata)
    again = decode_metadata(data, LOCATION)
    assert again.schema().fields[0].doc == text
    assert again.schema().fields[1].name == text + "é"
    assert again.properties == {f"p.{text}": text}
    assert "é".encode() in data  # UTF-8, not escapes


@pytest.mark.spec("DEF-13", "JSON-13", "DEF-06", "JSON-10")
def test_defaults_and_identifier_fields_pass_through():
    schemas = [entry["json"] for entry in VECTORS["schema_json"]]
    for number, schema in enumerate(schemas):
        source = document(V3, schemas=[{**schema, "schema-id": 0}], last_column_id=6)
        metadata = load(source)
        assert written(metadata)["schemas"] == source["schemas"]
        changed = apply_updates(metadata, [SetLocation("s3://b/elsewhere")])
        assert written(changed)["schemas"] == source["schemas"], number
    field = metadata.schema().find_field("id")
    assert field.initial_default is not None
    assert field.write_default is not None
    assert field.initial_default != field.write_default


@pytest.mark.spec("PART-21", "JSON-15", "JSON-11", "PART-10")
def test_specs_of_the_vectors_pass_through():
    vectors = VECTORS["partition_spec_json"]
    fields = [
        {"id": i, "name": f"c{i}", "required": False, "type": "timestamp" if i == 4 else "long"} for i in range(1, 5)
    ]
    schemas = [{"type": "struct", "schema-id": 0, "fields": fields}]
    common = {"schemas": schemas, "last_column_id": 4, "refs": {}, "current_snapshot_id": -1}
    v2 = load(V2, partition_specs=[vectors["object"]], **common)
    assert written(v2)["partition-specs"] == [vectors["object"]]
    v3 = load(V3, partition_specs=[vectors["v3_multi_arg"]], default_spec_id=1, schemas=schemas, last_column_id=4)
    assert written(v3)["partition-specs"] == [vectors["v3_multi_arg"]]
    v1 = load(V1_MINIMAL, schema=schemas[0], partition_spec=vectors["v1_fields_only"], last_column_id=4)
    assert [field.field_id for field in v1.spec().fields] == vectors["v1_expected_field_ids"]
    assert [field["field-id"] for field in written(v1)["partition-spec"]] == vectors["v1_expected_field_ids"]
    assert v1.last_partition_id == 1001


@pytest.mark.spec("JSON-14", "SORT-02")
def test_sort_orders_pass_through():
    orders = [VECTORS["unsorted_order_json"], VECTORS["sort_order_json"]]
    source = document(V2, sort_orders=orders, default_sort_order_id=1)
    assert written(load(source))["sort-orders"] == orders
    assert [order.order_id for order in load(source).sort_orders] == [0, 1]


def test_string_that_is_not_unicode_is_refused_before_anything_is_written():
    with pytest.raises(InvalidArgument, match="Unicode"):
        apply_updates(new_table(), [SetProperties({"a": "\ud800"})])
    metadata = new_table()
    with pytest.raises(InvalidArgument, match="Unicode"):
        apply_updates(metadata, [AddSnapshot(snapshot_for(metadata, 5, manifest_list="s3://\ud800"))])
    metadata = committed(2)
    bad = apply_updates(metadata, [SetSnapshotRef("\ud800", tag(5))])
    with pytest.raises(InvalidArgument, match="Unicode"):
        encode_metadata(bad)


def test_metadata_is_a_picklable_value_with_a_short_repr():
    metadata = load(V2, properties={f"p{i}": "x" * 100 for i in range(100)})
    again = pickle.loads(pickle.dumps(metadata))
    assert again == metadata
    assert again.current_snapshot() == metadata.current_snapshot()
    assert again.refs == metadata.refs
    assert len(repr(metadata)) < 400
    assert "x" * 10 not in repr(metadata)
    assert repr(metadata.snapshots) == "<1 snapshots>"
    with pytest.raises(AttributeError):
        metadata.location = "elsewhere"
    with pytest.raises(TypeError):
        metadata.properties["a"] = "b"
    with pytest.raises(TypeError):
        metadata.refs.clear()
    assert load(V2) != metadata
