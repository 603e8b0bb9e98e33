"""The names of metadata files, and the versions in them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield.errors import InvalidArgument
from icefield.metadata.file_names import (
    file_system_metadata_name,
    is_metadata_file,
    new_metadata_file_name,
    parse_metadata_file_name,
    parse_version_hint,
    temporary_metadata_name,
    version_of,
)
from vectors import VECTORS

NAMES = VECTORS["metadata_file_names"]


@pytest.mark.spec("META-33", "META-34", "META-36")
@pytest.mark.parametrize(("name", "expected"), [*NAMES["hadoop"].items(), *NAMES["metastore"].items()])
def test_names_of_metadata_files_state_version_and_compression(name, expected):
    for text in (name, f"s3://b/t/metadata/{name}"):
        assert is_metadata_file(text)
        parsed = parse_metadata_file_name(text)
        assert (parsed.version, parsed.gzip) == (expected["version"], expected.get("gzip", False))
        assert version_of(text) == (expected["version"] if name.startswith("v") else None)


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
    assert parse_metadata_file_name(metastore) == (version, compress, False)
    assert re.fullmatch(r"\d{5,}-[0-9a-f-]{36}(\.gz)?\.metadata\.json", metastore)
    assert metastore != new_metadata_file_name(version, compress=compress)
    file_system = file_system_metadata_name(version, compress=compress)
    assert parse_metadata_file_name(file_system) == (version, compress, True)
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


@pytest.mark.parametrize("name", ["snap-3-x.avro", "version-hint.text", "v3.json", "v3.metadata.json.tmp"])
def test_other_files_of_a_table_have_no_name_of_a_metadata_file(name):
    assert not is_metadata_file(name)
