"""Opening the files of a table, and checking their row counts against the manifest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Final

import pyarrow as pa

from icefield.abc import FormatAbility, FormatReader, InputFile, ReadRequest
from icefield.errors import InvalidFile, UnsupportedFeature
from icefield.manifest import DataFile
from icefield.storage import FileIO
from icefield.storage.encrypted_files import is_encrypted

# The magic bytes of files that are encrypted as the specification says.
_ENCRYPTED: Final = b"AGS1"


def open_file(io: FileIO, file: DataFile) -> AbstractContextManager[FormatReader]:
    """A reader of a data file or a delete file.

    Raises ``UnsupportedFeature`` for a file that another implementation has encrypted, and ``DecryptionFailed`` for a
    file that its key does not open.
    """
    file_format = io.file_format(file.file_format)
    native = FormatAbility.ENCRYPTS in file_format.abilities
    source = io.open_input(file.file_path, file.key_metadata, native=native)
    size = file.file_size_in_bytes
    if is_encrypted(file.key_metadata):
        size = size if native else source.size
    elif file.key_metadata is not None:
        _refuse_encrypted(file, source, file_format.magic)
    return file_format.open_reader(source, file.file_path, size=size)


def counted(file: DataFile, reader: FormatReader, request: ReadRequest) -> Iterator[pa.RecordBatch]:
    """The batches of a data file, with a check of its row count against the manifest.

    The format may state the count on opening; else the rows are counted. A split or a filtered read has at most as many
    rows as the whole file, and no position beyond its end.
    """
    known = reader.record_count
    if known is not None:
        _check_count(file, known)
        yield from reader.read(request)
        return
    rows = 0
    for batch in reader.read(request):
        rows += batch.num_rows
        seen = batch.column(batch.num_columns - 1)[-1].as_py() + 1 if request.positions and batch.num_rows else rows
        if 0 <= file.record_count < max(rows, seen):
            raise _contradiction(file, f"at least {max(rows, seen)}", rows - batch.num_rows)
        yield batch
    if request.split is None and request.row_filter is None and request.skipped_rows is None:
        _check_count(file, rows, rows)


def deleted_rows(io: FileIO, file: DataFile, reader: FormatReader, request: ReadRequest) -> Iterator[pa.RecordBatch]:
    """The rows of a delete file; all of them are valid, even if the manifest states another number.

    If the format does not state the row count, a file with another size than in the manifest may have lost rows. Raises
    ``InvalidFile`` in this case.
    """
    rows = 0
    for batch in reader.read(request):
        rows += batch.num_rows
        yield batch
    is_counted = reader.record_count is not None or request.row_filter is not None
    if is_counted or file.record_count < 0 or file.record_count == rows:
        return
    if io.stat(file.file_path).size != file.file_size_in_bytes:
        raise _contradiction(file, str(rows), rows)


def _refuse_encrypted(file: DataFile, source: InputFile, magic: bytes) -> None:
    """Raise ``UnsupportedFeature`` unless the file has plain magic bytes: Impala sets keys on plain files, too."""
    start = source.read(max(len(magic), len(_ENCRYPTED)))
    source.seek(0)
    if start.startswith(_ENCRYPTED) or not start.startswith(magic):
        source.close()
        raise UnsupportedFeature(
            f"{file.file_path} is encrypted, and cannot be decrypted here", location=file.file_path
        )


def _check_count(file: DataFile, rows: int, given: int = 0) -> None:
    # A negative count means unknown.
    if 0 <= file.record_count != rows:
        raise _contradiction(file, str(rows), given)


def _contradiction(file: DataFile, rows: str, given: int) -> InvalidFile:
    """The error for a wrong row count. ``given`` rows were already returned, if rows are counted while reading."""
    before = f"{given} of its rows were given out before this was seen" if given else "none of its rows is given out"
    return InvalidFile(
        f"{file.file_path} holds {rows} rows, and its manifest says {file.record_count}: the file is another, or "
        f"the manifest is wrong; {before}",
        location=file.file_path,
    )
