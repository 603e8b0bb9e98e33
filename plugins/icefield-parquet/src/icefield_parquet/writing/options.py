"""The writer options from table properties.

| property | effect |
|---|---|
| ``write.parquet.row-group-size-bytes`` | a row group ends when this many bytes of Arrow data are gathered |
| ``write.parquet.page-size-bytes``, ``page-row-limit``, ``page-version`` | data pages |
| ``write.parquet.dict-size-bytes`` | a dictionary beyond this is given up for plain values |
| ``write.parquet.compression-codec``, ``compression-level`` | zstd when not set |
| ``write.parquet.bloom-filter-enabled.column.<path>``, ``...-fpp...``, ``...-ndv...`` | bloom filters |
| ``write.parquet.stats-enabled.column.<path>`` | whether the file holds statistics of the column |
| ``write.parquet.shred-variants``, ``variant-inference-buffer-size`` | variants in typed columns |
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.metadata import Property, find_value, get_bool, get_int, get_str

from icefield_parquet.properties import (
    PARQUET_BLOOM_FILTER_ENABLED,
    PARQUET_BLOOM_FILTER_FPP,
    PARQUET_BLOOM_FILTER_MAX_BYTES,
    PARQUET_BLOOM_FILTER_NDV,
    PARQUET_COMPRESSION,
    PARQUET_COMPRESSION_LEVEL,
    PARQUET_DICT_SIZE,
    PARQUET_PAGE_ROW_LIMIT,
    PARQUET_PAGE_SIZE,
    PARQUET_PAGE_VERSION,
    PARQUET_ROW_GROUP_SIZE,
    PARQUET_SHRED_VARIANTS,
    PARQUET_STATS_ENABLED,
    PARQUET_VARIANT_INFERENCE_BUFFER_SIZE,
)

# Codec names of table properties, with pyarrow's names.
_CODECS = {
    "zstd": "zstd",
    "gzip": "gzip",
    "snappy": "snappy",
    "lz4": "lz4",
    "lz4_raw": "lz4",
    "brotli": "brotli",
    "uncompressed": "none",
    "none": "none",
}
_LEVELLED = frozenset({"zstd", "gzip", "brotli"})
_SMALLEST_BLOOM_FILTER = 32


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of one writer; ``arguments`` go to pyarrow's writer.

    ``shredding_rows`` is the number of rows that determine the types of shredded variants; 0 where variants stay whole.
    """

    row_group_bytes: int
    shredding_rows: int
    arguments: Mapping[str, Any]


def write_options(
    properties: Mapping[str, str],
    leaf_paths: Mapping[str, str],
    *,
    all_counted: bool = True,
    shredded: Mapping[str, str] | None = None,
) -> WriteOptions:
    """Options from table properties; ``leaf_paths`` gives, by a column's full name, its path in the file.

    ``leaf_paths`` leaves out leaves with meaningless statistics; without ``all_counted`` there are such leaves.
    ``shredded`` gives the full name of a leaf's variant, by the path of the leaf.
    Raises ``InvalidArgument`` or ``UnsupportedFeature``, naming the property.
    """
    codec = _codec(get_str(properties, PARQUET_COMPRESSION))
    arguments: dict[str, Any] = {
        "compression": codec,
        "compression_level": _level(properties, codec),
        "data_page_size": get_int(properties, PARQUET_PAGE_SIZE),
        "data_page_version": {"v1": "1.0", "v2": "2.0"}[get_str(properties, PARQUET_PAGE_VERSION).lower()],
        "dictionary_pagesize_limit": get_int(properties, PARQUET_DICT_SIZE),
        "write_statistics": _statistics(properties, leaf_paths, all_counted, shredded or {}),
    }
    _newer_arguments(arguments, properties, leaf_paths)
    shreds = get_bool(properties, PARQUET_SHRED_VARIANTS)
    shredding_rows = get_int(properties, PARQUET_VARIANT_INFERENCE_BUFFER_SIZE) if shreds else 0
    return WriteOptions(get_int(properties, PARQUET_ROW_GROUP_SIZE), shredding_rows, arguments)


def _codec(name: str) -> str:
    codec = _CODECS.get(name.lower())
    if codec is None:
        known = ", ".join(sorted(_CODECS))
        raise InvalidArgument(f"table property '{PARQUET_COMPRESSION.name}': '{name}' is none of {known}")
    if codec != "none" and not pa.Codec.is_available(codec):
        raise UnsupportedFeature(f"table property '{PARQUET_COMPRESSION.name}': this pyarrow was built without {codec}")
    return codec


def _level(properties: Mapping[str, str], codec: str) -> int | None:
    level: int | None = find_value(properties, PARQUET_COMPRESSION_LEVEL)
    if level is None or codec not in _LEVELLED:
        return None
    least, most = pa.Codec.minimum_compression_level(codec), pa.Codec.maximum_compression_level(codec)
    if not least <= level <= most:
        raise InvalidArgument(
            f"table property '{PARQUET_COMPRESSION_LEVEL.name}': {codec} takes {least} to {most}, not {level}"
        )
    return level


def _statistics(
    properties: Mapping[str, str], leaf_paths: Mapping[str, str], all_counted: bool, shredded: Mapping[str, str]
) -> bool | list[str]:
    wanted = _columns_with(properties, PARQUET_STATS_ENABLED)
    if all_counted and all(wanted.values()):
        return True
    parts = [path for path, name in shredded.items() if wanted.get(name, True)]
    return [path for name, path in leaf_paths.items() if wanted.get(name, True)] + parts


def _newer_arguments(arguments: dict[str, Any], properties: Mapping[str, str], leaf_paths: Mapping[str, str]) -> None:
    """Arguments that older releases of pyarrow do not know are passed only if a property asks for them."""
    if PARQUET_PAGE_ROW_LIMIT.name in properties:
        arguments["max_rows_per_page"] = get_int(properties, PARQUET_PAGE_ROW_LIMIT)
    blooms = _bloom_filters(properties, leaf_paths)
    if blooms:
        arguments["bloom_filter_options"] = blooms


def _bloom_filters(properties: Mapping[str, str], leaf_paths: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    most = get_int(properties, PARQUET_BLOOM_FILTER_MAX_BYTES)
    blooms: dict[str, dict[str, Any]] = {}
    for name, enabled in _columns_with(properties, PARQUET_BLOOM_FILTER_ENABLED).items():
        if not enabled or name not in leaf_paths:
            continue
        fpp = find_value(properties, PARQUET_BLOOM_FILTER_FPP, name)
        most_values = _values_of_bloom_filter(most, fpp)
        wanted = find_value(properties, PARQUET_BLOOM_FILTER_NDV, name)
        blooms[leaf_paths[name]] = {"ndv": min(wanted or most_values, most_values), "fpp": fpp}
    return blooms


def _values_of_bloom_filter(most_bytes: int, fpp: float) -> int:
    """The most values for which a filter takes at most ``most_bytes``; pyarrow rounds its size up to a power of two."""
    size = max(_SMALLEST_BLOOM_FILTER, 1 << most_bytes.bit_length() - 1)
    return max(1, int(-size * math.log(1 - fpp ** (1 / 8))))


def _columns_with(properties: Mapping[str, str], declared: Property) -> dict[str, Any]:
    """The typed values of a property that holds for one column each, by column name."""
    prefix = declared.name
    return {
        name[len(prefix) :]: declared.parse(string, name[len(prefix) :])
        for name, string in properties.items()
        if name.startswith(prefix)
    }
