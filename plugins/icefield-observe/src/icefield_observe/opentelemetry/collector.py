"""Providers of OpenTelemetry's SDK that send to a collector by OTLP over HTTP."""

from __future__ import annotations

import atexit
import os
import threading
from typing import Any, Final

from icefield.errors import InvalidArgument
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

_AT_THE_END: Final = 2.0
"""The seconds that the end of the process waits for what was not sent."""


class Collector:
    """The providers for one collector. Threads of the SDK send; what they cannot send in time is dropped.

    ``endpoint`` is the base URL, such as ``http://localhost:4318``; ``headers`` are pairs such as ``a=1,b=2``.
    """

    def __init__(self, endpoint: str, headers: str, service_name: str | None) -> None:
        base, given = endpoint.rstrip("/"), _headers(headers)
        if not base.startswith(("http://", "https://")):
            raise InvalidArgument("'events.opentelemetry.endpoint' is no URL such as http://localhost:4318")
        name = service_name or os.environ.get("OTEL_SERVICE_NAME") or "icefield"
        resource = Resource.create({SERVICE_NAME: name})
        self.tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
        self.tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{base}/v1/traces", headers=given)))
        reader = PeriodicExportingMetricReader(_MetricExporter(f"{base}/v1/metrics", headers=given))
        self.meters = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
        self._process = os.getpid()
        self._ending, self._ended = threading.Event(), threading.Event()
        # Started now, since no thread can start when the process ends.
        threading.Thread(target=self._run_end, name="icefield-opentelemetry", daemon=True).start()
        atexit.register(self._end)

    def flush(self) -> None:
        """Send what waits."""
        self.tracers.force_flush()
        self.meters.force_flush()

    def _end(self) -> None:
        if os.getpid() == self._process:
            self._ending.set()
            self._ended.wait(_AT_THE_END)

    def _run_end(self) -> None:
        self._ending.wait()
        self.tracers.shutdown()
        self.meters.shutdown()
        self._ended.set()


class _MetricExporter(OTLPMetricExporter):
    """Sends nothing from a process that was forked: the connection and the numbers are those of its parent."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._process = os.getpid()

    def export(self, metrics_data: MetricsData, *args: Any, **kwargs: Any) -> MetricExportResult:
        if os.getpid() != self._process:
            return MetricExportResult.SUCCESS
        return super().export(metrics_data, *args, **kwargs)


def _headers(text: str) -> dict[str, str]:
    """The headers of a string such as ``a=1,b=2``. The error shows no value, which may be a credential."""
    found = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise InvalidArgument("'events.opentelemetry.headers' has no pairs such as a=1,b=2")
        found[name.strip().lower()] = value.strip()
    return found
