"""Gzipped metadata files, inflated a megabyte at a time: a few kilobytes can claim to hold gigabytes."""

from __future__ import annotations

import zlib
from typing import Final

from icefield.base.limits import FREE_INFLATION, MAX_INFLATION, MAX_METADATA_BYTES
from icefield.errors import InvalidMetadata

_GZIP_MAGIC: Final = b"\x1f\x8b"
_MAX_GZIP_MEMBERS: Final = 64
_INFLATED_AT_ONCE: Final = 1 << 20


def inflated(data: bytes, location: str) -> bytes:
    """The plain bytes of a metadata file; gzip is recognised by its first bytes, not by the file name.

    Raises ``InvalidMetadata`` for a stream that is damaged or holds too much, after a few megabytes of it.
    """
    if len(data) > MAX_METADATA_BYTES:
        raise _too_large(location)
    if data[:2] != _GZIP_MAGIC:
        return data
    most = min(MAX_METADATA_BYTES, max(FREE_INFLATION, MAX_INFLATION * len(data)))
    parts: list[bytes] = []
    rest, size = data, 0
    try:
        for _ in range(_MAX_GZIP_MEMBERS):
            inflater = zlib.decompressobj(wbits=31)
            while not inflater.eof:
                part = inflater.decompress(rest, _INFLATED_AT_ONCE)
                size += len(part)
                if size > most:
                    if most == MAX_METADATA_BYTES:
                        raise _too_large(location)
                    raise InvalidMetadata(
                        f"{location}: {len(data):,} bytes of gzip hold more than {most:,}, which is refused: table "
                        f"metadata is never packed to less than one part in {MAX_INFLATION} "
                        "(icefield.base.limits.MAX_INFLATION)",
                        location=location,
                    )
                if not part and not inflater.eof:
                    raise InvalidMetadata(f"{location}: the gzip stream is cut off", location=location)
                parts.append(part)
                rest = inflater.unconsumed_tail
            rest = inflater.unused_data.lstrip(b"\0")
            if not rest:
                break
    except zlib.error as error:
        raise InvalidMetadata(f"{location}: the gzip stream is damaged: {error}", location=location) from error
    return b"".join(parts)


def _too_large(location: str) -> InvalidMetadata:
    return InvalidMetadata(
        f"{location}: table metadata of more than {MAX_METADATA_BYTES} bytes is refused; expire snapshots",
        location=location,
    )
