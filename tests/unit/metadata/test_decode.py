"""Reading metadata files: required and optional members, and errors for damage."""

import gzip
import json
from typing import Any

import pytest
from icefield.errors import InvalidMetadata, NoSuchSnapshot, UnsupportedFeature
from icefield.metadata import decode_metadata, encode_metadata, inflation
from icefield.metadata.refs import RefType, SnapshotRef
from metadata_examples import LOCATION, V1_INLINE, V1_LOGGED, V1_MINIMAL, V2, V3, document, load, new_table, written
from vectors import VECTORS

NAMES = [entry["name"] for entry in VECTORS["table_metadata"]]
BY_NAME = {entry["name"]: entry for entry in VECTORS["table_metadata"]}


def refused(source: dict[str, Any], key: str | None = None) -> InvalidMetadata:
    with pytest.raises(InvalidMetadata) as caught:
        load(source)
    assert LOCATION in str(caught.value)
    assert caught.value.location == LOCATION
    if key is not None:
        assert f"'{key}'" in str(caught.value)
    return caught.value


@pytest.mark.spec("META-30", "META-10", "META-08", "PART-10", "META-12", "META-14", "META-15", "META-20", "META-05")
@pytest.mark.spec("VER-03", "JSON-12")
def test_a_v1_file_with_only_the_first_keys_loads_with_defaults():
    metadata = load(V1_MINIMAL)
    expect = BY_NAME[V1_MINIMAL]["expect"]
    for name in (
        "table_uuid",
        "current_schema_id",
        "default_spec_id",
        "last_partition_id",
        "default_sort_order_id",
        "last_sequence_number",
        "current_snapshot_id",
        "refs",
    ):
        assert getattr(metadata, name) == expect[name], name
    assert [field.field_id for field in metadata.spec().fields] == expect["partition_field_ids"]
    assert metadata.current_snapshot() is None
    assert metadata.sort_order().is_unsorted


@pytest.mark.spec("META-10", "META-08")
def test_lists_of_schemas_and_specs_win_over_the_single_ones_of_a_v1_file():
    source = written(new_table(1))
    [spec], [schema] = source["partition-specs"], source["schemas"]
    other = {"spec-id": 7, "fields": [{"source-id": 1, "field-id": 1001, "name": "id_b", "transform": "bucket[4]"}]}
    later = {**schema, "schema-id": 3, "fields": schema["fields"][:2]}
    metadata = load(
        {
            **source,
            "partition-specs": [spec, other],
            "default-spec-id": 7,
            "last-partition-id": 1001,
            "schemas": [schema, later],
            "current-schema-id": 3,
        }
    )
    assert [found.spec_id for found in metadata.partition_specs] == [0, 7]
    assert [field.name for field in metadata.spec().fields] == ["id_b"]
    assert [field.name for field in metadata.schema().fields] == ["id", "ts"]


@pytest.mark.spec("META-30", "REF-01", "VER-03", "SNAP-04", "META-14", "META-16", "META-17", "JSON-18", "META-11")
def test_a_v1_file_gives_its_snapshots_number_zero_and_a_main_branch():
    metadata = load(V1_LOGGED)
    expect = BY_NAME[V1_LOGGED]["expect"]
    assert metadata.current_snapshot_id == expect["current_snapshot_id"]
    assert metadata.current_snapshot().sequence_number == expect["snapshot_sequence_number"]
    main = expect["refs"]["main"]
    assert metadata.refs == {"main": SnapshotRef(main["snapshot-id"], RefType(main["type"]))}
    assert metadata.snapshot_by_name("main") is metadata.current_snapshot()
    [entry] = metadata.snapshot_log
    assert (entry.snapshot_id, entry.timestamp_ms) == (3051729675574597004, 1515100955770)


@pytest.mark.spec("SNAP-11", "SNAP-06")
def test_manifests_inside_an_old_snapshot_are_read():
    metadata = load(V1_INLINE)
    expect = BY_NAME[V1_INLINE]["expect"]
    snapshot = metadata.current_snapshot()
    assert list(snapshot.manifests) == expect["manifests"]
    assert snapshot.manifest_list == expect["manifest_list"]


