"""The listener: the instruments of the program's providers, or of providers that send to a collector."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from opentelemetry import metrics, trace

from icefield_observe.opentelemetry.instruments import Instruments
from icefield_observe.opentelemetry.spans import OperationSpans
from icefield_observe.properties import is_enabled

_NAMES = ("endpoint", "headers", "service-name")


def listener(properties: Mapping[str, str]) -> OperationSpans | None:
    """The listener of a configuration; None if it is turned off."""
    if not is_enabled("opentelemetry", properties, _NAMES):
        return None
    if "endpoint" not in properties:
        return OperationSpans(trace.get_tracer("icefield"), Instruments(metrics.get_meter("icefield")))
    of_sdk = import_module("icefield_observe.opentelemetry.collector")  # other programs may have another SDK
    collector = of_sdk.Collector(properties["endpoint"], properties.get("headers", ""), properties.get("service-name"))
    tracer = collector.tracers.get_tracer("icefield")
    return OperationSpans(tracer, Instruments(collector.meters.get_meter("icefield")), collector)
