"""The listener ``opentelemetry``. A light module: it imports OpenTelemetry for the first event that needs it."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from icefield import hookimpl
from icefield.abc import Event

from icefield_observe.configured import Configured

_LISTENERS = Configured("opentelemetry", "icefield_observe.opentelemetry.listening:listener")


@hookimpl
def icefield_events(event: Event, properties: Mapping[str, str]) -> None:
    """Tell OpenTelemetry of the event: the providers of the program, or the collector in the properties."""
    if not properties and "opentelemetry.trace" not in sys.modules:
        return  # the program has set no provider
    listener = _LISTENERS.of(properties)
    if listener is not None:
        listener.hear(event)
