"""The metrics of operations, commits and scans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icefield.abc import CommitMade, ScanPlanned
from opentelemetry.context import Context
from opentelemetry.metrics import Meter

from icefield_observe.opentelemetry.attributes import Value, counts

BOUNDS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10)
"""The bounds of durations that the conventions advise."""

_UNITS: Final = {"bytes": "By", "rows": "{row}", "files": "{file}"}


class Instruments:
    """The instruments of one meter."""

    def __init__(self, meter: Meter) -> None:
        self._duration = meter.create_histogram(
            "db.client.operation.duration",
            "s",
            "Duration of operations of catalogs and tables.",
            explicit_bucket_boundaries_advisory=BOUNDS,
        )
        self._retries = meter.create_counter("icefield.commit.retries", "{retry}", "Attempts after the first.")
        self._planned = meter.create_counter("icefield.scan.files.planned", "{file}", "Files that scans read.")
        self._skipped = meter.create_counter("icefield.scan.files.skipped", "{file}", "Files that scans leave out.")
        self._counts = {
            name: meter.create_counter(name, _UNITS[name.split(".")[1]], text)
            for name, text in (
                ("icefield.rows.added", "Rows of data files that commits add."),
                ("icefield.rows.deleted", "Rows of data files that commits remove."),
                ("icefield.files.added", "Data files that commits add."),
                ("icefield.files.deleted", "Data files that commits remove."),
                ("icefield.bytes.written", "Bytes of data and delete files that commits add."),
            )
        }

    def ended(self, seconds: float, attributes: Mapping[str, Value], context: Context) -> None:
        """Record the duration of an operation."""
        self._duration.record(seconds, attributes, context)

    def committed(self, event: CommitMade, attributes: Mapping[str, Value]) -> None:
        """Record the numbers of a commit."""
        self._retries.add(max(0, event.attempts - 1), attributes)
        for name, number in counts(event.summary).items():
            self._counts[name].add(number, attributes)

    def scanned(self, event: ScanPlanned, attributes: Mapping[str, Value]) -> None:
        """Record the numbers of a scan."""
        self._planned.add(event.files_planned, attributes)
        self._skipped.add(event.files_skipped, attributes)
