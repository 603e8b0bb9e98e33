"""The kit's suite for file formats."""

import pytest
from icefield.testing import FileFormatSuite
from icefield_parquet.parquet_format import ParquetFormat


class TestParquet(FileFormatSuite):
    @pytest.fixture
    def file_format(self):
        return ParquetFormat()
