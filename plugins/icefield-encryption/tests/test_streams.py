"""AES GCM streams: read at any place, and refused when they are not as they were written."""

from __future__ import annotations

import os
import random
import struct
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from encrypted_tables import memory_io
from hypothesis import given
from hypothesis import strategies as st
from icefield.abc import FileKey
from icefield.errors import DecryptionFailed
from icefield.toolkit import BytesInput
from icefield_encryption.streams import BLOCK, HEADER, DecryptingFile, EncryptingStream, plain_size, stored_size

KEY = FileKey(bytes(range(16)), b"prefix-of-a-file")
STORED = BLOCK + 28
IO = memory_io()


def encrypted(data: bytes, key: FileKey = KEY, *, step: int = 1 << 30) -> bytes:
    location = f"memory://streams/{os.urandom(8).hex()}"
    with EncryptingStream(IO.open_output(location), key) as sink:
        for start in range(0, len(data), step):
            sink.write(data[start : start + step])
        assert sink.tell() == len(data)
    stored = IO.read(location)
    IO.delete_many([location])
    return stored


def opened(stored: bytes, key: FileKey = KEY, length: int | None = None) -> DecryptingFile:
    return DecryptingFile(BytesInput(stored), replace(key, length=len(stored) if length is None else length), "f")


def text(size: int) -> bytes:
    return random.Random(size).randbytes(size)


@pytest.mark.spec("ENC-03")
@pytest.mark.parametrize("size", [0, 1, 17, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 5])
def test_a_stream_is_what_the_specification_says(size: int) -> None:
    data, stored = text(size), encrypted(text(size), step=400_001)
    assert stored[:8] == b"AGS1" + struct.pack("<i", 1 << 20)
    assert len(stored) == stored_size(size)
    assert plain_size(len(stored)) == size
    found, place, number = b"", 8, 0
    while place < len(stored):
        block = stored[place : place + STORED]
        aad = KEY.aad_prefix + number.to_bytes(4, "little")
        found += AESGCM(KEY.key).decrypt(block[:12], block[12:], aad)
        place, number = place + len(block), number + 1
    assert found == data
    assert opened(stored).read() == data


DATA = text(3 * BLOCK + 1234)
WHOLE = encrypted(DATA)


@given(st.lists(st.tuples(st.integers(0, len(DATA) + 10), st.integers(0, BLOCK + 10)), max_size=6))
def test_any_ranges_are_read_alone(ranges: list[tuple[int, int]]) -> None:
    with opened(WHOLE) as file:
        assert file.read_ranges(ranges) == [DATA[offset : offset + length] for offset, length in ranges]


def test_the_nonces_of_two_streams_differ() -> None:
    assert encrypted(b"x")[8:20] != encrypted(b"x")[8:20]


def test_a_range_reads_only_its_blocks() -> None:
    asked: list[tuple[int, int]] = []

    class Noting(BytesInput):
        def read_ranges(self, ranges):
            asked.extend(ranges)
            return super().read_ranges(ranges)

    file = DecryptingFile(Noting(WHOLE), replace(KEY, length=len(WHOLE)), "f")
    assert file.read_at(BLOCK + 5, 10) == DATA[BLOCK + 5 : BLOCK + 15]
    assert file.read_at(BLOCK + 100, 10) == DATA[BLOCK + 100 : BLOCK + 110]
    assert asked == [(len(HEADER) + STORED, STORED)]


@pytest.mark.spec("ENC-04")
@pytest.mark.parametrize(
    "damaged",
    [
        WHOLE[: 8 + 2 * STORED],
        WHOLE[:-1],
        WHOLE[:20],
        b"",
        WHOLE[: 8 + STORED] + WHOLE[8 + 2 * STORED : 8 + 3 * STORED] + WHOLE[8 + STORED :],
        encrypted(DATA, replace(KEY, aad_prefix=b"prefix-of-anothe")),
        encrypted(DATA, replace(KEY, key=bytes(16))),
        DATA + bytes(len(WHOLE) - len(DATA)),
        b"AGS1" + struct.pack("<i", 1 << 21) + WHOLE[8:],
        b"AGS2" + WHOLE[4:],
    ],
    ids=["cut at a block", "cut", "cut in a nonce", "empty", "reordered", "another file", "another key", "plain",
         "another block length", "another magic"],
)  # fmt: skip
def test_a_stream_that_is_not_the_written_one_gives_no_byte(damaged: bytes) -> None:
    with pytest.raises(DecryptionFailed, match="f cannot be decrypted"):
        opened(damaged, length=len(WHOLE)).read()


@given(st.integers(0, 400))
def test_sizes_are_turned_into_each_other(size: int) -> None:
    for plain in (size, size * 10_007, BLOCK - 200 + size, 7 * BLOCK - 200 + size):
        assert plain_size(stored_size(plain)) == plain


@pytest.mark.parametrize("size", [0, 8, 35, 8 + STORED + 1, 8 + STORED + 28])
def test_a_size_that_no_stream_has_is_refused(size: int) -> None:
    assert plain_size(size) is None
    with pytest.raises(DecryptionFailed):
        opened(bytes(size), length=size)
