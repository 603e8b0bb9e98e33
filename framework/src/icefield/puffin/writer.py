"""Writing a Puffin file: blobs one after another, then the footer that lists them.

Blobs are compressed with Zstandard: Arrow's own LZ4 frames lack their size, which the specification requires.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal

import msgspec
import pyarrow as pa

from icefield.abc import OutputStream
from icefield.base.version import __version__
from icefield.puffin.blobs import MAGIC, Blob, encode_footer


class PuffinWriter(AbstractContextManager["PuffinWriter"]):
    """Writes one file. ``close`` publishes it; leaving the ``with`` block by an exception leaves nothing.

    ``properties`` are the file's own, such as ``created-by``.
    """

    def __init__(self, sink: OutputStream, properties: Mapping[str, str] | None = None) -> None:
        self._sink = sink
        self._properties = dict(properties or {})
        self.blobs: list[Blob] = []
        sink.write(MAGIC)

    def add(
        self,
        kind: str,
        data: bytes,
        *,
        fields: Sequence[int] = (),
        snapshot_id: int = -1,
        sequence_number: int = -1,
        codec: Literal["zstd"] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Blob:
        """Add a blob, compressed if a codec is given, and return its description for the footer."""
        blob = Blob(
            type=kind,
            fields=tuple(fields),
            snapshot_id=snapshot_id,
            sequence_number=sequence_number,
            offset=0,
            length=0,
            compression_codec=codec,
            properties=dict(properties) if properties else None,
        )
        return self.add_stored(blob, data if codec is None else pa.compress(data, codec, asbytes=True))

    def add_stored(self, blob: Blob, data: bytes) -> Blob:
        """Add a stored blob of another file unchanged, of any type and codec."""
        placed = msgspec.structs.replace(blob, offset=self._sink.tell(), length=len(data))
        self._sink.write(data)
        self.blobs.append(placed)
        return placed

    def close(self) -> int:
        """Write the footer and publish the file; returns its size in bytes."""
        payload = encode_footer(self.blobs, self._properties)
        self._sink.write(MAGIC + payload + struct.pack("<iI", len(payload), 0) + MAGIC)
        size = self._sink.tell()
        self._sink.close()
        return size

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._sink.abort()
        elif not self._sink.closed:
            self.close()


def writer_name() -> str:
    """The name and version of this library, as files and snapshots state them."""
    return f"Icefield {__version__}"
