"""Checks of delete files: each is readable, matches its entry, and deletes only existing rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
from icefield.abc import Metrics
from icefield.engine import EqualityDeletes, named_positions, read_vector, stored_position_deletes, with_dropped
from icefield.errors import IcefieldError, UnsupportedFeature
from icefield.manifest import DataFile, DataFileContent
from icefield.puffin import REFERENCED_DATA_FILE, BlobType, Positions
from icefield.scan import TableScan
from icefield.schema import Schema, schema_to_arrow
from icefield.toolkit import MetricsCollector
from icefield.types import DELETE_FILE_PATH, DELETE_FILE_POS, NestedField

from icefield_maintenance.doctor.tables import rules
from icefield_maintenance.doctor.tables.ledger import Ledger
from icefield_maintenance.doctor.tables.row_counts import RowCounts
from icefield_maintenance.doctor.tables.stated_bounds import wrong_bound, wrong_count
from icefield_maintenance.doctor.tables.subject import Subject
from icefield_maintenance.puffin_reader import PuffinReader

RULES: Final = (
    rules.VECTORS_DAMAGED,
    rules.DELETES_DAMAGED,
    rules.DELETE_POSITIONS,
    rules.DELETE_REFERENCES,
    rules.DELETE_METRICS,
)
_HELD_BYTES: Final = 32 << 20
"""The most bytes of keys of an equality delete file in memory."""
_POSITIONS: Final = Schema(DELETE_FILE_PATH, DELETE_FILE_POS)

Footers = dict[str, Mapping[tuple[int | None, int | None], str]]
"""By the path of a Puffin file: the data file of each vector in it, by the vector's offset and length."""


def look_at_deletes(subject: Subject, file: DataFile, rows: RowCounts, footers: Footers, ledger: Ledger) -> None:
    """Read a delete file of any kind from end to end; ``rows`` are the row counts of the live data files.

    ``footers`` caches the footers that are read: a Puffin file mostly has many vectors, and one footer.
    """
    rule = rules.VECTORS_DAMAGED if file.is_deletion_vector else rules.DELETES_DAMAGED
    ledger.look_at(rule)
    try:
        if file.is_deletion_vector:
            _read_vector(subject, file, rows)
            ledger.look_at(rules.DELETE_REFERENCES)
            _look_at_blob(subject, file, footers, ledger)
        elif file.content is DataFileContent.EQUALITY_DELETES:
            _look_at_keys(subject, file, ledger)
        else:
            _look_at_positions(subject, file, rows, ledger)
    except IcefieldError as error:
        ledger.breach(rule, file.file_path, str(error))


def _read_vector(subject: Subject, vector: DataFile, rows: RowCounts) -> None:
    """Check that a vector decodes, deletes as many rows as its entry states, and none beyond the end of its file."""
    path = vector.referenced_data_file or ""
    of = DataFile(file_path=path, file_format="", record_count=int(rows.find([path])[0]), file_size_in_bytes=0)
    read_vector(subject.io, vector, of)


def _look_at_blob(subject: Subject, vector: DataFile, footers: Footers, ledger: Ledger) -> None:
    """Check that the Puffin file and the manifest entry name the same data file for a vector."""
    if vector.file_path not in footers:
        footers[vector.file_path] = {}  # an error in a footer is reported once
        footers[vector.file_path] = _read_footer(subject, vector)
    named = footers[vector.file_path].get((vector.content_offset, vector.content_size_in_bytes))
    stated = vector.referenced_data_file
    if named is not None and stated and named != stated:
        found = f"the vector at {vector.content_offset} is of {named}, and its manifest says {stated}"
        ledger.breach(rules.DELETE_REFERENCES, vector.file_path, found)


def _read_footer(subject: Subject, vector: DataFile) -> Mapping[tuple[int | None, int | None], str]:
    try:
        path = vector.file_path
        with PuffinReader(subject.io.open_input(path, vector.key_metadata), path) as reader:
            vectors = [blob for blob in reader.blobs if blob.type == BlobType.DELETION_VECTOR]
    except UnsupportedFeature:
        return {}  # an unsupported footer is no breach
    return {
        (blob.offset, blob.length): blob.strings[REFERENCED_DATA_FILE]
        for blob in vectors
        if REFERENCED_DATA_FILE in blob.strings
    }


