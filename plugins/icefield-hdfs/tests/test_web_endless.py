"""Answers and listings that never end, or that are none: a server of WebHDFS is not trusted."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from bounded import bounded
from http_between import Answered, Asked, Between, Forward
from icefield.errors import StorageError
from icefield_hdfs import web_listing
from icefield_hdfs.web_file_system import WebHdfsFileSystem

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
STATUS = {"pathSuffix": "", "type": "FILE", "length": 1 << 30, "modificationTime": 0}

WAYS: list[Callable[[WebHdfsFileSystem, str], object]] = [
    lambda system, root: system.open_input(f"{root}/a"),
    lambda system, root: list(system.list_files(root)),
    lambda system, root: system.stat(f"{root}/a"),
]


@contextmanager
def served(begin: bytes, piece: bytes, wait: float = 0.0, most: int = 1 << 30) -> Iterator[tuple[str, list[int]]]:
    """The root of a server that answers all requests so: ``begin``, and ``piece`` again and again."""
    sent: list[int] = []

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.settimeout(20)
            asked = b""
            while b"\r\n\r\n" not in asked:
                asked += connection.recv(65_536)
            connection.sendall(begin)
            at = len(sent)
            sent.append(0)
            while sent[at] < most:
                connection.sendall(piece)
                sent[at] += len(piece)
                time.sleep(wait)

    def serve() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=answer, args=listener.accept()[:1], daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        yield f"webhdfs://127.0.0.1:{listener.getsockname()[1]}/x", sent


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        (HEAD + b"\r\n", b" " * (1 << 20)),
        (CHUNKED, b"100000\r\n" + b" " * (1 << 20) + b"\r\n"),
        pytest.param(CHUNKED + b"0\r\n", b"a: b\r\n" * 100_000, marks=pytest.mark.slow),
        pytest.param(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 50_000, marks=pytest.mark.slow),
        (b"HTTP/1.1 500 No\r\n\r\n", b" " * (1 << 20)),
    ],
    ids=["body", "chunks", "trailers", "continue", "error"],
)
def test_an_answer_without_an_end_is_given_up(begin: bytes, piece: bytes) -> None:
    with (
        bounded(seconds=30),
        served(begin, piece) as (root, sent),
        pytest.raises(StorageError, match=r"more than [\d,]+ bytes") as raised,
    ):
        list(WebHdfsFileSystem().list_files(root))
    assert not raised.value.retryable
    assert root in str(raised.value)
    assert max(sent) < 128 << 20


def test_an_answer_that_comes_drop_by_drop_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icefield_hdfs.web._RETRIES", 0)
    monkeypatch.setattr("icefield_hdfs.web_answers._SILENCES", 1)
    begun = time.monotonic()
    with served(HEAD + b"\r\n", b" ", wait=0.05) as (root, _), pytest.raises(StorageError, match="too slowly"):
        WebHdfsFileSystem({"webhdfs.timeout": "1"}).stat(f"{root}/a")
    assert time.monotonic() - begun < 10


def test_a_chunk_of_a_negative_length_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icefield_hdfs.web._RETRIES", 0)
    with served(CHUNKED + b"-5\r\n", b"", most=0) as (root, _), pytest.raises(StorageError, match="no answer"):
        WebHdfsFileSystem().stat(f"{root}/a")


@contextmanager
def answering(answer: Callable[[str, str], dict[str, Any]]) -> Iterator[str]:
    """The root of a server that gives these answers to an operation and the name after which a page begins."""

    def behave(asked: Asked, forward: Forward) -> Answered | None:
        options = dict(part.partition("=")[::2] for part in asked.path.partition("?")[2].split("&"))
        said = json.dumps(answer(options["op"], options.get("startAfter", ""))).encode()
        return Answered(200, {"Content-Type": "application/json"}, said)

    with Between("http://127.0.0.1:1").open() as between:
        between.behave = behave
        yield f"{between.url.replace('http', 'webhdfs', 1)}/x"


def page(*names: str, kind: str = "FILE", more: int = 1) -> dict[str, Any]:
    entries = [{**STATUS, "pathSuffix": name, "type": kind} for name in names]
    return {"DirectoryListing": {"partialListing": {"FileStatuses": {"FileStatus": entries}}, "remainingEntries": more}}


def test_a_listing_that_goes_in_a_circle_is_given_up() -> None:
    with answering(lambda _, after: page("b" if after == "a" else "a")) as root:
        with pytest.raises(StorageError, match="in a circle") as raised:
            list(WebHdfsFileSystem().list_files(root))
        assert not raised.value.retryable


@pytest.mark.parametrize("bound", ["MAX_ENTRIES", "MAX_PAGES"])
def test_a_listing_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    monkeypatch.setattr(web_listing, bound, 20)
    with (
        answering(lambda _, after: page(f"{int(after or 0) + 1:06}")) as root,
        pytest.raises(StorageError, match="lists more than"),
    ):
        list(WebHdfsFileSystem().list_files(root))


def test_folders_inside_one_another_without_an_end_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icefield_hdfs.hadoop_file_system._DEEPEST", 20)
    with (
        answering(lambda *_: page("d", kind="DIRECTORY", more=0)) as root,
        pytest.raises(StorageError, match="levels deep"),
    ):
        list(WebHdfsFileSystem().list_files(root))


@pytest.mark.parametrize(
    "damage",
    [
        {"pathSuffix": None},
        {"pathSuffix": "../../etc/passwd"},
        {"pathSuffix": ".."},
        {"type": 7},
        {"length": "many"},
        {"length": -1},
        {"length": True},
        {"modificationTime": {}},
    ],
)
def test_a_status_that_is_none_is_one_typed_error(damage: dict[str, Any]) -> None:
    entry = {**STATUS, "pathSuffix": "a", **damage}
    listing = {"partialListing": {"FileStatuses": {"FileStatus": [entry]}}, "remainingEntries": 0}
    with answering(lambda *_: {"FileStatus": entry, "DirectoryListing": listing}) as root:
        for way in WAYS:
            with pytest.raises(StorageError, match="does not describe files"):
                way(WebHdfsFileSystem(), root)


@pytest.mark.parametrize("answer", [{}, {"FileStatus": 1, "DirectoryListing": []}, {"DirectoryListing": {"x": 1}}])
def test_an_answer_of_another_shape_is_one_typed_error(answer: dict[str, Any]) -> None:
    with answering(lambda *_: answer) as root:
        for way in WAYS:
            with pytest.raises(StorageError, match="does not describe files"):
                way(WebHdfsFileSystem(), root)