@pytest.mark.spec("META-31", "META-03", "META-09", "META-11", "JSON-16", "JSON-17", "JSON-19", "JSON-20", "REF-01")
@pytest.mark.spec("META-01", "META-02", "META-04", "META-06", "META-07", "JSON-11", "SNAP-01", "SNAP-05", "SNAP-07")
def test_a_v2_file_loads_with_every_key():
    metadata, source = load(V2), document(V2)
    for key in (
        "format-version",
        "table-uuid",
        "location",
        "last-sequence-number",
        "last-updated-ms",
        "last-column-id",
        "current-schema-id",
        "default-spec-id",
        "last-partition-id",
        "default-sort-order-id",
        "properties",
        "current-snapshot-id",
    ):
        assert getattr(metadata, key.replace("-", "_")) == source[key], key
    assert metadata.schema().find_field("ts").field_id == 2
    assert metadata.spec().fields[0].name == "ts_day"
    assert metadata.refs["test"] == SnapshotRef(3051729675574597004, RefType.TAG, max_ref_age_ms=10_000_000)
    snapshot = metadata.snapshot_by_id(3051729675574597004)
    assert (snapshot.sequence_number, snapshot.timestamp_ms, snapshot.schema_id) == (1, 1515100955770, 0)
    assert snapshot.summary == {"operation": "append"}
    assert snapshot.manifest_list == "s3://b/wh/s1.avro"
    assert snapshot.parent_snapshot_id is None
    assert metadata.schema_of(snapshot) is metadata.schema()
    [entry] = metadata.metadata_log
    assert (entry.timestamp_ms, entry.metadata_file) == (1515100955000, "s3://b/wh/v1.metadata.json")


@pytest.mark.spec("META-32", "META-22")
def test_a_v3_file_without_data_loads():
    metadata = load(V3)
    assert (metadata.format_version, metadata.next_row_id, metadata.current_snapshot_id) == (3, 0, None)


DERIVED = "next-row-id"
"""The one required key that is not missed: writers leave it out, and rows are certain without it."""
INVALID = [case for case in VECTORS["table_metadata_invalid"] if case.get("remove") != [DERIVED]]


@pytest.mark.spec("META-24", "META-31", "META-32", "META-02", "REF-01")
@pytest.mark.parametrize("case", INVALID, ids=lambda case: case["why"])
def test_what_the_vectors_call_invalid_is_refused(case):
    source = {**document(case["base"]), **case.get("patch", {})}
    for key in case.get("remove", ()):
        del source[key]
    with pytest.raises((InvalidMetadata, UnsupportedFeature), match=LOCATION):
        load(source)


FIELDS = {field["key"]: field for field in VECTORS["table_metadata_fields"]}


@pytest.mark.spec("META-31", "META-32", "META-30", "VER-14")
@pytest.mark.parametrize(("name", "version"), [(V1_MINIMAL, "v1"), (V2, "v2"), (V3, "v3")])
def test_each_key_is_missed_if_and_only_if_its_version_requires_it(name, version):
    for key, field in FIELDS.items():
        source = document(name)
        if source.pop(key, None) is None:
            continue
        if field[version] == "required" and key != DERIVED:
            refused(source, key)
        elif key not in ("snapshots",) and not (key == "current-snapshot-id" and "refs" in source):
            load(source)


@pytest.mark.parametrize(
    ("row_ids", "following"),
    [
        ([], 0),
        ([(0, 5)], 5),
        ([(5, 2), (0, 5)], 7),
        ([(0, 5), (None, 2)], None),
        ([(0, 5), (5, None)], None),
    ],
)
def test_a_next_row_id_that_is_left_out_follows_from_the_snapshots_or_is_not_known(row_ids, following):
    source = document(V3)
    del source[DERIVED]
    source["snapshots"] = [
        {"snapshot-id": number, "timestamp-ms": 1, "sequence-number": 0, "summary": {"operation": "append"},
         "manifest-list": "s3://b/l.avro", "first-row-id": first, "added-rows": added}
        for number, (first, added) in enumerate(row_ids, 1)
    ]  # fmt: skip
    metadata = load(source)
    assert metadata.next_row_id == following
    assert (f'"{DERIVED}":' in encode_metadata(metadata).decode()) == (following is not None)
    refused({**source, DERIVED: -1}, DERIVED)


@pytest.mark.spec("META-31")
@pytest.mark.parametrize("key", [key for key, field in FIELDS.items() if field["v2"] == "required"])
def test_null_is_no_value_for_a_required_key(key):
    refused({**document(V2), key: None}, key)


@pytest.mark.spec("VER-11", "META-02")
@pytest.mark.parametrize("version", [4, 5, 99, 2**40])
def test_a_later_format_version_is_refused_as_unsupported(version):
    with pytest.raises(UnsupportedFeature, match=f"{LOCATION}.*{version}"):
        load(V2, format_version=version)


