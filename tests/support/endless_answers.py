"""A server on the loopback address with endless responses, and checks that plugins of object stores stop reading."""

from __future__ import annotations

import re
import socket
import threading
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import suppress

import pytest
from bounded import bounded
from icefield.abc import FileSystem
from icefield.errors import StorageError
from icefield.toolkit.answers import MAX_ANSWER, MAX_WHOLE

_PIECE = b"x" * (1 << 20)
_RANGE = re.compile(rb"(?im)^(?:x-ms-)?range: *bytes=(\d*)-(\d*)\r$")


class Endless:
    """Answers each request with a status and an endless body, and records how many bytes each client takes."""

    def __init__(self, status: int) -> None:
        self._status = status
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.taken: list[int] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Listen no more."""
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.settimeout(20)
            asked = b""
            while b"\r\n\r\n" not in asked:
                asked += connection.recv(65_536)
            connection.sendall(self._head(asked))
            at = len(self.taken)
            self.taken.append(0)
            while self.taken[at] < 4 * MAX_WHOLE:
                connection.sendall(_PIECE)
                self.taken[at] += len(_PIECE)

    def _head(self, asked: bytes) -> bytes:
        lines = [f"HTTP/1.1 {self._status} Said", "Content-Type: application/xml", "Connection: close", 'ETag: "1"']
        wanted = _RANGE.search(asked)
        if self._status == 206 and wanted is not None:
            first = int(wanted[1] or 0)
            last = int(wanted[2]) if wanted[1] else int(wanted[2]) - 1
            lines.append(f"Content-Range: bytes {first}-{last}/{1 << 40}")
        return "\r\n".join([*lines, "", ""]).encode()


class EndlessAnswers:
    """Subclass it with ``made``, the prefix of the plugin's properties, and a location on the server."""

    prefix: str
    root: str
    refusal = r"more than [\d,]+ bytes"

    @abstractmethod
    def made(self, url: str, more: Mapping[str, str]) -> FileSystem:
        """A file system on the server."""

    @pytest.fixture(params=[200, 206, 400, 500])
    def endless(self, request: pytest.FixtureRequest) -> Iterator[Endless]:
        server = Endless(request.param)
        self.status = request.param
        yield server
        server.close()

    def system(self, server: Endless) -> FileSystem:
        return self.made(server.url, {f"{self.prefix}.retry.num-retries": "0"})

    def refused(self, server: Endless, work: object, most: int) -> None:
        with (
            bounded(seconds=20, megabytes=2 * MAX_WHOLE >> 20),
            pytest.raises(StorageError, match=self.refusal) as raised,
        ):
            work()  # type: ignore[operator]
        assert not raised.value.retryable
        assert self.root in str(raised.value)
        assert max(server.taken) < most + (64 << 20)  # the buffers between client and server may hold so much

    def test_a_file_whose_bytes_never_end_is_given_up(self, endless: Endless) -> None:
        most = {200: MAX_WHOLE, 206: 1 << 20}.get(self.status, MAX_ANSWER)
        self.refused(endless, lambda: self.system(endless).open_input(f"{self.root}/f").read(100), most)

    def test_a_listing_that_never_ends_is_given_up(self, endless: Endless) -> None:
        self.refused(endless, lambda: list(self.system(endless).list_files(self.root)), MAX_ANSWER)

    def test_an_answer_to_a_write_that_never_ends_is_given_up(self, endless: Endless) -> None:
        def write() -> None:
            with self.system(endless).open_output(f"{self.root}/f") as sink:
                sink.write(b"1")

        self.refused(endless, write, MAX_ANSWER)
