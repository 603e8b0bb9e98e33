"""The listeners of a process, one for each configuration."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from importlib import import_module
from typing import Final, Protocol

from icefield.abc import Event
from icefield.toolkit import reset_after_fork

_LOG: Final = logging.getLogger(__name__)


class EventListener(Protocol):
    """Receives the events of catalogs of one configuration."""

    def hear(self, event: Event) -> None:
        """Receive an event, without waiting."""

    def flush(self) -> None:
        """Wait until the events so far are delivered."""


class Configured:
    """The listeners of one plugin by their configuration. A process that is forked makes its own.

    ``target`` is ``module:function``. The function takes the properties and returns a listener, or None if they turn it
    off. If it fails, the error is logged once for each configuration, and its events are ignored.
    """

    def __init__(self, plugin: str, target: str) -> None:
        self._plugin, self._target = plugin, target
        self._made: dict[frozenset[tuple[str, str]], EventListener | None] = {}
        self._lock = threading.Lock()
        reset_after_fork(self._reset)

    def of(self, properties: Mapping[str, str]) -> EventListener | None:
        """The listener of a configuration, or None."""
        key = frozenset(properties.items())
        if key not in self._made:
            with self._lock:
                if key not in self._made:
                    self._made[key] = self._new(properties)
        return self._made[key]

    def _new(self, properties: Mapping[str, str]) -> EventListener | None:
        module, _, name = self._target.partition(":")
        try:
            made: EventListener | None = getattr(import_module(module), name)(properties)
        except ImportError as error:
            if properties:
                wanted = f"pip install 'icefield-observe[{self._plugin}]'"
                _LOG.warning("events.%s.* needs more: %s (%s)", self._plugin, wanted, error)
            return None
        except Exception as error:
            _LOG.warning("events.%s.* cannot be used: %s: %s", self._plugin, type(error).__name__, error)
            return None
        return made

    def _reset(self) -> None:
        self._made, self._lock = {}, threading.Lock()
