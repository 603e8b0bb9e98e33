"""The server of the tests goes on behind requests that clients broke off."""

from __future__ import annotations

import socket
import struct
import time
from urllib.parse import urlsplit

from servers.process import listens


def test_requests_that_are_broken_off_do_not_end_the_server(dynamodb: dict[str, str]) -> None:
    """Dynalite ended at the first of them, and a hundred tests behind it failed."""
    port = urlsplit(dynamodb["dynamodb.endpoint"]).port
    assert port is not None
    for _ in range(50):
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing resets
            client.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
            time.sleep(0.02)  # the server begins with the request
    time.sleep(0.2)
    assert listens(port)
