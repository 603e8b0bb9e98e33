"""The providers of this plugin."""

from __future__ import annotations

from icefield import Provider, hookimpl
from icefield.abc import Event

from icefield_rest.hearing import HEARERS


@hookimpl
def icefield_catalogs() -> list[Provider]:
    """Provide the catalog ``rest``."""
    return [Provider(("rest",), "icefield_rest.backend:RestBackend", contract=(2, 2), uri_schemes=("http", "https"))]


@hookimpl
def icefield_events(event: Event) -> None:
    """Pass the event on to the listeners of its table."""
    HEARERS.heard(event)
