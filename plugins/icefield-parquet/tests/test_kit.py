"""The kit's suite for file formats."""

from typing import ClassVar

import pytest
from icefield_parquet.parquet_format import ParquetFormat
from icefield_testing import FileFormatSuite


class TestParquet(FileFormatSuite):
    small_blocks: ClassVar = {"write.parquet.row-group-size-bytes": "20000"}

    @pytest.fixture
    def file_format(self):
        return ParquetFormat()
