"""Large catalogs and tables: a page answers soon, and says so where its numbers take longer."""

from __future__ import annotations

import time
from pathlib import Path

import icefield
import pytest
from explored import TABLE_PAGES, ExploredPage, explorer_client, many_tables, settled, table_of_many_files
from icefield import Catalog
from local_client import LocalClient

pytestmark = pytest.mark.slow

SECONDS = 3.0
"""A page takes less than a second on an idle machine; a busy one gets more."""


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    place = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    made = icefield.load_catalog("large", type="sql", **place)
    made.create_namespace("db")
    return made


def soon(client: LocalClient, path: str, status: int = 200) -> str:
    began = time.monotonic()
    answer = client.get(path)
    assert time.monotonic() - began < SECONDS, path
    assert answer.status_code == status, answer.text
    return answer.text


def test_a_namespace_of_ten_thousand_tables_is_listed_in_pages_and_searched(catalog: Catalog) -> None:
    many_tables(catalog, 10_000)
    client = explorer_client(catalog)
    for path in ("/ui/", "/ui/namespace/db", "/ui/namespace/none?find=x"):
        soon(client, path, 404 if "none" in path else 200)
    seen: list[str] = []
    path = "/ui/namespace/db?after=table_09000"
    while path:
        page = ExploredPage(soon(client, path))
        seen += [each for each in page.links if each.startswith("/ui/table/")]
        path = next((each for each in page.links if "after=" in each), "")
    assert [each.rpartition("/")[2] for each in seen] == [f"table_{number:05}" for number in range(9001, 10_000)]
    found = ExploredPage(soon(client, "/ui/namespace/db?find=_0123"))
    assert sum(each.startswith("/ui/table/") for each in found.links) == 10


def test_each_page_of_a_table_of_a_hundred_thousand_files_answers_soon(catalog: Catalog) -> None:
    table = table_of_many_files(catalog, 100_000)
    client = explorer_client(catalog)
    first = table.metadata.snapshots[0].snapshot_id
    settled(client, "/ui/rows/db/many?sql=SELECT+0")  # starts the process of the next query
    for page in (
        *TABLE_PAGES,
        f"diff?from={first}",
        f"files?at={first}",
        "health?doctor=run",
        "plan?filter=id+%3D+777",
        "rows?sql=SELECT+1",
    ):
        name, _, query = page.partition("?")
        path = f"/ui/{name}/db/many?{query}"
        soon(client, path)
        settled(client, path)  # the next page is not asked for while this one is at work
        soon(client, path)
    maintenance = ExploredPage(settled(client, "/ui/maintenance/db/many").text).text
    assert "Goals files-per-scan" in maintenance
    text = ExploredPage(settled(client, "/ui/files/db/many").text).text
    assert "Data files 100,000" in text
    assert "10,000 largest of 100,000 files" in text
    plan = settled(client, "/ui/plan/db/many?filter=id+%3D+777").text
    assert "Files read" in plan
