"""The client passes the catalog kit over the server of this repository with SQLite behind it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pytest
from icefield import FileIO, Plugins
from icefield.abc import CatalogBackend
from icefield.toolkit import Backoff
from icefield_rest.backend import RestBackend
from icefield_testing import CatalogSuite, LossyProxy, RequestFaults

WAITS = {"rest.retry.min-wait-ms": "1", "rest.retry.max-wait-ms": "20"}


@pytest.mark.slow
class TestRestCatalogOverSql(CatalogSuite):
    listing_page = 40  # two of the client
    time_out_properties: ClassVar = {"rest.client.socket-timeout-ms": "300"}

    @pytest.fixture
    def backend(self, our_rest: str) -> Iterator[CatalogBackend]:
        properties = {"uri": our_rest, "rest-page-size": "20", **WAITS}
        made = RestBackend("test", properties, FileIO(Plugins.installed(), properties))
        yield made
        made.close()

    @pytest.fixture(autouse=True)
    def looks_soon(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The strategy waits less between its looks for the outcome of a commit whose reply was lost."""
        monkeypatch.setattr("icefield_rest.strategy._LOOK_AGAIN", Backoff(0.02, 0.2, jitter=0))

    @pytest.fixture
    def service(self, our_rest: str) -> Iterator[LossyProxy]:
        with LossyProxy(int(our_rest.rpartition(":")[2])) as proxy:
            yield proxy

    def backend_through(self, service: RequestFaults, backend: CatalogBackend) -> CatalogBackend:
        assert isinstance(service, LossyProxy)
        properties = {**backend.properties, "rest.retry.num-retries": "2", "uri": f"http://127.0.0.1:{service.port}"}
        return RestBackend("test", properties, FileIO(Plugins.installed(), properties))
