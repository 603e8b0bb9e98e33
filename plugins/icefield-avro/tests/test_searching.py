"""Where a run of bytes is found in a buffer, next to Python's own search."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield_avro.vectorized.byte_buffer import ByteBuffer, Memory
from icefield_avro.vectorized.searching import find_all

wanted = st.binary(min_size=15, max_size=100) | st.text("ab/=0", min_size=15, max_size=100).map(str.encode)
noise = st.binary(max_size=60) | st.text("ab/=0", max_size=60).map(str.encode)


def tape_of(*payloads: bytes) -> ByteBuffer:
    return ByteBuffer(list(payloads), 64, Memory())


def places_of(raw: bytes, run: bytes) -> list[int]:
    return [at for at in range(len(raw)) if raw.startswith(run, at)]


@given(wanted, st.lists(noise, min_size=1, max_size=12))
def test_every_place_is_found_at_any_distance(run: bytes, between: list[bytes]) -> None:
    payload = run.join(between)
    found = find_all(tape_of(payload), run).tolist()
    true = places_of(payload, run)
    assert sorted(set(found)) == found
    if len(true) == payload.count(run):  # those that overlap are not all looked for
        assert set(found) >= set(true)
    for place in found:
        assert payload[place : place + 8] == run[:8]
        assert payload[place : place + len(run)][-8:] == run[-8:]


@pytest.mark.parametrize("run", [b"12345678", b"s3://bucket/db", b"a" * 40, b"s3://bucket/warehouse/db/table/data/"])
def test_runs_that_are_short_or_repeat_themselves_are_found(run: bytes) -> None:
    records = [b"%d" % number * 9 for number in range(300)]
    payload = run + run.join(records)
    assert find_all(tape_of(payload), run).tolist() == places_of(payload, run)


def test_what_an_earlier_tape_left_in_the_memory_is_not_found() -> None:
    run, memory = b"s3://bucket/warehouse/db/table/data/", Memory()
    ByteBuffer([run * 50], 64, memory)
    payload = b"--" + run + b"--"
    later = ByteBuffer([payload], 64, memory)
    assert find_all(later, run).tolist() == [2]
    assert bytes(later.raw[later.end :]).strip(b"\0") == b""
