"""A stream in parts publishes all written bytes or nothing, and leaves no upload behind."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield.toolkit import PartedOutput

PART = 10


class Stored(PartedOutput):
    """Parts in memory; the step named by ``failing`` fails."""

    def __init__(self, failing: str = "") -> None:
        super().__init__("test://file", PART)
        self.failing = failing
        self.published: bytes | None = None
        self.parts: dict[int, bytes] = {}
        self.steps: list[str] = []

    def _did(self, step: str) -> None:
        self.steps.append(step)
        if step == self.failing:
            raise ConnectionError(step)

    def put_whole(self, data: bytes) -> None:
        self._did("whole")
        self.published = data

    def put_part(self, number: int, data: bytes) -> None:
        self._did("part")
        assert len(data) == PART
        self.parts[number] = data

    def finish(self, number: int, data: bytes) -> None:
        self._did("finish")
        assert 0 < len(data) <= PART
        self.parts[number] = data
        assert sorted(self.parts) == list(range(number + 1))
        self.published = b"".join(self.parts[n] for n in range(number + 1))

    def cancel(self) -> None:
        self.steps.append("cancel")
        self.parts.clear()


@given(st.lists(st.binary(max_size=35), max_size=8))
def test_what_was_written_is_published_in_order(pieces: list[bytes]) -> None:
    sink = Stored()
    for piece in pieces:
        assert sink.write(piece) == len(piece)
        assert sink.published is None
    assert sink.tell() == sum(map(len, pieces))
    sink.close()
    sink.close()
    assert sink.published == b"".join(pieces)
    assert len(sink.steps) == max(1, -(-sink.tell() // PART))


@pytest.mark.parametrize("written", [0, 5, 10, 11, 95])
def test_aborting_publishes_nothing_and_cancels_what_was_begun(written: int) -> None:
    sink = Stored()
    sink.write(b"x" * written)
    sink.abort()
    sink.abort()
    assert (sink.published, sink.parts) == (None, {})
    assert sink.steps.count("cancel") == (written > PART)
    with pytest.raises(ValueError, match="closed"):
        sink.write(b"more")


@pytest.mark.parametrize("failing", ["whole", "part", "finish"])
def test_a_step_that_fails_gives_the_upload_up(failing: str) -> None:
    sink = Stored(failing)
    with pytest.raises(ConnectionError, match=failing), sink:
        sink.write(b"x" * (5 if failing == "whole" else 45))
    assert (sink.published, sink.parts, sink.closed) == (None, {}, True)
    assert sink.steps.count("cancel") == (failing != "whole")


def test_an_exception_in_a_with_block_publishes_nothing() -> None:
    sink = Stored()
    sink.__enter__().write(b"x" * 45)
    sink.__exit__(KeyError, KeyError("the writer failed"), None)
    assert (sink.published, sink.parts, sink.steps[-1]) == (None, {}, "cancel")
