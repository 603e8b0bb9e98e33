"""The kit on a file format by rows, written from the documentation alone."""

from __future__ import annotations

from typing import ClassVar

import pytest
from authors.records.record_files import FRAME_ROWS, RecordsFormat
from icefield.abc import FileFormat
from icefield_testing import FileFormatSuite


class TestRecords(FileFormatSuite):
    small_blocks: ClassVar = {FRAME_ROWS.name: "500"}

    @pytest.fixture
    def file_format(self) -> FileFormat:
        return RecordsFormat()
