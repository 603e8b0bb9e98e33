"""Tables on HDFS behave as tables do everywhere."""

from __future__ import annotations

from uuid import uuid4

import pytest
from icefield import Catalog, load_catalog
from icefield_testing import TableBehaviourSuite
from servers.hdfs import Hdfs


class TestHdfsWithRename(TableBehaviourSuite):
    @pytest.fixture
    def catalog(self, hdfs: Hdfs) -> Catalog:
        return load_catalog("test", type="directory", warehouse=f"{hdfs.url}/{uuid4().hex}", commit="rename")


@pytest.mark.soak
class TestWebHdfsWithRename(TableBehaviourSuite):
    @pytest.fixture
    def catalog(self, hdfs: Hdfs) -> Catalog:
        return load_catalog("test", type="directory", warehouse=f"{hdfs.web_url}/{uuid4().hex}", commit="rename")
