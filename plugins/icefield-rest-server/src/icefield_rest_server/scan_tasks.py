"""Planned files as the protocol's JSON writes them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from icefield.errors import InvalidArgument
from icefield.metadata import TableMetadata
from icefield.scan import FileScanTask
from icefield.schema import Schema
from icefield.toolkit import value_from_bytes, value_to_json
from icefield.types import IcebergType
from icefield.writing import DataFile

from icefield_rest_server.filters import filter_to_json

_CONTENTS: Final = ("data", "position-deletes", "equality-deletes")
_COUNTS: Final = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")
_BOUNDS: Final = ("lower_bounds", "upper_bounds")
_MORE: Final = ("split_offsets", "sort_order_id", "first_row_id")
_OF_DELETES: Final = ("referenced_data_file", "content_offset", "content_size_in_bytes", "equality_ids")


class TaskWriter:
    """Writes the tasks of one plan. ``statistics``: the fields whose statistics are sent along."""

    def __init__(self, metadata: TableMetadata, schema: Schema, statistics: frozenset[int]) -> None:
        self._schema = schema
        self._statistics = {number: schema.find_type(number) for number in statistics}
        self._partitions = {
            spec.spec_id: [field.field_type for field in spec.partition_type(schema, list(metadata.schemas)).fields]
            for spec in metadata.partition_specs
        }

    def body(self, tasks: Iterable[FileScanTask]) -> dict[str, Any]:
        """Tasks, and each of their delete files once."""
        places: dict[tuple[str, int | None], int] = {}
        deletes: list[dict[str, Any]] = []
        residuals: dict[int, tuple[Any, dict[str, Any]]] = {}
        made = []
        for task in tasks:
            written: dict[str, Any] = {"data-file": self._data_file(task.file)}
            references = []
            for file in task.delete_files:
                key = (file.file_path, file.content_offset)
                if key not in places:
                    places[key] = len(deletes)
                    deletes.append(self._delete_file(file))
                references.append(places[key])
            if references:
                written["delete-file-references"] = references
            residual = task.residual
            known = residuals.get(id(residual))
            if known is None:  # kept with it, so that no other takes its id
                known = residuals[id(residual)] = (residual, _residual(task))
            made.append(written | known[1])
        return {"file-scan-tasks": made, **({"delete-files": deletes} if deletes else {})}

    def _file(self, file: DataFile) -> dict[str, Any]:
        kinds = self._partitions[file.spec_id]
        written = {
            "content": _CONTENTS[file.content],
            "file-path": file.file_path,
            "file-format": file.file_format,
            "spec-id": file.spec_id,
            "partition": [_value(kind, value) for kind, value in zip(kinds, file.partition, strict=True)],
            "file-size-in-bytes": file.file_size_in_bytes,
            "record-count": file.record_count,
        }
        if file.key_metadata is not None:
            written["key-metadata"] = file.key_metadata.hex().upper()
        return written

    def _data_file(self, file: DataFile) -> dict[str, Any]:
        written = self._file(file) | _given(file, _MORE)
        if self._statistics:
            for name in _COUNTS:
                written[_dashed(name)] = _map({n: c for n, c in getattr(file, name).items() if n in self._statistics})
            for name in _BOUNDS:
                written[_dashed(name)] = _map(self._bounds(getattr(file, name)))
        return written

    def _delete_file(self, file: DataFile) -> dict[str, Any]:
        return self._file(file) | _given(file, _MORE[:2]) | _given(file, _OF_DELETES)

    def _bounds(self, bounds: Mapping[int, bytes]) -> dict[int, Any]:
        """The bounds as values; one that is none, or that JSON cannot hold, is not sent."""
        found = {}
        for number, kind in self._statistics.items():
            if number in bounds:
                try:
                    found[number] = value_to_json(kind, value_from_bytes(kind, bounds[number]))
                except InvalidArgument:
                    continue
        return found


def _value(kind: IcebergType, value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"  # as Java writes them
    return value_to_json(kind, value)


def _residual(task: FileScanTask) -> dict[str, Any]:
    """What is left of the filter; nothing where JSON cannot hold it, and clients take the whole filter then."""
    try:
        return {"residual-filter": filter_to_json(task.residual)}
    except InvalidArgument:
        return {}


def _given(file: DataFile, names: Iterable[str]) -> dict[str, Any]:
    return {_dashed(name): value for name in names if (value := getattr(file, name)) is not None}


def _map(values: Mapping[int, Any]) -> dict[str, Any]:
    return {"keys": [*values], "values": [*values.values()]}


def _dashed(name: str) -> str:
    return name.replace("_", "-")
