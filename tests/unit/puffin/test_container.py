"""Puffin files: the container."""

from __future__ import annotations

import struct
from typing import Any
from uuid import uuid4

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.base.limits import MAX_PUFFIN_FOOTER_BYTES
from icefield.builtin.memory import MemoryFileSystem
from icefield.errors import InvalidFile, UnsupportedFeature
from icefield.puffin import Blob, BlobType, PuffinWriter
from icefield.toolkit import BytesInput
from icefield_maintenance.puffin_reader import PuffinReader, decompress
from lz4_frames import lz4_frame
from outcomes import Outcomes, counted_outcomes
from vectors import VECTORS

outcomes = counted_outcomes()

EMPTY, VECTOR = (bytes.fromhex(each["hex"]) for each in VECTORS["puffin"])


def opened(data: bytes) -> PuffinReader:
    return PuffinReader(BytesInput(data), "a.puffin")


def written(blobs: list[dict[str, Any]], *, packed: bool = False, **options: Any) -> bytes:
    """A file with these blobs. LZ4 frames and a packed footer are put in as another engine would write them."""
    location = f"memory://puffin/{uuid4()}.puffin"
    with PuffinWriter(MemoryFileSystem().open_output(location), **options) as writer:
        for blob in blobs:
            if blob.get("codec") == "lz4":
                made = writer.add(**{**blob, "codec": None, "data": lz4_frame(blob["data"])})
                writer.blobs[-1] = msgspec.structs.replace(made, compression_codec="lz4")
            else:
                writer.add(**blob)
    with MemoryFileSystem().open_input(location) as source:
        data = bytes(source.read())
    if not packed:
        return data
    (length,) = struct.unpack("<i", data[-12:-8])
    return data[: -12 - length - 4] + footer(lz4_frame(data[-12 - length : -12]), 1)[4:]


def footer(payload: bytes, flags: int = 0, blobs: bytes = b"") -> bytes:
    return b"PFA1" + blobs + b"PFA1" + payload + struct.pack("<iI", len(payload), flags) + b"PFA1"


@pytest.mark.spec("PUF-01", "PUF-02")
def test_the_files_of_the_specification_are_read_and_written_to_the_byte() -> None:
    assert opened(EMPTY).blobs == ()
    assert written([]) == EMPTY
    reader = opened(VECTOR)
    (blob,) = reader.blobs
    assert (blob.type, blob.offset, blob.length) == (BlobType.DELETION_VECTOR, 4, 66)
    assert reader.properties == {"created-by": "h6 vectors"}
    copy = {"kind": blob.type, "data": reader.read(blob), "fields": blob.fields, "properties": blob.strings}
    assert written([copy], properties=reader.properties) == VECTOR


BLOBS = st.lists(
    st.fixed_dictionaries(
        {
            "kind": st.sampled_from([BlobType.THETA_SKETCH, "unknown-v9", ""]),
            "data": st.one_of(st.binary(max_size=200), st.sampled_from([b"", b"a" * 70_000])),
            "fields": st.lists(st.integers(1, 99), max_size=3),
            "snapshot_id": st.integers(-(2**63), 2**63 - 1),
            "sequence_number": st.integers(-1, 9),
            "codec": st.sampled_from([None, "lz4", "zstd"]),
            "properties": st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2),
        }
    ),
    max_size=4,
)


@pytest.mark.spec("PUF-03", "PUF-04", "PUF-05", "PUF-06", "PUF-08")
@given(BLOBS, st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=2), st.booleans())
@settings(max_examples=60, deadline=None)
def test_what_is_written_is_read(blobs: list[dict[str, Any]], properties: dict[str, str], packed: bool) -> None:
    data = written(blobs, properties=properties, packed=packed)
    with opened(data) as reader:
        assert reader.properties == properties
        for given_, blob in zip(blobs, reader.blobs, strict=True):
            assert reader.read(blob) == given_["data"]
            assert (blob.type, list(blob.fields), blob.compression_codec) == tuple(
                given_[name] for name in ("kind", "fields", "codec")
            )
            assert (blob.snapshot_id, blob.sequence_number) == (given_["snapshot_id"], given_["sequence_number"])
            assert blob.strings == given_["properties"]


def test_unknown_blobs_are_kept_as_they_are_stored() -> None:
    data = written([{"kind": "unknown-v9", "data": b"a" * 999, "codec": "zstd", "fields": (7,)}])
    reader = opened(data)
    location = f"memory://puffin/{uuid4()}.puffin"
    with PuffinWriter(MemoryFileSystem().open_output(location)) as writer:
        for blob in reader.blobs:
            assert writer.add_stored(blob, reader.read_stored(blob)) == blob
    with MemoryFileSystem().open_input(location) as source:
        assert source.read() == data


