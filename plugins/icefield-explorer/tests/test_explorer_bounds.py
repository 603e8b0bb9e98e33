"""Tables with very many names, and very long ones: each page has a bounded size, and lists in pages miss nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from uuid import uuid4

import icefield
import pyarrow as pa
import pytest
from explored import TABLE_PAGES, ExploredPage, explorer_client, settled
from icefield import Catalog
from local_client import LocalClient

MANY: Final = 10_000
MOST_BYTES: Final = 800_000
"""Pages without bounds would have several megabytes."""

LONG: Final = "&" * 20_000
"""A text that takes five times as much in HTML."""


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """A table and a view with ten thousand of everything, and a table with very long texts."""
    place = {"uri": "sqlite://", "warehouse": f"memory://{uuid4().hex}"}
    made = icefield.load_catalog("wide", type="sql", **place)
    properties = {f"key_{number:05}": "x" * 40 for number in range(MANY)}
    columns = pa.schema([(f"column_{number:05}", pa.int64()) for number in range(MANY)])
    made.create_namespace("db", properties)
    made.create_view("db.v", columns, {"spark": "SELECT 1"}, properties=properties)
    made.create_view("db.dialects", pa.schema([("id", pa.int64())]), {f"d{n:05}": "SELECT 1" for n in range(MANY)})
    table = made.create_table("db.t", pa.schema([("id", pa.int64())]), properties=properties)
    table.append(pa.table({"id": [1]}))
    head = table.metadata.current_snapshot_id
    assert head is not None
    change = table.manage_snapshots()
    for number in range(MANY):
        change.create_tag(head, f"tag_{number:05}")
    change.commit()
    texts = pa.table({f"c{number}": ["&" * 200] * 50 for number in range(200)})
    made.create_table("db.wide", texts.schema).append(texts)
    long = pa.table({"id": list(range(40)), "part": [f"{number}{LONG}" for number in range(40)]})
    partitioned = made.create_table("db.long", long.schema, partition_spec=["part"], properties={"comment": LONG})
    partitioned.append(long, snapshot_properties={"user": LONG, LONG: LONG})
    first = partitioned.metadata.current_snapshot_id
    assert first is not None
    partitioned.manage_snapshots().create_tag(first, LONG).commit()
    return made


@pytest.fixture(scope="module")
def client(catalog: Catalog) -> LocalClient:
    return explorer_client(catalog)


def bounded(client: LocalClient, path: str) -> ExploredPage:
    answer = settled(client, f"/ui{path}")
    assert answer.status_code == 200, answer.text[:2000]
    assert len(answer.content) < MOST_BYTES, path
    return ExploredPage(answer.text)


@pytest.mark.parametrize("page", TABLE_PAGES)
def test_a_page_of_a_table_with_many_refs_and_properties_is_bounded(client: LocalClient, page: str) -> None:
    bounded(client, f"/{page}/db/t")


@pytest.mark.parametrize("page", TABLE_PAGES)
def test_a_page_of_a_table_with_long_texts_is_bounded(client: LocalClient, page: str) -> None:
    bounded(client, f"/{page}/db/long")


def test_the_pages_of_a_namespace_and_of_views_are_bounded_and_say_what_they_leave_out(client: LocalClient) -> None:
    assert "Shown are 500 of 10,000 entries." in bounded(client, "/namespace/db").text
    assert "Shown are 500 of 10,000 entries." in bounded(client, "/table/db/t").text
    view = bounded(client, "/view/db/v").text
    assert "Shown are 500 of 10,000 entries." in view
    assert "Shown are 1,000 of 10,000 columns." in view
    assert "Shown are 20 of 10,000 dialects." in bounded(client, "/view/db/dialects").text


def branches(client: LocalClient, path: str) -> Iterator[ExploredPage]:
    while path:
        page = bounded(client, path)
        yield page
        following = [values for tag, values in page.elements if tag == "a" and values.get("rel") == "next"]
        path = (following[0]["href"] or "").removeprefix("/ui") if following else ""


def test_the_pages_about_branches_have_each_of_ten_thousand(client: LocalClient) -> None:
    found = [link.rpartition("=")[2] for page in branches(client, "/branches/db/t") for link in page.links]
    assert [each for each in found if each.startswith("tag_")] == [f"tag_{number:05}" for number in range(MANY)]
    (last,) = branches(client, f"/branches/db/t?first={MANY}")
    assert "10,001 to 10,001 of 10,001" in last.text
    assert "no more branches" in bounded(client, f"/branches/db/t?first={MANY + 1}").text


@pytest.mark.parametrize("page", ["files", "plan", "rows"])
def test_a_form_keeps_a_version_that_is_not_among_its_choices(client: LocalClient, catalog: Catalog, page: str) -> None:
    for version in ("tag_09999", str(catalog.load_table("db.t").metadata.current_snapshot_id)):
        found = bounded(client, f"/{page}/db/t?at={version}")
        chosen = [values["value"] for tag, values in found.elements if tag == "option" and "selected" in values]
        assert chosen == [version]


def test_rows_with_very_much_text_are_cut(client: LocalClient) -> None:
    answer = settled(client, "/ui/rows/db/wide")
    assert len(answer.content) < 4_000_000
    shown = re.search(r"(\d+) rows and more", ExploredPage(answer.text).text)
    assert shown is not None
    assert 0 < int(shown[1]) < 50
