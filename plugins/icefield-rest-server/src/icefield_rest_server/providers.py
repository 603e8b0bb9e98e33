"""The server's own authenticators, authorizer and vendors of credentials, made from properties."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from typing import Final

from icefield.errors import InvalidArgument, MissingPlugin

from icefield_rest_server.credentials import StaticCredentials, StsCredentials
from icefield_rest_server.routes import READING
from icefield_rest_server.settings import Authorizer
from icefield_rest_server.tokens import JwtTokens, Principal, StaticTokens

OWN: Final = "rest-server."


def static_tokens(properties: Mapping[str, str]) -> StaticTokens:
    """The tokens of the file ``rest-server.tokens``."""
    return StaticTokens.from_file(_value(properties, "tokens"))


def jwt_tokens(properties: Mapping[str, str]) -> JwtTokens:
    """The tokens of an issuer: ``rest-server.jwks``, ``rest-server.issuer`` and ``rest-server.audience``."""
    jwks, issuer, audience = (properties.get(f"{OWN}{name}") for name in ("jwks", "issuer", "audience"))
    if not (jwks and issuer and audience):
        raise InvalidArgument("tokens of an issuer need its keys and names: give jwks, issuer and audience")
    return JwtTokens(jwks, issuer=issuer, audience=audience)


def read_only(properties: Mapping[str, str]) -> Authorizer:
    """Allow the operations that change nothing."""
    return only_reading(None)


def only_reading(authorizer: Authorizer | None) -> Authorizer:
    """Allow the operations that change nothing, and that another authorizer allows."""

    def allows(principal: Principal | None, operation: str, name: tuple[str, ...]) -> bool:
        return operation in READING and (authorizer is None or authorizer(principal, operation, name))

    return allows


def static_credentials(properties: Mapping[str, str]) -> StaticCredentials:
    """The properties by prefix in the JSON file ``rest-server.credentials``."""
    with open(_value(properties, "credentials"), encoding="utf-8") as source:
        return StaticCredentials(json.load(source))


def sts_credentials(properties: Mapping[str, str]) -> StsCredentials:
    """Short-lived keys of AWS STS for the role ``rest-server.sts.role-arn``, in ``rest-server.sts.region``."""
    try:
        boto3 = import_module("boto3")
    except ImportError as error:
        raise MissingPlugin('the vendor sts needs boto3: pip install "icefield-rest-server[sts]"') from error
    region = properties.get(f"{OWN}sts.region")
    return StsCredentials(boto3.client("sts", region_name=region), _value(properties, "sts.role-arn"), region=region)


def _value(properties: Mapping[str, str], name: str) -> str:
    """A property of the server that must be given."""
    value = properties.get(f"{OWN}{name}")
    if not value:
        raise InvalidArgument(f"the property {OWN}{name} is not set: give it a value")
    return value
