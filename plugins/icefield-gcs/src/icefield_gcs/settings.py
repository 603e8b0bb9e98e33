"""The properties of the plugin: names, defaults, and the settings made from them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from google.oauth2.credentials import Credentials
from icefield.abc import FileAccess
from icefield.errors import InvalidArgument
from icefield.toolkit import RetryLimits, endpoint_of, is_true, whole_number

PREFIX: Final = "gcs."
_QUARTER_MIB: Final = 256 * 1024  # the size of an upload's part is a multiple of this
_MIB: Final = 1024 * 1024
_NOT_HERE: Final = ("gcs.encryption-key", "gcs.decryption-key", "gcs.impersonate.service-account")
_METHODS: Final = {"anon", "google_default", "cache", "cloud"}
_ACCESS: Final = {"read_only", "read_write", "full_control"}


@dataclass(frozen=True)
class GcsSettings:
    """The settings from the properties. Its ``repr`` shows nothing, since the token is secret."""

    project: str | None
    token: Any
    access: str
    endpoint: str | None
    user_project: str | bool
    location: str | None
    session: dict[str, Any]
    read_part: int
    write_part: int
    batch: int
    connect_timeout: float
    request_timeout: float
    limits: RetryLimits

    def __repr__(self) -> str:
        return "Settings()"


def settings_of(properties: Mapping[str, str], access: FileAccess | None = None) -> GcsSettings:
    """Read the properties; ``access`` renews a token among them.

    Raises ``InvalidArgument`` for a value that cannot be used.
    """
    for name in _NOT_HERE:
        if properties.get(name):
            raise InvalidArgument(f"{name} is not supported, and files would be read and written without it: remove it")
    rights = properties.get("gcs.access", "full_control")
    if rights not in _ACCESS:
        raise InvalidArgument(f"gcs.access is one of {', '.join(sorted(_ACCESS))}, not {rights!r}")
    write_part = whole_number(properties, "gcs.channel.write.chunk-size-bytes", 8 * _MIB, _QUARTER_MIB)
    return GcsSettings(
        project=properties.get("gcs.project-id"),
        token=_token(properties, access),
        access=rights,
        endpoint=_endpoint(properties.get("gcs.service.host")),
        user_project=properties.get("gcs.user-project") or is_true(properties, "gcs.requester-pays"),
        location=properties.get("gcs.default-bucket-location"),
        session=_session(properties),
        read_part=whole_number(properties, "gcs.channel.read.chunk-size-bytes", 8 * _MIB, 64 * 1024),
        write_part=write_part // _QUARTER_MIB * _QUARTER_MIB,
        batch=min(whole_number(properties, "gcs.delete.batch-size", 100, 1), 100),  # it takes no more
        connect_timeout=whole_number(properties, "gcs.connect-timeout", 5, 1),
        request_timeout=whole_number(properties, "gcs.request-timeout", 20, 1),
        limits=RetryLimits.of(properties, PREFIX),
    )


def given_credentials(properties: Mapping[str, str]) -> str | None:
    """Which credentials the properties give, in words without a secret; None when they leave that to the SDK."""
    if is_true(properties, "gcs.no-auth"):
        return "anonymous, by gcs.no-auth"
    token = properties.get("gcs.oauth2.token")
    if token is None or token == "google_default":
        return None
    if token in _METHODS:
        return f"by gcs.oauth2.token={token}"
    if os.path.isfile(token):
        return "those of the file that gcs.oauth2.token names"
    if token.lstrip().startswith("{"):
        account = _json(token, "gcs.oauth2.token").get("client_email")
        return f"those of {account} in gcs.oauth2.token" if account else "those in gcs.oauth2.token"
    return "the access token of gcs.oauth2.token"


def _token(properties: Mapping[str, str], access: FileAccess | None) -> Any:
    """Return a token for gcsfs; a raw token becomes credentials here, since gcsfs would ask Google about it."""
    if is_true(properties, "gcs.no-auth"):
        return "anon"
    token = properties.get("gcs.oauth2.token")
    if token is None or token in _METHODS or os.path.isfile(token):
        return token
    if token.lstrip().startswith("{"):
        return _json(token, "gcs.oauth2.token")
    expiry = _expiry(properties)
    if expiry is None or access is None:
        return Credentials(token, expiry=expiry)  # type: ignore[no-untyped-call]
    return Vended(token, access)


class Vended(Credentials):
    """A token that a service renews: the service decides which token is valid, and until when.

    google-auth regards a token as expired 225 seconds before its end, and rejects a new token with less time left.
    """

    def __init__(self, token: str, access: FileAccess) -> None:
        super().__init__(token)  # type: ignore[no-untyped-call]
        self._given_by = access

    @property
    def valid(self) -> bool:
        """Whether requests can use the token without asking the service."""
        return not self._given_by.due and self._now() == self.token

    def refresh(self, request: Any) -> None:
        """Take the current token; ask the service for another when one is due.

        Raises the service's error if it refuses.
        """
        self.token = self._now()

    def _now(self) -> str | None:
        return self._given_by.properties().get("gcs.oauth2.token")


def _expiry(properties: Mapping[str, str]) -> datetime | None:
    """The expiry of the token as google-auth compares it: in UTC, without a zone."""
    if properties.get("gcs.oauth2.token-expires-at") is None:
        return None
    milliseconds = whole_number(properties, "gcs.oauth2.token-expires-at", 0, 0)
    return datetime.fromtimestamp(milliseconds / 1_000, UTC).replace(tzinfo=None)


def _endpoint(host: str | None) -> str | None:
    if not host:
        return None
    return str(endpoint_of(host, "gcs.service.host"))


def _session(properties: Mapping[str, str]) -> dict[str, Any]:
    string = properties.get("gcs.session-kwargs")
    return _json(string, "gcs.session-kwargs") if string else {}


def _json(string: str, name: str) -> dict[str, Any]:
    try:
        value = json.loads(string)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidArgument(f"{name} holds no JSON object")  # and may hold a credential: it is not shown
    return value
