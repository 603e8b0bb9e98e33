"""The requests that the plugin makes: adlfs with a service client that has time-outs and no retries of its own.

The SDK's retries and adlfs's blocks and listings are not used. Each call sends one request, and ``persist`` decides
about retries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

import aiohttp
from adlfs import AzureBlobFileSystem
from azure.core import MatchConditions
from azure.core.credentials import AzureSasCredential
from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
    ServiceRequestError,
    ServiceResponseError,
)
from azure.core.pipeline.transport import AioHttpTransport
from azure.storage.blob import BlobBlock
from azure.storage.blob.aio import BlobServiceClient
from icefield.abc import FileAccess
from icefield.errors import IcefieldError, StorageError
from icefield.toolkit import LimitedStream, answer_limit, close_with, persist, refusal_in, together

from icefield_adls.accounts import Account
from icefield_adls.settings import AdlsSettings

_PARALLEL: Final = 4
_BLOCK: Final = 256 * 1024
_MOST_IN_ONE: Final = 5_000 * 1024 * 1024  # the store's limit for one request
T = TypeVar("T")


class LostConnection(aiohttp.ClientConnectionError):
    """A connection that broke after a request was sent."""


async def send_once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Send a request once; its answer is read only up to a maximum length.

    aiohttp repeats a PUT when a reused connection breaks. The second answer would then hide that the first request may
    have been carried out, although its answer was lost.
    """
    try:
        answer = await send(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise LostConnection(type(error).__name__) from error
    answer.content = LimitedStream(answer.content, answer_limit(answer.status, answer.request_info.headers))  # type: ignore[assignment]
    return answer


class Transport(AioHttpTransport):  # type: ignore[misc]
    """The SDK's transport, where one request is one request."""

    async def send(self, request: Any, **options: Any) -> Any:
        """Send a request."""
        request.headers["Accept-Encoding"] = "identity"  # the SDK would inflate without a limit
        return await super().send(request, middlewares=(send_once,), **options)


class _Connected(Exception):
    """The end of adlfs's constructor."""


class AdlsClient(AzureBlobFileSystem):  # type: ignore[misc]
    """adlfs on one account, without its cache of listings and without its finalizers.

    adlfs's finalizers keep each client for ever, and at the end of a forked process they wait for an event loop that
    does not run there. No setting prevents them. adlfs (2026.8) registers them at the end of its constructor, after
    ``do_connect``. So ``do_connect`` ends the constructor here, and this class closes the connections.
    """

    cachable = False

    def __init__(
        self,
        account: Account,
        settings: AdlsSettings,
        access: FileAccess | None = None,
        anew: Callable[[], Account] | None = None,
    ) -> None:
        self.account, self.settings = account, settings
        self._access, self._anew, self._given = access, anew, None if access is None else access.properties()
        with suppress(_Connected):
            super().__init__(
                account_name=account.name,
                credential=account.credential,
                anon=True,  # or adlfs would look for credentials: that is done
                use_listings_cache=False,
            )
        self.max_concurrency = _PARALLEL
        close_with(self, self.loop, self.service_client, account.credential)

    def do_connect(self) -> None:
        """Build the service client, and end adlfs's constructor, which calls this method."""
        transport = Transport(
            connection_timeout=self.settings.connect_timeout,
            read_timeout=self.settings.request_timeout,
            connection_data_block_size=_BLOCK,  # answers are put together from pieces of 4 KiB otherwise
        )
        options: dict[str, Any] = {
            "retry_total": 0,
            "transport": transport,
            "max_single_put_size": _MOST_IN_ONE,
            "max_single_get_size": _MOST_IN_ONE,
            "user_agent": "icefield",
        }
        if self.account.connection_string is not None:
            made = BlobServiceClient.from_connection_string(self.account.connection_string, **options)
        else:
            made = BlobServiceClient(self.account.url, credential=self.account.credential, **options)
        self.service_client = made
        raise _Connected

    async def _persist(self, attempt: Callable[[], Awaitable[T]]) -> T:
        async def once() -> T:
            await self._renewed()
            try:
                return await attempt()
            except ResourceNotFoundError as error:
                raise FileNotFoundError(_code(error)) from None
            except Exception as error:
                if (refusal := refusal_in(error)) is not None:
                    raise refusal from None
                raise

        return await persist(self.settings.limits, once, is_transient)

    async def _renewed(self) -> None:
        """Renew the signature in the credential: the SDK adds it to each request."""
        if self._access is None or self._anew is None:
            return
        given = await asyncio.to_thread(self._access.properties) if self._access.due else self._access.properties()
        if given is not self._given:
            found = self._anew().credential
            if isinstance(found, AzureSasCredential) and isinstance(self.account.credential, AzureSasCredential):
                self.account.credential.update(found.signature)
            self._given = given

    async def put_blob(self, container: str, path: str, data: bytes, *, create: bool) -> str | None:
        """Upload a whole blob in one request; with ``create`` only if none has the name, which the store decides.

        The entity tag, in quotes.
        """
        blob = self.service_client.get_blob_client(container, path)

        async def attempt() -> str | None:
            try:
                answer = await blob.upload_blob(data, length=len(data), overwrite=not create)
            except (ResourceExistsError, ResourceModifiedError) as error:
                if create and _code(error) in ("BlobAlreadyExists", "ConditionNotMet"):
                    raise FileExistsError from None
                raise
            etag: str | None = answer.get("etag")
            return etag

        return await self._persist(attempt)

    async def get_range(self, container: str, path: str, start: int, end: int) -> tuple[bytes, int]:
        """Bytes from ``start`` to before ``end``, fewer at the end of the blob, and the size of the blob."""
        blob = self.service_client.get_blob_client(container, path)

        async def attempt() -> tuple[bytes, int]:
            try:
                stream = await blob.download_blob(offset=start, length=end - start)
                data = await stream.readall()
            except HttpResponseError as error:
                if status_of(error) != 416:  # nothing is there
                    raise
                return b"", int((await blob.get_blob_properties()).size)
            except ValueError as error:
                if "Content-Range" not in str(error):
                    raise
                raise StorageError("the server does not send the range that it was asked for") from None
            return data, int(str(stream.properties.content_range).rpartition("/")[2])

        return await self._persist(attempt)

    async def get_ranges(self, container: str, path: str, start: int, end: int) -> tuple[bytes, int]:
        """Read a long range by several concurrent requests."""
        slots = asyncio.Semaphore(_PARALLEL)

        async def part(first: int) -> tuple[bytes, int]:
            async with slots:
                return await self.get_range(container, path, first, min(first + self.settings.read_part, end))

        found = await together(part(first) for first in range(start, end, self.settings.read_part))
        return (b"".join(data for data, _ in found) if len(found) > 1 else found[0][0]), found[0][1]

    async def describe(self, container: str, path: str) -> Any:
        """Return the properties of a blob. Raises ``FileNotFoundError``."""
        return await self._persist(self.service_client.get_blob_client(container, path).get_blob_properties)

    async def page(
        self, container: str, prefix: str, delimiter: str, token: str | None
    ) -> tuple[list[Any], str | None]:
        """One page of a listing, and where the next begins."""
        store = self.service_client.get_container_client(container)

        async def attempt() -> tuple[list[Any], str | None]:
            found: Any
            if delimiter:
                found = store.walk_blobs(prefix, include=["metadata"], delimiter=delimiter)
            else:
                found = store.list_blobs(prefix, include=["metadata"])
            pages = found.by_page(token)
            async for page in pages:
                return [item async for item in page], pages.continuation_token
            return [], None

        return await self._persist(attempt)

    async def delete(self, container: str, paths: list[str]) -> None:
        """Delete blobs, many with one request; a missing blob is no error."""
        step = self.settings.batch
        if len(paths) == 1 or step == 1:
            await self._delete_each(container, paths)
            return
        for start in range(0, len(paths), step * _PARALLEL):
            some = paths[start : start + step * _PARALLEL]
            await together(self._delete_batch(container, some[at : at + step]) for at in range(0, len(some), step))

    async def _delete_batch(self, container: str, paths: list[str]) -> None:
        store = self.service_client.get_container_client(container)

        async def attempt() -> list[int]:
            answers = await store.delete_blobs(*paths, delete_snapshots="include", raise_on_any_failure=False)
            return [answer.status_code async for answer in answers]

        codes = []
        with suppress(FileNotFoundError, HttpResponseError):  # some accounts and signatures are refused batches
            codes = await self._persist(attempt)
        if len(codes) != len(paths):
            codes = [500] * len(paths)
        # Each remaining blob is deleted by a request of its own, which is retried and reports its own error.
        left = [path for path, code in zip(paths, codes, strict=True) if code >= 300 and code != 404]
        await self._delete_each(container, left)

    async def _delete_each(self, container: str, paths: list[str]) -> None:
        store = self.service_client.get_container_client(container)

        async def delete(path: str) -> None:
            with suppress(FileNotFoundError):
                await self._persist(lambda: store.delete_blob(path, delete_snapshots="include"))

        for start in range(0, len(paths), 2 * _PARALLEL):
            await together(delete(path) for path in paths[start : start + 2 * _PARALLEL])

    async def stage(self, container: str, path: str, block: str, data: bytes) -> None:
        """Send a block of a blob that is not published yet."""
        blob = self.service_client.get_blob_client(container, path)
        await self._persist(lambda: blob.stage_block(block, data, length=len(data)))

    async def commit(self, container: str, path: str, blocks: list[str]) -> None:
        """Publish a blob from the blocks that were sent."""
        blob = self.service_client.get_blob_client(container, path)
        await self._persist(lambda: blob.commit_block_list([BlobBlock(block) for block in blocks]))

    async def discard(self, container: str, path: str) -> None:
        """Discard the blocks of a blob that was never published.

        The store discards blocks when a list without them is committed, or after a week. So this commits an empty list
        if the blob does not exist, and then deletes the empty blob unless it has changed.
        """
        blob = self.service_client.get_blob_client(container, path)

        async def attempt() -> None:
            try:
                put = await blob.commit_block_list([], match_condition=MatchConditions.IfMissing)
            except (ResourceExistsError, ResourceModifiedError):  # published after all: it keeps no blocks besides
                return
            with suppress(ResourceNotFoundError, ResourceModifiedError):
                await blob.delete_blob(etag=str(put["etag"]), match_condition=MatchConditions.IfNotModified)

        await self._persist(attempt)


def status_of(error: BaseException) -> int | None:
    """The HTTP status that an error is about."""
    status = getattr(error, "status_code", None)
    return int(status) if isinstance(status, int) else None


def _code(error: BaseException) -> str:
    """The store's own name of an error, as ``BlobAlreadyExists``."""
    code = getattr(error, "error_code", None)
    return str(getattr(code, "value", code) or "")


def is_transient(error: Exception) -> bool:
    """Whether trying again may help."""
    if isinstance(error, IcefieldError):
        return error.retryable
    status = status_of(error)
    if status is not None:
        return status in (408, 429) or (status >= 500 and status not in (501, 505))
    if isinstance(error, ClientAuthenticationError):
        return False
    if isinstance(error, AzureError):
        return isinstance(error, ServiceRequestError | ServiceResponseError | HttpResponseError)
    return isinstance(error, aiohttp.ClientError | ConnectionError | TimeoutError | InterruptedError)
