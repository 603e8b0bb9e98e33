"""Signatures of requests to S3 (AWS Signature Version 4) for requests without their bodies."""

from __future__ import annotations

import hmac
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final
from urllib.parse import quote

S3_SCHEMES: Final = ("s3", "s3a", "s3n")
"""The schemes of locations in S3."""

HASH: Final = "x-amz-content-sha256"
_UNRESERVED: Final = "-_.~"


@dataclass(frozen=True, slots=True)
class S3Keys:
    """The keys of an account; temporary keys have a session token."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


def signed_headers(
    method: str,
    authority: str,
    path: str,
    query: list[tuple[str, str]],
    headers: Mapping[str, str],
    keys: S3Keys,
    region: str,
    now: float | None = None,
) -> dict[str, str]:
    """All headers of a request, by lower-case names, with its signature.

    ``path`` and ``query`` are without escapes. ``headers`` have the hash of the body, and all of them are signed.
    """
    at = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() if now is None else now))
    found = {**{name.lower(): " ".join(value.split()) for name, value in headers.items()}, "x-amz-date": at}
    if keys.session_token is not None:
        found["x-amz-security-token"] = keys.session_token
    canonical = {**found, "host": authority}
    names = ";".join(sorted(canonical))
    pairs = sorted((quote(name, safe=_UNRESERVED), quote(value, safe=_UNRESERVED)) for name, value in query)
    request = [
        method,
        quote(path, safe=f"/{_UNRESERVED}"),
        "&".join(f"{name}={value}" for name, value in pairs),
        *(f"{name}:{canonical[name]}" for name in sorted(canonical)),
        "",
        names,
        found[HASH],
    ]
    scope = f"{at[:8]}/{region}/s3/aws4_request"
    text = "\n".join(("AWS4-HMAC-SHA256", at, scope, sha256("\n".join(request).encode()).hexdigest()))
    key = f"AWS4{keys.secret_access_key}".encode()
    for part in (at[:8], region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    credential = f"Credential={keys.access_key_id}/{scope}"
    found["authorization"] = f"AWS4-HMAC-SHA256 {credential}, SignedHeaders={names}, Signature={signature}"
    return found
