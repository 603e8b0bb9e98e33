"""Blobs read by ranges."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

from fsspec.asyn import sync
from icefield.toolkit import FetchedRange, RangedInput

from icefield_adls.client import AdlsClient

_HEAD: Final = 256 * 1024  # the whole of most metadata files and manifests; the store knows no "last bytes"


class AdlsInput(RangedInput):
    """A blob open for reading; a long read is split into several concurrent requests."""

    def __init__(
        self,
        client: AdlsClient,
        location: str,
        container: str,
        path: str,
        translated: Callable[[str], AbstractContextManager[None]],
    ) -> None:
        super().__init__(location)
        self._client, self._container, self._path, self._translated = client, container, path, translated

    def fetch(self, start: int, end: int) -> FetchedRange:
        client = self._client
        with self._translated(self.location):
            data, size = sync(client.loop, client.get_ranges, self._container, self._path, start, end)
        return FetchedRange(start, data, size)

    def fetch_first(self) -> FetchedRange:
        return self.fetch(0, _HEAD)
