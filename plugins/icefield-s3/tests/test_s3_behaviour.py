"""Tables in a bucket behave as tables do everywhere, with each strategy."""

from __future__ import annotations

from uuid import uuid4

import pytest
from icefield import Catalog, load_catalog
from icefield_testing import TableBehaviourSuite
from servers.s3 import S3


class TestS3WithCreate(TableBehaviourSuite):
    @pytest.fixture
    def catalog(self, s3: S3) -> Catalog:
        warehouse = f"s3://{s3.bucket}/{uuid4().hex}"
        return load_catalog("test", type="directory", warehouse=warehouse, commit="create", **s3.properties)


class TestS3WithDynamoDbLock(TableBehaviourSuite):
    racers = 4

    @pytest.fixture
    def catalog(self, s3: S3, lock_properties: dict[str, str]) -> Catalog:
        warehouse = f"s3a://{s3.bucket}/{uuid4().hex}"
        properties = {**s3.properties, **lock_properties}
        return load_catalog("test", type="directory", warehouse=warehouse, commit="dynamodb-lock", **properties)
