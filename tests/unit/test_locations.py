"""Where files go, and what the names of metadata files tell."""

import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield.errors import InvalidArgument
from icefield.locations import (
    LocationProvider,
    file_system_metadata_name,
    new_metadata_file_name,
    parse_metadata_file_name,
    parse_version_hint,
    temporary_metadata_name,
    writes_gzip,
)
from metadata_examples import new_table
from vectors import VECTORS

NAMES = VECTORS["metadata_file_names"]


def provider(location: str = "s3://b/wh/db/t", **properties: str) -> LocationProvider:
    return LocationProvider.of(location, {name.replace("_", "."): value for name, value in properties.items()})


@pytest.mark.spec("META-33", "META-34", "META-36")
@pytest.mark.parametrize(("name", "expected"), [*NAMES["hadoop"].items(), *NAMES["metastore"].items()])
def test_names_of_metadata_files_tell_version_and_compression(name, expected):
    for text in (name, f"s3://b/t/metadata/{name}"):
        assert parse_metadata_file_name(text) == (expected["version"], expected.get("gzip", False))


@pytest.mark.spec("META-33", "META-34")
@pytest.mark.parametrize(
    "name",
    [
        "",
        "v.metadata.json",
        "v-1.metadata.json",
        "v3.metadata.jsonx",
        "v3.metadata.json.tmp",
        "xv3.metadata.json",
        "v3x.metadata.json",
        "3.metadata.json",
        "-3-x.metadata.json",
        "v٣.metadata.json",
        "v3.json",
        "snap-3-x.avro",
        "version-hint.text",
        "12345678-1234-1234-1234-123456789012.metadata.json",
        f"v{'9' * 40}.metadata.json",
    ],
)
def test_other_names_are_no_metadata_files(name):
    assert parse_metadata_file_name(name) is None


@pytest.mark.spec("META-33", "META-34", "META-36")
@given(st.integers(0, 10**9), st.booleans())
def test_new_names_parse_back_and_are_padded(version, compress):
    metastore = new_metadata_file_name(version, compress=compress)
    assert parse_metadata_file_name(metastore) == (version, compress)
    assert re.fullmatch(r"\d{5,}-[0-9a-f-]{36}(\.gz)?\.metadata\.json", metastore)
    assert metastore != new_metadata_file_name(version, compress=compress)
    file_system = file_system_metadata_name(version, compress=compress)
    assert parse_metadata_file_name(file_system) == (version, compress)
    assert file_system == f"v{version}{'.gz' if compress else ''}.metadata.json"
    assert parse_metadata_file_name(temporary_metadata_name()) is None


def test_a_negative_version_has_no_name():
    for name in (new_metadata_file_name, file_system_metadata_name):
        with pytest.raises(InvalidArgument):
            name(-1)


@pytest.mark.spec("META-35")
def test_a_version_hint_is_a_decimal_number_or_nothing():
    assert parse_version_hint(NAMES["version_hint"]["content"]) == 3
    assert parse_version_hint(b" 12\n") == 12
    for wrong in (b"", "", b"v3", b"\xff", "three", "-1", "1.0", b"9" * 100, "²"):
        assert parse_version_hint(wrong) is None


@pytest.mark.spec("META-04", "META-37", "META-33")
def test_files_lie_below_the_table_unless_told_otherwise():
    plain = LocationProvider.from_metadata(new_table())
    assert plain.data_location("f.parquet") == "s3://b/wh/t/data/f.parquet"
    assert plain.data_location("f.parquet", "day=1/x=a%2Fb") == "s3://b/wh/t/data/day=1/x=a%2Fb/f.parquet"
    assert plain.metadata_location("v1.metadata.json") == "s3://b/wh/t/metadata/v1.metadata.json"
    assert provider("s3://b/t/").data_location("f") == "s3://b/t/data/f"
    assert pickle.loads(pickle.dumps(plain)) == plain


