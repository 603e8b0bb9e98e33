"""Objects written in parts: the store's multipart uploads, which show nothing before they are completed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, suppress
from typing import Any
from uuid import uuid4

from fsspec.asyn import sync
from icefield.toolkit import PartedOutput

from icefield_s3.client import PARALLEL, S3Client


class S3Output(PartedOutput):
    """A stream to a new object. Several parts are sent at the same time."""

    def __init__(
        self,
        client: S3Client,
        location: str,
        bucket: str,
        key: str,
        translated: Callable[[str], AbstractContextManager[None]],
    ) -> None:
        super().__init__(location, client.settings.write_part)
        self._client, self._bucket, self._key, self._translated = client, bucket, key, translated
        self._upload = ""
        self._mark = uuid4().hex
        self._begun = 0
        self._parts: list[Future[dict[str, Any]]] = []

    def put_whole(self, data: bytes) -> None:
        with self._translated(self.location):
            sync(self._client.loop, self._client.put_object, self._bucket, self._key, data, create=False)

    def put_part(self, number: int, data: bytes) -> None:
        with self._translated(self.location):
            if not self._upload:
                self._upload = sync(
                    self._client.loop, self._client.start_upload, self._bucket, self._key, self._mark, self._count
                )
            if number >= PARALLEL:
                self._parts[number - PARALLEL].result()
            # The store counts from 1.
            sent = self._client.send_part(self._bucket, self._key, self._upload, number + 1, data)
            self._parts.append(asyncio.run_coroutine_threadsafe(sent, self._client.loop))

    def finish(self, number: int, data: bytes) -> None:
        self.put_part(number, data)
        client = self._client
        with self._translated(self.location):
            parts = [part.result() for part in self._parts]
            sync(client.loop, client.complete, self._bucket, self._key, self._upload, self._mark, parts)
        if self._begun > 1:
            with suppress(Exception):  # the file is published: uploads that are left over are no failure
                self._abort_all()

    def cancel(self) -> None:
        # A part that arrives after the abort would remain in the store: wait for parts that are being sent, unless the
        # network fails.
        if not any(part.done() and part.exception() for part in self._parts):
            wait(self._parts, timeout=self._client.settings.request_timeout)
        for part in self._parts:
            part.cancel()
        with self._translated(self.location):
            if self._upload:
                sync(self._client.loop, self._client.abort, self._bucket, self._key, self._upload)
            if self._begun > 1 or (self._begun and not self._upload):
                self._abort_all()

    def _abort_all(self) -> None:
        """Abort every upload to this name: no other process writes to it."""
        sync(self._client.loop, self._client.abort_all, self._bucket, self._key)

    def _count(self) -> None:
        self._begun += 1
