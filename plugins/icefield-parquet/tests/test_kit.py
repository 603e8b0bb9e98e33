"""The kit's suite for file formats."""

import pytest
from icefield.testing import FileFormatSuite
from icefield.types import VariantType
from icefield_parquet.parquet_format import ParquetFormat


class TestParquet(FileFormatSuite):
    unsupported = (VariantType,)

    @pytest.fixture
    def file_format(self):
        return ParquetFormat()
