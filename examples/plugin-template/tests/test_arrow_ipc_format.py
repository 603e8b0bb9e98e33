"""The kit, run on the plugin: all that its author writes."""

from __future__ import annotations

import pytest
from icefield.abc import FileFormat
from icefield.testing import FileFormatSuite
from icefield_arrow_ipc.arrow_ipc_format import ArrowIpcFormat


class TestArrowIpcFormat(FileFormatSuite):
    @pytest.fixture
    def file_format(self) -> FileFormat:
        return ArrowIpcFormat()
