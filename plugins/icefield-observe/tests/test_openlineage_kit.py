"""The listener `openlineage` under the kit's suite, with a receiver of its events on loopback."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pytest
from icefield_observe.openlineage import hooks
from icefield_testing import ListenerSuite

pytestmark = pytest.mark.slow


class TestOpenLineage(ListenerSuite):
    unreachable: ClassVar = {"url": "http://127.0.0.1:9", "api-key": "t", "job": "kit"}
    secrets = ("api-key",)
    came: ClassVar[Any] = None

    @pytest.fixture(autouse=True)
    def _send(self, receiver: Any) -> None:
        type(self).properties = {"url": receiver.url, "api-key": "t", "job": "kit"}
        type(self).came = receiver

    @pytest.fixture
    def listener(self) -> Any:
        return hooks

    def delivered(self, listener: Any) -> int:
        one = hooks._LISTENERS.of(self.properties)
        assert one is not None
        for _ in range(30):  # a loaded machine needs more than one wait for some hundred requests
            if one.flush():
                break
        events = [json.loads(body) for body in self.came.bodies("/api/v1/lineage")]
        return sum(output["name"] == "db.t" for event in events for output in event["outputs"])
