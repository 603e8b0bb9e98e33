"""The footer of a Puffin file and its descriptions of blobs.

Spec: Puffin, "FileMetadata" and "BlobMetadata".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

import msgspec

from icefield.abc import InputFile
from icefield.base.limits import NameText, ValueText
from icefield.base.structs import decodable
from icefield.errors import InvalidFile
from icefield.metadata.entries import Long

MAGIC: Final = b"PFA1"

_Size = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class BlobType:
    """The blob types of the specification. Blobs of other types are kept unchanged."""

    DELETION_VECTOR: Final = "deletion-vector-v1"
    THETA_SKETCH: Final = "apache-datasketches-theta-v1"


REFERENCED_DATA_FILE: Final = "referenced-data-file"
"""The property of a deletion vector that names the data file it is of."""


@decodable
class Blob(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", omit_defaults=True):
    """One blob of a Puffin file: ``offset`` and ``length`` are bytes of the file, as stored.

    ``fields`` are the ids of the source columns. ``compression_codec`` is None for an uncompressed blob.
    """

    type: NameText
    fields: tuple[int, ...]
    snapshot_id: Long
    sequence_number: Long
    offset: _Size
    length: _Size
    compression_codec: NameText | None = None
    properties: dict[NameText, ValueText] | None = None

    @property
    def strings(self) -> Mapping[str, str]:
        """The properties; empty if the blob has none."""
        return self.properties or {}


@decodable
class FooterPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The payload of a footer."""

    blobs: tuple[Blob, ...]
    properties: dict[NameText, ValueText] | None = None


def encode_footer(blobs: Sequence[Blob], properties: Mapping[str, str]) -> bytes:
    """The JSON of a footer, without unset fields."""
    return msgspec.json.encode(FooterPayload(blobs=tuple(blobs), properties=dict(properties) or None))


def read_range(source: InputFile, offset: int, length: int, location: str) -> bytes:
    """Bytes of an open file. Raises ``InvalidFile`` where it has fewer."""
    data = source.read_at(offset, length)
    if len(data) != length:
        raise InvalidFile(f"{location} is damaged: it ends before the {length} bytes at {offset} do", location=location)
    return data
