"""Vended credentials for a table's files: fixed keys by prefix, or short-lived keys of STS."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from icefield.errors import InvalidArgument, StorageError

from icefield_rest_server.aws_signature import S3_SCHEMES
from icefield_rest_server.tokens import Principal

_STORE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_FOLDER: Final = re.compile(r"[A-Za-z0-9._-]{3,255}/.*[^/].*", re.DOTALL)
_WRITES: Final = ("s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")
_MEANT: Final = str.maketrans({letter: f"${{{letter}}}" for letter in "*?$"})

VendedCredentials = list[tuple[str, dict[str, str]]]
"""Prefixes of locations, each with the client's properties for it."""


@dataclass(frozen=True, slots=True)
class StaticCredentials:
    """Fixed properties by prefix; a table gets the properties of the longest prefix of its location.

    Raises ``InvalidArgument`` for anything but an object of prefixes, and for a prefix without a scheme.
    """

    by_prefix: Mapping[str, Mapping[str, str]] = field(repr=False)

    def __post_init__(self) -> None:
        try:
            msgspec.convert(self.by_prefix, dict[str, dict[str, str]])
        except msgspec.ValidationError:  # its message may hold a secret
            raise InvalidArgument("credentials are an object of prefixes, each with an object of properties") from None
        for prefix in self.by_prefix:
            if not _STORE.match(prefix):
                raise InvalidArgument(f"credentials are for a prefix such as s3://bucket/, and not for '{prefix:.100}'")

    def credentials(
        self, principal: Principal | None, table: tuple[str, ...], location: str, writes: bool
    ) -> VendedCredentials:
        """Return the credentials of the longest prefix, as they are; none where no prefix fits."""
        fitting = [prefix for prefix in self.by_prefix if _below(location, prefix)]
        if not fitting:
            return []
        prefix = max(fitting, key=len)
        return [(prefix, dict(self.by_prefix[prefix]))]


class StsCredentials:
    """Short-lived keys of AWS STS, for a role, and restricted to the table's own prefix.

    ``client`` is a client of boto3 for ``sts``. Keys are used again until five minutes before they expire.
    """

    def __init__(self, client: Any, role_arn: str, *, region: str | None = None, seconds: int = 3600) -> None:
        self._client, self._role, self._region, self._seconds = client, role_arn, region, seconds
        self._known: dict[tuple[str, str, bool], tuple[float, dict[str, str]]] = {}
        self._lock = threading.Lock()

    def credentials(
        self, principal: Principal | None, table: tuple[str, ...], location: str, writes: bool
    ) -> VendedCredentials:
        """Return keys for the files below the table's location; none for a whole bucket, or outside S3.

        Keys of clients that may not change the table only read. Raises ``StorageError`` where STS issues no keys.
        """
        scheme, _, rest = location.partition("://")
        if scheme not in S3_SCHEMES or not _FOLDER.fullmatch(rest):
            return []
        who = principal.name if principal is not None else "anonymous"
        with self._lock:
            expires, properties = self._known.get((who, location, writes), (0.0, {}))
        if expires < time.time() + 300:
            expires, properties = self._assumed(who, rest.rstrip("/"), writes)
            with self._lock:
                self._known = {key: held for key, held in self._known.items() if held[0] > time.time()}
                self._known[who, location, writes] = (expires, properties)
        return [(location, dict(properties))]

    def _assumed(self, who: str, path: str, writes: bool) -> tuple[float, dict[str, str]]:
        session = "".join(letter if letter.isalnum() else "-" for letter in who)[:40]
        try:
            answer = self._client.assume_role(
                RoleArn=self._role,
                RoleSessionName=f"icefield-{session}",
                DurationSeconds=self._seconds,
                Policy=_policy(path, writes),
            )["Credentials"]
        except Exception as error:
            raise StorageError(f"AWS STS gives no credentials: {type(error).__name__}", retryable=True) from None
        expires = answer["Expiration"].timestamp()
        region = {"client.region": self._region} if self._region else {}
        return expires, {
            "s3.access-key-id": answer["AccessKeyId"],
            "s3.secret-access-key": answer["SecretAccessKey"],
            "s3.session-token": answer["SessionToken"],
            "s3.session-token-expires-at-ms": str(int(expires * 1000)),
            **region,
        }


def _policy(path: str, writes: bool) -> str:
    """Return the policy that restricts the keys to the objects below the table's location.

    A policy's special characters are escaped: a location may contain them.
    """
    bucket, _, folder = path.partition("/")
    prefix = folder.translate(_MEANT)
    objects = {
        "Effect": "Allow",
        "Action": ["s3:GetObject", *(_WRITES if writes else ())],
        "Resource": f"arn:aws:s3:::{bucket}/{prefix}/*",
    }
    listing = {
        "Effect": "Allow",
        "Action": "s3:ListBucket",
        "Resource": f"arn:aws:s3:::{bucket}",
        "Condition": {"StringLike": {"s3:prefix": [f"{prefix}/*"]}},
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [objects, listing]})


def _below(location: str, prefix: str) -> bool:
    return location == prefix or location.startswith(prefix if prefix.endswith("/") else prefix + "/")
