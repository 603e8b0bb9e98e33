"""Maximum sizes of files and values that are read from a table, because tables are not trusted.

Each limit is far beyond the size of real tables. A larger file or value raises an error that names the file, the field
and the limit. The limits are constants, not properties: a table that is made to exhaust a reader must not raise them.
See ``docs/decisions/0028-limits.md``.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

MAX_METADATA_BYTES: Final = 512 * 1024 * 1024
"""The size of a metadata file in bytes, before and after decompression."""

MAX_INFLATION: Final = 256
"""The maximum compression ratio of a gzipped metadata file beyond ``FREE_INFLATION`` bytes.

Real metadata compresses by a factor of 20 at most, a decompression bomb by 1000.
"""

FREE_INFLATION: Final = 16 * 1024 * 1024

MAX_MANIFEST_BYTES: Final = 1024 * 1024 * 1024
"""The size of a manifest or of a manifest list in bytes; writers aim at 8 MiB."""

MAX_DECODED_MANIFEST_BYTES: Final = 4 * 1024 * 1024 * 1024
"""The size of the decoded columns of a manifest or of a manifest list, in bytes."""

FREE_DECODING: Final = 256 * 1024 * 1024
"""The size that these columns may always have; beyond it, at most ``MAX_INFLATION`` times the size of the file."""

MAX_PUFFIN_FOOTER_BYTES: Final = 64 * 1024 * 1024
"""The size of the footer of a Puffin file in bytes, before and after decompression."""

MAX_PUFFIN_BLOB_BYTES: Final = 1024 * 1024 * 1024
"""The size of a Puffin blob in bytes, before and after decompression.

A deletion vector of a billion rows has at most 125 MB.
"""

MAX_DELETED_POSITIONS: Final = 1 << 29
"""The number of deleted rows of one data file: a few bytes of a deletion vector can name millions."""

MAX_CONFIGURATION_BYTES: Final = 4 * 1024 * 1024
"""The size of ``icefield.toml`` in bytes."""

MAX_LOCATION_LENGTH: Final = 32_768
"""The length of a location: UTF-8 bytes in manifests, else characters. Stores allow a few thousand."""

MAX_NAME_LENGTH: Final = 65_536
"""The length in characters of a name: a field, a property, a branch or tag, or a key of a snapshot summary."""

MAX_VALUE_LENGTH: Final = 64 * 1024 * 1024
"""The length in characters of a property value or snapshot summary value: a name mapping may be long."""

MAX_NAMESPACE_VALUE_LENGTH: Final = 1024 * 1024
"""The length in characters of a namespace property value: catalogs keep a few thousand."""

MAX_LISTED_NAMES: Final = 1_000_000
"""The number of listed tables of a namespace, or of listed namespaces of a catalog."""

MAX_LISTED_CHARACTERS: Final = 64 * 1024 * 1024
"""The total length in characters of all names of a listing."""

LocationText = Annotated[str, msgspec.Meta(max_length=MAX_LOCATION_LENGTH)]
NameText = Annotated[str, msgspec.Meta(max_length=MAX_NAME_LENGTH)]
ValueText = Annotated[str, msgspec.Meta(max_length=MAX_VALUE_LENGTH)]
