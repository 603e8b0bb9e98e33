"""Writing manifest lists: spliced from the previous list if possible, newly encoded otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icefield.abc import OutputStream
from icefield.errors import InvalidArgument, UnsupportedFeature, ValidationFailed
from icefield.manifest.data_file import COUNTS, counts_by_status
from icefield.manifest.manifest_file import UNASSIGNED, ManifestContent, ManifestFile
from icefield.manifest.manifest_list import (
    CONTENT,
    FIRST_ROW_ID,
    ManifestList,
    manifest_columns,
    remember_manifest_list,
)
from icefield.manifest.reader import read_manifest
from icefield.manifest.schemas import MANIFEST_FILE_FIELDS, RECORD_COUNT, STATUS, manifest_list_schema
from icefield.schema import schema_to_arrow
from icefield.storage import FileIO
from icefield.types import StructType

_AVRO: Final = {"avro.record-name": "manifest_file"}
_IDS: Final[Mapping[str, int]] = {rule.name: rule.field_id for rule in MANIFEST_FILE_FIELDS}


def write_manifest_list(
    io: FileIO,
    location: str,
    manifests: Sequence[ManifestFile],
    *,
    format_version: int,
    snapshot_id: int,
    parent_snapshot_id: int | None,
    sequence_number: int = 0,
    first_row_id: int | None = None,
    base: ManifestList | None = None,
    properties: Mapping[str, str] | None = None,
) -> tuple[ManifestList, int | None]:
    """Write the list of a snapshot: all manifests of ``base`` unchanged, and ``manifests`` after them.

    Manifests without a sequence number get ``sequence_number``. The blocks of ``base`` are copied without decoding if
    its file has this version's schema. From version 3 on, data manifests without a first row id get one, counted from
    ``first_row_id``. Returns the list, and the row id after the last assigned one (None before v3).
    Raises ``UnsupportedFeature`` for a manifest of deletes in version 1, ``InvalidMetadata`` for a manifest of
    another snapshot that has no sequence number, ``InvalidArgument`` for a missing ``first_row_id``.
    """
    new = [manifest.assigned(snapshot_id, sequence_number) for manifest in manifests]
    if format_version == 1 and any(manifest.content is not ManifestContent.DATA for manifest in new):
        raise UnsupportedFeature("format version 1 has no row-level deletes, and so no manifest of them")
    if io.key_length is not None and any(m.sequence_number == UNASSIGNED and not m.key_metadata for m in manifests):
        raise ValidationFailed("the table is encrypted since its change was begun: refresh it, and begin again")
    kept: list[ManifestFile] = []
    if base is not None and not _can_splice(base, format_version):
        kept, base = list(base.manifests), None
    if format_version > 1:
        kept = [counted(io, manifest) for manifest in kept]
    next_row_id: int | None = None
    if format_version >= 3:
        if first_row_id is None:
            raise InvalidArgument("a manifest list of format version 3 needs the snapshot's first row id")
        numbered, next_row_id = assign_row_ids([*kept, *new], first_row_id)
        kept, new = [], numbered
    metadata = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null" if parent_snapshot_id is None else str(parent_snapshot_id),
        "sequence-number": str(sequence_number),
        "format-version": str(format_version),
    }
    if format_version == 1:
        del metadata["sequence-number"]
    if format_version >= 3:
        metadata["first-row-id"] = str(first_row_id)
    data = _encode(io, [*kept, *new], format_version, base, metadata, properties)
    file = io.create(location)
    with file.sink as sink:
        sink.write(data)
    written = ManifestList(location, raw=data, file_format=io.manifest_format())
    written.key = file.key and replace(file.key, length=file.stored(len(data))[0])
    if base is None or base.has_objects:
        # The next commit needs the manifests. Kept here, they save it from decoding the list that was just written.
        written.know([*(() if base is None else base.manifests), *kept, *new])
    remember_manifest_list(io, written)
    return written, next_row_id


def assign_row_ids(manifests: Sequence[ManifestFile], first_row_id: int) -> tuple[list[ManifestFile], int]:
    """The manifests with first row ids, and the next free one.

    Spec: "First Row ID Assignment". A data manifest with a first row id keeps it; each other data manifest gets room
    for all its added and existing rows. Delete manifests have no row ids. Raises ``InvalidArgument`` for an unknown
    count.
    """
    numbered, following = [], first_row_id
    for manifest in manifests:
        if manifest.content is ManifestContent.DATA and manifest.first_row_id is None:
            rows = manifest.live_rows_count
            if rows is None:
                raise InvalidArgument(
                    f"manifest {manifest.manifest_path} does not state its rows, so that no row ids can be given out",
                    location=manifest.manifest_path,
                )
            manifest = replace(manifest, first_row_id=following)
            following += max(0, rows)
        numbered.append(manifest)
    return numbered, following


def _can_splice(base: ManifestList, format_version: int) -> bool:
    if base.raw is None:
        return False
    if format_version < 3:
        return True
    if base.has_objects:
        return all(m.first_row_id is not None or m.content is not ManifestContent.DATA for m in base.manifests)
    data = base.integers(CONTENT) == ManifestContent.DATA
    return not bool((np.asarray(base.columns[FIRST_ROW_ID].is_null()) & data).any())


def _encode(
    io: FileIO,
    manifests: list[ManifestFile],
    format_version: int,
    base: ManifestList | None,
    metadata: dict[str, str],
    properties: Mapping[str, str] | None,
) -> bytes:
    file_format = io.manifest_format()
    schema = manifest_list_schema(format_version)
    if base is not None and base.raw is not None:
        spliced = file_format.append_blocks(base.raw, schema, _batch(manifests, format_version), metadata)
        if spliced is not None:
            return spliced
        manifests = [*(counted(io, manifest) for manifest in base.manifests), *manifests]
    sink = _MemoryStream()
    writer = file_format.open_writer(sink, schema, properties={**_AVRO, **(properties or {})}, metadata=metadata)
    writer.write(_batch(manifests, format_version))
    writer.close()
    return sink.getvalue()


def _batch(manifests: list[ManifestFile], format_version: int) -> pa.RecordBatch:
    arrow = schema_to_arrow(manifest_list_schema(format_version))
    columns = manifest_columns(manifests)
    return pa.RecordBatch.from_arrays([columns[_IDS[field.name]].cast(field.type) for field in arrow], schema=arrow)


def counted(io: FileIO, manifest: ManifestFile) -> ManifestFile:
    """The manifest with every count; a count that an old list left out is taken from the entries of the manifest."""
    if all(getattr(manifest, name) is not None for name in COUNTS):
        return manifest
    entries = read_manifest(io, manifest, StructType(), columns=(STATUS, RECORD_COUNT))
    return replace(manifest, **counts_by_status(entries.status(), np.asarray(entries.column(RECORD_COUNT))))


class _MemoryStream(OutputStream):
    """A stream into memory: a list is published in one write."""

    closed = False

    def __init__(self) -> None:
        self._data = bytearray()

    def write(self, data: Any, /) -> int:
        self._data += data
        return len(data)

    def tell(self) -> int:
        return len(self._data)

    def close(self) -> None:
        self.closed = True

    abort = close

    def getvalue(self) -> bytes:
        return bytes(self._data)
