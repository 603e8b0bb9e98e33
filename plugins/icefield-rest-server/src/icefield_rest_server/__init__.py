"""A server of the Iceberg REST catalog protocol over any catalog of Icefield."""

from icefield_rest_server.answers import Answer, Refused
from icefield_rest_server.app import app
from icefield_rest_server.aws_signature import S3Keys
from icefield_rest_server.credentials import StaticCredentials, StsCredentials, VendedCredentials
from icefield_rest_server.idempotency import Begun, IdempotencyStore
from icefield_rest_server.serving import Options, check, serve
from icefield_rest_server.settings import Settings
from icefield_rest_server.signing import S3Signer
from icefield_rest_server.tokens import JwtTokens, Principal, StaticTokens

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
