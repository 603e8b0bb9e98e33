"""Tables in a bucket behave as tables do everywhere."""

from __future__ import annotations

from uuid import uuid4

import pytest
from icefield import Catalog, load_catalog
from icefield_testing import TableBehaviourSuite
from servers.gcs import Gcs


class TestGcsWithCreate(TableBehaviourSuite):
    @pytest.fixture
    def catalog(self, gcs: Gcs) -> Catalog:
        warehouse = f"gs://{gcs.bucket}/{uuid4().hex}"
        return load_catalog("test", type="directory", warehouse=warehouse, commit="create", **gcs.properties)
