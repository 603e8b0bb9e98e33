"""Blobs written in blocks, which show nothing before their list is committed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from uuid import uuid4

from fsspec.asyn import sync
from icefield.toolkit import PartedOutput

from icefield_adls.client import AdlsClient


class AdlsOutput(PartedOutput):
    """A stream to a new blob."""

    def __init__(
        self,
        client: AdlsClient,
        location: str,
        container: str,
        path: str,
        translated: Callable[[str], AbstractContextManager[None]],
    ) -> None:
        super().__init__(location, client.settings.write_part)
        self._client, self._container, self._path, self._translated = client, container, path, translated
        self._name = uuid4().hex  # blocks of two streams to one name are distinguished
        self._blocks: list[str] = []

    def put_whole(self, data: bytes) -> None:
        with self._translated(self.location):
            sync(self._client.loop, self._client.put_blob, self._container, self._path, data, create=False)

    def put_part(self, number: int, data: bytes) -> None:
        block = f"{self._name}-{number:06d}"  # all of one length, as the store wants them
        self._blocks.append(block)
        with self._translated(self.location):
            sync(self._client.loop, self._client.stage, self._container, self._path, block, data)

    def finish(self, number: int, data: bytes) -> None:
        self.put_part(number, data)
        with self._translated(self.location):
            sync(self._client.loop, self._client.commit, self._container, self._path, self._blocks)

    def cancel(self) -> None:
        if self._blocks:
            with self._translated(self.location):
                sync(self._client.loop, self._client.discard, self._container, self._path)
