"""Tables in a container behave as tables do everywhere."""

from __future__ import annotations

from uuid import uuid4

import pytest
from icefield import Catalog, load_catalog
from icefield_testing import TableBehaviourSuite
from servers.azure import ACCOUNT, Azure


class TestAdlsWithCreate(TableBehaviourSuite):
    @pytest.fixture
    def catalog(self, azure: Azure) -> Catalog:
        warehouse = f"abfss://{azure.container}@{ACCOUNT}.dfs.core.windows.net/{uuid4().hex}"
        return load_catalog("test", type="directory", warehouse=warehouse, commit="create", **azure.properties)
