"""The server of this repository, over SQLite, for the client to stand before."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from icefield import load_catalog
from icefield_rest_server import app
from servers.process import free_port


@pytest.fixture
def our_rest(tmp_path: Path) -> Iterator[str]:
    """The address of a server whose catalog is new."""
    uri, warehouse = f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse"
    port = free_port()
    with load_catalog("served", type="sql", uri=uri, warehouse=warehouse) as catalog:
        server = uvicorn.Server(uvicorn.Config(app(catalog), port=port, log_level="warning"))
        thread = threading.Thread(target=server.run)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{port}"
        server.should_exit = True
        thread.join()
