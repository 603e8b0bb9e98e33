"""The kit's suite for file formats."""

from typing import ClassVar

import pytest
from icefield_avro.avro_format import AvroFormat
from icefield_testing import ManifestFormatSuite


class TestAvro(ManifestFormatSuite):
    small_blocks: ClassVar = {"write.avro.block-size-bytes": "4096"}

    @pytest.fixture
    def file_format(self):
        return AvroFormat()
