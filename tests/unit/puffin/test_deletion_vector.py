"""Deletion vectors, to the byte."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
import pytest
from bounded import bounded
from hypothesis import example, given, settings
from hypothesis import strategies as st
from icefield.errors import InvalidArgument, InvalidFile
from icefield.puffin import decode_vector, encode_vectors, roaring_encoding
from outcomes import Outcomes, counted_outcomes
from vectors import VECTORS

outcomes = counted_outcomes()

KEY = 1 << 32
BLOCK = 1 << 16


def encode_vector(positions: Any) -> bytes:
    return encode_vectors([positions])[0]


def blob_of(vector: bytes) -> bytes:
    """A blob with a right length and checksum."""
    body = bytes.fromhex("D1D33964") + vector
    return struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def positions_of(*parts: Any) -> np.ndarray[Any, Any]:
    return np.unique(np.concatenate([np.asarray(part, np.int64) for part in parts]))


@pytest.mark.spec("DEL-40", "DEL-41", "DEL-30", "PUF-09")
@pytest.mark.parametrize("vector", VECTORS["deletion_vectors"], ids=lambda vector: vector["name"])
def test_the_vectors_of_the_specification_are_read_and_written_to_the_byte(vector: dict[str, Any]) -> None:
    blob = bytes.fromhex(vector["hex"])
    assert decode_vector(blob, "v", cardinality=vector["cardinality"]).tolist() == vector["positions"]
    assert encode_vector(np.array(vector["positions"], np.int64)) == blob


KINDS = {
    "array": np.arange(0, 4000, 2),
    "largest array": np.arange(0, 8192, 2),
    "bits": np.arange(0, BLOCK, 3),
    "run": np.arange(7, 60000),
    "whole block": np.arange(BLOCK),
    "runs": positions_of(range(10), range(20, 5000), range(BLOCK - 5, BLOCK)),
}


@pytest.mark.spec("DEL-44", "DEL-41")
@pytest.mark.parametrize("kinds", [[kind] for kind in KINDS] + [list(KINDS), ["array", "run"], ["bits"] * 5])
def test_every_kind_of_container_is_read_and_written(kinds: list[str]) -> None:
    for base in (0, 3 * BLOCK, KEY, (KEY << 30) + BLOCK):
        positions = positions_of(*(KINDS[kind] + base + 2 * at * BLOCK for at, kind in enumerate(kinds)))
        assert np.array_equal(decode_vector(encode_vector(positions), "v"), positions)


@pytest.mark.spec("DEL-41")
@pytest.mark.parametrize("containers", [1, 2, 3, 4, 5])
def test_offsets_are_written_beside_runs_from_four_containers_on(containers: int) -> None:
    positions = positions_of(*(KINDS["run"] + at * BLOCK for at in range(containers)))
    blob = encode_vector(positions)
    assert np.array_equal(decode_vector(blob, "v", cardinality=len(positions)), positions)
    # After length, magic, count and key: the cookie, a bit for each container, keys and cardinalities, offsets, bodies.
    bitmap = blob[8 + 8 + 4 : -4]
    assert struct.unpack_from("<HH", bitmap) == (12_347, containers - 1)
    before_offsets = 4 + 1 + 4 * containers
    body = before_offsets + (4 * containers if containers >= 4 else 0)
    assert len(bitmap) == body + 6 * containers
    if containers >= 4:
        offsets = struct.unpack_from(f"<{containers}I", bitmap, before_offsets)
        assert offsets == tuple(body + 6 * at for at in range(containers))


PAIRS = np.arange(0, BLOCK, 32)  # starts of 2048 runs


@pytest.mark.spec("DEL-41", "DEL-44")
@pytest.mark.parametrize(
    ("positions", "form", "size"),
    [
        (np.array([0]), "array", 2),
        (np.array([BLOCK - 1]), "array", 2),
        (np.arange(3), "array", 6),  # as long as a run
        (np.arange(4), "run", 6),
        (np.arange(0, 2 * 4095, 2), "array", 2 * 4095),
        (np.arange(0, 2 * 4096, 2), "array", 8192),
        (np.arange(0, 2 * 4097, 2), "bits", 8192),
        (positions_of(*(PAIRS[:2047] + n for n in range(20))), "run", 2 + 4 * 2047),
        (positions_of(*(PAIRS + n for n in range(20))), "bits", 8192),
        (np.arange(BLOCK - 1), "run", 6),
        (np.arange(1, BLOCK), "run", 6),
    ],
    ids=lambda part: f"{len(part)} from {part[0]}" if isinstance(part, np.ndarray) else str(part),
)
def test_a_container_has_its_smallest_form_at_each_threshold(positions: Any, form: str, size: int) -> None:
    blob = encode_vector(positions)
    assert np.array_equal(decode_vector(blob, "v", cardinality=len(positions)), positions)
    bitmap = blob[8 + 8 + 4 : -4]
    cookie = {"run": 12_347}.get(form, 12_346)
    assert int.from_bytes(bitmap[:2], "little") == cookie
    header = 4 + 1 + 4 if form == "run" else 4 + 4 + 4 + 4
    assert len(bitmap) == header + size


@pytest.mark.spec("DEL-41")
@pytest.mark.parametrize("containers", [7, 8, 9, 16, 17])
@pytest.mark.parametrize("run", [0, 6, -1])
def test_the_bits_of_runs_fill_whole_bytes(containers: int, run: int) -> None:
    parts = [np.array([5]) + at * BLOCK for at in range(containers)]
    parts[run] = parts[run] + np.arange(100)
    positions = positions_of(*parts)
    blob = encode_vector(positions)
    assert np.array_equal(decode_vector(blob, "v", cardinality=len(positions)), positions)
    bits = int.from_bytes(blob[8 + 8 + 4 + 4 :][: (containers + 7) // 8], "little")
    assert bits == 1 << (run % containers)


@pytest.mark.slow
def test_positions_far_apart_are_written_together() -> None:
    # Each position has its own container; then one position in a second bitmap, and runs and bit sets between them.
    far = np.arange(0, 1 << 38, 1 << 18)
    sets = (far, positions_of(far, [(1 << 38) + 5]), positions_of(far, *(far[:300] + n for n in (1, 2, 3, 4))))
    for positions in (*sets, positions_of(far, KINDS["bits"] + 7 * BLOCK, KINDS["run"] + 20 * BLOCK)):
        assert np.array_equal(decode_vector(encode_vector(positions), "v", cardinality=len(positions)), positions)


def test_what_is_written_does_not_depend_on_how_much_is_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    positions = positions_of(*(KINDS[kind] + 2 * at * BLOCK for at, kind in enumerate(list(KINDS) * 3)), [1 << 40])
    whole = encode_vector(positions)
    monkeypatch.setattr(roaring_encoding, "_AT_ONCE", 5000)
    assert encode_vector(positions) == whole


def test_few_vectors_that_are_written_together_are_as_each_alone() -> None:
    several = [KINDS["array"], positions_of([]), positions_of([5, KEY + 3]), KINDS["runs"] + KEY, positions_of([9])]
    assert encode_vectors(several) == [encode_vector(positions) for positions in several]


POSITIONS = st.lists(
    st.tuples(st.integers(0, 2**63 - 2**17), st.sampled_from([*KINDS.values(), np.array([0])])), max_size=4
)


@pytest.mark.peer
@given(POSITIONS)
@settings(max_examples=60, deadline=None)
def test_croaring_writes_the_same_bytes_and_reads_them(pieces: list[Any]) -> None:
    bitmap = pytest.importorskip("pyroaring").BitMap64
    positions = positions_of([], *(base + values for base, values in pieces))
    theirs = bitmap(positions.astype(np.uint64))
    theirs.run_optimize()
    ours = encode_vector(positions)
    assert ours == blob_of(theirs.serialize())
    assert np.array_equal(np.array(bitmap.deserialize(ours[8:-4]), np.uint64).astype(np.int64), positions)
    assert np.array_equal(decode_vector(ours, "v", cardinality=len(positions)), positions)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.lists(POSITIONS, max_size=5))
def test_vectors_that_are_written_together_are_the_same(several: list[list[Any]]) -> None:
    sets = [positions_of([], *(base + values for base, values in pieces)) for pieces in several]
    assert encode_vectors(sets) == [encode_vector(positions) for positions in sets]


@pytest.mark.spec("DEL-42")
def test_a_position_with_bit_63_is_refused_both_ways() -> None:
    with pytest.raises(InvalidArgument, match="-1"):
        encode_vector(np.array([-1, 3], np.int64))
    high = bytearray(encode_vector(np.array([5], np.int64))[8:-4])
    high[11] = 0x80
    with pytest.raises(InvalidFile, match="key"):
        decode_vector(blob_of(bytes(high)), "v")


ONE = encode_vector(np.array([1, 2, 9], np.int64))


@pytest.mark.spec("DEL-43")
def test_each_flipped_bit_is_found() -> None:
    blob = encode_vector(np.array([1, 2, 9, BLOCK + 4], np.int64))
    for bit in range(8 * len(blob)):
        damaged = bytearray(blob)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(InvalidFile, match="somewhere is damaged"):
            decode_vector(bytes(damaged), "somewhere")


@pytest.mark.parametrize("count", [4_097, 400_000])
def test_very_many_empty_bitmaps_are_refused_soon(count: int) -> None:
    empty = struct.pack("<II", 12_346, 0)
    vector = struct.pack("<Q", count) + b"".join(struct.pack("<I", key) + empty for key in range(count))
    with bounded(), pytest.raises(InvalidFile, match=r"v is damaged.* bitmaps; no more than 4096 are read"):
        decode_vector(blob_of(vector), "v", cardinality=0, most=5)


@pytest.mark.spec("DEL-43")
def test_another_number_of_positions_than_is_stated_is_refused_before_they_are_unpacked() -> None:
    for wrong in ({"cardinality": 2}, {"cardinality": 4}, {"most": 2}, {"most": 9}):
        with pytest.raises(InvalidFile, match=r"positions? "):
            decode_vector(ONE, "v", **wrong)
    assert decode_vector(ONE, "v", cardinality=3, most=10).tolist() == [1, 2, 9]
    everything = encode_vector(np.arange(1 << 20))
    assert len(everything) < 300
    with pytest.raises(InvalidFile, match="1048576 positions where 3 are stated"):
        decode_vector(everything, "v", cardinality=3)


RUNS = bytes.fromhex("0100000000000000 00000000 3b300000 01 0000 6300 0100 0000 6300".replace(" ", ""))
PLAIN = bytes.fromhex("0100000000000000 00000000 3a300000 01000000 0000 0200 10000000 0100 0200 0900".replace(" ", ""))


@pytest.mark.spec("DEL-43")
@pytest.mark.parametrize(
    ("vector", "at", "bytes_"),
    [
        (PLAIN, 0, "ffffffffffffffff"),  # bitmaps without end
        (PLAIN, 0, "02"),  # a bitmap that is not there
        (PLAIN, 0, "00"),  # bytes left over
        (PLAIN, 12, "3c"),  # another cookie
        (PLAIN, 16, "ffffffff"),  # containers without end
        (PLAIN, 22, "0300"),  # a value more
        (PLAIN, 22, "ffff"),  # bits that are not there
        (PLAIN, 28, "0200"),  # the same value twice
        (PLAIN, 28, "0700"),  # unsorted
        (RUNS, 14, "0100"),  # two containers
        (RUNS, 19, "6400"),  # another count than the runs have
        (RUNS, 21, "ffff"),  # runs without end
        (RUNS, 23, "ffff"),  # a run beyond its container
    ],
)
def test_vectors_that_are_not_well_formed_are_one_typed_error(vector: bytes, at: int, bytes_: str) -> None:
    assert decode_vector(blob_of(vector), "v").size in (3, 100)
    new = bytes.fromhex(bytes_)
    with pytest.raises(InvalidFile, match="v is damaged"):
        decode_vector(blob_of(vector[:at] + new + vector[at + len(new) :]), "v")


@pytest.mark.slow
@given(st.data())
@settings(max_examples=100, deadline=None)
@pytest.mark.spec("DEL-43")
def test_damage_behind_a_right_checksum_is_one_typed_error_or_ascending_positions(
    outcomes: Outcomes, data: st.DataObject
) -> None:
    kind = data.draw(
        st.sampled_from([*KINDS.values(), positions_of(*(values + 9 for values in KINDS.values()), [KEY])])
    )
    vector = bytearray(encode_vector(np.asarray(kind, np.int64))[8:-4])
    # A quarter of the inputs stays unchanged, so that some inputs are certainly accepted.
    for _ in range(data.draw(st.sampled_from([0, 1, 2, 3]))):
        vector[data.draw(st.integers(0, min(80, len(vector) - 1)))] = data.draw(st.integers(0, 255))
    is_cut = data.draw(st.sampled_from([False, False, False, True]))
    cut = data.draw(st.integers(0, len(vector))) if is_cut else len(vector)
    with outcomes.of("behind a right checksum", InvalidFile):
        found = decode_vector(blob_of(bytes(vector[:cut])), "v")
        assert np.all(np.diff(found) > 0)
        assert not len(found) or found[0] >= 0


@given(st.binary(max_size=64))
@example(b"")
@example(encode_vector(np.asarray([3], np.int64))[8:-4])
@settings(deadline=None)
def test_any_bytes_are_one_typed_error_or_a_vector(outcomes: Outcomes, junk: bytes) -> None:
    for data in (junk, blob_of(junk)):
        with outcomes.of("any bytes", InvalidFile):
            decode_vector(data, "v")


def test_every_row_of_a_file_may_be_deleted_and_no_row_behind_it() -> None:
    vector = encode_vector(positions_of([0, 1, 2]))
    assert decode_vector(vector, "a", cardinality=3, most=3).tolist() == [0, 1, 2]
    with pytest.raises(InvalidFile, match="3 positions in a file of 2 rows"):
        decode_vector(vector, "a", most=2)
    with pytest.raises(InvalidFile, match="position 3 in a file of 3 rows"):
        decode_vector(encode_vector(positions_of([3])), "a", most=3)


@pytest.mark.parametrize("kind", ["array", "runs", "bits", "runs with offsets"])
def test_a_vector_that_is_cut_anywhere_is_said_to_be_cut_off(kind: str) -> None:
    positions = {
        "array": [1, 3, 70_000],
        "runs": [*range(5, 50), *range(90, 120)],
        "bits": list(range(0, 65_536, 3)),
        "runs with offsets": [at + (block << 16) for block in range(4) for at in range(9)],
    }[kind]
    whole = encode_vector(np.array(positions, np.int64))[8:-4]
    for end in sorted({*range(8, min(len(whole), 90)), len(whole) - 1}):
        with pytest.raises(InvalidFile, match=r"it is cut off|\d bitmaps in \d"):
            decode_vector(blob_of(whole[:end]), "a")
