"""The standard key metadata: the key of a file, its AAD prefix and its length, as Java's library stores them.

A byte with the version, 1, and then a record in Avro's binary encoding: ``encryption_key`` (bytes), ``aad_prefix``
(optional bytes) and ``file_length`` (optional long).
"""

from __future__ import annotations

from typing import Final

from icefield.abc import FileKey
from icefield.errors import DecryptionFailed

VERSION: Final = 1
_KEY_LENGTHS: Final = (16, 24, 32)
_MOST_PREFIX: Final = 1 << 16


def encode(key: FileKey) -> bytes:
    """The key metadata of a key. An empty prefix is stored as such, as Java does."""
    length = b"\0" if key.length is None else b"\2" + _long(key.length)
    return bytes([VERSION]) + _bytes(key.key) + b"\2" + _bytes(key.aad_prefix) + length


def decode(data: bytes, location: str) -> FileKey:
    """The key of key metadata. Raises ``DecryptionFailed`` for damage, and for another version."""
    try:
        reader = _Fields(data)
        key = reader.bytes(max(_KEY_LENGTHS))
        prefix = reader.bytes(_MOST_PREFIX) if reader.is_given() else b""
        length = reader.long() if reader.is_given() else None
    except (IndexError, ValueError):
        key, prefix, length = b"", b"", None
    if (
        data[:1] != bytes([VERSION])
        or len(key) not in _KEY_LENGTHS
        or reader.at != len(data)
        or (length is not None and length < 0)
    ):
        raise DecryptionFailed(f"the key metadata of {location} is damaged", location=location)
    return FileKey(key, prefix, length)


class _Fields:
    """Reads the fields of a record one after another; an end too early raises ``ValueError`` or ``IndexError``."""

    def __init__(self, data: bytes) -> None:
        self._data, self.at = data, 1

    def is_given(self) -> bool:
        """Whether an optional field has a value."""
        branch = self.long()
        if branch not in (0, 1):
            raise ValueError
        return branch == 1

    def long(self) -> int:
        """A number: seven bits a byte, the lowest first, with the sign in the lowest bit."""
        value = 0
        for shift in range(0, 70, 7):
            byte = self._data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
        raise ValueError

    def bytes(self, most: int) -> bytes:
        """Bytes after their number."""
        count = self.long()
        if not 0 <= count <= min(most, len(self._data) - self.at):
            raise ValueError
        self.at += count
        return self._data[self.at - count : self.at]


def _bytes(data: bytes) -> bytes:
    return _long(len(data)) + data


def _long(number: int) -> bytes:
    value, encoded = (number << 1) ^ (number >> 63), bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])
