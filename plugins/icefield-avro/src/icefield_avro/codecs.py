"""The codecs of Avro blocks: null, deflate, snappy, zstandard, bzip2 and xz.

A block comes from a table and is not trusted: no codec is let to inflate beyond ``MAX_INFLATED`` bytes.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import deflate
import pyarrow as pa
from icefield.errors import InvalidArgument, UnsupportedFeature

from icefield_avro.properties import AVRO_COMPRESSION, AVRO_COMPRESSION_LEVEL
from icefield_avro.varints import Malformed

MAX_INFLATED: Final = 256 * 1024 * 1024
"""The most bytes that one block may hold once inflated."""

_TIMES: Final = (6, 40)
"""How many times its packed size a deflated block is taken to hold, before it is inflated piece by piece."""

_XZ_MEMORY: Final = 256 * 1024 * 1024

Inflate = Callable[[bytes | memoryview], bytes | bytearray]
Deflate = Callable[[bytes | memoryview], bytes | bytearray]

# The names of codecs in the table property ``write.avro.compression-codec``.
_PROPERTY_NAMES: Final = {
    "gzip": "deflate",
    "deflate": "deflate",
    "zstd": "zstandard",
    "zstandard": "zstandard",
    "snappy": "snappy",
    "bzip2": "bzip2",
    "xz": "xz",
    "uncompressed": "null",
    "null": "null",
    "none": "null",
}


def _too_big() -> Malformed:
    return Malformed(f"a block inflates to more than {MAX_INFLATED:,} bytes")


def _inflate_null(data: bytes | memoryview) -> bytes:
    if len(data) > MAX_INFLATED:
        raise Malformed(f"a block of more than {MAX_INFLATED:,} bytes")
    return bytes(data)


def _inflate_deflate(data: bytes | memoryview) -> bytes | bytearray:
    size = len(data)
    for times in _TIMES:
        try:
            return deflate.deflate_decompress(data, min(times * size, MAX_INFLATED))
        except deflate.DeflateError:  # the error does not distinguish a damaged block from a larger one
            continue
    return _inflate_in_pieces(data)


def _inflate_snappy(data: bytes | memoryview) -> bytes:
    if len(data) < 5:
        raise Malformed("a snappy block without length and checksum")
    size = shift = 0
    for byte in bytes(data[:5]):
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > MAX_INFLATED or size > 64 * len(data):  # one copy of two bytes or more yields 64 at most
        raise Malformed("a snappy block claims an impossible length")
    try:
        out: bytes = pa.Codec("snappy").decompress(memoryview(data)[:-4], size, asbytes=True)
    except (pa.ArrowInvalid, OSError) as error:
        raise Malformed(f"a damaged snappy block: {error}") from None
    if zlib.crc32(out) != int.from_bytes(data[-4:], "big"):
        raise Malformed("the checksum of a snappy block does not match")
    return out


def _inflate_zstandard(data: bytes | memoryview) -> bytes:
    try:
        with pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(data)), "zstd") as stream:
            out: bytes = stream.read(MAX_INFLATED + 1)
    except (pa.ArrowInvalid, OSError) as error:
        raise Malformed(f"a damaged zstandard block: {error}") from None
    if len(out) > MAX_INFLATED:
        raise _too_big()
    return out


def _inflate_standard(build: Callable[[], Any]) -> Inflate:
    def inflate(data: bytes | memoryview) -> bytes:
        inflater = build()
        try:
            out: bytes = inflater.decompress(data, MAX_INFLATED + 1)
        except (OSError, zlib.error, lzma.LZMAError, EOFError, ValueError, MemoryError) as error:
            raise Malformed(f"a damaged block: {error}") from None
        if len(out) > MAX_INFLATED:
            raise _too_big()
        if not inflater.eof:
            raise Malformed("a block ends early")
        return out

    return inflate


_inflate_in_pieces: Final = _inflate_standard(lambda: zlib.decompressobj(-15))

_INFLATE: Final[dict[str, Inflate]] = {
    "null": _inflate_null,
    "deflate": _inflate_deflate,
    "snappy": _inflate_snappy,
    "zstandard": _inflate_zstandard,
    "bzip2": _inflate_standard(bz2.BZ2Decompressor),
    "xz": _inflate_standard(lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY)),
}


def inflater(codec: str) -> Inflate:
    """The function that inflates a block. Raises ``UnsupportedFeature`` for a codec that is not known.

    The function raises ``Malformed`` for a block that is damaged or too big.
    """
    try:
        return _INFLATE[codec]
    except KeyError:
        raise UnsupportedFeature(f"no Avro codec {codec[:40]!r}; known are {', '.join(_INFLATE)}") from None


def _snappy(data: bytes | memoryview) -> bytes:
    packed: bytes = pa.Codec("snappy").compress(data, asbytes=True)
    return packed + zlib.crc32(data).to_bytes(4, "big")


def _zstandard(level: int | None) -> Deflate:
    packer = pa.Codec("zstd", compression_level=level)
    return lambda data: packer.compress(data, asbytes=True)


def deflater(codec: str, level: int | None = None) -> Deflate:
    """The function that packs a block with a codec named as Avro names it. Raises ``UnsupportedFeature``."""
    if codec == "null":
        return bytes
    if codec == "deflate":
        return partial(deflate.deflate_compress, compresslevel=1 if level is None else level)
    if codec == "snappy":
        return _snappy
    if codec == "zstandard":
        return _zstandard(level)
    if codec == "bzip2":
        return partial(bz2.compress, compresslevel=9 if level is None else level)
    if codec == "xz":
        return partial(lzma.compress, preset=level)
    raise UnsupportedFeature(f"the Avro codec {codec!r} is not written")


def codec_of(properties: Mapping[str, str]) -> tuple[str, int | None]:
    """Codec and level that table properties ask for: ``write.avro.compression-codec`` and ``-level``.

    Without a level, deflate packs at its level 1 and zstandard takes its own default. Raises ``InvalidArgument``.
    """
    asked = properties.get(AVRO_COMPRESSION.name, "gzip").strip().lower()
    codec = _PROPERTY_NAMES.get(asked)
    if codec is None:
        known = ", ".join(_PROPERTY_NAMES)
        raise InvalidArgument(f"{AVRO_COMPRESSION.name} is {asked[:40]!r}; it may be {known}")
    string = properties.get(AVRO_COMPRESSION_LEVEL.name)
    if string is None or not str(string).strip():
        return codec, None
    bounds = {"deflate": (0, 9), "zstandard": (-7, 22), "bzip2": (1, 9), "xz": (0, 9)}.get(codec)
    if bounds is None:
        return codec, None
    try:
        level = int(string)
    except ValueError:
        level = bounds[0] - 1
    if not bounds[0] <= level <= bounds[1]:
        raise InvalidArgument(
            f"{AVRO_COMPRESSION_LEVEL.name} is {str(string)[:20]!r}; {codec} takes {bounds[0]} to {bounds[1]}"
        )
    return codec, level
