"""The table properties of ORC files. ``write.delete.orc.*`` are the same for delete files."""

# ruff: noqa: E501 -- the table reads best with one property a line
from __future__ import annotations

from typing import Final

from icefield.metadata import Property

MIB: Final = 1024 * 1024
_CODECS: Final = ("brotli", "lz4", "lzo", "none", "snappy", "uncompressed", "zlib", "zstd")
"""The codecs that any engine reads or writes; this plugin writes fewer of them."""


def _check_probability(value: float) -> None:
    if not 0 < value < 1:
        raise ValueError("a probability is between 0 and 1")


# fmt: off
ORC_STRIPE_SIZE: Final = Property("write.orc.stripe-size-bytes", int, 64 * MIB, "Stripe size in bytes.", minimum=1)
ORC_BLOCK_SIZE: Final = Property("write.orc.block-size-bytes", int, 256 * MIB, "File system block size in bytes.", minimum=1)
ORC_COMPRESSION: Final = Property("write.orc.compression-codec", str, "zlib", "Codec; Icefield writes zstd, lz4, zlib, snappy and none.", choices=_CODECS)
ORC_COMPRESSION_STRATEGY: Final = Property("write.orc.compression-strategy", str, "speed", "Whether the writer favours speed or small files.", choices=("speed", "compression"))
ORC_BLOOM_FILTER_COLUMNS: Final = Property("write.orc.bloom.filter.columns", str, "", "Columns with a bloom filter, separated by commas.")
ORC_BLOOM_FILTER_FPP: Final = Property("write.orc.bloom.filter.fpp", float, 0.05, "False positive probability of bloom filters.", check=_check_probability)
ORC_VECTORIZED_BATCH_SIZE: Final = Property("write.orc.vectorized.batch-size", int, 1024, "Rows handed to the writer at once.", minimum=1)
ORC_VECTORIZATION_ENABLED: Final = Property("read.orc.vectorization.enabled", bool, False, "Whether the JVM reads ORC in batches.", unread=True)
ORC_BATCH_SIZE: Final = Property("read.orc.vectorization.batch-size", int, 5_000, "Rows of such a batch.", minimum=1, unread=True)
# fmt: on

PROPERTIES: Final = tuple(each for each in tuple(globals().values()) if isinstance(each, Property))
"""Every property above."""
