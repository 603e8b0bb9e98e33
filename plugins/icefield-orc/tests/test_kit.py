"""The kit's suite for file formats."""

from typing import ClassVar

import pytest
from icefield.types import UnknownType
from icefield_orc.orc_format import OrcFormat
from icefield_testing import FileFormatSuite


class TestOrc(FileFormatSuite):
    small_blocks: ClassVar = {"write.orc.stripe-size-bytes": "20000"}
    # ORC has no type for what has no values: such a column is left out, and a list or map cannot be left with nothing.
    unsupported_places = ((UnknownType, "element"), (UnknownType, "value"))

    @pytest.fixture
    def file_format(self):
        return OrcFormat()
