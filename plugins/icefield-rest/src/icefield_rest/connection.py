"""Requests to the service: bounded, with credentials, and made again only where that can do no harm."""

from __future__ import annotations

import os
import re
import secrets
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote, urlencode

import httpx
import msgspec
from icefield.errors import AccessDenied, IcefieldError, InvalidArgument, StorageError
from icefield.metadata import MAX_METADATA_BYTES
from icefield.toolkit import Backoff, reset_after_fork, without_credentials, without_userinfo

from icefield_rest.auth.authenticator import Authenticator, Unsigned
from icefield_rest.failures import ErrorModel, ServiceRefusal, Uncertain, error_model, error_of, shortened
from icefield_rest.reading import ENCODINGS, NotRead, read
from icefield_rest.settings import RestSettings, is_header_value

MAX_ANSWER: Final = 64 * 1024 * 1024
"""Of an answer that holds no table, in bytes."""

MAX_TABLE: Final = MAX_METADATA_BYTES + 1024 * 1024
"""Of an answer that holds a table, in bytes."""

_MAX_ERROR: Final = 256 * 1024
_LOST_WHILE_READING: Final = (httpx.TransportError, httpx.DecodingError, httpx.StreamError)
_NEVER_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_RENEW: Final = (401, 419)
_PASSES: Final = (502, 503, 504)
_SAFE: Final = ("GET", "HEAD")
_SECRET: Final = re.compile(r"authori[sz]ation|cookie|token|secret|passw|key|credential|signature", re.IGNORECASE)
_LEAST_SECRET: Final = 5  # shorter strings also occur in ordinary words
_ENCODER: Final = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class ServiceResponse:
    """The answer to a request: the status, the headers, and the whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    def decoded(self, decoder: msgspec.json.Decoder[Any], what: str) -> Any:
        """The body as JSON of a certain form. Raises ``StorageError`` for any other."""
        try:
            return decoder.decode(self.body)
        except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
            raise StorageError(f"{what}: the service's answer cannot be read: {shortened(str(error))}") from error


@dataclass(slots=True)
class _PendingRequest:
    """A request with all its attempts."""

    unsigned: Unsigned
    what: str
    changes: bool
    token: str | None = field(repr=False)
    limit: int
    doubt: str | None = None
    """The first reason why the outcome of a change is unknown."""
    always_declined: bool = True
    """Whether every attempt so far was answered, and declined as unsupported."""

    def doubted(self, said: str, answered: ServiceRefusal | None = None) -> Uncertain | None:
        """Record an unknown outcome; None for a request that changes nothing."""
        if not self.changes:
            return None
        self.doubt = self.doubt or said
        self.always_declined &= answered is not None and answered.declines
        return Uncertain(said, declined=answered if self.always_declined else None)


class Connection:
    """The service at one address, for the threads of this process and of its forked processes."""

    def __init__(self, name: str, settings: RestSettings, authenticator: Authenticator) -> None:
        self.name, self.settings, self.authenticator = name, settings, authenticator
        self.repeats_changes = False
        """Whether the service knows a change by its key, so that it may be sent again."""
        self._clients: dict[int, httpx.Client] = {}
        self._unlock()
        reset_after_fork(self._unlock)

    def _unlock(self) -> None:
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Connection({self.settings.uri!r})"

    def url(self, path: str) -> str:
        """Return the address of a path, or a full address unchanged. Raises ``AccessDenied`` for an untrusted host."""
        if "://" not in path:
            return f"{self.settings.uri}/{path.lstrip('/')}"
        if not self.settings.trusts(path):
            raise AccessDenied(
                f"the service of catalog '{self.name}' leads to {without_userinfo(path).split('?')[0]}, a host that "
                "the properties of the catalog do not name, or http in place of https, so that no credentials are sent "
                "there; where that is "
                "right, add the host to rest.trusted-hosts"
            )
        return path

    def ask(
        self,
        method: str,
        path: str,
        what: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        token: str | None = None,
        limit: int = MAX_ANSWER,
        repeatable: bool | None = None,
    ) -> ServiceResponse:
        """Make a request and return its answer; ``what`` describes the request in errors.

        ``token`` takes the place of the catalog's own credentials. Raises ``ServiceRefusal`` for an error,
        ``Uncertain`` where a change may have been made, and ``StorageError`` where a request that changes nothing gets
        no answer.
        """
        changes = method not in _SAFE if repeatable is None else not repeatable
        sent = {**self.settings.headers, **(headers or {}), "Accept": "application/json"}
        if changes and self.repeats_changes:
            sent["Idempotency-Key"] = _key()
        content = b""
        if body is not None:
            content, sent["Content-Type"] = _ENCODER.encode(body), "application/json"
        url = self.url(path)
        if query:
            # A space becomes "%20": a signature is valid only for the exact query, and "+" may be read as a space or as
            # a plus.
            url = f"{url}{'&' if '?' in url else '?'}{urlencode(query, quote_via=quote)}"
        asked = _PendingRequest(Unsigned(method, url, sent, content), what, changes, token, limit)
        try:
            return self._answered(asked)
        except (ServiceRefusal, IcefieldError) as problem:
            # An error of a retry says nothing about the outcome of the first attempt.
            if asked.doubt is None:
                raise
            then = problem if isinstance(problem, ServiceRefusal) else None
            raise Uncertain(f"{asked.doubt}; then: {then.said if then else problem}", then) from problem

    def _answered(self, asked: _PendingRequest) -> ServiceResponse:
        """Make a request with retries.

        Raises ``ServiceRefusal`` and ``IcefieldError``; ``asked.doubt`` records an unknown outcome.
        """
        limits, began = self.settings.limits, time.monotonic()
        waits, renewed, attempt = Backoff(limits.min_wait, limits.max_wait), False, 0
        again = not asked.changes or self.repeats_changes
        while True:
            attempt += 1
            wait: float | None = None
            signed = self._signed(asked)
            try:
                answer = self._once(asked.unsigned, signed, asked.limit)
            except _NEVER_SENT as error:
                problem: Exception = self._no_answer(asked.what, error)
            except _LOST_WHILE_READING as error:
                problem = asked.doubted(self._shown(error)) or self._no_answer(asked.what, error)
                if not again:
                    raise problem from error
            except NotRead as error:
                if (lost := asked.doubted(str(error))) is not None:
                    raise lost from error
                raise
            else:
                if answer.status < 300 or answer.status == 304:
                    return answer
                refused = self._refused(answer, signed)
                if answer.status in _RENEW and not renewed and asked.token is None:
                    renewed = True
                    if self.authenticator.renew(signed):
                        attempt -= 1
                        continue
                problem = (_is_failure(answer.status) and asked.doubted(refused.said, refused)) or refused
                if not _may_pass(answer.status, changes=asked.changes) or not (again or answer.status == 429):
                    raise problem
                wait = _retry_after(answer)
            pause = max(waits.wait(attempt), wait or 0.0)
            if attempt > limits.retries or time.monotonic() + pause - began > limits.total:
                raise problem
            time.sleep(pause)

    def _signed(self, asked: _PendingRequest) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {asked.token}"} if asked.token else self.authenticator.headers(asked.unsigned)

    def close(self) -> None:
        """Release connections."""
        with self._lock:
            client = self._clients.pop(os.getpid(), None)
        if client is not None:
            client.close()

    def _once(self, unsigned: Unsigned, signed: Mapping[str, str], limit: int) -> ServiceResponse:
        headers = {**unsigned.headers, **signed}
        if wrong := [name for name, value in headers.items() if not is_header_value(value)]:
            raise AccessDenied(
                f"the header {wrong[0]} for the service of catalog '{self.name}' has characters that cannot be sent; "
                "look at the credentials of the catalog, such as for the end of a line"
            )
        content = unsigned.body or None
        with self._client().stream(unsigned.method, unsigned.url, content=content, headers=headers) as response:
            most = limit if response.status_code < 300 else _MAX_ERROR
            return ServiceResponse(
                response.status_code, response.headers, read(response, most, self.settings.read_timeout)
            )

    def _client(self) -> httpx.Client:
        here = os.getpid()
        client = self._clients.get(here)
        if client is None:
            with self._lock:
                client = self._clients.get(here)
                if client is None:
                    client = self._clients[here] = client_of(self.settings)
        return client

    def _refused(self, answer: ServiceResponse, signed: Mapping[str, str]) -> ServiceRefusal:
        if 300 <= answer.status < 400:
            where = without_userinfo(answer.headers.get("location", "nowhere")).split("?")[0]
            raise StorageError(
                f"the service of catalog '{self.name}' redirects to {shortened(where)}, which is not followed, since "
                "credentials would go there: set 'uri' to where it is"
            )
        refused = error_model(answer.status, answer.body)
        return refused.with_hidden(self._secrets(signed))

    def hidden(self, model: ErrorModel, token: str | None = None) -> ErrorModel:
        """An error in the body of an answer, without the credentials of the requests: some services show these."""
        asked = Unsigned("GET", self.settings.uri, {}, b"")
        return model.with_hidden(
            self._secrets({"Authorization": token} if token else self.authenticator.headers(asked))
        )

    def _secrets(self, signed: Mapping[str, str]) -> list[str]:
        """Return the secrets in the headers of a request, to redact: the authenticator's and the user's."""
        values = [value for key, value in self.settings.headers.items() if _SECRET.search(key) is not None]
        found = {part for value in (*values, *signed.values()) for part in (value, value.partition(" ")[2])}
        return sorted((each for each in found if len(each) >= _LEAST_SECRET), key=len, reverse=True)

    def _no_answer(self, what: str, error: Exception) -> StorageError:
        return StorageError(
            f"{what}: no answer from {self.settings.uri} of catalog '{self.name}': {self._shown(error)}",
            retryable=True,
        )

    def _shown(self, error: Exception) -> str:
        return without_credentials(f"{type(error).__name__}: {shortened(str(error))}", self.settings.headers)


def client_of(settings: RestSettings) -> httpx.Client:
    """A pool of connections that follows no redirects and repeats nothing. Raises ``InvalidArgument``."""
    limits = httpx.Limits(max_connections=settings.connections, max_keepalive_connections=settings.connections)
    timeout = httpx.Timeout(settings.read_timeout, connect=settings.connect_timeout, pool=settings.read_timeout)
    try:
        return httpx.Client(
            verify=_verified_by(settings),
            proxy=settings.proxy,
            limits=limits,
            timeout=timeout,
            follow_redirects=False,
            headers={"User-Agent": "icefield-rest", "X-Client-Version": "icefield", "Accept-Encoding": ENCODINGS},
        )
    except (OSError, ValueError, httpx.InvalidURL) as error:
        raise InvalidArgument(
            f"ssl.cabundle, ssl.client.cert or rest.client.proxy-uri cannot be used: {type(error).__name__}"
        ) from error


def _verified_by(settings: RestSettings) -> ssl.SSLContext:
    """Return the TLS context, with the certificate authorities of the settings, the environment or the system.

    Raises ``OSError`` for unusable files.
    """
    named = settings.certificates or os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")
    if settings.client_certificate is None:
        return _shared(named, os.stat(named).st_mtime_ns if named else 0)
    made = _authorities(named)
    made.load_cert_chain(*settings.client_certificate)
    return made


@lru_cache(maxsize=8)
def _shared(named: str | None, changed_at: int) -> ssl.SSLContext:
    # The cache saves 26 to 40 ms of processor time for reading the certificates at each opening of a catalog.
    return _authorities(named)


def _authorities(named: str | None) -> ssl.SSLContext:
    if named is None:
        return httpx.create_ssl_context()
    folder = os.path.isdir(named)
    return ssl.create_default_context(capath=named if folder else None, cafile=None if folder else named)


def joined(*parts: str) -> str:
    """Join the segments of a path; each is escaped, so that it stays one segment."""
    return "/".join(_segment(part) for part in parts)


def outcome(what: str, error: ServiceRefusal | Uncertain) -> IcefieldError:
    """Return the error for a change of names that was rejected for a general reason, or has an unknown outcome."""
    if isinstance(error, ServiceRefusal):
        return error_of(error, what)
    return StorageError(f"{what}: the reply was lost, and it may have been done or not: {error}", retryable=False)


def _segment(part: str) -> str:
    return part.replace(".", "%2E") if part in (".", "..") else quote(part, safe="")


def _is_failure(status: int) -> bool:
    """Whether a status leaves the outcome open: from 500 on, only 501 says that nothing was done."""
    return status >= 500 and status != 501


def _may_pass(status: int, *, changes: bool) -> bool:
    """Whether a retry may succeed; a retried change has an idempotency key."""
    return status == 429 or status in _PASSES or (changes and _is_failure(status))


def _retry_after(answer: ServiceResponse) -> float | None:
    given = answer.headers.get("retry-after", "")
    return float(given) if given.isascii() and given.isdigit() and len(given) < 6 else None


def _key() -> str:
    """Return a UUID of version 7 (RFC 9562): the milliseconds since 1970, then random bits."""
    number = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    number = number & ~(0xF << 76) | 7 << 76
    number = number & ~(0x3 << 62) | 2 << 62
    digits = f"{number:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
