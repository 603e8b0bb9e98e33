"""The properties of the plugin: names, defaults, and the settings made from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from icefield.errors import InvalidArgument
from icefield.toolkit import RetryLimits, endpoint_of, is_true, whole_number

PREFIXES: Final = ("s3.", "client.")
CONDITIONAL_PUT: Final = "s3.conditional-put"
_MIB: Final = 1024 * 1024
_ENCRYPTION: Final = {"none": None, "s3": "AES256", "kms": "aws:kms", "dsse-kms": "aws:kms:dsse"}


@dataclass(frozen=True, slots=True)
class Role:
    """A role to assume: its credentials are fetched from the token service, and renewed."""

    arn: str
    session: str | None
    external_id: str | None
    region: str | None


@dataclass(frozen=True)
class S3Settings:
    """The settings from the properties; None leaves a setting to the SDK.

    ``repr`` hides all values, since some are secret.
    """

    endpoint: str | None
    region: str | None
    access_key: str | None
    secret_key: str | None
    token: str | None
    profile: str | None
    anonymous: bool
    signed_elsewhere: bool
    """By the service of the catalog: no key is here."""
    role: Role | None
    proxy: str | None
    addressing: str
    dualstack: bool
    accelerate: bool
    checksums: bool
    written: dict[str, Any]
    """Arguments for every object that is written: its encryption, its storage class."""
    read_part: int
    write_part: int
    batch: int
    connect_timeout: float
    request_timeout: float
    limits: RetryLimits

    def __repr__(self) -> str:
        return "Settings()"


def settings_of(properties: Mapping[str, str]) -> S3Settings:
    """Read the properties. Raises ``InvalidArgument`` for a value that cannot be used."""

    def first(*names: str) -> str | None:
        return next((properties[name] for name in names if properties.get(name)), None)

    _refuse(properties)
    access_key = first("s3.access-key-id", "client.access-key-id")
    secret_key = first("s3.secret-access-key", "client.secret-access-key")
    if (access_key is None) != (secret_key is None):
        raise InvalidArgument("s3.access-key-id and s3.secret-access-key belong together: one of them is not set")
    region = first("s3.region", "client.region")
    return S3Settings(
        endpoint=_endpoint(first("s3.endpoint")),
        region=region,
        access_key=access_key,
        secret_key=secret_key,
        token=first("s3.session-token", "client.session-token"),
        profile=first("s3.profile-name", "client.profile-name"),
        anonymous=is_true(properties, "s3.anonymous"),
        signed_elsewhere=is_true(properties, "s3.remote-signing-enabled"),
        role=_role(first, region),
        proxy=first("s3.proxy-uri"),
        addressing=_addressing(properties),
        dualstack=is_true(properties, "s3.dualstack-enabled"),
        accelerate=is_true(properties, "s3.acceleration-enabled"),
        checksums=is_true(properties, "s3.checksum-enabled"),
        written=_written(properties),
        read_part=whole_number(properties, "s3.read.part-size-bytes", 8 * _MIB, 64 * 1024),
        write_part=whole_number(properties, "s3.multipart.part-size-bytes", 8 * _MIB, 5 * _MIB),
        batch=min(whole_number(properties, "s3.delete.batch-size", 1_000, 1), 1_000),  # it takes no more
        connect_timeout=_seconds(properties, "s3.connect-timeout", 5),
        request_timeout=_seconds(properties, "s3.request-timeout", 20),
        limits=RetryLimits.of(properties, "s3."),
    )


def given_credentials(settings: S3Settings) -> str | None:
    """Which credentials the properties give, in words without a secret; None when they leave that to the SDK."""
    if settings.signed_elsewhere:
        return "none: the catalog's service signs each request"
    if settings.anonymous:
        return "anonymous, by s3.anonymous"
    if settings.role is not None:
        return f"those of the role {settings.role.arn}"
    if settings.access_key is not None:
        kind = "temporary" if settings.token else "lasting"
        return f"the {kind} ones of s3.access-key-id, '{settings.access_key}'"
    return None


def _role(first: Any, region: str | None) -> Role | None:
    arn = first("s3.role-arn", "client.role-arn", "client.assume-role.arn")
    if arn is None:
        return None
    return Role(
        arn,
        first("s3.role-session-name", "client.role-session-name", "client.assume-role.session-name"),
        first("client.assume-role.external-id"),
        first("client.assume-role.region") or region,
    )


def _endpoint(address: str | None) -> str | None:
    if not address:
        return None
    return str(endpoint_of(address, "s3.endpoint"))


def _addressing(properties: Mapping[str, str]) -> str:
    path = is_true(properties, "s3.path-style-access")
    virtual = is_true(properties, "s3.force-virtual-addressing")
    if path and virtual:
        raise InvalidArgument("s3.path-style-access and s3.force-virtual-addressing exclude each other")
    return "path" if path else "virtual" if virtual else "auto"


def _refuse(properties: Mapping[str, str]) -> None:
    """Refuse properties that other libraries support and this plugin must not ignore."""
    if properties.get("s3.delete-enabled", "true").lower() == "false":
        raise InvalidArgument(
            "s3.delete-enabled=false is not supported: files would be deleted all the same; withhold the right to "
            "delete from the credentials instead"
        )


def _written(properties: Mapping[str, str]) -> dict[str, Any]:
    kind = properties.get("s3.sse.type", "none").lower()
    if kind not in _ENCRYPTION:
        raise InvalidArgument(f"s3.sse.type is one of {', '.join(_ENCRYPTION)}, not {kind!r}")
    encryption = _ENCRYPTION[kind] or properties.get("s3.server-side-encryption")
    sent = {
        "ServerSideEncryption": encryption,
        "SSEKMSKeyId": properties.get("s3.sse.key") or properties.get("s3.sse-kms-key-id"),
        "StorageClass": properties.get("s3.write.storage-class"),
        "ACL": properties.get("s3.acl"),
    }
    if sent["SSEKMSKeyId"] and not (encryption or "").startswith("aws:kms"):
        raise InvalidArgument("a key is named and no encryption that takes one: set s3.sse.type to kms or dsse-kms")
    return {name: value for name, value in sent.items() if value}


def _seconds(properties: Mapping[str, str], name: str, default: float) -> float:
    string = properties.get(name)
    if string is None:
        return default
    try:
        seconds = float(string)
    except ValueError:
        seconds = 0
    if not 0 < seconds < 86_400:
        raise InvalidArgument(f"{name} is a number of seconds above 0, not {string!r}")
    return seconds
