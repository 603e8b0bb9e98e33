"""The hook that the REST catalog adds. A plugin implements it with ``@icefield.hookimpl(optionalhook=True)``."""

from __future__ import annotations

from collections.abc import Sequence

from icefield import Provider, hookspec


@hookspec
def icefield_rest_authenticators() -> Sequence[Provider]:  # type: ignore[empty-body]
    """Provide ways to authenticate at a REST service, subclasses of ``icefield_rest.auth.Authenticator``.

    Called when a REST catalog is opened. ``names`` are the values of the property ``rest.auth.type``, in lower case. A
    target is called with the catalog's name, the catalog's properties, and ``post``, which sends a form to an address.
    """
