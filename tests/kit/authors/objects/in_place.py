"""A file system that is broken on purpose, in a module that a fresh interpreter can import."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from authors.objects.object_stores import ObjectFileSystem
from icefield.abc import PutMode


class InPlace(ObjectFileSystem):
    """Writes a file in place, so that a process that dies leaves a partial file."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        place = Path(url2pathname(urlsplit(self.properties["objects.url"]).path), location.partition("://")[2])
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
