"""OAuth2: a token that was given, fetched for a client's credentials, or exchanged; renewed before it expires."""

from __future__ import annotations

import threading
import time
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from icefield.errors import AccessDenied, InvalidArgument, StorageError
from icefield.toolkit import decodable, is_true, reset_after_fork, whole_number

from icefield_rest.auth.authenticator import Authenticator, Post, Unsigned
from icefield_rest.auth.basic import basic
from icefield_rest.settings import URI, checked_uri

_TYPE: Final = "urn:ietf:params:oauth:token-type:"
_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN: Final = f"{_TYPE}access_token"
# The types are in Java's order of preference.
SUBJECTS: Final = tuple(_TYPE + name for name in ("id_token", "access_token", "jwt", "saml2", "saml1"))
_AHEAD: Final = 0.1  # of a token's life is left when another is fetched
_LEAST_AHEAD: Final = 10.0
_MOST_AHEAD: Final = 300.0


@decodable
class _TokenResponse(msgspec.Struct):
    access_token: str
    # The types of the other fields are lenient, so that a usable token is used: they only affect its renewal.
    token_type: Any = None
    expires_in: Any = None
    issued_token_type: Any = None
    refresh_token: str | None = None


@decodable
class _TokenClaims(msgspec.Struct):
    exp: float | None = None


_decoder = msgspec.json.Decoder(_TokenResponse)


@dataclass(frozen=True, slots=True)
class HeldToken:
    """A token, and its expiry by this machine's monotonic clock; None if it is unknown."""

    token: str = field(repr=False)
    kind: str = ACCESS_TOKEN
    began: float = 0.0
    ends: float | None = None
    refresh: str | None = field(default=None, repr=False)

    def due(self, now: float) -> bool:
        """Whether a new token should be fetched."""
        if self.ends is None:
            return False
        ahead = min(_MOST_AHEAD, max(_LEAST_AHEAD, (self.ends - self.began) * _AHEAD))
        return now >= max(self.began, self.ends - ahead) if self.ends - self.began > ahead else now >= self.ends

    def over(self, now: float) -> bool:
        """Whether the token has expired."""
        return self.ends is not None and now >= self.ends


