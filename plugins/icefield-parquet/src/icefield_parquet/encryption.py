"""Parquet modular encryption with one key for the footer and all columns of a file.

pyarrow offers no keys of single columns without a key service of its own. Spec: "Parquet Modular Encryption".
"""

from __future__ import annotations

from typing import Any

import pyarrow.parquet.encryption as pe
from icefield.abc import FileKey, InputFile
from icefield.errors import UnsupportedFeature

_MAGIC = b"PARE"
_DISTINCT = ("parquet-cpp-arrow ", "parquet-mr ")


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


def check_magic(source: InputFile) -> None:
    """Raise ``ValueError`` for a file with a key that does not begin as encrypted files do; pyarrow does not look."""
    if source.read_at(0, len(_MAGIC)) != _MAGIC:
        raise ValueError("the file does not begin as an encrypted Parquet file")


def has_encrypted_footer(source: InputFile) -> bool:
    """Whether a file that cannot be read ends as files with an encrypted footer do."""
    try:
        return source.read_at(max(0, source.size - len(_MAGIC)), len(_MAGIC)) == _MAGIC
    except (OSError, ValueError):
        return False


def has_distinct_dictionaries(footer: Any) -> bool:
    """Whether the writer of an authenticated file puts each value into a dictionary once.

    The sizes of dictionaries are in encrypted headers of pages, so that they cannot be compared with pyarrow's.
    """
    return str(footer.created_by).startswith(_DISTINCT)


def _direct(name: str) -> Any:
    found = getattr(pe, name, None)
    if found is None:
        raise UnsupportedFeature(f"encrypted Parquet files need a later pyarrow, which has {name}")
    return found
