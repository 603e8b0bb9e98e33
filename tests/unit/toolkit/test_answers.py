"""Responses of servers are not read beyond their limit."""

from __future__ import annotations

import asyncio

import pytest
from icefield.errors import AccessDenied, StorageError
from icefield.toolkit import LimitedStream, answer_limit, located, refusal_in
from icefield.toolkit.answers import MAX_ANSWER, MAX_WHOLE


class _Stream:
    """A body of pieces of three bytes."""

    def __init__(self, size: int) -> None:
        self.left, self.on_eof = size, "of the stream"

    async def read(self, size: int) -> bytes:
        taken = min(size, self.left)
        self.left -= taken
        return bytes(taken)

    async def readany(self) -> bytes:
        return await self.read(3)


@pytest.mark.parametrize(
    ("status", "asked", "most"),
    [
        (200, {}, MAX_ANSWER),
        (404, {"Range": "bytes=0-9"}, MAX_ANSWER),
        (206, {"Range": "bytes=10-19"}, 10),
        (206, {"x-ms-range": "bytes=0-0"}, 1),
        (206, {"Range": "bytes=-7"}, 7),
        (206, {"Range": "bytes=7-"}, MAX_WHOLE),
        (200, {"Range": "bytes=0-9"}, MAX_WHOLE),
        (200, {"Range": "lines=1"}, MAX_ANSWER),
    ],
)
def test_an_answer_may_be_as_long_as_what_was_asked_for(status: int, asked: dict[str, str], most: int) -> None:
    assert answer_limit(status, asked) == most


def test_a_body_is_read_up_to_its_limit_in_every_way_and_no_further() -> None:
    async def pieces(size: int, how: str) -> bytes:
        body = LimitedStream(_Stream(size), 10)
        match how:
            case "whole":
                return await body.read()
            case "any":
                return b"".join([piece async for piece in body.iter_any()])
            case _:
                return b"".join([piece async for piece in body.iter_chunked(4)])

    for how in ("whole", "any", "chunked"):
        assert asyncio.run(pieces(10, how)) == bytes(10)
        with pytest.raises(StorageError, match="more than 10 bytes") as raised:
            asyncio.run(pieces(1 << 40, how))
        assert not raised.value.retryable
    assert LimitedStream(_Stream(1), 1).on_eof == "of the stream"


def test_a_refusal_is_found_behind_the_error_that_an_sdk_made_of_it() -> None:
    refusal = StorageError("too long")
    wrapped = RuntimeError("of the SDK")
    wrapped.__cause__ = refusal
    assert refusal_in(wrapped) is refusal
    assert refusal_in(ValueError("another")) is None


def test_an_error_is_given_its_location_once() -> None:
    found = located(StorageError("too long", retryable=False), "s3://b/f")
    assert str(found) == "s3://b/f: too long"
    assert isinstance(found, StorageError)
    assert not found.retryable
    sound = AccessDenied("no", location="s3://b/g")
    assert located(sound, "s3://b/f") is sound
