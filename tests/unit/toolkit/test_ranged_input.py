"""A file that is read by ranges gives the same bytes as a file in memory, in few requests."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield.abc import InputFile
from icefield.errors import StorageError
from icefield.toolkit import FetchedRange, RangedInput

TAIL = 100


class Stored(RangedInput):
    """Bytes behind ranges; ``asked`` holds the requests."""

    def __init__(self, data: bytes) -> None:
        super().__init__("test://file")
        self.data = data
        self.asked: list[tuple[int, int]] = []

    def fetch(self, start: int, end: int) -> FetchedRange:
        self.asked.append((start, end))
        return FetchedRange(start, self.data[start:end], len(self.data))

    def fetch_first(self) -> FetchedRange:
        return self.fetch(max(0, len(self.data) - TAIL), len(self.data))


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(-1, 300_000)),
        st.tuples(st.just("seek"), st.integers(0, 700_000)),
        st.tuples(st.just("end"), st.integers(-200, 0)),
    ),
    max_size=12,
)


@given(size=st.sampled_from([0, 1, 99, 250, 70_000, 600_000]), steps=STEPS)
def test_any_sequence_of_reads_and_seeks_gives_what_a_file_gives(size: int, steps: list[tuple[str, int]]) -> None:
    data = bytes(range(251)) * (size // 251 + 1)
    ours, model = Stored(data[:size]), io.BytesIO(data[:size])
    for step, number in steps:
        if step == "read":
            assert ours.read(number) == model.read(number)
        elif step == "seek":
            assert ours.seek(number) == model.seek(number)
        elif size + number >= 0:
            assert ours.seek(number, 2) == model.seek(number, 2)
        assert ours.tell() == model.tell()


def test_a_small_file_is_one_request_even_when_its_size_is_asked_first() -> None:
    source = Stored(b"x" * TAIL).open()
    assert source.seek(0, 2) == TAIL
    source.seek(0)
    assert source.read() == b"x" * TAIL
    assert len(source.asked) == 1


def test_the_tail_of_a_large_file_comes_with_its_size() -> None:
    source = Stored(bytes(200) * 10_000)
    source.seek(-TAIL, 2)
    assert len(source.read()) == TAIL
    assert len(source.asked) == 1


def test_reading_on_reads_ahead_and_jumping_about_does_not() -> None:
    data = bytes(16 * 1024 * 1024)
    source = Stored(data)
    while source.read(10_000):
        pass
    assert len(source.asked) < 20
    jumping = Stored(data)
    for place in (9_000_000, 3_000_000, 12_000_000):
        jumping.seek(place)
        jumping.read(100_000)
    assert jumping.asked == [(place, place + 100_000) for place in (9_000_000, 3_000_000, 12_000_000)]


def test_an_answer_of_another_length_is_an_error_and_no_data() -> None:
    class Short(Stored):
        def fetch(self, start: int, end: int) -> FetchedRange:
            fetched = super().fetch(start, end)
            return FetchedRange(start, fetched.data[:-1], fetched.file_size)

    with pytest.raises(StorageError, match="test://file") as failed:
        Short(bytes(1_000)).read(100)
    assert failed.value.retryable


def test_it_is_an_input_file_that_pyarrow_reads() -> None:
    source = Stored(b"0123456789")
    assert isinstance(source, InputFile)
    file = pa.PythonFile(source, mode="r")
    assert file.read_at(3, 5) == b"567"
    buffer = bytearray(4)
    source.seek(8)
    assert source.readinto(buffer) == 2


def test_a_closed_file_is_not_read() -> None:
    with Stored(b"abc") as source:
        assert source.read(1) == b"a"
    assert source.closed
    with pytest.raises(ValueError, match="closed"):
        source.read()


@pytest.mark.parametrize(("offset", "whence"), [(-1, 0), (0, 7), (-5, 2)])
def test_a_place_that_is_none_is_refused(offset: int, whence: int) -> None:
    with pytest.raises(ValueError, match=r"before the start|whence"):
        Stored(b"abc").seek(offset, whence)


def test_ranges_that_are_near_are_one_request_and_known_ones_none() -> None:
    data = bytes(range(251)) * 40_000
    source = Stored(data).open()
    source.asked.clear()
    ranges = [(len(data) - 50, 50), (5_000_000, 1_000), (5_100_000, 1_000), (10, 5), (len(data) - 20, 90)]
    assert source.read_ranges(ranges) == [data[offset : offset + length] for offset, length in ranges]
    assert sorted(source.asked) == [(10, 15), (5_000_000, 5_101_000)]


def test_one_range_alone_is_read_as_by_its_offset() -> None:
    data = bytes(16 * 1024 * 1024)
    single, ranged = Stored(data).open(), Stored(data).open()
    for place in (9_000_000, 3_000_000, 3_100_000, 12_000_000):
        assert ranged.read_ranges([(place, 100)]) == [single.read_at(place, 100)]
    assert single.asked == ranged.asked


def test_a_range_that_comes_short_is_an_error_among_others_too() -> None:
    class Short(Stored):
        def fetch(self, start: int, end: int) -> FetchedRange:
            fetched = super().fetch(start, end)
            return fetched if end - start == TAIL else FetchedRange(start, fetched.data[:-1], fetched.file_size)

    with pytest.raises(StorageError, match="test://file"):
        Short(bytes(3_000_000)).open().read_ranges([(0, 10), (1_000_000, 10)])


def test_reads_by_offset_ask_for_no_more_than_seeking_and_reading() -> None:
    data = bytes(16 * 1024 * 1024)
    seeking, offsets = Stored(data).open(), Stored(data).open()
    for place, length in ((0, 10_000), (10_000, 10_000), (9_000_000, 100_000), (9_100_000, 3_000_000), (40, 4)):
        seeking.seek(place)
        assert seeking.read(length) == offsets.read_at(place, length)
    assert seeking.asked == offsets.asked
    assert seeking.is_remote
