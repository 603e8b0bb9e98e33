"""The writer options from table properties.

| property | effect |
|---|---|
| ``write.orc.stripe-size-bytes`` | a stripe ends when it holds about this many bytes |
| ``write.orc.compression-codec`` | zlib when not set; zstd, lz4, snappy, none |
| ``write.orc.compression-strategy`` | ``speed`` or ``compression`` |
| ``write.orc.bloom.filter.columns``, ``write.orc.bloom.filter.fpp`` | bloom filters of those columns |
| ``write.orc.vectorized.batch-size`` | rows that the encoder takes at once |

``write.orc.block-size-bytes`` speaks of the blocks of a distributed file system, into which this writer never pads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.metadata import get_float, get_int, get_str

from icefield_orc.properties import (
    ORC_BLOCK_SIZE,
    ORC_BLOOM_FILTER_COLUMNS,
    ORC_BLOOM_FILTER_FPP,
    ORC_COMPRESSION,
    ORC_COMPRESSION_STRATEGY,
    ORC_STRIPE_SIZE,
    ORC_VECTORIZED_BATCH_SIZE,
)

_CODECS = {
    "zlib": "zlib",
    "zstd": "zstd",
    "lz4": "lz4",
    "snappy": "snappy",
    "none": "uncompressed",
    "uncompressed": "uncompressed",
}
_DICTIONARY_THRESHOLD = 0.8
"""Strings are stored in a dictionary when no more than this share of them is distinct, as other writers do."""


def write_options(properties: Mapping[str, str], columns: Mapping[str, int]) -> dict[str, Any]:
    """The arguments of pyarrow's writer; ``columns`` gives, by a column's full name, its number in the file.

    Raises ``InvalidArgument`` or ``UnsupportedFeature``, naming the property.
    """
    get_int(properties, ORC_BLOCK_SIZE)
    return {
        "stripe_size": get_int(properties, ORC_STRIPE_SIZE),
        "compression": _codec(get_str(properties, ORC_COMPRESSION)),
        "compression_strategy": get_str(properties, ORC_COMPRESSION_STRATEGY).lower(),
        "batch_size": get_int(properties, ORC_VECTORIZED_BATCH_SIZE),
        "dictionary_key_size_threshold": _DICTIONARY_THRESHOLD,
        **_bloom_filters(properties, columns),
    }


def _codec(name: str) -> str:
    codec = _CODECS.get(name.lower())
    if codec is not None:
        return codec
    if name.lower() == "lzo":
        raise UnsupportedFeature(f"table property '{ORC_COMPRESSION.name}': lzo can be read, not written")
    known = ", ".join(sorted(_CODECS))
    raise InvalidArgument(f"table property '{ORC_COMPRESSION.name}': '{name}' is none of {known}")


def _bloom_filters(properties: Mapping[str, str], columns: Mapping[str, int]) -> dict[str, Any]:
    names = [name.strip() for name in get_str(properties, ORC_BLOOM_FILTER_COLUMNS).split(",")]
    wanted = [columns[name] for name in names if name in columns]
    if not wanted:
        return {}
    return {"bloom_filter_columns": wanted, "bloom_filter_fpp": get_float(properties, ORC_BLOOM_FILTER_FPP)}
