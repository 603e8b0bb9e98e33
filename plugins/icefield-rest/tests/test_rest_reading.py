"""Bodies of answers are inflated and waited for no further than they may be."""

from __future__ import annotations

import gzip
import json
import resource
import zlib
from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace

import httpx
import pytest
from http_between import Answered, Asked, Between, Forward
from icefield import load_catalog
from icefield.errors import StorageError
from icefield_rest import reading
from icefield_rest.reading import NotRead, TooSlow, read

MIB = 1024 * 1024
WAITS = {"rest.retry.num-retries": "0"}


def response(body: bytes | Iterator[bytes], encoding: str = "") -> httpx.Response:
    headers = {"Content-Encoding": encoding} if encoding else {}
    return httpx.Response(200, headers=headers, stream=Body(body if not isinstance(body, bytes) else iter([body])))


class Body(httpx.SyncByteStream):
    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces


@pytest.mark.parametrize("size", [0, 1, 999, 1_000])
@pytest.mark.parametrize("encoding", ["", "identity", "gzip", "GZIP", "x-gzip"])
def test_a_body_that_may_be_is_read(encoding: str, size: int) -> None:
    body = b"x" * size
    sent = gzip.compress(body) if "gzip" in encoding.lower() else body
    assert read(response(sent, encoding), 1_000, 60) == body
    pieces = (sent[place : place + 1] for place in range(len(sent)))
    assert read(response(pieces, encoding), 1_000, 60) == body


def test_several_members_of_gzip_are_one_body() -> None:
    sent = gzip.compress(b"one") + gzip.compress(b"two")
    assert read(response(sent, "gzip"), 6, 60) == b"onetwo"
    with pytest.raises(NotRead, match="more than 5 bytes"):
        read(response(sent, "gzip"), 5, 60)


@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_a_body_of_one_byte_more_is_not_read(encoding: str) -> None:
    body = gzip.compress(b"x" * 1_001) if encoding else b"x" * 1_001
    with pytest.raises(NotRead, match="more than 1,000 bytes"):
        read(response(body, encoding), 1_000, 60)


@pytest.mark.parametrize("encoding", ["gzip, gzip", "zstd", "br", "deflate", "gzip,identity"])
def test_an_encoding_that_was_not_asked_for_is_not_read(encoding: str) -> None:
    with pytest.raises(NotRead, match="not asked for"):
        read(response(b"x", encoding), 1_000, 60)
    assert read(response(b"", encoding), 1_000, 60) == b""  # of a request by HEAD


@pytest.mark.parametrize(
    "sent",
    [b"no gzip", gzip.compress(b"x" * 99)[:-3], gzip.compress(b"x") + b"\x1f"],
    ids=["none", "cut off", "begun anew"],  # its bytes say when it was made
)
def test_what_is_no_whole_gzip_is_a_lost_answer(sent: bytes) -> None:
    with pytest.raises(httpx.DecodingError):
        read(response(sent, "gzip"), 1_000, 60)


def test_a_body_that_trickles_is_given_up_and_one_that_is_long_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(reading, "time", SimpleNamespace(monotonic=lambda: now))

    def drops(size: int) -> Iterator[bytes]:
        nonlocal now
        while True:
            now += 60.0
            yield b"x" * size

    with pytest.raises(TooSlow):
        read(response(drops(1)), MIB, 60)
    with pytest.raises(NotRead, match="more than"):  # as long as it comes at some speed, it may take its time
        read(response(drops(256 * 1024)), 8 * MIB, 60)


@cache
def bomb() -> bytes:
    """Nearly a gigabyte of nothing."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join(packer.compress(bytes(16 * MIB)) for _ in range(60)) + packer.flush()


@pytest.mark.slow
@pytest.mark.parametrize("status", [200, 400, 500])
@pytest.mark.parametrize("end", ["/v1/config", "/namespaces", "/tokens"])
def test_a_small_answer_that_would_be_a_large_one_takes_no_memory(status: int, end: str) -> None:
    packed = bomb()

    def reply(asked: Asked, forward: Forward) -> Answered | None:
        if asked.path.partition("?")[0].endswith(end):
            return Answered(status, {"Content-Encoding": "gzip"}, packed)
        token = {"access_token": "a-token", "token_type": "bearer"}
        return Answered(200, {}, json.dumps(token if asked.path.endswith("/tokens") else {}).encode())

    with Between("http://127.0.0.1:9").open() as between:
        between.behave = reply
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with (
            pytest.raises(StorageError),
            load_catalog("test", type="rest", uri=between.url, credential="a:b", **WAITS) as catalog,
        ):
            catalog.list_namespaces()
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 * 1024
