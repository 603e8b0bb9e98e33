"""The choice of an authenticator by the properties of a catalog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icefield import Plugins
from icefield.errors import BrokenPlugin
from icefield.toolkit import is_true

from icefield_rest.auth.authenticator import Authenticator, Post
from icefield_rest.auth.oauth import SUBJECTS

TYPE: Final = "rest.auth.type"


def authenticator_of(name: str, properties: Mapping[str, str], post: Post, plugins: Plugins) -> Authenticator:
    """The authenticator of a catalog.

    Raises ``InvalidArgument``, and ``MissingPlugin`` for an unknown name or an SDK that is not installed.
    """
    kind = (properties.get(TYPE) or _likely(properties)).lower()
    make = plugins.provided("icefield_rest_authenticators", kind, f"authentication ({TYPE})")
    made = make(name, properties, post)
    if not isinstance(made, Authenticator):
        raise BrokenPlugin(f"{TYPE}={kind} gives no icefield_rest.auth.Authenticator, but a {type(made).__name__}")
    return made


def _likely(properties: Mapping[str, str]) -> str:
    if is_true(properties, "rest.sigv4-enabled"):
        return "sigv4"
    if any(properties.get(key) for key in ("token", "credential", *SUBJECTS)):
        return "oauth2"
    return "none"
