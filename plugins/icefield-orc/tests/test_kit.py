"""The kit's suite for file formats."""

import pytest
from icefield.testing import FileFormatSuite
from icefield_orc.orc_format import OrcFormat


class TestOrc(FileFormatSuite):
    @pytest.fixture
    def file_format(self):
        return OrcFormat()