@pytest.mark.spec("META-02", "JSON-16")
@pytest.mark.parametrize("version", [0, -1, 2.0, "2", True, None, [], 2**70])
def test_what_is_no_format_version_is_refused(version):
    refused(document(V2, format_version=version), "format-version")


@pytest.mark.spec("JSON-16")
@pytest.mark.parametrize(
    "key",
    [
        "last-sequence-number",
        "last-updated-ms",
        "last-column-id",
        "current-schema-id",
        "default-spec-id",
        "last-partition-id",
        "default-sort-order-id",
        "current-snapshot-id",
    ],
)
@pytest.mark.parametrize("wrong", [1.0, 1e3, "1", True, [1], {}, 2**63, -(2**63) - 1])
def test_a_number_that_is_no_integer_of_its_width_is_refused(key, wrong):
    refused({**document(V2), key: wrong}, key)


@pytest.mark.spec("JSON-16", "SNAP-01")
def test_longs_survive_to_the_last_bit():
    largest = 2**63 - 1
    source = document(V2, current_snapshot_id=largest, refs={}, last_updated_ms=largest)
    source["snapshots"][0] |= {"snapshot-id": largest, "timestamp-ms": largest - 1}
    source["snapshot-log"] = []
    metadata = load(source)
    assert metadata.current_snapshot().snapshot_id == largest
    assert metadata.current_snapshot().timestamp_ms == largest - 1


@pytest.mark.spec("META-24")
@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        ("current-schema-id", 7),
        ("default-spec-id", 7),
        ("default-sort-order-id", 7),
        ("current-snapshot-id", 7),
        ("last-column-id", -1),
        ("last-sequence-number", -1),
        ("location", ""),
        ("location", 7),
        ("table-uuid", 7),
        ("schemas", {}),
        ("schemas", "all"),
        ("schemas", [7]),
        ("partition-specs", [{"fields": []}]),
        ("sort-orders", [{"order-id": "0", "fields": []}]),
        ("snapshots", [[]]),
        ("snapshots", [{"snapshot-id": "1"}]),
        ("snapshots", [{"timestamp-ms": 1}]),
        ("snapshot-log", [{"snapshot-id": 1}]),
        ("metadata-log", [{"metadata-file": 1, "timestamp-ms": 1}]),
        ("metadata-log", 1),
        ("properties", []),
        ("properties", {"a": []}),
        ("refs", []),
        ("refs", {"x": {"snapshot-id": 3051729675574597004, "type": "bookmark"}}),
        ("refs", {"x": {"snapshot-id": 3051729675574597004}}),
    ],
)
def test_what_is_of_the_wrong_kind_or_names_nothing_is_refused_with_its_key(key, wrong):
    refused({**document(V2), key: wrong}, key)


@pytest.mark.spec("META-24", "REF-01", "REF-03", "REF-06")
@pytest.mark.parametrize(
    "refs",
    [
        {"main": {"snapshot-id": 3051729675574597004, "type": "tag"}},
        {"audit": {"snapshot-id": 5, "type": "branch"}},
        {"t": {"snapshot-id": 3051729675574597004, "type": "tag", "min-snapshots-to-keep": 1}},
        {"t": {"snapshot-id": 3051729675574597004, "type": "tag", "max-snapshot-age-ms": 1}},
        {"b": {"snapshot-id": 3051729675574597004, "type": "branch", "max-snapshot-age-ms": 0}},
        {"b": {"snapshot-id": 3051729675574597004, "type": "branch", "max-ref-age-ms": -1}},
    ],
)
def test_refs_that_contradict_the_format_are_refused(refs):
    refused(document(V2, refs=refs), "refs")


@pytest.mark.spec("META-24")
def test_a_main_branch_needs_a_current_snapshot():
    refused(document(V2, current_snapshot_id=...), "refs")


@pytest.mark.spec("META-24")
@pytest.mark.parametrize("key", ["schemas", "partition-specs", "sort-orders", "snapshots"])
def test_two_elements_with_one_id_are_refused(key):
    source = document(V2)
    source[key] *= 2
    refused(source, key)


@pytest.mark.spec("META-24", "SNAP-04")
def test_a_snapshot_above_the_last_sequence_number_is_refused():
    refused(document(V2, last_sequence_number=0), "snapshots")


