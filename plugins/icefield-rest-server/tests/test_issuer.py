"""An issuer of tokens whose answers have no end, in bytes or in time, is given up: a real one on loopback."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress

import jwt
import pytest
from bounded import bounded
from endless_answers import Endless
from icefield.errors import StorageError
from icefield_rest_server import JwtTokens, issuer_keys
from icefield_rest_server.issuer_keys import IssuerKeys


def test_an_endless_answer_of_the_issuer_is_cut() -> None:
    server = Endless(200)
    try:
        tokens = JwtTokens(f"{server.url}/jwks", issuer="me", audience="ice")
        token = jwt.encode({"sub": "alice"}, "a" * 32, "HS256", headers={"kid": "1"})
        with bounded(), pytest.raises(StorageError, match="does not give its keys: ValueError"):
            tokens.principal(token)
        time.sleep(0.1)
        assert len(server.taken) == 1
        assert server.taken[0] < 16 * 1024 * 1024  # what is read, and what waits in the buffers of the system
    finally:
        server.close()


def test_an_answer_of_the_issuer_that_drips_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issuer_keys, "_TIMEOUT", 0.5)
    over = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def drip() -> None:
        wire, _ = listener.accept()
        with wire, suppress(OSError):
            wire.recv(65_536)
            wire.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
            while not over.wait(0.05):
                wire.sendall(b" ")

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        keys = IssuerKeys(f"http://127.0.0.1:{listener.getsockname()[1]}/jwks")
        begun = time.monotonic()
        with pytest.raises(StorageError, match="TimeoutError"):
            keys.key("1")
        assert time.monotonic() - begun < 10
    finally:
        over.set()
        thread.join()
        listener.close()
