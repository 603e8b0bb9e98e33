"""The Key Management Service of AWS on loopback: moto's, in the same process as its S3. It checks no signature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from servers.s3 import S3

SECRET = "planted-secret-of-kms"


@dataclass(frozen=True)
class Kms:
    """The address of the service, and the ids of its master keys."""

    url: str
    key_id: str
    other_key_id: str
    disabled_key_id: str

    @property
    def properties(self) -> dict[str, str]:
        """The properties of a key service that reaches it."""
        return {
            "kms.endpoint": self.url,
            "client.region": "us-east-1",
            "client.access-key-id": "test",
            "client.secret-access-key": SECRET,
        }


def client(url: str) -> Any:
    """A client of boto3."""
    import boto3

    keys = {"aws_access_key_id": "test", "aws_secret_access_key": SECRET}
    return boto3.client("kms", endpoint_url=url, region_name="us-east-1", **keys)


@pytest.fixture(scope="session")
def kms(s3: S3) -> Kms:
    """A service with three master keys, one of them disabled; the first has the alias ``alias/orders``."""
    asked = client(s3.url)
    key_id, other, disabled = (asked.create_key()["KeyMetadata"]["KeyId"] for _ in range(3))
    asked.create_alias(AliasName="alias/orders", TargetKeyId=key_id)
    asked.disable_key(KeyId=disabled)
    return Kms(s3.url, key_id, other, disabled)
