"""Table metadata: PyIceberg reads Icefield's, and Icefield reads and keeps the metadata of other writers.

``ICEFIELD_FIXTURES`` names a folder of tables that other writers made, with an ``INDEX.json`` that lists them; without
it those tests are skipped.
"""

import gzip
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from icefield.errors import IcefieldError, UnsupportedFeature
from icefield.metadata import TableMetadata, apply_updates, decode_metadata, encode_metadata, with_metadata_log
from icefield.metadata.refs import MAIN_BRANCH, branch, tag
from icefield.metadata.updates.definitions import AddSchema, SetCurrentSchema
from icefield.metadata.updates.snapshots import AddSnapshot, SetSnapshotRef
from icefield.metadata.updates.table import SetProperties
from icefield.partitioning import PartitionField, PartitionSpec, SortField, SortOrder
from icefield.schema import Schema
from icefield.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
    UUIDType,
)
from metadata_examples import V1_LOGGED, V2, V3, document, load, new_table, snapshot_for
from outcomes import Outcomes

peer = pytest.importorskip("pyiceberg.table.metadata")

FIXTURES = os.environ.get("ICEFIELD_FIXTURES")
needs_fixtures = pytest.mark.skipif(FIXTURES is None, reason="ICEFIELD_FIXTURES does not name a folder of tables")

WIDE = Schema(
    NestedField(1, "id", LongType(), True, "the key"),
    NestedField(2, "ts", TimestamptzType()),
    NestedField(3, "amount", DecimalType(38, 9)),
    NestedField(4, "tags", ListType(5, StringType(), True)),
    NestedField(6, "map", MapType(7, StringType(), 8, DoubleType())),
    NestedField(9, "point", StructType(NestedField(10, "x", DoubleType(), True), NestedField(11, "Größe", DateType()))),
    NestedField(12, "uuid", UUIDType()),
    NestedField(13, "fixed", FixedType(16)),
    NestedField(14, "bytes", BinaryType()),
    identifier_field_ids=[1],
)


def grown(format_version: int) -> TableMetadata:
    """A table with history, refs, several schemas, a spec and a sort order."""
    metadata = new_table(
        format_version,
        schema=WIDE,
        spec=PartitionSpec(
            PartitionField(2, 1000, "day", "ts_day"), PartitionField(1, 1001, "bucket[16]", "id_bucket")
        ),
        sort_order=SortOrder(SortField(1, "identity", "desc", "nulls-last"), order_id=1),
        properties={"owner": "someone", "write.format.default": "parquet"},
    )
    for number in range(1, 6):
        snapshot = snapshot_for(metadata, 2**62 + number)
        updates = [AddSnapshot(snapshot), SetSnapshotRef(MAIN_BRANCH, branch(snapshot.snapshot_id))]
        if number == 3:
            updates.append(SetSnapshotRef("release", tag(snapshot.snapshot_id)))
            schema = Schema(*metadata.schema().fields, NestedField(50, "extra", StringType()), identifier_field_ids=[1])
            updates += [AddSchema(schema), SetCurrentSchema()]
        metadata = with_metadata_log(
            apply_updates(metadata, updates), f"s3://m/{number}.json", metadata.last_updated_ms
        )
    return metadata


def without_blanks(schema: Any) -> str:
    return str(schema).replace(" ", "")


