"""The listener of the plugin, under the kit's suite."""

from __future__ import annotations

from typing import Any

import pytest
from icefield_rest import hooks
from icefield_testing import ListenerSuite


class TestRestListener(ListenerSuite):
    @pytest.fixture
    def listener(self) -> Any:
        return hooks
