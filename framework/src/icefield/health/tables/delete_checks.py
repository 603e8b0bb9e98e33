"""What is looked at in delete files: that each can be read, and deletes as many rows as its entry says, that may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from icefield.errors import IcefieldError
from icefield.health.tables import rules
from icefield.health.tables.ledger import Ledger
from icefield.health.tables.subject import Subject
from icefield.manifest import DataFile, DataFileContent
from icefield.scan import TableScan
from icefield.scan.deletes.equality import EqualityDeletes
from icefield.scan.deletes.key_columns import with_dropped
from icefield.scan.deletes.positions import position_delete_batches, read_vector

RULES: Final = (rules.VECTORS_DAMAGED, rules.DELETES_DAMAGED, rules.DELETE_POSITIONS)
_HELD_BYTES: Final = 32 << 20
"""Of the keys of an equality delete file, at a time."""


def look_at_deletes(subject: Subject, file: DataFile, rows: Mapping[str, int], ledger: Ledger) -> None:
    """Read a delete file of any kind from end to end; ``rows`` are the row counts of the live data files, by path."""
    rule = rules.VECTORS_DAMAGED if file.is_deletion_vector else rules.DELETES_DAMAGED
    ledger.look_at(rule)
    try:
        if file.is_deletion_vector:
            _read_vector(subject, file, rows)
        elif file.content is DataFileContent.EQUALITY_DELETES:
            _read_keys(subject, file)
        else:
            _look_at_positions(subject, file, rows, ledger)
    except IcefieldError as error:
        ledger.breach(rule, file.file_path, str(error))


def _read_vector(subject: Subject, vector: DataFile, rows: Mapping[str, int]) -> None:
    """Whether a vector decodes, deletes as many rows as its entry says, and none behind the end of its file."""
    path = vector.referenced_data_file or ""
    of = DataFile(file_path=path, file_format="", record_count=rows.get(path, -1), file_size_in_bytes=0)
    read_vector(subject.io, vector, of)


def _read_keys(subject: Subject, file: DataFile) -> None:
    """Whether the file has the columns that it finds rows by, and as many keys as its entry says."""
    ids = tuple(sorted(set(file.equality_ids or ())))
    context = TableScan(metadata=subject.metadata, io=subject.io, identifier=()).context
    if not ids or any(number not in context.schema.field_ids and number not in context.dropped for number in ids):
        return  # what is wrong with its entry is said of it
    schema = with_dropped(context.schema, context.dropped, ids)
    for _ in EqualityDeletes(subject.io, schema, ids, context.name_mapping, _HELD_BYTES).passes([file]):
        pass


def _look_at_positions(subject: Subject, file: DataFile, rows: Mapping[str, int], ledger: Ledger) -> None:
    """Whether each position is one of a row. Reading refuses those that are missing or negative, and another count."""
    beyond, example = 0, ""
    for paths, positions in position_delete_batches(subject.io, file):
        encoded: Any = paths if hasattr(paths, "dictionary") else paths.dictionary_encode()
        names = encoded.dictionary.to_pylist()
        limits = np.fromiter((rows.get(name, -1) for name in names), np.int64, len(names))
        limit = limits[encoded.indices.to_numpy()]
        places = np.flatnonzero((limit >= 0) & (positions >= limit))
        beyond += len(places)
        if len(places) and not example:
            first = int(places[0])
            example = f"row {positions[first]} of {encoded[first].as_py()}, which has {limit[first]:,} rows"
    if beyond:
        ledger.look_at(rules.DELETE_POSITIONS)
        ledger.breach(rules.DELETE_POSITIONS, file.file_path, f"{beyond:,} positions are of no row: {example}")
