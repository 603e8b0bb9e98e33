"""The standard key metadata, to the byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield.abc import FileKey
from icefield.errors import DecryptionFailed
from icefield_encryption.key_metadata import decode, encode

KEY, PREFIX = bytes(range(16)), bytes(range(100, 116))

GOLDEN = {
    # Built by the Avro encoding by hand; tests/interop/test_java_encryption.py compares the encoder with Java.
    "0120000102030405060708090a0b0c0d0e0f0220" + PREFIX.hex() + "00": FileKey(KEY, PREFIX),
    "0120000102030405060708090a0b0c0d0e0f0220" + PREFIX.hex() + "0280808080" + "8040": FileKey(KEY, PREFIX, 2**40),
}


@pytest.mark.parametrize("data", GOLDEN)
def test_key_metadata_has_the_bytes_of_its_avro_encoding(data: str) -> None:
    assert encode(GOLDEN[data]).hex() == data
    assert decode(bytes.fromhex(data), "f") == GOLDEN[data]


@given(
    st.sampled_from([16, 24, 32]).flatmap(lambda size: st.binary(min_size=size, max_size=size)),
    st.binary(max_size=300),
    st.none() | st.integers(0, 2**63 - 1),
)
def test_key_metadata_is_read_as_it_was_written(key: bytes, prefix: bytes, length: int | None) -> None:
    given_key = FileKey(key, prefix, length)
    assert decode(encode(given_key), "f") == given_key


@given(st.binary(max_size=60))
def test_other_bytes_are_refused_with_one_error(data: bytes) -> None:
    whole = b"\1" + data
    try:
        found = decode(whole, "f")
    except DecryptionFailed:
        return
    assert decode(encode(found), "f") == found


def test_another_version_is_refused() -> None:
    with pytest.raises(DecryptionFailed):
        decode(b"\2" + encode(FileKey(KEY, PREFIX))[1:], "f")


def test_a_key_is_not_shown() -> None:
    shown = repr(FileKey(b"k" * 16, b"p" * 16, 7))
    assert shown == "FileKey(length=7)"
