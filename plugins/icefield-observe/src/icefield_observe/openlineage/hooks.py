"""The listener ``openlineage``. A light module: it imports OpenLineage's client for the first event that needs it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from icefield import hookimpl
from icefield.abc import Event

from icefield_observe.configured import Configured

_LISTENERS = Configured("openlineage", "icefield_observe.openlineage.listening:listener")
_VARIABLES: Final = ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG", "OPENLINEAGE__TRANSPORT__TYPE")
"""The environment variables of OpenLineage's client that say where events go."""


@hookimpl
def icefield_events(event: Event, properties: Mapping[str, str]) -> None:
    """Tell OpenLineage of the event, if the properties or the environment say where."""
    if "url" not in properties and not any(name in os.environ for name in _VARIABLES):
        return
    listener = _LISTENERS.of(properties)
    if listener is not None:
        listener.hear(event)
