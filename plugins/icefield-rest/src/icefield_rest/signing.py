"""Requests to S3 that the service signs, so that no key of the store leaves it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec
from icefield.abc import FileAccess, TableName, UnsignedRequest
from icefield.errors import AccessDenied, StorageError
from icefield.toolkit import SharedClients, decodable, is_true

from icefield_rest.endpoints import Endpoint
from icefield_rest.failures import ServiceRefusal, Uncertain, error_of
from icefield_rest.service import Service

ENABLED: Final = "s3.remote-signing-enabled"
_ADDED: Final = frozenset({"authorization", "host", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token"})
_OLD_DEFAULT: Final = "v1/aws/s3/sign"  # of services that do not list the endpoint of the protocol
_SERVICES: Final[SharedClients[Service]] = SharedClients()
_HASH: Final = "x-amz-content-sha256"
_UNSIGNED: Final = "UNSIGNED-PAYLOAD"
_MOST: Final = 1024 * 1024

Items = tuple[tuple[str, str], ...]


@decodable
class SigningConfig(msgspec.Struct):
    """The properties and headers that a service wants with each request to sign."""

    properties: dict[str, str] | None = None
    headers: dict[str, list[str]] | None = None


@decodable
class _Signed(msgspec.Struct):
    uri: str
    headers: dict[str, list[str]]


_decoder = msgspec.json.Decoder(_Signed)


@dataclass(frozen=True)
class SigningAccess(FileAccess):
    """S3 by requests that the service of a catalog signs, asked from any process."""

    prefix: str
    table: TableName
    catalog: str
    address: str
    sent: Items = ()
    headers: Items = ()
    asked_by: Items = field(default=(), repr=False)
    """The user's properties, with the secrets that the service is asked by."""

    @property
    def due(self) -> bool:
        return False

    def properties(self) -> Mapping[str, str]:
        return {ENABLED: "true"}

    def sign(self, request: UnsignedRequest) -> Mapping[str, str]:
        service = _SERVICES.get((self.catalog, self.asked_by), lambda: Service(self.catalog, dict(self.asked_by)))
        what = f"signing a request for a file of {'.'.join(self.table)}"
        body: dict[str, Any] = {
            "region": request.region,
            "uri": request.url,
            "method": request.method,
            "headers": {name: [value] for name, value in request.headers.items()},
            "provider": "s3",
        }
        if self.sent:
            body["properties"] = dict(self.sent)
        if request.body is not None:
            body["body"] = request.body.decode("utf-8", "strict")
        ask = service.connection.ask
        try:
            answer = ask(
                "POST", self.address, what, body=body, headers=dict(self.headers), limit=_MOST, repeatable=True
            )
        except ServiceRefusal as refused:
            raise error_of(refused, what) from refused
        except Uncertain as error:
            raise StorageError(f"{what}: {error}", retryable=True) from error
        return checked(request, answer.decoded(_decoder, what), what)


def signing(
    service: Service, table: TableName, stated: Mapping[str, str], config: SigningConfig | None
) -> SigningAccess | None:
    """Return the signer of requests for a table's files, if the service signs them."""
    settings = {**service.properties, **stated}
    if not is_true(settings, ENABLED):
        return None
    base = settings.get("signer.uri") or settings.get("s3.signer.uri")
    default = service.table_path(table, "sign") if service.has(Endpoint.SIGN) else _OLD_DEFAULT
    path = settings.get("signer.endpoint") or settings.get("s3.signer.endpoint") or default
    address = path if base is None or "://" in path else f"{base.rstrip('/')}/{path.lstrip('/')}"
    found = config or SigningConfig()
    return SigningAccess(
        "s3",
        table,
        service.name,
        address,
        tuple(sorted((found.properties or {}).items())),
        tuple(sorted((name, ",".join(values)) for name, values in (found.headers or {}).items())),
        tuple(sorted(service.given.items())),
    )


def checked(asked: UnsignedRequest, signed: _Signed, what: str) -> dict[str, str]:
    """Return the headers of a signed request. Raises ``AccessDenied`` if the service signed another request."""
    if _parts(signed.uri) != _parts(asked.url):
        raise AccessDenied(f"{what}: the service signed another request than it was asked to, which is not sent")
    found = {name.lower(): ",".join(values) for name, values in signed.headers.items()}
    wanted = {name.lower(): value for name, value in asked.headers.items()}
    changed = sorted(name for name, value in found.items() if name in wanted and not _is_same(name, value, wanted))
    added = sorted(name for name in found.keys() - wanted.keys() if name not in _ADDED)
    if changed or added:
        raise AccessDenied(
            f"{what}: the service signed other headers than it was asked to ({', '.join([*changed, *added])[:200]}), "
            "and the request is not sent"
        )
    if "authorization" not in found:
        raise AccessDenied(f"{what}: the service gave no signature")
    if any(character in value for value in found.values() for character in "\r\n\0"):
        raise AccessDenied(f"{what}: the service gave headers that cannot be sent")
    return {**wanted, **found}


def _is_same(name: str, value: str, wanted: Mapping[str, str]) -> bool:
    """Whether a header is unchanged; a service may sign without a hash of the body, as Java's client does."""
    return value.strip() == wanted[name].strip() or (name == _HASH and value == _UNSIGNED)


def _parts(url: str) -> tuple[Any, ...]:
    """Return the normalized parts of an address."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    query = sorted(parse_qsl(parts.query, keep_blank_values=True))
    return parts.scheme, (parts.hostname or "").lower(), port, unquote(parts.path) or "/", query, parts.username
