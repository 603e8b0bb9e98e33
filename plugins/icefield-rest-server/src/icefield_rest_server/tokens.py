"""Who asks: bearer tokens, from a file or signed by an issuer."""

from __future__ import annotations

import hmac
import ipaddress
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

import jwt
from icefield.errors import InvalidArgument, StorageError

_MAX_TOKEN = 16 * 1024
_KEPT, _AGAIN, _PAUSE = 300, 10.0, 2.0
_NO_KEYS = "the issuer of tokens does not give its keys"
_ALGORITHMS = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""What each type of key may sign by: of any other type there are no keys that an issuer shows."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody who was recognised, with what the token says of them."""

    name: str
    claims: Mapping[str, Any] = field(default_factory=dict, repr=False)


class Authenticator(Protocol):
    """Recognises who sends a bearer token."""

    def principal(self, token: str) -> Principal | None:
        """Who it is; None for a token that is not valid. Raises ``StorageError`` where that cannot be found out."""


class StaticTokens:
    """Tokens by name. Only their digests are kept."""

    def __init__(self, tokens: Mapping[str, str]) -> None:
        self._names = {_digest(token): name for name, token in tokens.items()}
        if len(self._names) != len(tokens):
            raise InvalidArgument("two names have the same token")

    @classmethod
    def from_file(cls, path: str | Path) -> StaticTokens:
        """Of a file with a name and a token in each line; empty lines and those that begin with # are passed over."""
        tokens: dict[str, str] = {}
        for number, line in enumerate(Path(path).read_text("utf-8").splitlines(), 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if len(words) != 2 or words[0] in tokens or len(words[1]) < 16:
                raise InvalidArgument(
                    f"{path}, line {number}: write a name of its own and a token of 16 characters or more, with a "
                    "space between them"
                )
            tokens[words[0]] = words[1]
        if not tokens:
            raise InvalidArgument(f"{path} holds no token: write a name and a token in each line")
        return cls(tokens)

    def principal(self, token: str) -> Principal | None:
        """Who it is; None for a token that nobody has. Takes the same time for every token."""
        digest, found = _digest(token), None
        for known, name in self._names.items():
            if hmac.compare_digest(known, digest):
                found = name
        return None if found is None else Principal(found)


class JwtTokens:
    """Tokens that an issuer signed, whose keys are at a URL (JWKS); they must expire and be for this audience.

    The issuer is asked for its keys every five minutes, and for a key that is not among them once in ten seconds at
    most, however many tokens name such keys.
    """

    def __init__(self, jwks_uri: str, *, issuer: str, audience: str, name_claim: str = "sub") -> None:
        self._keys = jwt.PyJWKClient(jwks_uri, cache_jwk_set=True, lifespan=_KEPT, timeout=10)
        self._issuer, self._audience, self._claim = issuer, audience, name_claim
        self._lock = threading.Lock()
        self._asked_again = 0.0
        self._failed_until = 0.0

    def principal(self, token: str) -> Principal | None:
        """Who it is; None for a token that is not signed by the issuer, is for others, or has expired.

        Raises ``StorageError`` where the issuer gives no keys: nobody knows then whether the token is valid.
        """
        try:
            key = self._key(jwt.get_unverified_header(token).get("kid"))
            if key is None:
                return None
            claims: dict[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=_ALGORITHMS.get(key.key_type, ()),  # which of them is the token's to say
                issuer=self._issuer,
                audience=self._audience,
                options={"require": ["exp", "iss", "aud"]},
                leeway=30,
            )
        except jwt.PyJWTError:
            return None
        name = claims.get(self._claim)
        return Principal(name, claims) if isinstance(name, str) and name else None

    def _key(self, name: Any) -> Any:
        """The key of a name; None where the issuer has none."""
        if not isinstance(name, str):
            return None
        with self._lock:  # one asks, and the others take what came
            found = self._keys.match_kid(self._fetched(again=False), name)
            now = time.monotonic()
            if found is None and now >= self._asked_again + _AGAIN:
                self._asked_again = now
                found = self._keys.match_kid(self._fetched(again=True), name)
            return found

    def _fetched(self, *, again: bool) -> list[Any]:
        if time.monotonic() < self._failed_until:
            raise StorageError(_NO_KEYS, retryable=True)
        try:
            return self._keys.get_signing_keys(refresh=again)
        except (jwt.PyJWKClientConnectionError, ValueError, TypeError) as error:
            self._failed_until = time.monotonic() + _PAUSE
            raise StorageError(f"{_NO_KEYS}: {type(error).__name__}", retryable=True) from None
        except jwt.PyJWTError:
            return []


def bearer_token(header: str | None) -> str | None:
    """The token of an ``Authorization`` header, if it is a bearer token of sensible size."""
    kind, _, token = (header or "").strip().partition(" ")
    token = token.strip()
    return token if kind.lower() == "bearer" and 0 < len(token) <= _MAX_TOKEN else None


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, by its name or its address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _digest(token: str) -> bytes:
    return sha256(token.encode()).digest()
