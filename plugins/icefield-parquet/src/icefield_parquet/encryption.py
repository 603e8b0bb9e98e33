"""Parquet modular encryption with one key for the footer and all columns of a file.

pyarrow offers no keys of single columns without a key service of its own, and ends the process (26.0: a C++ exception
that nobody catches) when the metadata of a column with such a key is accessed. Spec: "Parquet Modular Encryption".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet.encryption as pe
from icefield.abc import FileKey, InputFile
from icefield.errors import UnsupportedFeature

from icefield_parquet.thrift import Fields, read_list, read_struct

_MAGIC = b"PARE"
_DISTINCT = ("parquet-cpp-arrow ", "parquet-mr ")

_ROW_GROUPS, _COLUMNS, _CRYPTO_METADATA, _COLUMN_KEY = 4, 1, 8, 2
"""Fields: of a footer, a row group, a column chunk, and of the union that says how the chunk is encrypted."""

_KEYED_COLUMN: Final = b"\x2c\x19"
"""Bytes in the footer of every file with a column key: the field of the union, and the list of names in it."""


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


def check_column_keys(footer: Any, location: str) -> None:
    """Raise ``UnsupportedFeature`` for columns with keys of their own, and ``ValueError`` for a damaged footer."""
    sink = pa.BufferOutputStream()
    footer.write_metadata_file(sink)
    data = sink.getvalue().to_pybytes()[len(_MAGIC) :]
    if _KEYED_COLUMN not in data:
        return
    for group in _structs(read_struct(data, 0)[0], _ROW_GROUPS):
        for chunk in _structs(group, _COLUMNS):
            if _CRYPTO_METADATA in chunk and _COLUMN_KEY in read_struct(chunk[_CRYPTO_METADATA][1], 0)[0]:
                raise UnsupportedFeature(
                    f"{location} has columns with keys of their own, which pyarrow cannot read: write it with one key",
                    location=location,
                )


def _structs(fields: Fields, number: int) -> Iterator[Fields]:
    data = fields[number][1] if number in fields else b"\0"
    _, count, at = read_list(data, 0)
    for _ in range(count):
        found, at = read_struct(data, at)
        yield found


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
