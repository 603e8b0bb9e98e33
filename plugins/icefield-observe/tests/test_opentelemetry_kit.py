"""The listener `opentelemetry` under the kit's suite, with a receiver of OTLP on loopback."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from icefield_observe.opentelemetry import hooks
from icefield_testing import ListenerSuite
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

pytestmark = pytest.mark.slow


class TestOpenTelemetry(ListenerSuite):
    unreachable: ClassVar = {"endpoint": "http://127.0.0.1:9", "headers": "api-key=t"}
    secrets = ("headers",)
    came: ClassVar[Any] = None

    @pytest.fixture(autouse=True)
    def _send(self, receiver: Any) -> None:
        type(self).properties = {"endpoint": receiver.url, "headers": "api-key=t"}
        type(self).came = receiver

    @pytest.fixture
    def listener(self) -> Any:
        return hooks

    def delivered(self, listener: Any) -> int:
        one = hooks._LISTENERS.of(self.properties)
        assert one is not None
        one.flush()
        requests = [ExportTraceServiceRequest.FromString(body) for body in self.came.bodies("/v1/traces")]
        scopes = [scope for each in requests for resource in each.resource_spans for scope in resource.scope_spans]
        return sum(span.name == "commit db.t" for scope in scopes for span in scope.spans)
