"""A checksum of a whole Lance file, inside the file. It is needed because Lance ends the process on some damaged files.

A program can add buffers to a Lance file. The file ends with a table of its buffers and a footer of fixed length. The
checksum is in the first added buffer. To compute the checksum, its own bytes count as zeros.
"""

from __future__ import annotations

import struct
import zlib
from typing import IO, Final

PLACE: Final = b"icefield" + bytes(4)
"""The buffer, with zeros in place of the checksum."""

_FOOTER: Final = struct.Struct("<QQQIIHH4s")
_BUFFER: Final = struct.Struct("<QQ")
_CHUNK: Final = 1 << 20


def seal(file: IO[bytes]) -> None:
    """Write the checksum into a finished file."""
    at = _place(file)
    checksum = _sum(file, at)
    file.seek(at)
    file.write(checksum)


def check(file: IO[bytes]) -> None:
    """Raise ``ValueError`` for a file that changed since ``seal``, or that was never sealed."""
    at = _place(file)
    file.seek(at)
    if file.read(4) != _sum(file, at):
        raise ValueError("bytes were changed: their checksum is another one")


def _place(file: IO[bytes]) -> int:
    """The offset of the checksum, found through the footer. Raises ``ValueError`` if there is none."""
    size = file.seek(0, 2)
    if size < _FOOTER.size:
        raise ValueError("the file is too short")
    footer = _read(file, size - _FOOTER.size, _FOOTER)
    table, buffers, magic = footer[2], footer[3], footer[-1]
    if magic != b"LANC" or buffers < 2 or table + 2 * _BUFFER.size > size:
        raise ValueError("the end of the file is no footer of a file that this plugin wrote")
    at, length = _read(file, table + _BUFFER.size, _BUFFER)
    if at + length > size or length != len(PLACE):
        raise ValueError("the file has no checksum")
    return int(at) + length - 4


def _read(file: IO[bytes], at: int, form: struct.Struct) -> tuple[int, ...]:
    file.seek(at)
    return form.unpack(file.read(form.size))


def _sum(file: IO[bytes], at: int) -> bytes:
    file.seek(0)
    found = 0
    while data := file.read(min(_CHUNK, at - file.tell()) if file.tell() < at else _CHUNK):
        found = zlib.crc32(data, found)
        if file.tell() == at:
            found = zlib.crc32(bytes(4), found)
            file.seek(at + 4)
    return found.to_bytes(4, "little")
