"""Corrections of manifest entries, computed by reading the data files from end to end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
from icefield.abc import Metrics
from icefield.engine import apply_modes, read_task
from icefield.errors import IcefieldError
from icefield.manifest import DataFile
from icefield.scan import FileScanTask, TableScan
from icefield.schema import schema_to_arrow
from icefield.toolkit import MetricsCollector, MetricsConfig

from icefield_maintenance.doctor.tables.subject import Subject

_UNKNOWN: Final = -1
_MAPS: Final = ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")


def rows_of(subject: Subject, file: DataFile) -> Iterator[pa.RecordBatch]:
    """Every row of a data file under the current schema, ignoring the counts in its manifest and its deletes.

    Raises ``InvalidFile`` for a damaged file, ``FileMissing``, ``UnsupportedFeature``.
    """
    scan = TableScan(metadata=subject.metadata, io=subject.io, identifier=())
    context = replace(scan.context, projection=subject.metadata.schema())
    # The count is set to unknown, as reading refuses a file with another count.
    yield from read_task(FileScanTask(replace(file, record_count=_UNKNOWN)), context)


def correction(subject: Subject, file: DataFile) -> dict[str, Any]:
    """The actual counts and bounds of a file, for the columns in its entry. Raises as ``rows_of`` does."""
    metadata = subject.metadata
    schema = metadata.schema()
    collector = MetricsCollector(schema_to_arrow(schema))
    for batch in rows_of(subject, file):
        collector.update(batch)
    held: Metrics = collector.metrics()
    config = MetricsConfig.from_properties(metadata.properties, schema, metadata.sort_order().ordered_ids)
    encoded = apply_modes(held, config, schema)
    stated = {number for name in _MAPS for number in getattr(file, name)}
    kept = {number for number in stated if not schema.is_repeated(number)}
    maps = {
        name: {number: value for number, value in getattr(encoded, name).items() if number in kept} for name in _MAPS
    }
    size = file.file_size_in_bytes
    return {
        **maps,
        "record_count": held.record_count,
        "file_size_in_bytes": subject.io.stat(file.file_path).size if size < 0 else size,
    }


def corrections(
    subject: Subject, files: Iterable[DataFile], wrong: set[str], claims: set[str]
) -> dict[str, dict[str, Any]]:
    """The corrected fields of files with ``wrong`` counts or bounds, or with wrong ``claims`` of a sort order.

    A file that cannot be read gets no correction: the examination reports it.
    """
    found: dict[str, dict[str, Any]] = {path: {"sort_order_id": None} for path in claims}
    for file in files:
        path = file.file_path
        if path in wrong:
            with contextlib.suppress(IcefieldError):
                found[path] = found.get(path, {}) | correction(subject, file)
    return found
