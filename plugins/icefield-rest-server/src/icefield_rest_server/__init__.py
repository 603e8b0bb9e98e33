"""A server of the Iceberg REST catalog protocol over any catalog of Icefield.

Names are imported when they are first used: the hooks of this plugin need no web framework.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from icefield_rest_server.answers import Answer, Refused
    from icefield_rest_server.application import app
    from icefield_rest_server.aws_signature import S3Keys
    from icefield_rest_server.credentials import StaticCredentials, StsCredentials, VendedCredentials
    from icefield_rest_server.idempotency import Begun, IdempotencyStore
    from icefield_rest_server.serving import Options, check, serve
    from icefield_rest_server.settings import Authorizer, CredentialVendor, Settings
    from icefield_rest_server.signing import S3Signer
    from icefield_rest_server.tokens import Authenticator, JwtTokens, Principal, StaticTokens

_MODULES = {
    "answers": ("Answer", "Refused"),
    "application": ("app",),
    "aws_signature": ("S3Keys",),
    "credentials": ("StaticCredentials", "StsCredentials", "VendedCredentials"),
    "idempotency": ("Begun", "IdempotencyStore"),
    "serving": ("Options", "check", "serve"),
    "settings": ("Authorizer", "CredentialVendor", "Settings"),
    "signing": ("S3Signer",),
    "tokens": ("Authenticator", "JwtTokens", "Principal", "StaticTokens"),
}
_PUBLIC = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Answer",
    "Authenticator",
    "Authorizer",
    "Begun",
    "CredentialVendor",
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
        raise AttributeError(f"module 'icefield_rest_server' has no attribute {name!r}")
    return getattr(import_module(f"icefield_rest_server.{module}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
