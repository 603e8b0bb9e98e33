"""Authentication by bearer tokens, from a file or signed by an issuer."""

from __future__ import annotations

import binascii
import hmac
import ipaddress
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

import jwt
from icefield.errors import InvalidArgument

from icefield_rest_server.issuer_keys import IssuerKeys

_MAX_TOKEN = 16 * 1024
_ALGORITHMS = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""The signature algorithms of each type of key; issuers publish no keys of other types."""


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated client, with the claims of its token."""

    name: str
    claims: Mapping[str, Any] = field(default_factory=dict, repr=False)


class Authenticator(Protocol):
    """Authenticates the sender of a bearer token."""

    def principal(self, token: str) -> Principal | None:
        """Return the principal of a token; None for an invalid token.

        Raises ``StorageError`` where the token cannot be checked.
        """


class StaticTokens:
    """Tokens by name. Only their digests are kept."""

    def __init__(self, tokens: Mapping[str, str]) -> None:
        self._names = {_digest(token): name for name, token in tokens.items()}
        if len(self._names) != len(tokens):
            raise InvalidArgument("two names have the same token")

    @classmethod
    def from_file(cls, path: str | Path) -> StaticTokens:
        """Read a file with a name and a token in each line; empty lines and lines that begin with # are ignored."""
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
        """Return the principal of a token; None for an unknown token. Takes the same time for every token."""
        digest, found = _digest(token), None
        for known, name in self._names.items():
            if hmac.compare_digest(known, digest):
                found = name
        return None if found is None else Principal(found)


class JwtTokens:
    """Tokens signed by an issuer that publishes its keys at a URL (JWKS); they must expire and name this audience.

    ``IssuerKeys`` describes when the issuer is asked. Raises ``InvalidArgument`` without the name of the issuer or
    audience: foreign tokens would be accepted.
    """

    def __init__(self, jwks_uri: str, *, issuer: str, audience: str, name_claim: str = "sub") -> None:
        if not issuer or not audience:
            raise InvalidArgument("tokens of an issuer need its name and the audience: give issuer and audience")
        self._keys = IssuerKeys(jwks_uri)
        self._issuer, self._audience, self._claim = issuer, audience, name_claim

    def principal(self, token: str) -> Principal | None:
        """Return the principal; None for a token without the issuer's signature, for another audience, or expired.

        Raises ``StorageError`` where the issuer gives no keys: the validity of the token is then unknown.
        """
        try:
            named = jwt.get_unverified_header(token).get("kid")
            key = self._keys.key(named) if isinstance(named, str) else None
            if key is None:
                return None
            claims: dict[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=_ALGORITHMS.get(key.key_type or "", ()),  # the token states which of them
                issuer=self._issuer,
                audience=self._audience,
                options={"require": ["exp", "iss", "aud"]},
                leeway=30,
            )
        except (jwt.PyJWTError, RecursionError):  # a header may be nested deeply
            return None
        name = claims.get(self._claim)
        return Principal(name, claims) if isinstance(name, str) and name else None


def bearer_token(header: str | None) -> str | None:
    """The token of an ``Authorization`` header, if it is a bearer token of sensible size."""
    kind, _, token = (header or "").strip().partition(" ")
    token = token.strip()
    return token if kind.lower() == "bearer" and 0 < len(token) <= _MAX_TOKEN else None


def basic_token(header: str | None) -> str | None:
    """The password of an ``Authorization`` header of the scheme Basic, if it can be a token."""
    kind, _, encoded = (header or "").strip().partition(" ")
    if kind.lower() != "basic" or len(encoded) > 2 * _MAX_TOKEN:
        return None
    try:
        token = b64decode(encoded.strip(), validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return None
    return token if 0 < len(token) <= _MAX_TOKEN else None


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, by its name or its address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _digest(token: str) -> bytes:
    return sha256(token.encode()).digest()
