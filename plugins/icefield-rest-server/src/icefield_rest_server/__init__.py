"""A server of the Iceberg REST catalog protocol over any catalog of Icefield.

Names are imported when they are first used: the hooks of this plugin need no web framework.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from icefield import lazy_names

if TYPE_CHECKING:
    from icefield_rest_server.answers import Answer, Refused
    from icefield_rest_server.application import app
    from icefield_rest_server.aws_signature import S3Keys
    from icefield_rest_server.credentials import StaticCredentials, StsCredentials, VendedCredentials
    from icefield_rest_server.idempotency import Begun, IdempotencyStore
    from icefield_rest_server.pages import PageRequest, Pages, ReadAccess
    from icefield_rest_server.serving import Options, check, serve
    from icefield_rest_server.settings import Authorizer, CredentialVendor, Settings
    from icefield_rest_server.signing import S3Signer
    from icefield_rest_server.tokens import Authenticator, JwtTokens, Principal, StaticTokens

__getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Answer",
    "Authenticator",
    "Authorizer",
    "Begun",
    "CredentialVendor",
    "IdempotencyStore",
    "JwtTokens",
    "Options",
    "PageRequest",
    "Pages",
    "Principal",
    "ReadAccess",
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