@pytest.mark.spec("META-15")
@pytest.mark.parametrize("nothing", [-1, None, ...])
@pytest.mark.parametrize("name", [V1_MINIMAL, V2, V3])
def test_minus_one_null_and_absence_all_mean_no_current_snapshot(name, nothing):
    changes = {"refs": {}} if name == V2 else {}
    assert load(name, current_snapshot_id=nothing, **changes).current_snapshot_id is None


@pytest.mark.spec("META-25")
@pytest.mark.parametrize("key", ["snapshot-log", "metadata-log"])
@pytest.mark.parametrize(("skew", "sound"), [(-59_000, True), (-60_000, True), (-61_000, False), (5, True)])
def test_times_may_run_backwards_by_a_minute_and_no_more(key, skew, sound):
    first = 1_515_100_000_000
    name = {"snapshot-id": 3051729675574597004} if key == "snapshot-log" else {"metadata-file": "s3://f"}
    source = {**document(V2), key: [{"timestamp-ms": first, **name}, {"timestamp-ms": first + skew, **name}]}
    if sound:
        load(source)
    else:
        assert "backwards" in str(refused(source, key))
    late = {**document(V2), key: [{"timestamp-ms": 1515100955770 - skew, **name}]}
    if sound:
        load(late)
    else:
        refused(late, key)


@pytest.mark.spec("META-36")
def test_a_gzipped_file_is_stated_by_its_first_bytes():
    plain = json.dumps(document(V2)).encode()
    assert decode_metadata(gzip.compress(plain), LOCATION) == decode_metadata(plain, LOCATION)
    half = len(plain) // 2
    members = gzip.compress(plain[:half]) + gzip.compress(plain[half:])
    assert decode_metadata(members, LOCATION) == decode_metadata(plain, LOCATION)


@pytest.mark.spec("META-36")
@pytest.mark.parametrize("keep", [3, 10, 30, -8, -1])
def test_a_gzip_stream_that_is_cut_off_is_refused(keep):
    with pytest.raises(InvalidMetadata, match=r"gzip|not table metadata"):
        decode_metadata(gzip.compress(json.dumps(document(V2)).encode())[:keep], LOCATION)


def test_a_gzip_bomb_and_a_huge_file_stop_at_the_limit(monkeypatch):
    monkeypatch.setattr(inflation, "MAX_METADATA_BYTES", 10_000)
    padded = json.dumps(document(V2)).encode() + b" " * 1_000_000
    for data in (padded, gzip.compress(padded), gzip.compress(padded) + gzip.compress(padded)):
        with pytest.raises(InvalidMetadata, match="10000 bytes"):
            decode_metadata(data, LOCATION)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" ",
        b"null",
        b"[]",
        b"7",
        b'"text"',
        b"{",
        b'{"format-version": 2',
        b'{"format-version": nope}',
        b"\x00\x01\x02",
        b'\xef\xbb\xbf{"format-version": 2}',
        b'{"format-version": 2} trailing',
        b"[" * 1_000_000,
        b'{"format-version":2,"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"x":"' + b"\xff\xfe" + b'","format-version":2}',
    ],
    ids=range(15),
)
def test_what_is_no_metadata_at_all_is_refused_with_its_location(data):
    with pytest.raises(InvalidMetadata) as caught:
        decode_metadata(data, LOCATION)
    assert LOCATION in str(caught.value)
    assert len(str(caught.value)) < 500


def test_deep_json_below_a_known_key_is_refused():
    deep = b'{"a":' * 5_000 + b"1" + b"}" * 5_000
    data = json.dumps(document(V2)).encode().replace(b'"properties": {}', b'"properties": ' + deep)
    with pytest.raises(InvalidMetadata, match="deep"):
        decode_metadata(data, LOCATION)


@pytest.mark.spec("META-13")
def test_a_property_that_was_left_as_a_number_or_boolean_reads_as_strings():
    properties = load(V2, properties={"a": 5, "b": True, "c": 0.5, "d": None, "e": "x"}).properties
    assert properties == {"a": "5", "b": "true", "c": "0.5", "e": "x"}


@pytest.mark.spec("SNAP-13")
def test_a_schema_id_that_is_a_string_is_accepted_in_a_snapshot():
    source = document(V2)
    source["snapshots"][0]["schema-id"] = "0"
    assert load(source).current_snapshot().schema_id == 0