def same(ours: TableMetadata, theirs: Any) -> None:
    """Compare the metadata that both libraries read for one table."""
    for name in (
        "format_version",
        "location",
        "last_updated_ms",
        "last_column_id",
        "current_schema_id",
        "last_partition_id",
    ):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert str(theirs.table_uuid) == ours.table_uuid
    assert dict(theirs.properties) == dict(ours.properties)
    assert theirs.current_snapshot_id == ours.current_snapshot_id
    assert (theirs.default_spec_id, theirs.default_sort_order_id) == (ours.default_spec_id, ours.default_sort_order_id)
    assert [without_blanks(schema) for schema in ours.schemas] == [without_blanks(schema) for schema in theirs.schemas]
    for mine, other in zip(ours.schemas, theirs.schemas, strict=True):
        assert (mine.schema_id, list(mine.identifier_field_ids)) == (other.schema_id, other.identifier_field_ids)
        assert {i: (f.name, f.required, f.doc) for i, f in mine.id_to_field.items()} == {
            i: (f.name, f.required, f.doc) for i, f in other._lazy_id_to_field.items()
        }
    for mine, other in zip(ours.partition_specs, theirs.partition_specs, strict=True):
        assert mine.spec_id == other.spec_id
        assert [(f.source_id, f.field_id, str(f.transform), f.name) for f in mine.fields] == [
            (f.source_id, f.field_id, str(f.transform), f.name) for f in other.fields
        ]
    for mine, other in zip(ours.sort_orders, theirs.sort_orders, strict=True):
        assert mine.order_id == other.order_id
        assert [(f.source_id, str(f.transform), str(f.direction), str(f.null_order)) for f in mine.fields] == [
            (f.source_id, str(f.transform), f.direction.value, f.null_order.value) for f in other.fields
        ]
    for mine, other in zip(ours.snapshots, theirs.snapshots, strict=True):
        for name in ("snapshot_id", "parent_snapshot_id", "timestamp_ms", "schema_id"):
            assert getattr(mine, name) == getattr(other, name), name
        assert mine.manifest_list == other.manifest_list
        assert mine.sequence_number == (other.sequence_number or 0)
        if other.summary is not None:
            assert mine.operation.value == other.summary.operation.value
            rest = {k: v for k, v in mine.summary.items() if k != "operation"}
            assert rest == other.summary.additional_properties
    assert [(e.snapshot_id, e.timestamp_ms) for e in ours.snapshot_log] == [
        (e.snapshot_id, e.timestamp_ms) for e in theirs.snapshot_log
    ]
    assert [(e.metadata_file, e.timestamp_ms) for e in ours.metadata_log] == [
        (e.metadata_file, e.timestamp_ms) for e in theirs.metadata_log
    ]
    assert {name: (ref.snapshot_id, ref.type.value) for name, ref in ours.refs.items()} == {
        name: (ref.snapshot_id, ref.snapshot_ref_type.value) for name, ref in theirs.refs.items()
    }


@pytest.mark.spec("VER-13", "JSON-26", "VER-05", "VER-12")
@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_pyiceberg_reads_what_is_written_here(format_version):
    ours = grown(format_version)
    theirs = peer.TableMetadataUtil.parse_raw(encode_metadata(ours).decode())
    same(ours, theirs)


@pytest.mark.spec("VER-13", "JSON-26")
@pytest.mark.parametrize("format_version", [1, 2])
def test_what_pyiceberg_writes_is_read_here(format_version):
    theirs = peer.TableMetadataUtil.parse_raw(encode_metadata(grown(format_version)).decode())
    ours = decode_metadata(theirs.model_dump_json().encode(), "s3://theirs")
    same(ours, theirs)
    assert decode_metadata(encode_metadata(ours), "s3://ours") == ours


@pytest.mark.spec("VER-13")
@pytest.mark.parametrize("format_version", [1, 2])
def test_a_new_table_of_pyiceberg_is_read_here(format_version):
    from pyiceberg.partitioning import PartitionField as TheirField
    from pyiceberg.partitioning import PartitionSpec as TheirSpec
    from pyiceberg.schema import Schema as TheirSchema
    from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
    from pyiceberg.transforms import BucketTransform
    from pyiceberg.types import LongType as TheirLong
    from pyiceberg.types import NestedField as TheirNested

    theirs = peer.new_table_metadata(
        schema=TheirSchema(TheirNested(1, "id", TheirLong(), required=True, doc="key")),
        partition_spec=TheirSpec(TheirField(1, 1000, BucketTransform(4), "id_bucket")),
        sort_order=UNSORTED_SORT_ORDER,
        location="s3://b/t",
        properties={"format-version": str(format_version), "a": "b"},
    )
    ours = decode_metadata(theirs.model_dump_json().encode(), "s3://theirs")
    same(ours, theirs)
    assert ours.format_version == format_version


@pytest.mark.spec("VER-13")
@pytest.mark.parametrize("name", [V1_LOGGED, V2])
def test_pyiceberg_reads_rewritten_files_of_others(name):
    ours = load(document(name, table_uuid="fb072c92-a02b-11e9-ae9c-1bb7bc9eca94"))
    same(ours, peer.TableMetadataUtil.parse_raw(encode_metadata(ours).decode()))


@pytest.mark.spec("VER-13", "META-15")
@pytest.mark.parametrize("name", [V3])
def test_pyiceberg_reads_tables_at_the_ends_of_the_format(name):
    theirs = peer.TableMetadataUtil.parse_raw(encode_metadata(load(name)).decode())
    assert theirs.current_snapshot_id == load(name).current_snapshot_id


