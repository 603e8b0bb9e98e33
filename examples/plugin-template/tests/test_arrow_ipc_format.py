"""The kit, run on the plugin: all that its author writes."""

from __future__ import annotations

import pytest
from icefield.abc import FileFormat
from icefield_arrow_ipc.arrow_ipc_format import ArrowIpcFormat
from icefield_testing import FileFormatSuite


class TestArrowIpcFormat(FileFormatSuite):
    @pytest.fixture
    def file_format(self) -> FileFormat:
        return ArrowIpcFormat()
