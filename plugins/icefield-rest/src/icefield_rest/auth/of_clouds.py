"""The authenticators that need the SDK of a cloud, each in an extra of its own."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from icefield.errors import MissingPlugin

from icefield_rest.auth.authenticator import Authenticator, Post


def sigv4(name: str, properties: Mapping[str, str], post: Post) -> Authenticator:
    """AWS Signature Version 4."""
    return _made("sigv4", "SigV4", name, properties, post)


def google(name: str, properties: Mapping[str, str], post: Post) -> Authenticator:
    """A token of Google."""
    return _made("google", "Google", name, properties, post)


def entra(name: str, properties: Mapping[str, str], post: Post) -> Authenticator:
    """A token of Microsoft Entra."""
    return _made("entra", "Entra", name, properties, post)


def _made(extra: str, kind: str, name: str, properties: Mapping[str, str], post: Post) -> Authenticator:
    try:
        module = import_module(f"icefield_rest.auth.{extra}")
    except ImportError as error:
        raise MissingPlugin(
            f"catalog '{name}' has rest.auth.type={extra}, whose library is not installed: "
            f'pip install "icefield-rest[{extra}]"'
        ) from error
    made: Authenticator = getattr(module, kind)(name, properties, post)
    return made