def fixture_files(*, every: bool) -> list[Path]:
    if FIXTURES is None:
        return []
    root = Path(FIXTURES)
    if every:
        return sorted(path for path in root.glob("tables/**/*metadata.json*") if not path.name.startswith("."))
    entries = json.loads((root / "INDEX.json").read_text("utf-8"))
    return [root / entry["dir"] / entry["metadata_file"] for entry in entries]


def plain(data: bytes) -> bytes:
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def normalised(source: dict[str, Any]) -> dict[str, Any]:
    """A document without the members that Icefield always writes in one form."""
    result = {key: value for key, value in source.items() if value not in (None, [], {})}
    if result.get("current-snapshot-id") == -1:
        del result["current-snapshot-id"]
    result.pop("schema", None)
    result.pop("partition-spec", None)
    if result["format-version"] == 1:
        result.pop("last-sequence-number", None)
        if result.get("refs", {}).keys() <= {MAIN_BRANCH}:
            result.pop("refs", None)
    return result


@needs_fixtures
@pytest.mark.spec("VER-13", "JSON-26", "META-21", "META-23", "META-30", "META-31")
def test_tables_of_other_writers_are_read_and_written_back_without_loss():
    files = fixture_files(every=True)
    assert len(files) > 50
    for path in files:
        data = path.read_bytes()
        source = json.loads(plain(data))
        metadata = decode_metadata(data, str(path))
        written = json.loads(encode_metadata(metadata))
        before, after = normalised(source), normalised(written)
        for key, value in before.items():
            if key == "schemas" or key == "partition-specs" or key == "sort-orders":
                assert len(after[key]) == len(value), (path, key)
            elif key not in ("last-partition-id", "last-column-id"):
                assert after.get(key) == value, (path, key)
        assert decode_metadata(encode_metadata(metadata), str(path)) == metadata, path
        assert metadata.last_column_id >= max(source["last-column-id"], metadata.schema().highest_field_id)
        assert metadata.last_partition_id >= 999
        for array in (metadata.schemas, metadata.partition_specs, metadata.sort_orders, metadata.statistics):
            assert len(list(array)) == len(array)
        snapshot = metadata.current_snapshot()
        if snapshot is not None:
            assert snapshot.manifest_list or snapshot.manifests
            assert metadata.snapshot_as_of(2**62) is not None or not len(metadata.snapshot_log)


@needs_fixtures
@pytest.mark.spec("VER-13")
def test_pyiceberg_reads_the_same_from_what_is_written_back():
    compared = 0
    for path in fixture_files(every=False):
        data = path.read_bytes()
        try:
            theirs = peer.TableMetadataUtil.parse_raw(plain(data).decode())
        except Exception:
            continue  # not every table is one that PyIceberg can read
        ours = decode_metadata(data, str(path))
        again = peer.TableMetadataUtil.parse_raw(encode_metadata(ours).decode())
        for name in vars(theirs):
            # Icefield raises the last ids above all ids in use, and derives the copy of the schema in v1 from the
            # schemas.
            if name not in ("last_column_id", "last_partition_id", "schema_"):
                assert getattr(again, name) == getattr(theirs, name), (path, name)
        assert again.last_column_id >= theirs.last_column_id
        assert again.schema() == theirs.schema()
        compared += 1
    assert compared > 40


@needs_fixtures
def test_files_of_other_writers_that_were_tampered_with_never_raise_a_stranger():
    draw = random.Random(7)
    files = [plain(path.read_bytes()) for path in fixture_files(every=False)]
    outcomes = Outcomes()
    for _ in range(1_500):
        data = bytearray(draw.choice(files))
        for _ in range(draw.randint(1, 3)):
            at = draw.randrange(len(data))
            match draw.randrange(3):
                case 0:
                    data[at] = draw.choice(b'0123456789"{}[],:-.eE\\xnull ')
                case 1:
                    del data[at : at + draw.randint(1, 30)]
                case 2:
                    data[at:at] = data[at : at + draw.randint(1, 200)]
        with outcomes.of("files", IcefieldError):
            metadata = decode_metadata(bytes(data), "s3://garbled")
            for array in (metadata.schemas, metadata.partition_specs, metadata.snapshots, metadata.statistics):
                with outcomes.of("parts of files", IcefieldError):
                    list(array)
            encode_metadata(apply_updates(metadata, [SetProperties({"a": "b"})]))
    outcomes.check()


def test_a_later_version_is_refused_where_pyiceberg_refuses_it_too():
    source = json.dumps(document(V2, format_version=4))
    with pytest.raises(UnsupportedFeature):
        decode_metadata(source.encode(), "s3://v4")
    with pytest.raises(Exception, match="4"):
        peer.TableMetadataUtil.parse_raw(source)
