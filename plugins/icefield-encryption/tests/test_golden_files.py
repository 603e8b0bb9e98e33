"""Encrypted files that Iceberg's Java library wrote are read. See ``tests/support/golden_encryption.py``."""

from __future__ import annotations

import json
import shutil

import pytest
from golden_encryption import GOLDEN, LEFT, read
from icefield.abc import FileKey
from icefield.errors import DecryptionFailed
from icefield.toolkit import BytesInput
from icefield_encryption.key_metadata import decode, encode
from icefield_encryption.streams import DecryptingFile


@pytest.fixture
def golden(tmp_path):
    """A copy of the stored files, whose keystore only its owner may open."""
    shutil.copytree(GOLDEN, tmp_path / "golden")
    (tmp_path / "golden" / "keys.json").chmod(0o600)
    return tmp_path / "golden"


@pytest.mark.spec("ENC-03", "ENC-04")
def test_streams_that_java_wrote_are_read(golden):
    for each in json.loads((golden / "described.json").read_text())["streams"]:
        stored = (golden / each["file"]).read_bytes()
        key = FileKey(bytes.fromhex(each["key"]), bytes.fromhex(each["prefix"]), len(stored))
        assert DecryptingFile(BytesInput(stored), key, each["file"]).read().hex() == each["data"]
        other = FileKey(key.key, key.aad_prefix[::-1], len(stored))
        with pytest.raises(DecryptionFailed):
            DecryptingFile(BytesInput(stored), other, each["file"]).read_at(0, 1)


def test_key_metadata_that_java_wrote_is_read_and_written_to_the_byte():
    for each in json.loads((GOLDEN / "described.json").read_text())["key-metadata"]:
        own = decode(bytes.fromhex(each["own"]), "there")
        assert own == FileKey(bytes.fromhex(each["key"]), bytes.fromhex(each["prefix"]))
        assert encode(own).hex() == each["own"]
        given = FileKey(*(bytes.fromhex(each["given"][name]) for name in ("key", "prefix")), each["length"])
        assert decode(bytes.fromhex(each["again"]), "there") == given
        assert encode(given).hex() == each["again"]


def test_a_table_that_java_encrypted_is_read(golden):
    assert read(golden) == LEFT
    suffixes = {path.suffix for path in (golden / "t").rglob("*") if path.is_file()}
    assert suffixes == {".json", ".text", ".avro", ".parquet", ".puffin"}