class OAuth(Authenticator):
    """A bearer token: of ``token``, for ``credential``, or in exchange for a token of the user's."""

    def __init__(self, name: str, properties: Mapping[str, str], post: Post) -> None:
        self._name, self._address, self._post = name, _token_address(name, properties), post
        credential = properties.get("credential")
        user, colon, secret = (credential or "").partition(":")
        self._client = (user if colon else None, secret if colon else user) if credential else None
        self._form = {key: properties[key] for key in ("audience", "resource") if properties.get(key)} | {
            "scope": properties.get("scope", "catalog")
        }
        if not self._form["scope"]:
            del self._form["scope"]
        self._subject = next(((kind, properties[kind]) for kind in SUBJECTS if properties.get(kind)), None)
        self._exchanges = is_true(properties, "token-exchange-enabled", True)
        self._renews = is_true(properties, "token-refresh-enabled", True)
        self._basic = is_true(properties, "rest.auth.oauth2.basic-client", False)
        self._unlock()
        self._held: HeldToken | None = None
        if properties.get("token"):
            stated = whole_number(properties, "token-expires-in-ms", 3_600_000, 1) / 1_000
            self._held = held_of(properties["token"], None, default=stated)
        elif self._client is None and self._subject is None:
            raise InvalidArgument(f"catalog '{name}' with rest.auth.type=oauth2 needs 'token' or 'credential'")
        reset_after_fork(self._unlock)

    def _unlock(self) -> None:
        self._lock = threading.Lock()

    def headers(self, request: Unsigned) -> Mapping[str, str]:
        return _bearer(self.token())

    def token(self) -> str:
        """Return a token that does not expire soon. Raises ``AccessDenied``."""
        held, now = self._held, _now()
        if held is None or (held.due(now) and self._renews):
            with self._lock:
                if self._held is held:  # no other thread was faster
                    held = self._held = self._another(held)
                else:
                    held = self._held
        assert held is not None
        return held.token

    def renew(self, refused: Mapping[str, str]) -> bool:
        with self._lock:
            before = self._held
            if before is not None and _bearer(before.token) != refused:  # another thread was faster
                return True
            try:
                self._held = self._fetched(before)
            except (AccessDenied, StorageError):
                return False
            return self._held is not before

    def says(self) -> str | None:
        if self._client is not None:
            return f"a token for the client '{self._client[0]}'" if self._client[0] else "a token for a secret"
        return "a token in exchange for another" if self._subject is not None else "a bearer token"

    def _another(self, held: HeldToken | None) -> HeldToken:
        """Return the next token; the current one if there is no other and it has not expired."""
        try:
            return self._fetched(held)
        except (AccessDenied, StorageError):
            if held is None or held.over(_now()):
                raise
            return held

    def _fetched(self, held: HeldToken | None) -> HeldToken:
        if self._client is not None:
            own = self._ask({"grant_type": "client_credentials", **self._client_form()}, self._client_header())
            return own if self._subject is None else self._exchanged(*self._subject, own)
        if self._subject is not None:
            return self._exchanged(*self._subject, None)
        if held is None or not self._exchanges:
            raise AccessDenied(f"the token of catalog '{self._name}' has expired, and there is nothing to renew it by")
        return self._exchanged(held.kind, held.token, held)

    def _exchanged(self, kind: str, token: str, actor: HeldToken | None) -> HeldToken:
        form = {"grant_type": _EXCHANGE, "subject_token": token, "subject_token_type": kind}
        headers: dict[str, str] = {}
        if actor is not None:
            headers["Authorization"] = f"Bearer {actor.token}"
            if actor.token != token:
                form |= {"actor_token": actor.token, "actor_token_type": actor.kind}
        return self._ask(form, headers)

    def _client_form(self) -> dict[str, str]:
        assert self._client is not None
        if self._basic:
            return {}
        user, secret = self._client
        return {**({"client_id": user} if user else {}), "client_secret": secret}

    def _client_header(self) -> dict[str, str]:
        assert self._client is not None
        return {"Authorization": basic(self._client[0] or "", self._client[1])} if self._basic else {}

    def _ask(self, form: Mapping[str, str], headers: Mapping[str, str]) -> HeldToken:
        status, body = self._post(self._address, {**form, **self._form}, headers)
        if status >= 500 or status == 429:
            raise StorageError(f"the token service of catalog '{self._name}' failed (status {status})", retryable=True)
        if status != 200:
            raise AccessDenied(
                f"the token service of catalog '{self._name}' refuses ({_reason(body)}, status {status}): look at "
                "'credential', 'scope' and 'oauth2-server-uri'"
            )
        try:
            found = _decoder.decode(body)
        except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
            raise StorageError(f"the answer of the token service of '{self._name}' cannot be read") from error
        kind = found.issued_token_type if isinstance(found.issued_token_type, str) else None
        made = held_of(found.access_token, _seconds(found.expires_in), kind=kind, refresh=found.refresh_token)
        if made.over(_now()):
            raise AccessDenied(f"the token service of catalog '{self._name}' gives tokens that have expired already")
        return made


def _token_address(name: str, properties: Mapping[str, str]) -> str:
    """The address of the token service; a relative one is below the address of the service."""
    given = properties.get("oauth2-server-uri", "v1/oauth/tokens")
    return given if "://" in given else f"{checked_uri(name, properties.get(URI))}/{given.lstrip('/')}"


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _now() -> float:
    return time.monotonic()


def _seconds(stated: Any) -> float | None:
    """The stated lifetime of a token in whole seconds; None for a value that is no lifetime, such as NaN or -1."""
    try:
        seconds = int(float(stated))
    except (TypeError, ValueError, OverflowError):
        return None
    return float(seconds) if seconds >= 0 else None


def held_of(
    token: str,
    seconds: float | None,
    *,
    default: float | None = None,
    kind: str | None = None,
    refresh: str | None = None,
) -> HeldToken:
    """A token with its expiry: as stated by the service or by the token itself, or after ``default`` seconds."""
    now = _now()
    left = seconds
    if left is None and (stated := _stated_end(token)) is not None:
        left = stated - time.time()
    if left is None:
        left = default
    return HeldToken(token, kind or ACCESS_TOKEN, now, None if left is None else now + left, refresh)


def _stated_end(token: str) -> float | None:
    """The time that a JSON web token says of itself; it is not verified: the service does that."""
    parts = token.split(".")
    if len(parts) != 3 or len(token) > 65_536:
        return None
    try:
        claims = urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        return msgspec.json.decode(claims, type=_TokenClaims).exp
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return None


def _reason(body: bytes) -> str:
    try:
        found: Any = msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        found = None
    kind = found.get("error") if isinstance(found, dict) else None
    if isinstance(kind, dict):
        kind = kind.get("type")
    return kind if isinstance(kind, str) and kind.replace("_", "").isalnum() and len(kind) < 60 else "no reason given"
