"""The kit's suite for file formats."""

import pytest
from icefield.testing import FileFormatSuite
from icefield_avro.avro_format import AvroFormat


class TestAvro(FileFormatSuite):
    @pytest.fixture
    def file_format(self):
        return AvroFormat()
