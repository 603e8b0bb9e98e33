"""The requests that the plugin makes, over gcsfs: its credentials, its addresses, its settings of a session."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote
from uuid import uuid4

import aiohttp
from gcsfs.core import GCSFileSystem
from gcsfs.retry import NonRetryableError, is_retriable, validate_response
from google.auth.transport.mtls import get_default_ssl_context
from icefield.errors import IcefieldError
from icefield.toolkit import LimitedStream, answer_limit, close_with, persist, together

from icefield_gcs.settings import GcsSettings

_PARALLEL: Final = 4
_GONE: Final = {404, 410}
_ANSWER: Final = re.compile(rb"^HTTP/[\d.]+ +(\d{3})", re.MULTILINE)
Reply = tuple[int, Mapping[str, str], bytes]


async def limited(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Send a request; its answer is read only up to a maximum length."""
    answer = await send(request)
    answer.content = LimitedStream(answer.content, answer_limit(answer.status, answer.request_info.headers))  # type: ignore[assignment]
    return answer


class GcsClient(GCSFileSystem):  # type: ignore[misc]
    """gcsfs with time-outs, without its cache of listings, and with requests of its own.

    gcsfs repeats a request six times by a schedule of its own, and offers no setting for it. So this class sends its
    requests over a session of its own. Its base is the class of ``gcsfs.core``. The default class of gcsfs asks over
    gRPC for the kind of the bucket before each operation, and waits a minute if nothing answers.
    """

    cachable = False

    def __init__(self, settings: GcsSettings) -> None:
        self.settings = settings
        super().__init__(
            project=settings.project or "",
            access=settings.access,
            token=settings.token,
            endpoint_url=settings.endpoint,
            requester_pays=settings.user_project,
            default_location=settings.location,
            session_kwargs={**settings.session, "middlewares": (limited,)},
            requests_timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=settings.connect_timeout, sock_read=settings.request_timeout
            ),
            use_listings_cache=False,
        )
        self._opened: aiohttp.ClientSession | None = None
        self._opening = asyncio.Lock()

    @property
    def _root(self) -> str:
        """The address of the service."""
        return str(self.base).removesuffix("/storage/v1/")

    @property
    def _payer(self) -> dict[str, str]:
        """The parameter that names the project that pays for the requests, if the bucket's own does not."""
        payer = self.requester_pays
        return {"userProject": payer if isinstance(payer, str) else str(self.project)} if payer else {}

    async def connected(self) -> aiohttp.ClientSession:
        """The session of HTTP, opened if there is none."""
        async with self._opening:
            if self._opened is None:
                options = self.session_kwargs
                if self._root.startswith("https://"):
                    certificate = await asyncio.to_thread(get_default_ssl_context)
                    options = options | ({"connector": aiohttp.TCPConnector(ssl=certificate)} if certificate else {})
                self._opened = aiohttp.ClientSession(**options)
                close_with(self, self.loop, self._opened)
        return self._opened

    async def _once(
        self, method: str, url: str, headers: Mapping[str, str] | None, params: Mapping[str, Any], **body: Any
    ) -> Reply:
        status, answered, pieces = await self._pieces(method, url, headers, params, **body)
        return status, answered, b"".join(pieces)

    async def _pieces(
        self, method: str, url: str, headers: Mapping[str, str] | None, params: Mapping[str, Any], **body: Any
    ) -> tuple[int, Mapping[str, str], list[bytes]]:
        """One request; the answer's body as it comes in, so that a long one is put together once."""
        sent = {"User-Agent": "icefield", **(headers or {})}
        # A refresh of the credentials blocks: it has a thread of its own.
        if self.credentials.credentials is not None:
            await asyncio.to_thread(self.credentials.maybe_refresh)
            self.credentials.apply(sent)
        session = await self.connected()
        async with session.request(
            method=method,
            url=url,
            params=params,
            headers=sent,
            timeout=self.requests_timeout,
            allow_redirects=False,  # 308 says how much of an upload has arrived
            **body,
        ) as answer:
            pieces = [piece async for piece in answer.content.iter_any()]
            if answer.status >= 400:
                _check(answer.status, b"".join(pieces))
            return answer.status, answer.headers, pieces

    async def ask(
        self,
        method: str,
        path: str,
        *names: str,
        headers: Mapping[str, str] | None = None,
        json: Any = None,
        data: Any = None,
        **params: str | None,
    ) -> Reply:
        """One request, with an end to its retries: status, headers, body. Names replace the braces of the path."""
        url = path if path.startswith("http") else self.base + path.format(*(quote(name, safe="") for name in names))
        given = {name: value for name, value in params.items() if value is not None} | self._payer

        async def attempt() -> Reply:
            return await self._once(method, url, headers, given, json=json, data=data)

        return await persist(self.settings.limits, attempt, is_transient)

    async def put_object(self, bucket: str, key: str, data: bytes, *, create: bool) -> str | None:
        """Upload a whole object in one request; with ``create`` only if none has the name, which the store decides.

        An object of any size is one request: gcsfs would make a large one a resumable upload, and some servers ignore
        the condition of these. Returns the entity tag, where the answer holds one.
        """
        boundary = uuid4().hex
        described = json.dumps({"name": key}).encode()
        body = b"".join(
            (
                f"--{boundary}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n".encode(),
                described,
                f"\r\n--{boundary}\r\nContent-Type: application/octet-stream\r\n\r\n".encode(),
                data,
                f"\r\n--{boundary}--".encode(),
            )
        )
        condition = {"ifGenerationMatch": "0"} if create else {}
        _, _, answer = await self.ask(
            "POST",
            self._upload_url(bucket),
            headers={"Content-Type": f"multipart/related; boundary={boundary}"},
            data=body,
            uploadType="multipart",
            **condition,
        )
        return _etag_in(answer)

    async def get_range(self, bucket: str, key: str, wanted: str) -> tuple[int, list[bytes], int]:
        """Bytes by a ``Range``: their offset, they, in pieces, and the size of the object."""
        url = f"{self._root}/download/storage/v1/b/{quote(bucket, safe='')}/o/{quote(key, safe='')}?alt=media"

        async def attempt() -> tuple[int, Mapping[str, str], list[bytes]]:
            return await self._pieces("GET", url, {"Range": wanted}, self._payer)

        try:
            status, headers, pieces = await persist(self.settings.limits, attempt, is_transient)
        except Exception as error:
            if status_of(error) != 416:  # nothing is there
                raise
            return 0, [], int((await self.describe(bucket, key))["size"])
        found = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", headers.get("Content-Range", "")) if status == 206 else None
        return (int(found[1]), pieces, int(found[2])) if found else (0, pieces, sum(map(len, pieces)))

    async def get_ranges(self, bucket: str, key: str, start: int, end: int) -> tuple[bytes, int]:
        """Read a long range by several concurrent requests: its bytes, and the size of the object."""
        turns = asyncio.Semaphore(_PARALLEL)

        async def part(first: int) -> tuple[int, list[bytes], int]:
            async with turns:
                last = min(first + self.settings.read_part, end) - 1
                return await self.get_range(bucket, key, f"bytes={first}-{last}")

        found = await together(part(first) for first in range(start, end, self.settings.read_part))
        offset, pieces, size = found[0]
        if offset == 0 and sum(map(len, pieces)) == size:  # a server that knows no ranges sends the whole
            return b"".join(pieces)[start:end], size
        return b"".join(piece for _, pieces, _ in found for piece in pieces), size

    async def describe(self, bucket: str, key: str) -> dict[str, Any]:
        """Return the metadata of an object. Raises ``FileNotFoundError``."""
        _, _, contents = await self.ask("GET", "b/{}/o/{}", bucket, key)
        found: dict[str, Any] = json.loads(contents)
        return found

    async def page(self, bucket: str, prefix: str, delimiter: str, token: str | None) -> dict[str, Any]:
        """One page of a listing."""
        _, _, contents = await self.ask(
            "GET",
            "b/{}/o",
            bucket,
            prefix=prefix or None,
            delimiter=delimiter or None,
            pageToken=token,
            maxResults="1000",
            fields="nextPageToken,prefixes,items(name,size,updated,etag)",
        )
        page: dict[str, Any] = json.loads(contents)
        return page

    async def delete(self, objects: list[tuple[str, str]]) -> None:
        """Delete objects, many with one request; a missing object is no error."""
        step = self.settings.batch
        if len(objects) == 1 or step == 1:
            await together(self._delete_one(*found) for found in objects)
            return
        for start in range(0, len(objects), step * _PARALLEL):
            some = objects[start : start + step * _PARALLEL]
            await together(self._delete_batch(some[at : at + step]) for at in range(0, len(some), step))

    async def _delete_one(self, bucket: str, key: str) -> None:
        with suppress(FileNotFoundError):
            await self.ask("DELETE", "b/{}/o/{}", bucket, key)

    async def _delete_batch(self, objects: list[tuple[str, str]]) -> None:
        boundary = uuid4().hex
        query = "".join(f"?userProject={quote(name)}" for name in self._payer.values())
        parts = [
            f"--{boundary}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n"
            f"Content-ID: <{boundary}+{number}>\r\n\r\n"
            f"DELETE /storage/v1/b/{quote(bucket, safe='')}/o/{quote(key, safe='')}{query} HTTP/1.1\r\n\r\n"
            for number, (bucket, key) in enumerate(objects)
        ]
        body = "\r\n".join([*parts, f"--{boundary}--"]).encode()
        headers = {"Content-Type": f"multipart/mixed; boundary={boundary}"}
        try:
            _, _, contents = await self.ask("POST", self.batch_url_base, headers=headers, data=body)
            codes = [int(code) for code in _ANSWER.findall(contents)]
        except Exception as error:
            if status_of(error) not in (404, 405, 501):  # emulators that know no batches
                raise
            codes = []
        if len(codes) != len(objects):
            codes = [500] * len(objects)
        # Each remaining object is deleted by a request of its own, which is retried and reports its own error.
        left = [found for found, code in zip(objects, codes, strict=True) if code >= 300 and code not in _GONE]
        for start in range(0, len(left), 2 * _PARALLEL):
            await together(self._delete_one(*found) for found in left[start : start + 2 * _PARALLEL])

    async def start_upload(self, bucket: str, key: str) -> str:
        """Begin an upload in parts; the address that its parts go to."""
        headers = {"X-Upload-Content-Type": "application/octet-stream"}
        url = self._upload_url(bucket)
        _, answered, _ = await self.ask("POST", url, headers=headers, json={"name": key}, uploadType="resumable")
        return str(answered["Location"])

    async def send(self, upload: str, headers: Mapping[str, str], data: bytes) -> Reply:
        """Send one request of an upload in parts, once: before a retry the sender asks for the received size.

        It is a POST, as in gcsfs: aiohttp repeats a PUT itself when a connection breaks.
        """
        return await self._once("POST", upload, headers, {}, data=data)

    def _upload_url(self, bucket: str) -> str:
        return f"{self._root}/upload/storage/v1/b/{quote(bucket, safe='')}/o"


def _check(status: int, contents: bytes) -> None:
    """Raise the error that gcsfs would raise, with the status added to it."""
    try:
        validate_response(status, contents, "")
    except Exception as error:
        error.status = status  # type: ignore[attr-defined]
        raise


def status_of(error: BaseException) -> int | None:
    """The HTTP status that an error is about."""
    status = getattr(error, "status", None) or getattr(error, "code", None)
    try:
        return int(status) if status is not None else None
    except (TypeError, ValueError):
        return None


def is_transient(error: Exception) -> bool:
    """Whether trying again may help."""
    if isinstance(error, IcefieldError):
        return error.retryable
    if isinstance(error, NonRetryableError):
        return False
    status = status_of(error)
    if status is not None and status != 401:
        return status in (408, 429) or status >= 500
    return bool(is_retriable(error)) or isinstance(error, ConnectionError | TimeoutError | InterruptedError)


def _etag_in(described: bytes) -> str | None:
    """Return the entity tag in an object's metadata, or None: the object exists, so an odd answer is no failure."""
    with suppress(ValueError, AttributeError):
        etag = json.loads(described).get("etag")
        return etag if isinstance(etag, str) else None
    return None
