"""Requests signed by the service of a catalog: it gets a description of each request, and returns signed headers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any, Final

from icefield.abc import FileAccess, UnsignedRequest
from icefield.errors import InvalidArgument

from icefield_s3.settings import S3Settings

_HASH: Final = "x-amz-content-sha256"
# Headers to sign, besides x-amz-*: they reach the store unchanged, whereas the transport adds and changes others.
_SIGNED: Final = frozenset({"content-md5", "content-type", "if-match", "if-none-match", "range"})
Signer = Callable[..., Awaitable[None]]


def signer_of(settings: S3Settings, access: FileAccess | None) -> Signer | None:
    """Return the function that signs a request before it is sent; None where the SDK signs requests itself.

    Raises ``InvalidArgument`` if the settings ask for a service's signatures and there is no service.
    """
    if not settings.signed_elsewhere:
        return None
    if access is None:
        raise InvalidArgument(
            "s3.remote-signing-enabled is for tables of a catalog of type 'rest', whose service signs: remove it"
        )

    async def sign(request: Any, region: str | None = None, **more: Any) -> None:
        headers = {name.lower(): _string(value) for name, value in request.headers.items()}
        wanted = {name: value for name, value in headers.items() if name in _SIGNED or name.startswith("x-amz-")}
        body = _bytes(request.body)
        wanted[_HASH] = sha256(body).hexdigest()
        shown = body if request.method == "POST" and "delete" in request.url.partition("?")[2] else None
        unsigned = UnsignedRequest(request.method, request.url, region or "us-east-1", wanted, shown)
        signed = await asyncio.to_thread(access.sign, unsigned)
        for name, value in signed.items():
            if name != "host":  # the URL has the same host
                request.headers[name] = value

    return sign


def _string(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _bytes(body: Any) -> bytes:
    if body is None:
        return b""
    if isinstance(body, str):
        return body.encode()
    return bytes(body) if isinstance(body, bytes | bytearray | memoryview) else bytes(body.getvalue())
