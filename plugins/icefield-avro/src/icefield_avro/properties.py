"""The table properties of Avro files. ``write.delete.avro.*`` are the same for delete files."""

# ruff: noqa: E501 -- the table reads best with one property a line
from __future__ import annotations

from typing import Final

from icefield.metadata import Property

_CODECS: Final = (
    *("bzip2", "deflate", "gzip", "none", "null", "snappy"),
    *("uncompressed", "xz", "zstandard", "zstd"),
)
"""The codecs that any engine reads or writes; this plugin writes fewer of them."""

# fmt: off
AVRO_COMPRESSION: Final = Property("write.avro.compression-codec", str, "gzip", "Codec; gzip is the deflate of Avro.", choices=_CODECS)
AVRO_COMPRESSION_LEVEL: Final = Property("write.avro.compression-level", int, None, "Level of the codec, where it has levels.")
AVRO_BLOCK_SIZE: Final = Property("write.avro.block-size-bytes", int, 64 * 1024, "Size in bytes of a block before it is compressed.", minimum=1)
# fmt: on

PROPERTIES: Final = tuple(each for each in tuple(globals().values()) if isinstance(each, Property))
"""Every property above."""