def _look_at_keys(subject: Subject, file: DataFile, ledger: Ledger) -> None:
    """Check that the file has its key columns, and that its keys match the count and metrics in its entry."""
    ids = tuple(sorted(set(file.equality_ids or ())))
    context = TableScan(metadata=subject.metadata, io=subject.io, identifier=()).context
    if not ids or any(number not in context.schema.field_ids and number not in context.dropped for number in ids):
        return  # another check reports the wrong entry
    schema = with_dropped(context.schema, context.dropped, ids)
    flat = Schema(*(NestedField(number, str(number), schema.find_type(number)) for number in ids))
    collector: MetricsCollector | None = None
    count = 0
    for keys in EqualityDeletes(subject.io, schema, ids, context.name_mapping, _HELD_BYTES).passes([file]):
        for held, _ in keys.sets:
            count += len(held)
            fields = zip(schema_to_arrow(flat), held.columns, strict=True)
            arrow = pa.schema([field.with_type(column.type) for field, column in fields])
            collector = collector or MetricsCollector(arrow)
            collector.update(pa.RecordBatch.from_arrays(held.columns, schema=arrow))
    _look_at_count(file, count, ledger)
    if collector is not None:
        _look_at_metrics(file, collector.metrics(), flat, {n: schema.find_column_name(n) or "" for n in ids}, ledger)


def _look_at_metrics(file: DataFile, held: Metrics, schema: Schema, names: Mapping[int, str], ledger: Ledger) -> None:
    """Check bounds and null counts of the columns by which readers match a delete file to data files."""
    ledger.look_at(rules.DELETE_METRICS)
    for number, name in names.items():
        kind = schema.find_type(number)
        said = []
        for stated, found, upper in (
            (file.lower_bounds, held.lower_bounds, False),
            (file.upper_bounds, held.upper_bounds, True),
        ):
            if number in stated:
                said.append(wrong_bound(name, kind, stated[number], found.get(number), upper=upper))
        if number in file.null_value_counts and number in held.null_value_counts:
            counts = held.null_value_counts[number], file.null_value_counts[number]
            said.append(wrong_count(name, "nulls", *counts))
        for each in filter(None, said):
            ledger.breach(rules.DELETE_METRICS, file.file_path, each)


def _look_at_positions(subject: Subject, file: DataFile, rows: RowCounts, ledger: Ledger) -> None:
    """Check that each position is a row of its data file, and that this is the data file that the entry names.

    Reading refuses missing or negative positions.
    """
    beyond, example, strays, stray = 0, "", 0, ""
    count = nameless = 0
    held, stated = _Extremes(), file.referenced_data_file
    for stored in stored_position_deletes(subject.io, file):
        count += len(stored[0])
        nameless += stored[0].null_count
        paths, positions = named_positions(file, *stored)
        if not len(positions):
            continue
        encoded: Any = paths if hasattr(paths, "dictionary") else paths.dictionary_encode()
        names = encoded.dictionary.to_pylist()
        indices = encoded.indices.to_numpy()
        limit = rows.find(names)[indices]
        places = np.flatnonzero((limit >= 0) & (positions >= limit))
        beyond += len(places)
        if len(places) and not example:
            first = int(places[0])
            example = f"row {positions[first]} of {encoded[first].as_py()}, which has {limit[first]:,} rows"
        counts = np.bincount(indices, minlength=len(names)).tolist()
        used = {name: count for name, count in zip(names, counts, strict=True) if count}
        others = {name: count for name, count in used.items() if stated and name != stated}
        strays += sum(others.values())
        stray = stray or next(iter(others), "")
        held.widen(used, positions)
    if nameless:
        ledger.look_at(rules.DELETE_POSITIONS)
        ledger.breach(rules.DELETE_POSITIONS, file.file_path, f"{nameless:,} positions name no data file")
    if beyond:
        ledger.look_at(rules.DELETE_POSITIONS)
        ledger.breach(rules.DELETE_POSITIONS, file.file_path, f"{beyond:,} positions are of no row: {example}")
    ledger.look_at(rules.DELETE_REFERENCES)
    if strays:
        found = f"{strays:,} positions are of another file than {stated}, which its manifest names: of {stray}"
        ledger.breach(rules.DELETE_REFERENCES, file.file_path, found)
    names_of = {field.field_id: field.name for field in _POSITIONS.fields}
    _look_at_metrics(file, held.metrics, _POSITIONS, names_of, ledger)
    _look_at_count(file, count, ledger)


def _look_at_count(file: DataFile, rows: int, ledger: Ledger) -> None:
    """Check that a delete file holds as many rows as its entry states. Readers use the rows in the file."""
    ledger.look_at(rules.DELETE_METRICS)
    if 0 <= file.record_count != rows:
        said = f"it holds {rows:,} rows, and its manifest says {file.record_count:,}"
        ledger.breach(rules.DELETE_METRICS, file.file_path, said)


class _Extremes:
    """The least and the greatest path and position of a position delete file."""

    def __init__(self) -> None:
        self.metrics = Metrics(0)

    def widen(self, paths: Collection[str], positions: Positions) -> None:
        """Widen the extremes by a batch with at least one row."""
        low, high = self.metrics.lower_bounds, self.metrics.upper_bounds
        ends = ((min(paths), max(paths)), (int(positions.min()), int(positions.max())))
        for field, (least, greatest) in zip(_POSITIONS.fields, ends, strict=True):
            low[field.field_id] = min(low.get(field.field_id, least), least)
            high[field.field_id] = max(high.get(field.field_id, greatest), greatest)
