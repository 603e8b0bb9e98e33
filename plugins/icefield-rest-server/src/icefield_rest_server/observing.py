"""The server's access log, a line of JSON for each request, and its metrics in Prometheus' text form."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Mapping
from typing import Final, Protocol

from icefield_rest_server.processes import Name, SharedCounts

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

_IN_FLIGHT: Final = ("in-flight",)
_OF_THE_LIVING: Final = frozenset(_IN_FLIGHT)


class Counting(Protocol):
    """The counters of a process, and the sums over all processes of the server."""

    counts: SharedCounts

    def summed(self, of_the_living: frozenset[str]) -> tuple[Mapping[Name, float], int]:
        """Return the sums of all processes, and the number of living ones.

        Names that begin with one of the strings in ``of_the_living`` are summed only over living processes.
        """


class RequestMetrics:
    """Counts of requests by operation and status, and how long they took, of all processes of the server."""

    def __init__(self, counting: Counting) -> None:
        self._lock = threading.Lock()
        self._counting, self._counts = counting, counting.counts
        self._counts.clear(_IN_FLIGHT)

    def began(self) -> None:
        """Count a new request."""
        with self._lock:
            self._counts.add(_IN_FLIGHT)

    def ended(self, operation: str, status: int, seconds: float, report: Report | None = None) -> None:
        """Count an answered request; ``report`` is the kind of a report and its metrics."""
        with self._lock:
            add = self._counts.add
            add(_IN_FLIGHT, -1)
            add(("requests", operation, str(status)))
            add(("seconds", operation), seconds)
            for bound in _BUCKETS:
                if seconds <= bound:
                    add(("bucket", operation, str(bound)))
            if report is not None:
                kind, metrics = report
                add(("reports", kind))
                for name in metrics.keys() & _REPORTED:
                    add(("reported", kind, name), metrics[name])

    def text(self) -> str:
        """Return all metrics in the text form of Prometheus.

        The files of other processes are read without a lock, since each number is one word.
        """
        found, living = self._counting.summed(_OF_THE_LIVING)
        named: dict[str, list[tuple[Name, float]]] = {}
        for (kind, *labels), value in sorted(found.items()):
            named.setdefault(kind, []).append((tuple(labels), value))
        totals: Counter[str] = Counter()
        lines = ["# TYPE icefield_rest_requests_total counter"]
        for (operation, status), count in named.get("requests", ()):
            totals[operation] += int(count)
            lines.append(f'icefield_rest_requests_total{{operation="{operation}",status="{status}"}} {count:.0f}')
        lines.append("# TYPE icefield_rest_request_seconds histogram")
        for (operation,), seconds in named.get("seconds", ()):
            name, label = "icefield_rest_request_seconds", f'operation="{operation}"'
            for bound in _BUCKETS:
                count = found.get(("bucket", operation, str(bound)), 0)
                lines.append(f'{name}_bucket{{{label},le="{bound}"}} {count:.0f}')
            total = totals[operation]
            lines.append(f'{name}_bucket{{{label},le="+Inf"}} {total}')
            lines += [f"{name}_sum{{{label}}} {seconds:.6f}", f"{name}_count{{{label}}} {total}"]
        lines.append("# TYPE icefield_rest_reports_total counter")
        lines += [f'icefield_rest_reports_total{{type="{kind}"}} {n:.0f}' for (kind,), n in named.get("reports", ())]
        lines.append("# TYPE icefield_rest_reported_total counter")
        for (kind, metric), value in named.get("reported", ()):
            lines.append(f'icefield_rest_reported_total{{type="{kind}",metric="{metric}"}} {value:.12g}')
        lines += ["# TYPE icefield_rest_requests_in_flight gauge"]
        lines += [f"icefield_rest_requests_in_flight {found.get(_IN_FLIGHT, 0):.0f}"]
        lines += ["# TYPE icefield_rest_processes gauge", f"icefield_rest_processes {living}", ""]
        return "\n".join(lines)


def log_access(
    operation: str, method: str, path: str, status: int, seconds: float, size: int, who: str | None, target: str
) -> None:
    """Log one line about a request, without query and headers: they may hold secrets."""
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
