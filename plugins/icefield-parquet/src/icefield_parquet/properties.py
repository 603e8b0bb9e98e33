"""The table properties of Parquet files. ``write.delete.parquet.*`` are the same for delete files."""

# ruff: noqa: E501 -- the table reads best with one property a line
from __future__ import annotations

from typing import Final

from icefield.metadata import Property

MIB: Final = 1024 * 1024
_CODECS: Final = ("brotli", "gzip", "lz4", "lz4_raw", "lzo", "none", "snappy", "uncompressed", "zstd")
"""The codecs that any engine reads or writes; this plugin writes fewer of them."""


def _check_probability(value: float) -> None:
    if not 0 < value < 1:
        raise ValueError("a probability is between 0 and 1")


# fmt: off
PARQUET_ROW_GROUP_SIZE: Final = Property("write.parquet.row-group-size-bytes", int, 128 * MIB, "Row group size in bytes.", minimum=1)
PARQUET_PAGE_SIZE: Final = Property("write.parquet.page-size-bytes", int, MIB, "Page size in bytes.", minimum=1)
PARQUET_PAGE_ROW_LIMIT: Final = Property("write.parquet.page-row-limit", int, 20_000, "Most rows in a page.", minimum=1)
PARQUET_PAGE_VERSION: Final = Property("write.parquet.page-version", str, "v1", "Data page version.", choices=("v1", "v2"))
PARQUET_DICT_SIZE: Final = Property("write.parquet.dict-size-bytes", int, 2 * MIB, "Dictionary page size in bytes.", minimum=1)
PARQUET_COMPRESSION: Final = Property("write.parquet.compression-codec", str, "zstd", "Codec; Icefield writes zstd, brotli, lz4, gzip, snappy and uncompressed.", choices=_CODECS)
PARQUET_COMPRESSION_LEVEL: Final = Property("write.parquet.compression-level", int, None, "Level of the codec, where it has levels.")
PARQUET_ROW_GROUP_CHECK_MIN_RECORDS: Final = Property("write.parquet.row-group-check-min-record-count", int, 100, "Rows between two looks at the size of a row group, at least; here it is known at each batch.", minimum=1, unread=True)
PARQUET_ROW_GROUP_CHECK_MAX_RECORDS: Final = Property("write.parquet.row-group-check-max-record-count", int, 10_000, "The same, at most.", minimum=1, unread=True)
PARQUET_BLOOM_FILTER_MAX_BYTES: Final = Property("write.parquet.bloom-filter-max-bytes", int, MIB, "Largest bloom filter of a column chunk, in bytes.", minimum=1)
PARQUET_BLOOM_FILTER_ENABLED: Final = Property("write.parquet.bloom-filter-enabled.column.", bool, False, "Whether to write a bloom filter for the column.")
PARQUET_BLOOM_FILTER_FPP: Final = Property("write.parquet.bloom-filter-fpp.column.", float, 0.01, "False positive probability of the column's bloom filter.", check=_check_probability)
PARQUET_BLOOM_FILTER_NDV: Final = Property("write.parquet.bloom-filter-ndv.column.", int, None, "Distinct values that the column's bloom filter is sized for.", minimum=1)
PARQUET_STATS_ENABLED: Final = Property("write.parquet.stats-enabled.column.", bool, True, "Whether to write statistics of the column into the file.")
PARQUET_SHRED_VARIANTS: Final = Property("write.parquet.shred-variants", bool, False, "Whether variant values are shredded into typed columns, outside lists and maps.")
PARQUET_VARIANT_INFERENCE_BUFFER_SIZE: Final = Property("write.parquet.variant-inference-buffer-size", int, 100, "First rows of a file by which the types of shredded variants are chosen.", minimum=1)
PARQUET_VECTORIZATION_ENABLED: Final = Property("read.parquet.vectorization.enabled", bool, True, "Whether the JVM reads Parquet in batches.", unread=True)
PARQUET_BATCH_SIZE: Final = Property("read.parquet.vectorization.batch-size", int, 5_000, "Rows of such a batch.", minimum=1, unread=True)
# fmt: on

PROPERTIES: Final = tuple(each for each in tuple(globals().values()) if isinstance(each, Property))
"""Every property above."""
