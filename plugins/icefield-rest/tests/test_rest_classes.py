"""The classes of a catalog, by the endpoints that its service offers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from http_between import Answered, Asked, Between, Forward
from icefield import load_catalog
from icefield.abc import MultiTableCatalog, ServedCatalog, ViewCatalog
from icefield.errors import NotSupportedByCatalog

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def between(our_rest: str) -> Iterator[Between]:
    with load_catalog("first", type="rest", uri=our_rest) as made:
        made.create_namespace("db")
        made.create_table("db.t", SCHEMA)
    with Between(our_rest).open() as opened:
        yield opened


@pytest.mark.parametrize(("kept", "views", "several"), [("view", True, False), ("transactions", False, True)])
def test_a_catalog_is_of_the_classes_that_its_service_offers(
    between: Between, kept: str, views: bool, several: bool
) -> None:
    def only(body: dict[str, Any]) -> None:
        both = ("view", "transactions")
        body["endpoints"] = [
            each for each in body["endpoints"] if kept in each or not any(name in each for name in both)
        ]

    def behave(asked: Asked, forward: Forward) -> Answered | None:
        found = forward(asked)
        if not asked.path.startswith("/v1/config"):
            return found
        body = json.loads(found.body)
        only(body)
        return Answered(found.status, {"Content-Type": "application/json"}, json.dumps(body).encode())

    between.behave = behave
    with load_catalog("test", type="rest", uri=between.url) as catalog:
        assert isinstance(catalog.backend, ServedCatalog)
        assert isinstance(catalog.backend, ViewCatalog) is views
        assert isinstance(catalog.backend, MultiTableCatalog) is several
        assert not catalog.view_exists("db.v")
        if not views:
            with pytest.raises(NotSupportedByCatalog, match="keeps no views"):
                catalog.list_views("db")
        if not several:
            catalog.create_table("db.u", SCHEMA)
            transaction = catalog.transaction()
            transaction.table("db.t")
            with pytest.raises(NotSupportedByCatalog, match="several tables"):
                transaction.table("db.u")
