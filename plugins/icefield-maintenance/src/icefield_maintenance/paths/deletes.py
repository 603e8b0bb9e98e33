"""Rewriting delete files that name data files, for the copy of a table."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec
import pyarrow as pa
from icefield.abc import FormatAbility
from icefield.engine import position_delete_batches
from icefield.errors import UnsupportedFeature
from icefield.manifest import DataFile
from icefield.puffin import REFERENCED_DATA_FILE, Blob, PuffinWriter
from icefield.schema import Schema, schema_to_arrow
from icefield.storage import FileIO
from icefield.types import DELETE_FILE_PATH, DELETE_FILE_POS

from icefield_maintenance.paths.prefixes import Prefixes
from icefield_maintenance.puffin_reader import PuffinReader

_COLUMNS: Final = Schema(DELETE_FILE_PATH, DELETE_FILE_POS)
_ARROW: Final = schema_to_arrow(_COLUMNS)


class MovedFile(NamedTuple):
    """A written delete file: its size in bytes, and its key metadata if it is encrypted."""

    size: int
    key_metadata: bytes | None


def write_moved(io: FileIO, file: DataFile, location: str, prefixes: Prefixes, properties: dict[str, str]) -> MovedFile:
    """Write a position delete file, or a Puffin file of deletion vectors, to a location.

    Copies of deleted rows in a position delete file are left out, as nobody reads them.
    """
    if file.is_deletion_vector:
        return _vectors(io, file, location, prefixes)
    kind = io.file_format(file.file_format)
    made = io.create(location, native=FormatAbility.ENCRYPTS in kind.abilities)
    writer = kind.open_writer(made.sink, _COLUMNS, properties=properties)
    try:
        for paths, positions in position_delete_batches(io, file):
            spelt = paths.cast(pa.string())
            columns = [prefixes.moved_all(spelt, "data file"), pa.array(positions)]
            writer.write(pa.RecordBatch.from_arrays(columns, schema=_ARROW))
        return MovedFile(*made.stored(writer.close().size))
    except BaseException:
        writer.abort()
        raise


def _vectors(io: FileIO, file: DataFile, location: str, prefixes: Prefixes) -> MovedFile:
    """Copy the blobs unchanged, to the offsets in the manifests; the footer names the data files of the copy."""
    with PuffinReader(io.open_input(file.file_path, file.key_metadata), file.file_path) as reader:
        made = io.create(location)
        sink = made.sink
        with PuffinWriter(sink, reader.properties) as writer:
            for blob in sorted(reader.blobs, key=lambda each: each.offset):
                if blob.offset < sink.tell():
                    raise UnsupportedFeature(f"{file.file_path} has blobs that overlap", location=file.file_path)
                sink.write(bytes(blob.offset - sink.tell()))
                writer.add_stored(_moved(blob, prefixes), reader.read_stored(blob))
            return MovedFile(*made.stored(writer.close()))


def _moved(blob: Blob, prefixes: Prefixes) -> Blob:
    properties = dict(blob.properties or {})
    if REFERENCED_DATA_FILE in properties:
        properties[REFERENCED_DATA_FILE] = prefixes.moved(properties[REFERENCED_DATA_FILE], "data file")
    return msgspec.structs.replace(blob, properties=properties or None)
