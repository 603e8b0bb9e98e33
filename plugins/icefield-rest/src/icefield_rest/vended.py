"""Credentials that the service gives for the files of one table, and for how long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from icefield.abc import TableName

from icefield_rest.service import Service

# When credentials end, in milliseconds since 1970, as the services spell it.
_ENDS: Final = (
    "s3.session-token-expires-at-ms",
    "gcs.oauth2.token-expires-at",
    "adls.sas-token-expires-at-ms",
)


class VendedCredential(msgspec.Struct):
    """Properties that open what is below a prefix."""

    prefix: str
    config: dict[str, str]


def vended_properties(
    service: Service,
    table: TableName,
    config: Mapping[str, str | None],
    credentials: Sequence[VendedCredential],
    location: str,
) -> tuple[dict[str, str], float | None]:
    """The properties that open the files of a table, and when they end, in seconds since 1970."""
    fitting = [each for each in credentials if location.startswith(each.prefix)]
    best = max(fitting, key=lambda each: len(each.prefix), default=None)
    found = dict(best.config) if best is not None else {}
    stated = {key: value for key, value in config.items() if value is not None} | found
    return found, _end(stated)


def _end(properties: Mapping[str, str]) -> float | None:
    ends = [
        int(value) / 1_000
        for key, value in properties.items()
        if key.startswith(_ENDS) and value.isascii() and value.isdigit() and len(value) < 16
    ]
    return min(ends, default=None)
