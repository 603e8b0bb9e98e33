"""The server of this repository, over SQLite, for the client to stand before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from icefield import load_catalog
from icefield_rest_server import app
from rest_served import served


@pytest.fixture
def our_rest(tmp_path: Path) -> Iterator[str]:
    """The address of a server whose catalog is new."""
    uri, warehouse = f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse"
    with load_catalog("served", type="sql", uri=uri, warehouse=warehouse) as catalog, served(app(catalog)) as address:
        yield address
