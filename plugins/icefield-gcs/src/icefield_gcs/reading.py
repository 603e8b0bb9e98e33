"""Objects read by ranges."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

from fsspec.asyn import sync
from icefield.toolkit import FetchedRange, RangedInput

from icefield_gcs.client import GcsClient

_TAIL: Final = 512 * 1024  # the whole of most metadata files and manifests, the footer of most data files


class GcsInput(RangedInput):
    """An object open for reading; a long read is split into several concurrent requests."""

    def __init__(
        self,
        client: GcsClient,
        location: str,
        bucket: str,
        key: str,
        translated: Callable[[str], AbstractContextManager[None]],
    ) -> None:
        super().__init__(location)
        self._client, self._bucket, self._key, self._translated = client, bucket, key, translated

    def fetch(self, start: int, end: int) -> FetchedRange:
        client = self._client
        with self._translated(self.location):
            data, size = sync(client.loop, client.get_ranges, self._bucket, self._key, start, end)
        return FetchedRange(start, data, size)

    def fetch_first(self) -> FetchedRange:
        client = self._client
        with self._translated(self.location):
            offset, pieces, size = sync(client.loop, client.get_range, self._bucket, self._key, f"bytes=-{_TAIL}")
        return FetchedRange(offset, b"".join(pieces), size)
