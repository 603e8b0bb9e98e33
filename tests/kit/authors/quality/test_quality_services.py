"""Attributes that a plugin's hook adds to tables and scans are found there, and take part in commits."""

from __future__ import annotations

from uuid import uuid4

import icefield
import pyarrow as pa
import pytest
from authors.quality import quality_services
from icefield import Plugins, Table


@pytest.fixture
def table() -> Table:
    plugins = Plugins.installed(extra=[quality_services])
    catalog = icefield.load_catalog("q", type="directory", warehouse=f"memory://{uuid4().hex}", plugins=plugins)
    catalog.create_namespace_if_not_exists("db")
    rows = pa.table({"id": [1, 2, 3], "price": [5, -1, None]})
    made = catalog.create_table("db.t", rows.schema)
    made.append(rows)
    return made


def test_a_service_reads_and_changes_its_table(table: Table) -> None:
    assert table.quality.broken("price >= 0") == 1
    assert table.quality.enforce("price >= 0") == 1
    assert table.quality.broken("price >= 0") == 0
    assert table.scan().count() == 2


def test_a_change_by_a_service_moves_the_table_that_was_asked(table: Table) -> None:
    before = table.metadata_location
    table.quality.enforce("price >= 0")
    assert table.metadata_location != before
    assert table.refresh().scan().count() == 2


def test_a_service_of_scans_is_called_with_the_scan(table: Table) -> None:
    assert table.scan().nulls == {"id": 0, "price": 1}
    assert table.scan(row_filter="id < 3").select("price").nulls == {"price": 0}


def test_services_stand_beside_those_of_other_plugins(table: Table) -> None:
    assert {"maintenance", "quality", "append"} <= set(dir(table))
    assert {"nulls", "select"} <= set(dir(table.scan()))
    assert table.maintenance.expire_snapshots(dry_run=True).dry_run
