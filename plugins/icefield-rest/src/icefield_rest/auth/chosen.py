"""Which authenticator the properties ask for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Final

from icefield.errors import InvalidArgument, MissingPlugin
from icefield.toolkit import is_true

from icefield_rest.auth.authenticator import Authenticator, Nobody
from icefield_rest.auth.basic import Basic
from icefield_rest.auth.oauth import SUBJECTS, OAuth, Post

TYPE: Final = "rest.auth.type"
_SDK: Final = {"sigv4": "SigV4", "google": "Google", "entra": "Entra"}
_KNOWN: Final = ("none", "basic", "oauth2", *_SDK)


def authenticator_of(name: str, properties: Mapping[str, str], uri: str, post: Post) -> Authenticator:
    """The authenticator of a catalog. Raises ``InvalidArgument``, ``MissingPlugin`` for an SDK that is not there."""
    kind = properties.get(TYPE) or _likely(properties)
    if ":" not in kind:
        kind = kind.lower()
    if kind == "none":
        return Nobody(name, properties)
    if kind == "basic":
        return Basic(name, properties)
    if kind == "oauth2":
        return OAuth(name, properties, _token_address(properties, uri), post)
    if kind in _SDK:
        return _of_sdk(kind, name, properties)
    if ":" in kind:
        return _of_others(kind, name, properties)
    raise InvalidArgument(f"{TYPE} is one of {', '.join(_KNOWN)} or module:Class, not {kind!r}")


def _likely(properties: Mapping[str, str]) -> str:
    if is_true(properties, "rest.sigv4-enabled"):
        return "sigv4"
    if any(properties.get(key) for key in ("token", "credential", *SUBJECTS)):
        return "oauth2"
    return "none"


def _token_address(properties: Mapping[str, str], uri: str) -> str:
    given = properties.get("oauth2-server-uri", "v1/oauth/tokens")
    return given if "://" in given else f"{uri}/{given.lstrip('/')}"


def _of_sdk(kind: str, name: str, properties: Mapping[str, str]) -> Authenticator:
    try:
        module = import_module(f"icefield_rest.auth.{kind}")
    except ImportError as error:
        raise MissingPlugin(
            f"catalog '{name}' has {TYPE}={kind}, whose library is not installed: pip install \"icefield-rest[{kind}]\""
        ) from error
    made: Authenticator = getattr(module, _SDK[kind])(name, properties)
    return made


def _of_others(target: str, name: str, properties: Mapping[str, str]) -> Authenticator:
    module, _, attribute = target.partition(":")
    try:
        kind = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidArgument(f"{TYPE}={target} names nothing that can be imported: {type(error).__name__}") from error
    if not (isinstance(kind, type) and issubclass(kind, Authenticator)):
        raise InvalidArgument(f"{TYPE}={target} is no subclass of icefield_rest.auth.authenticator.Authenticator")
    return kind(name, properties)
