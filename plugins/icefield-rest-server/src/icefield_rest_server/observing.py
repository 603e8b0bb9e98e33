"""What the server says of its work: a line of JSON for each request, and metrics in Prometheus' text form."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Mapping
from typing import Final

_log = logging.getLogger("icefield_rest_server.access")

_REPORTED: Final = frozenset(
    {
        "total-planning-duration",
        "result-data-files",
        "result-delete-files",
        "scanned-data-manifests",
        "skipped-data-manifests",
        "scanned-delete-manifests",
        "skipped-delete-manifests",
        "skipped-data-files",
        "skipped-delete-files",
        "total-file-size-in-bytes",
        "total-delete-file-size-in-bytes",
        "total-duration",
        "attempts",
        "added-data-files",
        "removed-data-files",
        "added-delete-files",
        "removed-delete-files",
        "added-records",
        "removed-records",
        "added-files-size-bytes",
        "removed-files-size-bytes",
    }
)
"""The metrics of clients' reports that are summed up: a client cannot add names."""

_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


Report = tuple[str, Mapping[str, float]]


class Metrics:
    """Counts of requests by operation and status, and how long they took."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._buckets: Counter[tuple[str, float]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._reports: Counter[str] = Counter()
        self._reported: Counter[tuple[str, str]] = Counter()
        self.in_flight = 0

    def began(self) -> None:
        """A request came."""
        with self._lock:
            self.in_flight += 1

    def ended(self, operation: str, status: int, seconds: float, report: Report | None = None) -> None:
        """It was answered; a report is its kind and metrics."""
        with self._lock:
            self.in_flight -= 1
            self._requests[operation, status] += 1
            self._seconds[operation] += seconds  # type: ignore[assignment]
            for bound in _BUCKETS:
                if seconds <= bound:
                    self._buckets[operation, bound] += 1
            if report is not None:
                kind, metrics = report
                self._reports[kind] += 1
                for name in metrics.keys() & _REPORTED:
                    self._reported[kind, name] += metrics[name]  # type: ignore[assignment]

    def text(self) -> str:
        """All of it, in the text form of Prometheus."""
        with self._lock:
            lines = ["# TYPE icefield_rest_requests_total counter"]
            for (operation, status), count in sorted(self._requests.items()):
                lines.append(f'icefield_rest_requests_total{{operation="{operation}",status="{status}"}} {count}')
            lines.append("# TYPE icefield_rest_request_seconds histogram")
            for operation, seconds in sorted(self._seconds.items()):
                name, label = "icefield_rest_request_seconds", f'operation="{operation}"'
                total = sum(count for (each, _), count in self._requests.items() if each == operation)
                lines += [
                    f'{name}_bucket{{{label},le="{bound}"}} {self._buckets[operation, bound]}' for bound in _BUCKETS
                ]
                lines.append(f'{name}_bucket{{{label},le="+Inf"}} {total}')
                lines += [f"{name}_sum{{{label}}} {seconds:.6f}", f"{name}_count{{{label}}} {total}"]
            lines.append("# TYPE icefield_rest_reports_total counter")
            lines += [f'icefield_rest_reports_total{{type="{kind}"}} {n}' for kind, n in sorted(self._reports.items())]
            lines.append("# TYPE icefield_rest_reported_total counter")
            for (kind, metric), value in sorted(self._reported.items()):
                lines.append(f'icefield_rest_reported_total{{type="{kind}",metric="{metric}"}} {value:.12g}')
            lines += ["# TYPE icefield_rest_requests_in_flight gauge"]
            lines += [f"icefield_rest_requests_in_flight {self.in_flight}", ""]
        return "\n".join(lines)


def log_access(
    operation: str, method: str, path: str, status: int, seconds: float, size: int, who: str | None, target: str
) -> None:
    """One line about a request. The query and the headers are not in it: they may hold what is secret."""
    if _log.isEnabledFor(logging.INFO):
        _log.info(
            "%s",
            json.dumps(
                {
                    "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                    "operation": operation,
                    "method": method,
                    "path": path[:500],
                    "status": status,
                    "ms": round(seconds * 1000, 2),
                    "bytes": size,
                    "principal": who,
                    "target": target[:500],
                }
            ),
        )
