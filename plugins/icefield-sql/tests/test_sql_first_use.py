"""A database that has none of the catalog's tables yet."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from icefield import load_catalog
from servers.postgres import new_database

WRITERS, ROUNDS = 8, 5


@pytest.mark.parametrize("server", ["sqlite", "postgres"])
def test_all_that_use_a_new_database_at_once_find_its_tables(
    server: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    for number in range(ROUNDS):
        uri = f"sqlite:///{tmp_path}/{number}.db"
        if server == "postgres":
            uri = new_database(request.getfixturevalue("postgres"))
        barrier = threading.Barrier(WRITERS)

        def use(writer: int, uri: str = uri, barrier: threading.Barrier = barrier) -> None:
            with load_catalog("test", type="sql", uri=uri, warehouse=f"file://{tmp_path}") as catalog:
                barrier.wait()
                catalog.create_namespace(f"n{writer}")

        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(use, range(WRITERS)))
        with load_catalog("test", type="sql", uri=uri, warehouse=f"file://{tmp_path}") as catalog:
            assert len(catalog.list_namespaces()) == WRITERS