@pytest.mark.spec("META-37")
@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("s3://other/x/", "s3://other/x"),
        ("/abs/x", "/abs/x"),
        ("file:/abs/x", "file:/abs/x"),
        ("sub/x", "s3://b/wh/db/t/sub/x"),
        ("sub/", "s3://b/wh/db/t/sub"),
    ],
)
def test_folders_are_absolute_or_relative_to_the_table(path, folder):
    moved = LocationProvider.of("s3://b/wh/db/t", {"write.data.path": path, "write.metadata.path": path})
    assert moved.data_location("f", "p=1") == f"{folder}/p=1/f"
    assert moved.metadata_location("m") == f"{folder}/m"


@pytest.mark.spec("META-37")
def test_former_names_of_the_data_path_count_where_the_new_one_is_not_set():
    former = {"write.folder-storage.path": "s3://f", "write.object-storage.path": "s3://o"}
    assert LocationProvider.of("s3://b/t", former).data_folder == "s3://f"
    assert LocationProvider.of("s3://b/t", {**former, "write.object-storage.enabled": "true"}).data_folder == "s3://o"
    assert LocationProvider.of("s3://b/t", {**former, "write.data.path": "s3://d"}).data_folder == "s3://d"


def spread(location: str = "s3://b/wh/db/t", **properties: str) -> LocationProvider:
    return LocationProvider.of(location, {"write.object-storage.enabled": "true", **properties})


@pytest.mark.parametrize(
    ("name", "bits"),
    [("a", "0101/0110/1001/10110010"), ("b", "1110/0111/1110/00000011"), ("c", "0010/1101/0110/01011111")],
)
def test_object_storage_paths_begin_with_twenty_bits_of_the_name_s_hash(name, bits):
    # Values that Iceberg's own tests print.
    assert spread().data_location(name) == f"s3://b/wh/db/t/data/{bits}/{name}"


def test_object_storage_paths_carry_partitions_or_not_and_the_table_s_name_outside_of_it():
    with_partition = spread().data_location("f", "day=1")
    assert re.fullmatch(r"s3://b/wh/db/t/data/[01]{4}/[01]{4}/[01]{4}/[01]{8}/day=1/f", with_partition)
    assert with_partition.split("/")[6:10] != spread().data_location("f", "day=2").split("/")[6:10]
    without = spread(**{"write.object-storage.partitioned-paths": "false"}).data_location("f", "day=1")
    assert re.fullmatch(r"s3://b/wh/db/t/data/[01]{4}/[01]{4}/[01]{4}/[01]{8}-f", without)
    outside = spread(**{"write.data.path": "s3://elsewhere/x"}).data_location("f", "day=1")
    assert re.fullmatch(r"s3://elsewhere/x/[01]{4}/[01]{4}/[01]{4}/[01]{8}/db/t/day=1/f", outside)


@given(st.uuids())
def test_object_storage_paths_are_those_of_pyiceberg(uuid):
    peer = pytest.importorskip("pyiceberg.table.locations")
    name = f"00000-0-{uuid}.parquet"
    for partitioned in ("true", "false"):
        properties = {
            "write.object-storage.enabled": "true",
            "write.object-storage.partitioned-paths": partitioned,
            "write.data.path": "s3://b/t/data",
        }
        theirs = peer.ObjectStoreLocationProvider("s3://b/t", properties).new_data_location(name)
        assert LocationProvider.of("s3://b/t", properties).data_location(name) == theirs


def test_a_property_of_the_wrong_form_is_refused():
    with pytest.raises(InvalidArgument, match="object-storage"):
        LocationProvider.of("s3://b/t", {"write.object-storage.enabled": "perhaps"})


@pytest.mark.spec("META-36")
def test_compression_of_metadata_files_is_a_property():
    assert writes_gzip({"write.metadata.compression-codec": "GZIP"})
    assert not writes_gzip({})
