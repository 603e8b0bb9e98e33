"""The kit, run on the plugin: all that its author writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

import pytest
from icefield import Catalog, load_catalog
from icefield.abc import FileFormat
from icefield_testing import FileFormatSuite, TableBehaviourSuite

from icefield_arrow_ipc.arrow_ipc_format import ArrowIpcFormat


class TestArrowIpcFormat(FileFormatSuite):
    @pytest.fixture
    def file_format(self) -> FileFormat:
        return ArrowIpcFormat()


class TestTablesOfArrowIpcFiles(TableBehaviourSuite):
    table_properties: ClassVar[Mapping[str, str]] = {"write.format.default": "arrow-ipc"}

    @pytest.fixture
    def catalog(self, tmp_path: Path) -> Iterator[Catalog]:
        with load_catalog("test", type="directory", warehouse=tmp_path.as_uri()) as catalog:
            yield catalog
