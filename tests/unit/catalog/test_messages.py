"""Errors about times, references and types are in the user's words."""

from __future__ import annotations

import pyarrow as pa
import pytest
from icefield import Catalog
from icefield.errors import NoSuchSnapshot, UnsupportedFeature
from icefield.types import parse_type
from tables import memory_catalog


@pytest.fixture
def catalog() -> Catalog:
    catalog = memory_catalog()
    catalog.create_table_as("db.orders", {"id": [1]})
    return catalog


def test_a_time_before_the_history_is_named_with_its_beginning(catalog: Catalog) -> None:
    table = catalog["db.orders"]
    for call in (lambda: table.scan(as_of="2001-01-01"), lambda: table.snapshot_as_of_timestamp("2001-01-01")):
        with pytest.raises(
            NoSuchSnapshot,
            match=r"table db\.orders had no snapshot at 2001-01-01T00:00:00.000Z: its history begins at 2",
        ):
            call()
    empty = catalog.create_table("db.empty", pa.schema([("id", pa.int64())]))
    with pytest.raises(NoSuchSnapshot, match="it has no snapshot yet"):
        empty.scan(as_of="2001-01-01")


def test_errors_of_snapshots_name_the_table_as_the_catalog_does(catalog: Catalog) -> None:
    table = catalog["db.orders"]
    with pytest.raises(NoSuchSnapshot, match=r"^table db\.orders has no branch or tag 'mian'; was 'main' meant\?"):
        table.scan(ref="mian").to_arrow()
    with pytest.raises(NoSuchSnapshot, match=r"^table db\.orders has no snapshot 5"):
        table.scan(snapshot_id=5).to_arrow()
    for scan in (table.incremental_append_scan, table.incremental_changelog_scan):
        with pytest.raises(NoSuchSnapshot, match=r"^table db\.orders has no snapshot 5"):
            scan(from_snapshot_id_exclusive=5).to_arrow()


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("integer", "int"),
        ("varchar(20)", "string"),
        ("BIGINT", "long"),
        ("lnog", "long"),
        ("numeric", "decimal(38, 9)"),
    ],
)
def test_a_type_of_another_system_leads_to_its_name(given: str, meant: str) -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        parse_type(given)
    assert str(caught.value).endswith(f"; was '{meant}' meant?")


def test_an_unknown_type_leads_to_the_list_of_types() -> None:
    with pytest.raises(UnsupportedFeature, match=r"unknown type: 'hyperreal'; types are binary, boolean, .*fixed\[n\]"):
        parse_type("hyperreal")
