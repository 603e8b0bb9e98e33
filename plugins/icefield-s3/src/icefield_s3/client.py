"""The requests that the plugin makes, over s3fs: its session, its event loop, its client of the SDK.

s3fs's own retries, blocks and listings are not used. Each call sends one request, and ``persist`` decides about
retries.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

from botocore.exceptions import ClientError, NoCredentialsError
from icefield.abc import FileAccess
from icefield.errors import StorageError
from icefield.toolkit import close_with, persist, refusal_in, together, without_debug_log
from s3fs import S3FileSystem

from icefield_s3.failures import code_of, is_missing, is_transient, status_of
from icefield_s3.sessions import config_of, session_of
from icefield_s3.settings import S3Settings
from icefield_s3.signing import signer_of

PARALLEL: Final = 4
_RANGE: Final = re.compile(r"bytes (\d+)-\d+/(\d+)")
_MARK: Final = "icefield-upload"
T = TypeVar("T")


class S3Client(S3FileSystem):  # type: ignore[misc]
    """s3fs without retries, and without its cache of listings."""

    cachable = False

    def __init__(self, settings: S3Settings, access: FileAccess | None = None) -> None:
        self.settings = settings
        self._signer = signer_of(settings, access)
        own = settings.role is None and settings.access_key is not None and access is None
        super().__init__(
            anon=settings.anonymous or self._signer is not None,
            endpoint_url=settings.endpoint,
            key=settings.access_key if own else None,
            secret=settings.secret_key if own else None,
            token=settings.token if own else None,
            client_kwargs={"region_name": settings.region} if settings.region else {},
            config_kwargs=config_of(settings),
            session=session_of(settings, access),
            use_listings_cache=False,
        )
        self.asynchronous = True  # s3fs registers no finalizer, which would also run in forked processes
        self._known_store: Any = None

    async def set_session(self, refresh: bool = False, kwargs: Any = None) -> Any:
        """The client of the SDK, made if there is none."""
        store = await super().set_session(refresh)
        if store is not self._known_store:
            self._known_store = store
            close_with(self, self.loop, store)
            if self._signer is not None:
                store.meta.events.register("before-send.s3", partial(self._signer, region=store.meta.region_name))
        return store

    async def _persist(self, attempt: Callable[[Any], Awaitable[T]]) -> T:
        with without_debug_log("aiobotocore", "botocore"):
            store = await self.set_session()

            async def once() -> T:
                try:
                    return await attempt(store)
                except ClientError as error:
                    if is_missing(error):
                        raise FileNotFoundError(code_of(error)) from None
                    raise
                except Exception as error:
                    if (refusal := refusal_in(error)) is not None:
                        raise refusal from None
                    raise

            return await persist(self.settings.limits, once, is_transient)

    async def found_credentials(self) -> str:
        """Which credentials the SDK's chain has found, in words without a secret."""
        with without_debug_log("aiobotocore", "botocore"):
            await self.set_session()
            found = await self.session.get_credentials()
        if found is None:
            raise NoCredentialsError
        return f"those of {found.method}, found by the SDK's default chain"

    async def put_object(self, bucket: str, key: str, data: bytes, *, create: bool) -> str | None:
        """Upload a whole object in one request; with ``create`` only if none has the name, which the store decides.

        The entity tag, in quotes.
        """
        condition = {"IfNoneMatch": "*"} if create else {}

        async def attempt(store: Any) -> str | None:
            try:
                answer = await store.put_object(Bucket=bucket, Key=key, Body=data, **self.settings.written, **condition)
            except ClientError as error:
                if create and status_of(error) == 412:
                    raise FileExistsError from None
                raise
            etag: str | None = answer.get("ETag")
            return etag

        return await self._persist(attempt)

    async def get_range(self, bucket: str, key: str, wanted: str) -> tuple[int, list[bytes], int]:
        """Bytes by a ``Range``: their offset, they, in pieces, and the size of the object."""

        async def attempt(store: Any) -> tuple[int, list[bytes], int]:
            try:
                answer = await store.get_object(Bucket=bucket, Key=key, Range=wanted)
            except ClientError as error:
                if status_of(error) != 416:  # nothing is there
                    raise
                return 0, [], int((await store.head_object(Bucket=bucket, Key=key))["ContentLength"])
            async with answer["Body"].raw_stream as body:
                pieces = [piece async for piece in body.content.iter_any()]
            found = _RANGE.fullmatch(answer.get("ContentRange", ""))
            return (int(found[1]), pieces, int(found[2])) if found else (0, pieces, sum(map(len, pieces)))

        return await self._persist(attempt)

    async def get_ranges(self, bucket: str, key: str, start: int, end: int) -> tuple[bytes, int]:
        """Read a long range by several concurrent requests: its bytes, and the size of the object."""
        turns = asyncio.Semaphore(PARALLEL)

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
        return await self._persist(lambda store: store.head_object(Bucket=bucket, Key=key))

    async def page(self, bucket: str, prefix: str, delimiter: str, token: str | None) -> dict[str, Any]:
        """One page of a listing."""
        wanted = {"Prefix": prefix, "Delimiter": delimiter, "ContinuationToken": token}
        given = {name: value for name, value in wanted.items() if value}
        return await self._persist(lambda store: store.list_objects_v2(Bucket=bucket, **given))

    async def delete(self, bucket: str, keys: list[str]) -> None:
        """Delete objects, many with one request; a missing object is no error."""
        step = self.settings.batch
        if len(keys) == 1 or step == 1:
            await self._delete_each(bucket, keys)
            return
        for start in range(0, len(keys), step * PARALLEL):
            some = keys[start : start + step * PARALLEL]
            await together(self._delete_batch(bucket, some[at : at + step]) for at in range(0, len(some), step))

    async def _delete_batch(self, bucket: str, keys: list[str]) -> None:
        listed = {"Objects": [{"Key": key} for key in keys], "Quiet": True}
        try:
            answer = await self._persist(lambda store: store.delete_objects(Bucket=bucket, Delete=listed))
            errors = {error.get("Key") for error in answer.get("Errors", ()) if error.get("Code") != "NoSuchKey"}
            left = [key for key in keys if key in errors]
        except ClientError as error:
            if status_of(error) not in (400, 405, 411, 501):  # stores that know no batches, or want other headers
                raise
            left = keys
        # Each remaining object is deleted by a request of its own, which is retried and reports its own error.
        await self._delete_each(bucket, left)

    async def _delete_each(self, bucket: str, keys: list[str]) -> None:
        async def delete(key: str) -> None:
            with suppress(FileNotFoundError):
                await self._persist(lambda store: store.delete_object(Bucket=bucket, Key=key))

        for start in range(0, len(keys), 2 * PARALLEL):
            await together(delete(key) for key in keys[start : start + 2 * PARALLEL])

    async def start_upload(self, bucket: str, key: str, mark: str, tried: Callable[[], None]) -> str:
        """Begin an upload in parts; its id. The object will carry the mark. ``tried`` is informed of each request."""

        async def attempt(store: Any) -> str:
            tried()
            answer = await store.create_multipart_upload(
                Bucket=bucket, Key=key, Metadata={_MARK: mark}, **self.settings.written
            )
            return str(answer["UploadId"])

        return await self._persist(attempt)

    async def send_part(self, bucket: str, key: str, upload: str, number: int, data: bytes) -> dict[str, Any]:
        """Send a part; return its entry for the request that completes the upload."""

        async def attempt(store: Any) -> dict[str, Any]:
            answer = await store.upload_part(Bucket=bucket, Key=key, UploadId=upload, PartNumber=number, Body=data)
            sums = {name: value for name, value in answer.items() if name.startswith("Checksum")}
            return {"PartNumber": number, "ETag": answer["ETag"], **sums}

        return await self._persist(attempt)

    async def complete(self, bucket: str, key: str, upload: str, mark: str, parts: list[dict[str, Any]]) -> None:
        """Publish an object from its parts. After a lost answer, the mark tells whether the object was published."""

        async def attempt(store: Any) -> None:
            try:
                answer = await store.complete_multipart_upload(
                    Bucket=bucket, Key=key, UploadId=upload, MultipartUpload={"Parts": parts}
                )
            except ClientError as error:
                if code_of(error) == "NoSuchUpload" and await self._is_marked(store, bucket, key, mark):
                    return
                raise
            if not answer.get("ETag"):
                message = f"the store has not said that it put s3://{bucket}/{key} together"
                raise StorageError(message, retryable=True)

        await self._persist(attempt)

    async def _is_marked(self, store: Any, bucket: str, key: str, mark: str) -> bool:
        try:
            found = await store.head_object(Bucket=bucket, Key=key)
        except ClientError as error:
            if is_missing(error):
                return False
            raise
        return bool(found.get("Metadata", {}).get(_MARK) == mark)

    async def abort(self, bucket: str, key: str, upload: str) -> None:
        """Abort an upload, so that the store deletes its parts; a finished or missing upload is no error."""

        async def attempt(store: Any) -> None:
            try:
                await store.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload)
            except ClientError as error:
                if code_of(error) != "NoSuchUpload":
                    raise

        await self._persist(attempt)

    async def abort_all(self, bucket: str, key: str) -> None:
        """Abort all uploads to a key, also uploads that began but were never answered."""
        found = await self._persist(lambda store: store.list_multipart_uploads(Bucket=bucket, Prefix=key))
        for upload in found.get("Uploads", ()):
            if upload["Key"] == key:
                await self.abort(bucket, key, upload["UploadId"])
