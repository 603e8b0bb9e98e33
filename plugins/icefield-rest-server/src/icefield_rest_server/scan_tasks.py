"""Planned files as the protocol's JSON writes them, in columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield.errors import InvalidArgument
from icefield.expressions import BooleanExpression
from icefield.metadata import TableMetadata
from icefield.scan import PlannedManifest
from icefield.schema import Schema
from icefield.toolkit import distinct, filter_to_json, last_of_each_key, value_from_bytes, value_to_json
from icefield.types import IcebergType

from icefield_rest_server.json_columns import (
    Text,
    arrays,
    elements,
    joined,
    member,
    number_arrays,
    numbers,
    row_texts,
    strings,
    texts,
)

_CONTENTS: Final = pa.array(['"data"', '"position-deletes"', '"equality-deletes"'], pa.large_string())
_COUNTS: Final = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")
_BOUNDS: Final = ("lower_bounds", "upper_bounds")


class TaskWriter:
    """Writes the tasks of one plan. ``statistics``: the ids of fields with statistics in the answer."""

    def __init__(self, metadata: TableMetadata, schema: Schema, statistics: frozenset[int]) -> None:
        self._statistics = {number: schema.find_type(number) for number in statistics}
        self._partitions = {
            spec.spec_id: [field.field_type for field in spec.partition_type(schema, list(metadata.schemas)).fields]
            for spec in metadata.partition_specs
        }
        self._residuals: dict[int, tuple[BooleanExpression, str]] = {}

    def body(self, planned: Sequence[PlannedManifest]) -> dict[str, Any]:
        """Return the tasks, and each delete file once."""
        deletes = distinct(*[part.delete_numbers for part in planned]) if planned else np.zeros(0, np.int64)
        made = []
        for _, parts in groupby(planned, lambda part: (part.spec_id, part.files.schema)):
            made.append(elements(self._tasks(list(parts), deletes)))
        body = {"file-scan-tasks": _array(made)}
        if len(deletes):
            found = next(part for part in planned if len(part.delete_numbers)).delete_files(deletes)
            body["delete-files"] = _array([elements(self._delete_files(spec_id, files)) for spec_id, files in found])
        return body

    def _tasks(self, parts: list[PlannedManifest], deletes: np.ndarray[Any, Any]) -> Text:
        """Encode the tasks of manifests with one partition spec together, as a manifest may have few files."""
        files = _FileColumns([part.files for part in parts])
        return row_texts(
            '{"data-file":{',
            *self._file(parts[0].spec_id, files),
            member("first-row-id", numbers(files["first_row_id"])),
            *self._of_statistics(files),
            "}",
            _references(parts, deletes),
            joined([self._residual_texts(part) for part in parts]),
            "},",
        )

    def _delete_files(self, spec_id: int, batch: pa.RecordBatch) -> Text:
        files = _FileColumns([batch])
        return row_texts(
            "{",
            *self._file(spec_id, files),
            member("referenced-data-file", strings(files["referenced_data_file"])),
            member("content-offset", numbers(files["content_offset"])),
            member("content-size-in-bytes", numbers(files["content_size_in_bytes"])),
            member("equality-ids", number_arrays(files["equality_ids"])),
            "},",
        )

    def _file(self, spec_id: int, files: _FileColumns) -> list[Text | str]:
        """Encode the fields that data files and delete files share."""
        return [
            '"content":',
            _CONTENTS.take(files["content"]),
            ',"file-path":',
            strings(files["file_path"]),
            ',"file-format":',
            strings(files["file_format"]),
            f',"spec-id":{spec_id},"partition":[',
            *self._partition(spec_id, files),
            '],"file-size-in-bytes":',
            numbers(files["file_size_in_bytes"]),
            ',"record-count":',
            numbers(files["record_count"]),
            member("key-metadata", texts(files["key_metadata"], lambda key: key.hex().upper())),
            member("split-offsets", number_arrays(files["split_offsets"])),
            member("sort-order-id", numbers(files["sort_order_id"])),
        ]

    def _partition(self, spec_id: int, files: _FileColumns) -> list[Text | str]:
        parts: list[Text | str] = []
        for place, kind in enumerate(self._partitions[spec_id]):
            values = joined([batch.column("partition").field(place) for batch in files.batches])
            parts += [",", pc.fill_null(texts(values, partial(_value, kind)), "null")]
        return parts[1:]

    def _of_statistics(self, files: _FileColumns) -> list[Text | str]:
        if not self._statistics:
            return []
        return [
            *(part for name in _COUNTS for part in self._map(name, files, bounds=False)),
            *(part for name in _BOUNDS for part in self._map(name, files, bounds=True)),
        ]

    def _map(self, name: str, files: _FileColumns, *, bounds: bool) -> list[Text | str]:
        """Statistics of the wanted fields; invalid bounds, and bounds that JSON cannot hold, are not sent."""
        column = last_of_each_key(files[name])
        offsets = np.asarray(column.offsets)
        begin, end = offsets[[0, -1]].tolist()
        keys, items = np.asarray(column.keys)[begin:end], column.items[begin:end]
        rows = np.repeat(np.arange(len(column)), np.diff(offsets))
        kept, written = np.zeros(0, np.int64), pa.array([], pa.large_string())
        for number, kind in self._statistics.items():
            places = np.flatnonzero(keys == number)
            values = items.take(pa.array(places))
            found = texts(values, partial(_bound, kind)) if bounds else numbers(values)
            there = np.asarray(found.is_valid())
            kept, written = np.concatenate((kept, places[there])), joined([written, found.filter(pa.array(there))])
        order = np.argsort(rows[kept], kind="stable")
        counts = np.bincount(rows[kept], minlength=len(column))
        named = numbers(pa.array(keys[kept][order], pa.int32()))
        return [
            f',"{_dashed(name)}":{{"keys":',
            arrays(counts, named),
            ',"values":',
            arrays(counts, written.take(pa.array(order))),
            "}",
        ]

    def _residual_texts(self, part: PlannedManifest) -> Text:
        found = pa.array([self._residual(each) for each in part.residuals], pa.large_string())
        return found.take(pa.array(part.residual_groups))

    def _residual(self, residual: BooleanExpression) -> str:
        """Encode a residual; empty where JSON cannot hold it: clients then apply the whole filter."""
        known = self._residuals.get(id(residual))
        if known is None:  # kept with it, so that no other takes its id
            try:
                written = f',"residual-filter":{msgspec.json.encode(filter_to_json(residual)).decode()}'
            except InvalidArgument:
                written = ""
            known = self._residuals[id(residual)] = (residual, written)
        return known[1]


class _FileColumns:
    """Columns of files of several manifests together."""

    def __init__(self, batches: Sequence[pa.RecordBatch]) -> None:
        self.batches = batches

    def __getitem__(self, name: str) -> pa.Array:
        return joined([batch.column(name) for batch in self.batches])


def _references(parts: list[PlannedManifest], deletes: np.ndarray[Any, Any]) -> Text | str:
    """Encode the delete files of each task, as indexes into the delete files of the answer."""
    if not len(deletes):
        return ""
    counts = np.concatenate([np.diff(part.delete_offsets) for part in parts])
    places = np.searchsorted(deletes, np.concatenate([part.delete_numbers for part in parts]))
    written = arrays(counts, numbers(pa.array(places)))
    return member("delete-file-references", pc.if_else(pa.array(counts > 0), written, pa.scalar(None, written.type)))


def _array(parts: list[bytes]) -> msgspec.Raw:
    return msgspec.Raw(b"[" + b",".join(parts) + b"]")


def _value(kind: IcebergType, value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"  # as Java writes them
    return value_to_json(kind, value)


def _bound(kind: IcebergType, value: bytes) -> Any:
    try:
        return value_to_json(kind, value_from_bytes(kind, value))
    except InvalidArgument:
        return None


def _dashed(name: str) -> str:
    return name.replace("_", "-")
