"""Parquet modular encryption with one key for the footer and all columns of a file.

pyarrow offers no keys of single columns without a key service of its own. Spec: "Parquet Modular Encryption".
"""

from __future__ import annotations

from typing import Any

import pyarrow.parquet.encryption as pe
from icefield.abc import FileKey
from icefield.errors import UnsupportedFeature


def decryption(key: FileKey | None) -> Any:
    """The properties for pyarrow's reader, for one reader alone; None for a plain file."""
    if key is None:
        return None
    return _direct("create_decryption_properties")(key.key, aad_prefix=key.aad_prefix or None)


def encryption(key: FileKey | None) -> Any:
    """The properties for pyarrow's writer: the AAD prefix stays out of the file, as with Java's library."""
    if key is None:
        return None
    return _direct("create_encryption_properties")(
        key.key, aad_prefix=key.aad_prefix or None, store_aad_prefix=not key.aad_prefix
    )


def _direct(name: str) -> Any:
    found = getattr(pe, name, None)
    if found is None:
        raise UnsupportedFeature(f"encrypted Parquet files need a later pyarrow, which has {name}")
    return found
