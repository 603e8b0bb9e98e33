"""The stream that pyarrow writes an ORC file to, whose tail is completed before it goes out.

pyarrow writes no user metadata, so the last bytes of a file are held back, and its footer is written anew with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icefield.abc import OutputStream

from icefield_orc.compression import pack_plain, unpack
from icefield_orc.protobuf import items, write_bytes, write_integer
from icefield_orc.tail import Tail, parse_footer, read_postscript

_LARGEST_FOOTER = 1 << 30
_FOOTER_LENGTH = 1
_USER_METADATA = 5


class Sink:
    """A file that pyarrow writes to. After ``abort`` it swallows what still comes."""

    closed = False

    def __init__(self, stream: OutputStream) -> None:
        self._stream = stream
        self._aborted = False
        self._held: list[bytes] | None = None
        self._length = 0

    def write(self, data: Any) -> int:
        length = memoryview(data).nbytes
        self._length += length
        if self._aborted:
            return length
        if self._held is None:
            return self._stream.write(data)
        self._held.append(bytes(data))
        return length

    def tell(self) -> int:
        return self._length

    def hold(self) -> None:
        """Keep back what is written from here on: the end of the file."""
        self._held = []

    def complete(self, metadata: Mapping[str, bytes]) -> Tail:
        """Write out what was kept back, with user metadata in the footer, and tell what the tail says."""
        end = b"".join(self._held or [])
        self._held = None
        postscript = read_postscript(end)
        below = len(end) - 1 - postscript.length
        start = below - postscript.footer_length
        footer = unpack(end[start:below], postscript.codec, postscript.block_size, _LARGEST_FOOTER)
        for key, value in metadata.items():
            footer += write_bytes(_USER_METADATA, write_bytes(1, key.encode()) + write_bytes(2, value))
        packed = pack_plain(footer, postscript.codec, postscript.block_size)
        self._stream.write(end[:start])
        self._stream.write(packed + _postscript(end[below:-1], len(packed)))
        return parse_footer(footer, postscript, self._stream.tell())

    def publish(self) -> None:
        self._stream.close()

    def abort(self) -> None:
        self._aborted = True
        self._held = None
        self._stream.abort()

    # pyarrow asks these of a file, and closes it when the writer is closed: only ``publish`` may do that.
    def flush(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


def _postscript(old: bytes, footer_length: int) -> bytes:
    """A postscript with another length of the footer, and its own length behind it."""
    message = b""
    for number, value in items(old):
        if number == _FOOTER_LENGTH:
            value = footer_length
        message += write_integer(number, value) if isinstance(value, int) else write_bytes(number, value)
    return message + bytes([len(message)])
