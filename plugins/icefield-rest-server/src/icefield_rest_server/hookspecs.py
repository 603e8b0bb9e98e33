"""The hooks that the server adds. A plugin implements them with ``@icefield.hookimpl(optionalhook=True)``.

Each returns ``Provider`` records. Except for pages, a target is called with the properties: those of the served
catalog, and the options of the command line as properties such as ``rest-server.tokens``. It raises ``InvalidArgument``
for properties that it cannot use, without their values.
"""

from __future__ import annotations

from collections.abc import Sequence

from icefield import Provider, hookspec


@hookspec
def icefield_authenticators() -> Sequence[Provider]:  # type: ignore[empty-body]
    """Provide authenticators of clients: a target returns an ``icefield_rest_server.Authenticator``.

    Called when a server begins. ``names`` are the values of the property ``rest-server.authenticator``.
    """


@hookspec
def icefield_authorizers() -> Sequence[Provider]:  # type: ignore[empty-body]
    """Provide authorizers of requests: a target returns an ``icefield_rest_server.Authorizer``.

    Called when a server begins. ``names`` are the values of the property ``rest-server.authorizer``.
    """


@hookspec
def icefield_pages() -> Sequence[Provider]:  # type: ignore[empty-body]
    """Provide pages for people: a target is a function of a ``PageRequest`` that returns an ``Answer``.

    Called when a server with pages begins. ``names`` are the first parts of the paths: ``"ui"`` is served at ``/ui``.
    A target is not called with properties.
    """


@hookspec
def icefield_credential_vendors() -> Sequence[Provider]:  # type: ignore[empty-body]
    """Provide vendors of credentials for files: a target returns an ``icefield_rest_server.CredentialVendor``.

    Called when a server begins. ``names`` are the values of the property ``rest-server.vendor``.
    """
