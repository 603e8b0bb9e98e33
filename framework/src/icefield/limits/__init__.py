"""Limits: how large a thing that is read from a table may be. Sizes come before contents."""

from icefield.limits.sizes import (
    FREE_DECODING,
    FREE_INFLATION,
    MAX_CONFIGURATION_BYTES,
    MAX_DECODED_MANIFEST_BYTES,
    MAX_DELETED_POSITIONS,
    MAX_INFLATION,
    MAX_LOCATION_LENGTH,
    MAX_MANIFEST_BYTES,
    MAX_METADATA_BYTES,
    MAX_NAME_LENGTH,
    MAX_PUFFIN_BLOB_BYTES,
    MAX_PUFFIN_FOOTER_BYTES,
    MAX_VALUE_LENGTH,
    LocationText,
    NameText,
    ValueText,
)

__all__ = [
    "FREE_DECODING",
    "FREE_INFLATION",
    "MAX_CONFIGURATION_BYTES",
    "MAX_DECODED_MANIFEST_BYTES",
    "MAX_DELETED_POSITIONS",
    "MAX_INFLATION",
    "MAX_LOCATION_LENGTH",
    "MAX_MANIFEST_BYTES",
    "MAX_METADATA_BYTES",
    "MAX_NAME_LENGTH",
    "MAX_PUFFIN_BLOB_BYTES",
    "MAX_PUFFIN_FOOTER_BYTES",
    "MAX_VALUE_LENGTH",
    "LocationText",
    "NameText",
    "ValueText",
]
