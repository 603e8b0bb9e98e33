"""A user and a password."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping

from icefield.errors import InvalidArgument

from icefield_rest.auth.authenticator import Authenticator, Post, Unsigned

_USER, _PASSWORD = "rest.auth.basic.username", "rest.auth.basic.password"


class Basic(Authenticator):
    """``Authorization: Basic``, by ``rest.auth.basic.username`` and ``rest.auth.basic.password``."""

    def __init__(self, name: str, properties: Mapping[str, str], post: Post) -> None:
        if not properties.get(_USER) or _PASSWORD not in properties:
            raise InvalidArgument(f"catalog '{name}' with rest.auth.type=basic needs {_USER} and {_PASSWORD}")
        self._user = properties[_USER]
        self._header = basic(self._user, properties[_PASSWORD])

    def headers(self, request: Unsigned) -> Mapping[str, str]:
        return {"Authorization": self._header}

    def says(self) -> str | None:
        return f"the user '{self._user}'"


def basic(user: str, password: str) -> str:
    """The header of a user and a password."""
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()
