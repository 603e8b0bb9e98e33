"""The providers of this plugin."""

from __future__ import annotations

from icefield import Provider, hookimpl
from icefield.abc import Event

from icefield_rest.hearing import HEARERS
from icefield_rest.presets import PRESETS


@hookimpl
def icefield_addhooks() -> list[str]:
    """Specify ``icefield_rest_authenticators``."""
    return ["icefield_rest.hookspecs"]


@hookimpl
def icefield_rest_authenticators() -> list[Provider]:
    """Provide the ways to authenticate at a service, by name."""
    return [
        Provider("none", "icefield_rest.auth.authenticator:Nobody"),
        Provider("basic", "icefield_rest.auth.basic:Basic"),
        Provider("oauth2", "icefield_rest.auth.oauth:OAuth"),
        Provider("sigv4", "icefield_rest.auth.of_clouds:sigv4"),
        Provider("google", "icefield_rest.auth.of_clouds:google"),
        Provider("entra", "icefield_rest.auth.of_clouds:entra"),
    ]


@hookimpl
def icefield_catalogs() -> list[Provider]:
    """Provide the catalog ``rest``, and its presets under the names of services."""
    names = ("rest", *PRESETS)
    return [Provider(names, "icefield_rest.backend:RestBackend", contract=(2, 2), uri_schemes=("http", "https"))]


@hookimpl
def icefield_events(event: Event) -> None:
    """Pass the event on to the listeners of its table."""
    HEARERS.heard(event)
