"""The HTTP requests of WebHDFS: one connection each, with a time-out, and errors in HDFS's own terms."""

from __future__ import annotations

import json
import re
import ssl
from dataclasses import dataclass
from email.message import Message
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Final
from urllib.parse import urlsplit

from icefield.errors import LocationRefused
from icefield.toolkit import split_host

from icefield_hdfs.client import HdfsFailure
from icefield_hdfs.web_answers import MAX_ANSWER, BoundedResponse

_PASSING = {"StandbyException", "RetriableException", "SafeModeException", "ServerTooBusyException"}
_DENIED = {"AccessControlException", "SecurityException", "AuthorizationException", "InvalidToken"}
_TOKEN = re.compile(r"(delegation\W{1,3})[\w.%~+/=-]+")  # as servers quote a request

BROKEN: Final = (OSError, HTTPException, ValueError)
"""Errors of a broken connection, or of an answer that is no HTTP: ``ValueError`` is of a chunk of negative length."""

Answer = tuple[int, Message, bytes]


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a server listens."""

    secure: bool
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Requests:
    """Makes requests; ``timeout`` is in seconds of silence."""

    timeout: int = 60
    ca_file: str | None = None

    def ask(self, method: str, address: ServerAddress, target: str, most: int = MAX_ANSWER) -> Answer:
        """A request without a body: status, headers and body of the answer. Raises for 4xx and 5xx.

        ``most`` is how many bytes the body may have.
        """
        try:
            connection = self.connection(address, most)
            try:
                connection.request(method, target)
                answer = read_answer(connection.getresponse())
            finally:
                connection.close()
        except BROKEN as error:
            raise lost(address, error) from error
        return checked(answer)

    def connection(self, address: ServerAddress, most: int = MAX_ANSWER) -> HTTPConnection:
        """A new connection; it is made when something is sent."""
        made: HTTPConnection
        if address.secure:
            context = ssl.create_default_context(cafile=self.ca_file)
            made = HTTPSConnection(address.host, address.port, timeout=self.timeout, context=context)
        else:
            made = HTTPConnection(address.host, address.port, timeout=self.timeout)
        made.response_class = partial(BoundedResponse, most=most, timeout=self.timeout)  # type: ignore[assignment]
        return made

    def follow(self, address: ServerAddress, location: str | None) -> tuple[ServerAddress, str]:
        """Where a redirection leads; never from HTTPS to HTTP, since the token goes along."""
        try:
            parts = urlsplit(location or "")
            host, port = split_host(parts.netloc, "the address")
        except (ValueError, LocationRefused):
            raise HdfsFailure("the server redirects to nowhere", passing=False) from None
        if parts.scheme not in ("http", "https"):
            raise HdfsFailure("the server redirects to nowhere", passing=False)
        if address.secure and parts.scheme != "https":
            raise HdfsFailure("the server redirects from HTTPS to HTTP, which is refused", passing=False)
        port = port or (443 if parts.scheme == "https" else 80)
        return ServerAddress(parts.scheme == "https", host, port), f"{parts.path}?{parts.query}"


def read_answer(response: HTTPResponse) -> Answer:
    """Read an answer whole."""
    assert isinstance(response, BoundedResponse)
    return response.status, response.headers, response.whole()


def checked(answer: Answer) -> Answer:
    """Return the answer, or raise its error if its status is 400 or more."""
    if answer[0] >= 400:
        raise error_of(answer[0], answer[2])
    return answer


def lost(address: ServerAddress, error: Exception) -> HdfsFailure:
    """Return the error for a broken connection: the outcome of the request is unknown."""
    if isinstance(error, ssl.SSLCertVerificationError):
        said = f"the certificate of {address.host}:{address.port} is not trusted; set webhdfs.ca-file"
        return HdfsFailure(said, passing=False)
    said = f"no answer from {address.host}:{address.port} ({type(error).__name__}); check the address and the network"
    return HdfsFailure(said, passing=True)


def error_of(status: int, body: bytes) -> Exception:
    """Return the error of an answer of 400 and more, without the server's stack trace and without the request."""
    said = _remote(body)
    name = str(said.get("exception", ""))
    message = _TOKEN.sub(r"\1...", str(said.get("message", "")).partition("\n")[0])[:200]
    if name == "FileNotFoundException":
        return FileNotFoundError(message)
    if name == "FileAlreadyExistsException":
        return FileExistsError(message)
    if status == 401 or name in _DENIED:
        denial = "permission denied; check the user or the token and its rights"
        return HdfsFailure(denial, passing=False, denied=True, kind=name)
    passing = name in _PASSING or status in (408, 429, 502, 503, 504)
    stated = f"it answers {status} {name}{': ' if message else ''}{message}".strip()
    return HdfsFailure(stated, passing=passing, kind=name)


def _remote(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)["RemoteException"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
