"""The Glue Data Catalog on loopback: moto's, in the same process as its S3. It checks no signature."""

from __future__ import annotations

from typing import Any

import pytest

from servers.s3 import S3

SECRET = "planted-secret-of-glue"
REGION = "us-east-1"


@pytest.fixture(scope="session")
def glue(s3: S3) -> dict[str, str]:
    """The properties that reach a server which ends with the session."""
    return {
        "glue.endpoint": s3.url,
        "glue.region": REGION,
        "glue.access-key-id": "test",
        "glue.secret-access-key": SECRET,
    }


def client(url: str) -> Any:
    """A client of boto3, another than that of the plugin."""
    import boto3

    keys = {"aws_access_key_id": "test", "aws_secret_access_key": SECRET}
    return boto3.client("glue", endpoint_url=url, region_name=REGION, **keys)


def drop_databases(properties: dict[str, str]) -> None:
    """Drop every database with its tables."""
    asked = client(properties["glue.endpoint"])
    for page in asked.get_paginator("get_databases").paginate():
        for database in page["DatabaseList"]:
            asked.delete_database(Name=database["Name"])
