"""Where files go."""

import pickle
import re
from urllib.parse import quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield.errors import InvalidArgument
from icefield.metadata.file_names import writes_gzip
from icefield.storage import LocationProvider
from metadata_examples import new_table


def provider(location: str = "s3://b/wh/db/t", **properties: str) -> LocationProvider:
    return LocationProvider.of(location, {name.replace("_", "."): value for name, value in properties.items()})


@pytest.mark.spec("META-04", "META-37", "META-33")
def test_files_are_below_the_table_unless_stated_otherwise():
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


NAMES_AND_VALUES = st.lists(
    st.tuples(st.text(min_size=1, max_size=400), st.text(max_size=400)), min_size=1, max_size=60
)


@given(NAMES_AND_VALUES, st.booleans())
def test_no_folder_of_a_partition_is_longer_than_stores_allow(pairs, object_storage):
    path = "/".join(f"{quote_plus(name, safe='')}={quote_plus(value, safe='')}" for name, value in pairs)
    found = LocationProvider.of(
        "s3://b/wh/db/t", {"write.object-storage.enabled": str(object_storage).lower()}
    ).data_location("f.parquet", path)
    *folders, name = found.removeprefix("s3://b/wh/db/t/data/").split("/")
    assert name == "f.parquet"
    assert max(len(folder.encode()) for folder in folders) <= 255
    assert len("/".join(folders).encode()) <= 512 + len("0101/0110/1001/10110010/")
    if len(path) <= 500 and max(map(len, path.split("/"))) <= 255:
        assert found.endswith(f"/{path}/f.parquet")
    else:
        for folder in folders:  # every escape is whole
            assert re.fullmatch(r"(?:[^%]|%[0-9A-F]{2})*", folder)


def test_partitions_that_are_cut_at_one_place_have_folders_of_their_own():
    long, many = "x" * 300, "/".join(f"part{number}=value" for number in range(100))
    paths = [f"p={long}a", f"p={long}b", f"{many}/last=a", f"{many}/last=b", f"{many}/last={long}"]
    found = {provider().data_location("f.parquet", path) for path in paths}
    assert len(found) == len(paths)
    assert {provider().data_location("f.parquet", path) for path in paths} == found
    assert provider().data_location("f", f"p={long}").startswith("s3://b/wh/db/t/data/p=xxxxx")
    assert provider().data_location("f", many).startswith("s3://b/wh/db/t/data/part0=value/part1=value/")
