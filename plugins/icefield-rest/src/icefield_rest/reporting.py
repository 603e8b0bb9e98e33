"""Metrics reports of scans and commits, sent to the service by a background thread."""

from __future__ import annotations

import logging
import os
import queue
import threading
from collections.abc import Callable
from typing import Any, Final

from icefield.abc import CommitMade, ScanPlanned
from icefield.expressions import AlwaysFalse, AlwaysTrue, BooleanExpression
from icefield.toolkit import filter_to_json

from icefield_rest.hearing import TableListener

ENABLED: Final = "rest-metrics-reporting-enabled"
_MOST_WAITING: Final = 100
_IDLE: Final = 5.0  # seconds after which the thread ends
_AT_THE_END: Final = 1.0  # seconds that closing waits for unsent reports

# Java's names for the fields of a snapshot's summary.
_OF_SUMMARY: Final = {
    **{name: name for part in ("data-files", "delete-files", "records") for name in (f"added-{part}", f"total-{part}")},
    "deleted-data-files": "removed-data-files",
    "deleted-records": "removed-records",
    "removed-delete-files": "removed-delete-files",
    "added-files-size": "added-files-size-bytes",
    "removed-files-size": "removed-files-size-bytes",
    "total-files-size": "total-files-size-bytes",
}
_BYTES: Final = "-bytes"

_LOG: Final = logging.getLogger(__name__)

Send = Callable[[tuple[str, ...], dict[str, Any]], None]


class Reporter(TableListener):
    """Sends reports of one catalog's tables; reports are dropped while many are waiting."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._process = os.getpid()
        self._waiting: queue.Queue[ScanPlanned | CommitMade] = queue.Queue(_MOST_WAITING)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def hear(self, event: ScanPlanned | CommitMade) -> None:
        """Queue a report. Never waits, and never fails."""
        if self._process != os.getpid():  # after a fork, the connections and the thread belong to the parent
            return
        try:
            self._waiting.put_nowait(event)
        except queue.Full:
            return
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="icefield-reports", daemon=True)
                thread.start()  # it ends under the lock
                self._thread = thread

    def close(self) -> None:
        """Wait up to a second for the queued reports to be sent."""
        if self._process == os.getpid():
            done = self._waiting.all_tasks_done
            with done:
                done.wait_for(lambda: not self._waiting.unfinished_tasks, _AT_THE_END)

    def _run(self) -> None:
        while True:
            try:
                event = self._waiting.get(timeout=_IDLE)
            except queue.Empty:
                with self._lock:
                    if self._waiting.empty():
                        self._thread = None
                        return
                continue
            try:
                self._send(event.table, report_of(event))
            except Exception as error:  # a report is worth no failure of anything
                _LOG.debug("a report was not sent: %s", type(error).__name__)
            finally:
                self._waiting.task_done()


def report_of(event: ScanPlanned | CommitMade) -> dict[str, Any]:
    """An event as the protocol reports it."""
    return scan_report(event) if isinstance(event, ScanPlanned) else commit_report(event)


def scan_report(event: ScanPlanned) -> dict[str, Any]:
    """A scan as the protocol reports it. The values of its filter are left out: they may be anybody's data."""
    return {
        "report-type": "scan-report",
        "table-name": ".".join(event.table),
        "snapshot-id": event.snapshot_id,
        "filter": _filter(event.expression),
        "schema-id": event.schema_id,
        "projected-field-ids": [field_id for field_id, _ in event.projected],
        "projected-field-names": [name for _, name in event.projected],
        "metrics": {
            "total-planning-duration": _timer(event.seconds),
            "result-data-files": _counter(event.files_planned),
            "skipped-data-files": _counter(event.files_skipped),
            "scanned-manifests": _counter(event.manifests_read),
            "skipped-manifests": _counter(event.manifests_skipped),
        },
        "metadata": {"engine-name": "icefield"},
    }


def commit_report(event: CommitMade) -> dict[str, Any]:
    """A commit as the protocol reports it."""
    counted = {
        name: _counter(int(value), "bytes" if name.endswith(_BYTES) else "count")
        for key, value in event.summary.items()
        if (name := _OF_SUMMARY.get(key)) is not None and value.isascii() and value.isdigit()
    }
    return {
        "report-type": "commit-report",
        "table-name": ".".join(event.table),
        "snapshot-id": event.snapshot_id,
        "sequence-number": event.sequence_number or 0,
        "operation": event.operation or "",
        "metrics": {"total-duration": _timer(event.seconds), "attempts": _counter(event.attempts), **counted},
        "metadata": {"engine-name": "icefield"},
    }


def _counter(value: int, unit: str = "count") -> dict[str, Any]:
    return {"unit": unit, "value": value}


def _timer(seconds: float) -> dict[str, Any]:
    return {"count": 1, "time-unit": "nanoseconds", "total-duration": int(seconds * 1e9)}


def _filter(expression: BooleanExpression | None) -> Any:
    if expression is None or isinstance(expression, AlwaysTrue | AlwaysFalse):
        return {"type": "false" if isinstance(expression, AlwaysFalse) else "true"}
    return filter_to_json(expression, values=False) or {"type": "true"}
