"""Credentials: which properties hold them, and strings freed of them."""

from icefield.secrets.credentials import (
    HIDDEN,
    credentials_in,
    has_password,
    holds_credential,
    scrub,
    without_credentials,
    without_userinfo,
)

__all__ = [
    "HIDDEN",
    "credentials_in",
    "has_password",
    "holds_credential",
    "scrub",
    "without_credentials",
    "without_userinfo",
]
