"""JSON bodies of requests: measured without an object for each value, and only then decoded."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np
from icefield.errors import InvalidArgument

MOST_CONTAINERS: Final = 200_000
MOST_VALUES: Final = 500_000
MOST_ESCAPES: Final = 5_000_000
"""These limits bound decoding to about 100 ms. The decoder holds the GIL, so nothing else runs meanwhile."""
_DECODING: Final = threading.Lock()
"""Bodies are decoded one at a time: the event loop has its turn between two of them."""

_PIECE: Final = 256 * 1024
_OPENS, _CLOSES, _SEPARATES, _QUOTES = 1, 2, 4, 8
_KINDS: Final = np.zeros(256, np.uint8)
_KINDS[list(b"[{")] = _OPENS
_KINDS[list(b"]}")] = _CLOSES
_KINDS[list(b",:")] = _SEPARATES
_KINDS[list(b'"')] = _QUOTES


@dataclass(slots=True)
class JsonShape:
    """How many objects, arrays and values JSON text has, and how deep it is, as far as it was read."""

    depth: int = 0
    deepest: int = 0
    containers: int = 0
    values: int = 0
    escapes: int = 0
    unbalanced: bool = False
    _in_string: bool = False
    _escapes: bool = False

    def add(self, piece: bytes) -> None:
        """Add the next piece. Characters inside strings do not count."""
        if b"\\" in piece or self._escapes:
            self.escapes += piece.count(b"\\")
            piece = self._without_escapes(piece)
        kinds = _KINDS[np.frombuffer(piece, np.uint8)]
        kinds = kinds[kinds != 0]
        quotes = np.cumsum(kinds == _QUOTES, dtype=np.int64) + self._in_string
        if len(quotes):
            self._in_string = bool(quotes[-1] & 1)
            kinds = kinds[(quotes & 1) == 0]
        opens, closes = kinds == _OPENS, kinds == _CLOSES
        count = int(np.count_nonzero(opens))
        self.containers += count
        self.values += count + int(np.count_nonzero(kinds == _SEPARATES))
        if len(kinds):
            depths = self.depth + np.cumsum(opens.astype(np.int64) - closes)
            self.deepest = max(self.deepest, int(depths.max()))
            self.unbalanced |= int(depths.min()) < 0
            self.depth = int(depths[-1])

    def _without_escapes(self, piece: bytes) -> bytes:
        """A piece without escaped quotes and backslashes; in a run of backslashes, pairs are counted from its start."""
        rest = (piece[1:] if self._escapes else piece).replace(b"\\\\", b"")
        self._escapes = rest.endswith(b"\\")
        return rest.replace(b'\\"', b"")


def check_shape(data: bytes, most_deep: int) -> None:
    """Raise ``InvalidArgument`` for JSON text that is too deep, or has too many parts to be decoded at once."""
    shape = JsonShape()
    for begin in range(0, len(data), _PIECE):
        shape.add(data[begin : begin + _PIECE])
        if shape.unbalanced:
            raise InvalidArgument("the body is no JSON: it closes more objects and arrays than it opens")
        if shape.deepest > most_deep:
            raise InvalidArgument(f"the body is nested more than {most_deep} levels deep")
        if shape.containers > MOST_CONTAINERS or shape.values > MOST_VALUES:
            raise InvalidArgument(
                f"the body has more than {MOST_CONTAINERS:,} objects and arrays, or more than {MOST_VALUES:,} values: "
                "send its changes in several requests"
            )
        if shape.escapes > MOST_ESCAPES:
            raise InvalidArgument(f"the body has more than {MOST_ESCAPES:,} backslashes: send it in several requests")


def parsed(data: bytes, most_deep: int) -> Any:
    """Parse a JSON body. Raises ``InvalidArgument`` for invalid JSON, or before decoding for an excess of parts."""
    if not data:
        return None
    check_shape(data, most_deep)
    try:
        with _DECODING:
            return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidArgument(f"the body is no JSON: {error}") from error
