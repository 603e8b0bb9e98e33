"""Encrypted tables, which this version cannot write. See "Encryption Keys" of the table specification."""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from icefield.errors import UnsupportedFeature
from icefield.metadata.properties import ENCRYPTION_KEY_ID
from icefield.metadata.table_metadata import TableMetadata

_KEY_ID: Final = attrgetter("key_id")


def refuse_plain_files(metadata: TableMetadata) -> None:
    """Raise ``UnsupportedFeature`` for a table that is encrypted: data and manifests would be written in plain."""
    if ENCRYPTION_KEY_ID.name in metadata.properties:
        why = f"its property '{ENCRYPTION_KEY_ID.name}' is set"
    elif len(metadata.encryption_keys):
        why = "its metadata holds encryption keys"
    elif not {None}.issuperset(map(_KEY_ID, metadata.snapshots.records)):
        why = "a snapshot of it names an encryption key"
    else:
        return
    raise UnsupportedFeature(
        f"table {metadata.location} is encrypted ({why}), and this version would write data and manifests in plain; "
        "change its rows with an engine that encrypts them",
        location=metadata.location,
    )
