"""Clients' metrics reports of scans and commits: validated, bounded, and passed to event listeners."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from icefield.abc import MetricsReported
from icefield.errors import InvalidArgument, NoSuchTable
from icefield.toolkit import decodable

from icefield_rest_server.answers import Answer, no_content
from icefield_rest_server.calls import Call, typed
from icefield_rest_server.state import State

_MAX_METRICS: Final = 200
_MAX_NAME: Final = 200
_MAX_LONG: Final = 2**63 - 1
_MAX_SECONDS: Final = _MAX_LONG * 1e-9
_SECONDS: Final = {
    "nanoseconds": 1e-9,
    "microseconds": 1e-6,
    "milliseconds": 1e-3,
    "seconds": 1.0,
    "minutes": 60.0,
    "hours": 3600.0,
    "days": 86_400.0,
}


_Long = Annotated[int, msgspec.Meta(ge=-(2**63), le=_MAX_LONG)]


@decodable
class _Metric(msgspec.Struct, rename="kebab", frozen=True):
    """A counter, which has a value, or a timer, which has a duration."""

    value: _Long | None = None
    time_unit: str = ""
    total_duration: _Long | None = None


@decodable
class _Report(msgspec.Struct, rename="kebab", frozen=True):
    """The common fields of both kinds of reports."""

    report_type: str
    table_name: str
    snapshot_id: _Long
    metrics: dict[str, _Metric]


@decodable
class _ScanReport(_Report, rename="kebab", frozen=True):
    filter: Any
    schema_id: _Long
    projected_field_ids: list[_Long]
    projected_field_names: list[str]


@decodable
class _CommitReport(_Report, rename="kebab", frozen=True):
    sequence_number: _Long
    operation: str


_KINDS: Final[dict[str, tuple[str, type[_Report]]]] = {
    "scan-report": ("scan", _ScanReport),
    "commit-report": ("commit", _CommitReport),
}


def report_metrics(state: State, call: Call) -> Answer:
    """Take a client's report of a scan or a commit of an existing table."""
    document, name = call.document(), call.name("table")
    stated = typed(document.get("report-type"), str, "report-type")
    if stated not in _KINDS:
        raise InvalidArgument(f"'report-type' is {' or '.join(_KINDS)}, not '{stated:.40}'")
    kind, wanted = _KINDS[stated]
    report: _Report = typed(document, wanted, "the report")
    if len(report.metrics) > _MAX_METRICS or any(len(each) > _MAX_NAME for each in report.metrics):
        raise InvalidArgument(f"a report has up to {_MAX_METRICS} metrics, with names of up to {_MAX_NAME} characters")
    if not state.catalog.table_exists(name):
        raise NoSuchTable(f"no table {'.'.join(name)} in catalog '{state.catalog.name}'", table=name)
    metrics = {each: _number(each, metric) for each, metric in report.metrics.items()}
    operation = report.operation[:_MAX_NAME] if isinstance(report, _CommitReport) else None
    state.catalog.io.listeners.tell(MetricsReported(name, kind, report.snapshot_id, operation, metrics))
    call.more["report"] = (kind, metrics)
    return no_content()


def _number(name: str, metric: _Metric) -> float:
    """A count, or a duration in seconds."""
    if metric.value is not None and metric.value >= 0:
        return metric.value
    if metric.total_duration is None or metric.total_duration < 0 or metric.time_unit.lower() not in _SECONDS:
        raise InvalidArgument(f"the metric '{name:.40}' has neither a value nor a duration in a unit of time")
    seconds = metric.total_duration * _SECONDS[metric.time_unit.lower()]
    if seconds > _MAX_SECONDS:
        raise InvalidArgument(f"the metric '{name:.40}' is longer than {_MAX_SECONDS:,.0f} seconds")
    return seconds
