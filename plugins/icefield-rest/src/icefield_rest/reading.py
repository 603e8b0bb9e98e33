"""Reading of answers' bodies, with limits on the decompressed size and on the time."""

from __future__ import annotations

import time
import zlib
from typing import Final

import httpx
from icefield.errors import StorageError

ENCODINGS: Final = "gzip"
"""The accepted encodings: an answer in another encoding, or in several, is not read."""

_KNOWN: Final = ("", "identity", "gzip", "x-gzip")
_GZIP: Final = 16 + zlib.MAX_WBITS
_PATIENCE: Final = 10
"""The time limit of a slow answer, as a multiple of the time-out of one read."""
_MORE: Final = 256 * 1024
"""The limit grows by one time-out for so many bytes, so that a long answer may take long on a slow line."""


class NotRead(StorageError):
    """An answer that is not read to its end: it is too long, or has an encoding that was not requested."""


class TooSlow(httpx.ReadTimeout):
    """An answer that arrives too slowly."""


def read(response: httpx.Response, most: int, timeout: float) -> bytes:
    """Read the whole body, of at most ``most`` bytes.

    The time limit is ten times the time-out of one read, plus one time-out for each 256 KiB. Raises ``NotRead``,
    ``TooSlow``, and errors of httpx.
    """
    encoding = response.headers.get("content-encoding", "").strip().lower()
    inflater = _Inflater(most) if encoding.endswith("gzip") else None
    pieces: list[bytes] = []
    come, sent, began = 0, 0, time.monotonic()
    for raw in response.iter_raw():
        if encoding not in _KNOWN:
            raise NotRead(
                f"the service's answer is encoded by {encoding[:100]!r}, which was not asked for: look at what stands "
                "between it and you"
            )
        sent += len(raw)
        if time.monotonic() - began > timeout * (_PATIENCE + sent / _MORE):
            raise TooSlow(f"only {sent:,} bytes of an answer came in {time.monotonic() - began:.0f} s")
        piece = raw if inflater is None else inflater.inflated(raw)
        come += len(piece)
        if come > most:
            raise NotRead(f"the service's answer has more than {most:,} bytes, the most that is read of it")
        pieces.append(piece)
    if inflater is not None and sent and not inflater.ended:
        raise httpx.DecodingError("the compressed answer breaks off")
    return b"".join(pieces)


class _Inflater:
    """Inflates gzip, in one member or several, to at most one byte beyond the limit."""

    def __init__(self, most: int) -> None:
        self._left = most + 1
        self._stream = zlib.decompressobj(_GZIP)

    @property
    def ended(self) -> bool:
        """Whether the compressed data are complete."""
        return self._stream.eof

    def inflated(self, data: bytes) -> bytes:
        """Inflate more data. Raises ``httpx.DecodingError``."""
        pieces = []
        while data and self._left:
            if self._stream.eof:
                self._stream = zlib.decompressobj(_GZIP)
            try:
                piece = self._stream.decompress(data, self._left)
            except zlib.error as error:
                raise httpx.DecodingError("the answer is no gzip, though it says so") from error
            self._left -= len(piece)
            pieces.append(piece)
            data = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
        return b"".join(pieces)