@pytest.mark.spec("PUF-03", "PUF-06")
@pytest.mark.parametrize("size", [0, 1, 13, 1 << 16, (4 << 20) + 5])
@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_a_frame_states_the_size_of_its_content(size: int, codec: Any) -> None:
    data = (bytes(range(251)) * (size // 251 + 1))[:size]
    frame = lz4_frame(data) if codec == "lz4" else pa.compress(data, codec, asbytes=True)
    assert decompress(frame, codec, "a") == data
    if codec == "lz4":
        assert frame[:5] == bytes.fromhex("04224d1868")
        assert int.from_bytes(frame[6:14], "little") == size
        other = bytearray(frame)
        other[6] ^= 1
        with pytest.raises(InvalidFile):
            decompress(bytes(other), codec, "a")
    assert decompress(pa.compress(data, codec, asbytes=True), codec, "a") == data


def test_a_bomb_is_left_alone() -> None:
    with pytest.raises(InvalidFile, match="more than"):
        decompress(lz4_frame(bytes(1 << 24)), "lz4", "a", 1 << 20)
    payload = lz4_frame(b" " * (MAX_PUFFIN_FOOTER_BYTES + 1))
    with pytest.raises(InvalidFile, match="more than"):
        opened(footer(payload, 1))


@pytest.mark.spec("PUF-03", "PUF-06")
def test_what_nobody_knows_is_refused() -> None:
    for flags in (2, 3, 256, 1 << 31):
        with pytest.raises(UnsupportedFeature, match="flags"):
            opened(footer(b'{"blobs":[]}', flags))
    described = b'{"blobs":[{"type":"t","fields":[],"snapshot-id":1,"sequence-number":1,"offset":4,"length":3,%s}]}'
    reader = opened(footer(described % b'"compression-codec":"snappy"', blobs=b"abc"))
    with pytest.raises(UnsupportedFeature, match="'snappy'"):
        reader.read(reader.blobs[0])


@pytest.mark.spec("PUF-06")
@pytest.mark.parametrize("codec", ["gzip", "bz2", "brotli", "snappy", "lz4_raw", "LZ4", "zstd ", ""])
def test_codecs_that_arrow_knows_and_puffin_does_not_are_refused(codec: str) -> None:
    data = pa.compress(b"abc", codec, asbytes=True) if codec in ("gzip", "brotli", "snappy", "lz4_raw") else b"abc"
    with pytest.raises(UnsupportedFeature, match="compression codec"):
        decompress(data, codec, "a.puffin")


@pytest.mark.spec("PUF-01")
@pytest.mark.parametrize("packed", [False, True])
def test_each_of_the_three_magics_is_checked(packed: bool) -> None:
    whole = written([{"kind": "t", "data": b"abc" * 9}], packed=packed)
    places = [at for at in range(len(whole)) if whole.startswith(b"PFA1", at)]
    assert len(places) == 3
    for place in places:
        for byte in range(4):
            damaged = bytearray(whole)
            damaged[place + byte] ^= 0x20
            with pytest.raises(InvalidFile, match="as a Puffin file does"):
                opened(bytes(damaged))


@pytest.mark.spec("PUF-02", "PUF-05")
@pytest.mark.parametrize(
    "payload",
    [
        b"", b"{}", b"[]", b'{"blobs":{}}', b'{"blobs":[{}]}', b"\xff", b'{"blobs":[]',
        b'{"blobs":[{"type":"t","fields":[],"snapshot-id":1,"sequence-number":1,"offset":3,"length":3}]}',
        b'{"blobs":[{"type":"t","fields":[],"snapshot-id":1,"sequence-number":1,"offset":4,"length":4}]}',
        b'{"blobs":[{"type":"t","fields":[],"snapshot-id":1,"sequence-number":1,"offset":4,"length":-1}]}',
        b'{"blobs":[{"type":"t","fields":[],"snapshot-id":1,"sequence-number":1,"offset":9223372036854775807,"length":1}]}',
        b'{"blobs":[{"type":"t","fields":"x","snapshot-id":1,"sequence-number":1,"offset":4,"length":1}]}',
    ],
)  # fmt: skip
def test_footers_that_are_wrong_are_one_typed_error(payload: bytes) -> None:
    with pytest.raises(InvalidFile, match=r"a\.puffin is damaged") as caught:
        opened(footer(payload, blobs=b"abc"))
    assert caught.value.data["location"] == "a.puffin"


def test_a_footer_of_another_size_than_it_states_is_refused() -> None:
    for length in (-1, 11, 13, 1 << 30):
        data = EMPTY[:-12] + struct.pack("<iI", length, 0) + b"PFA1"
        with pytest.raises(InvalidFile):
            opened(data)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_a_damaged_file_is_one_typed_error_or_bytes(outcomes: Outcomes, data: st.DataObject) -> None:
    whole = written([{"kind": "t", "data": b"abc" * 99, "codec": "zstd"}], packed=data.draw(st.booleans()))
    damaged = bytearray(whole[: data.draw(st.integers(0, len(whole)))] if data.draw(st.booleans()) else whole)
    for _ in range(data.draw(st.integers(0, 3))):
        if damaged:
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with outcomes.of("damaged", InvalidFile, UnsupportedFeature):
        reader = opened(bytes(damaged))
        assert all(isinstance(reader.read(blob), bytes) for blob in reader.blobs)


def test_blobs_are_values() -> None:
    first = Blob(type="t", fields=(1,), snapshot_id=1, sequence_number=1, offset=4, length=0)
    assert first.strings == {}


def test_a_closed_reader_closes_its_file() -> None:
    class Source(BytesInput):
        closed = False

        def close(self) -> None:
            self.closed = True

    source = Source(EMPTY)
    with PuffinReader(source, "a.puffin"):
        assert not source.closed
    assert source.closed
