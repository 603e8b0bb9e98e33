"""A server of the Iceberg REST catalog protocol over any catalog of Icefield.

Names are imported lazily: the hooks of this plugin need none of its libraries.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from icefield_rest_server.answers import Answer, Refused
    from icefield_rest_server.app import app
    from icefield_rest_server.aws_signature import S3Keys
    from icefield_rest_server.credentials import StaticCredentials, StsCredentials, VendedCredentials
    from icefield_rest_server.idempotency import Begun, IdempotencyStore
    from icefield_rest_server.serving import Options, check, serve
    from icefield_rest_server.settings import Settings
    from icefield_rest_server.signing import S3Signer
    from icefield_rest_server.tokens import JwtTokens, Principal, StaticTokens

_PUBLIC = {
    "Answer": "answers",
    "Begun": "idempotency",
    "IdempotencyStore": "idempotency",
    "JwtTokens": "tokens",
    "Options": "serving",
    "Principal": "tokens",
    "Refused": "answers",
    "S3Keys": "aws_signature",
    "S3Signer": "signing",
    "Settings": "settings",
    "StaticCredentials": "credentials",
    "StaticTokens": "tokens",
    "StsCredentials": "credentials",
    "VendedCredentials": "credentials",
    "app": "app",
    "check": "serving",
    "serve": "serving",
}

__all__ = [
    "Answer",
    "Begun",
    "IdempotencyStore",
    "JwtTokens",
    "Options",
    "Principal",
    "Refused",
    "S3Keys",
    "S3Signer",
    "Settings",
    "StaticCredentials",
    "StaticTokens",
    "StsCredentials",
    "VendedCredentials",
    "app",
    "check",
    "serve",
]


def __getattr__(name: str) -> Any:
    module = _PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"module '{__name__}' has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