def test_an_old_snapshot_that_is_damaged_hurts_only_who_asks_for_it():
    source = document(V2)
    source["snapshots"].insert(0, {"snapshot-id": 1, "timestamp-ms": 5, "summary": "none"})
    metadata = load(source)
    assert metadata.current_snapshot().sequence_number == 1
    with pytest.raises(InvalidMetadata, match=r"'snapshots'\[0\].*summary") as caught:
        metadata.snapshot_by_id(1)
    assert (caught.value.location, caught.value.position) == (LOCATION, 0)


@pytest.mark.spec("TYP-28")
def test_an_unknown_type_is_unsupported_and_named():
    source = document(V2)
    source["schemas"][0]["fields"][1]["type"] = "blob"
    with pytest.raises(UnsupportedFeature, match=r"ts.*blob"):
        load(source)


def test_ids_in_use_are_never_handed_out_again_whatever_the_file_says():
    metadata = load(V2, last_column_id=1, last_partition_id=999)
    assert (metadata.last_column_id, metadata.last_partition_id) == (2, 1000)


@pytest.mark.spec("SCAN-61")
@pytest.mark.parametrize(("at", "expected"), VECTORS["time_travel"]["lookups"])
def test_time_travel_follows_the_snapshot_log(at, expected):
    source = document(V2, current_snapshot_id=13, refs={}, last_updated_ms=1_000, metadata_log=[])
    source["snapshots"] = [
        {"snapshot-id": number, "sequence-number": 1, "timestamp-ms": 1, "manifest-list": "s3://m", "summary": {}}
        for number in (11, 12, 13)
    ]
    source["snapshot-log"] = [
        {"timestamp-ms": time, "snapshot-id": number} for time, number in VECTORS["time_travel"]["snapshot_log"]
    ]
    metadata = load(source)
    if expected == "error":
        with pytest.raises(NoSuchSnapshot) as caught:
            metadata.snapshot_as_of(at)
        assert caught.value.timestamp_ms == at
    else:
        assert metadata.snapshot_as_of(at).snapshot_id == expected


@pytest.mark.spec("SCAN-61")
def test_time_travel_to_an_expired_snapshot_says_so():
    metadata = load(V2, snapshot_log=[{"timestamp-ms": 100, "snapshot-id": 9}])
    with pytest.raises(NoSuchSnapshot, match=r"9.*expired"):
        metadata.snapshot_as_of(200)


@pytest.mark.spec("PART-19")
def test_a_spec_with_an_unknown_transform_and_a_lost_column_still_opens():
    fields = [{"source-id": 99, "field-id": 1000, "name": "z", "transform": "zorder[8]"}]
    metadata = load(V2, partition_specs=[{"spec-id": 0, "fields": fields}])
    assert str(metadata.spec().fields[0].transform) == "zorder[8]"


def test_looking_up_what_the_table_does_not_have():
    metadata = load(V2)
    for look in (metadata.schema_by_id, metadata.spec_by_id):
        with pytest.raises(InvalidMetadata, match=r"no .* 77; it has 0"):
            look(77)
    assert metadata.sort_orders.find(77) is None
    assert metadata.snapshot_by_id(77) is None
    assert metadata.snapshot_by_name("nobody") is None
    assert metadata.ref("nobody") is None
    assert metadata.head("test") is None
    assert metadata.head() == metadata.current_snapshot_id


def test_ancestors_are_followed_without_decoding_and_a_ring_is_refused():
    def row(number: int, parent: int | None) -> dict[str, Any]:
        return {"snapshot-id": number, "parent-snapshot-id": parent, "timestamp-ms": 1, "summary": "not decoded"}

    source = document(V2, current_snapshot_id=3, refs={}, snapshots=[row(1, 0), row(2, 1), row(3, 2)])
    assert list(load(source).ancestor_ids(3)) == [3, 2, 1]
    assert list(load(source).ancestor_ids(None)) == []
    source["snapshots"] = [row(1, 3), row(2, 1), row(3, 2)]
    with pytest.raises(InvalidMetadata, match="own ancestor"):
        list(load(source).ancestor_ids(3))


def test_a_v1_file_without_the_last_partition_id_continues_after_the_highest_of_all_specs():
    def spec(number: int, field_id: int) -> dict[str, Any]:
        return {"spec-id": number, "fields": [{"field-id": field_id, "source-id": 1, "name": "p", "transform": "void"}]}

    stated = document(V1_LOGGED) | {"partition-specs": [spec(0, 1004), spec(1, 1002)], "default-spec-id": 1}
    stated.pop("last-partition-id", None)
    assert load(stated).last_partition_id == 1004
