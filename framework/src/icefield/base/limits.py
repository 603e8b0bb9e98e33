"""How large a thing that is read from a table may be. Nothing of a table is trusted: sizes come first.

Each limit is far beyond what real tables reach; what exceeds one is refused with an error that names the file, the
field and the limit. They are constants and no properties: a table that was made to exhaust a reader must not be able to
raise them, and no other table meets them. See ``docs/decisions/0028-limits.md``.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

MAX_METADATA_BYTES: Final = 512 * 1024 * 1024
"""Of a metadata file, in bytes, before and after inflating."""

MAX_INFLATION: Final = 256
"""How many times its packed size a gzipped metadata file may hold, beyond ``FREE_INFLATION`` bytes: JSON of nothing
but unlike snapshots is packed to a twentieth at best, and a bomb to a thousandth."""

FREE_INFLATION: Final = 16 * 1024 * 1024

MAX_MANIFEST_BYTES: Final = 1024 * 1024 * 1024
"""Of a manifest, and of a manifest list: writers aim at 8 MiB."""

MAX_DECODED_MANIFEST_BYTES: Final = 4 * 1024 * 1024 * 1024
"""Of the columns that are read of a manifest, or of a manifest list, once decoded."""

FREE_DECODING: Final = 256 * 1024 * 1024
"""How large those columns may be whatever the size of the file; beyond, ``MAX_INFLATION`` times its size."""

MAX_PUFFIN_FOOTER_BYTES: Final = 64 * 1024 * 1024
"""Of the footer of a Puffin file, before and after inflating."""

MAX_PUFFIN_BLOB_BYTES: Final = 1024 * 1024 * 1024
"""Of a blob of a Puffin file, before and after inflating: a deletion vector of a billion rows has 125 MB at most."""

MAX_DELETED_POSITIONS: Final = 1 << 29
"""Of the deleted rows of one data file: a few bytes of a deletion vector can name millions."""

MAX_CONFIGURATION_BYTES: Final = 4 * 1024 * 1024
"""Of ``icefield.toml``."""

MAX_LOCATION_LENGTH: Final = 32_768
"""Of a location, in bytes of UTF-8 where it is in a manifest, else in characters. Stores allow a few thousand."""

MAX_NAME_LENGTH: Final = 65_536
"""Of a name, in characters: of a field, a property, a branch or a tag, a key of a snapshot's summary."""

MAX_VALUE_LENGTH: Final = 64 * 1024 * 1024
"""Of a property's value and of a value in a snapshot's summary, in characters: a name mapping may be long."""

MAX_NAMESPACE_VALUE_LENGTH: Final = 1024 * 1024
"""Of a property's value of a namespace, in characters: catalogs keep a few thousand."""

MAX_LISTED_NAMES: Final = 1_000_000
"""Of the tables of a namespace, or of the namespaces of a catalog, that are listed."""

MAX_LISTED_CHARACTERS: Final = 64 * 1024 * 1024
"""Of all names of a listing together."""

LocationText = Annotated[str, msgspec.Meta(max_length=MAX_LOCATION_LENGTH)]
NameText = Annotated[str, msgspec.Meta(max_length=MAX_NAME_LENGTH)]
ValueText = Annotated[str, msgspec.Meta(max_length=MAX_VALUE_LENGTH)]
