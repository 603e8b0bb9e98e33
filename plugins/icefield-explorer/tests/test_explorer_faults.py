"""Broken and slow tables: each page shows what can be read, says what cannot, and holds up no other table."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pytest
from explored import TABLE_PAGES, ExploredPage, append_location, explorer_client, settled
from icefield import Catalog, Table
from icefield_explorer import background
from local_client import LocalClient
from slow_storage import hold_reads


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Catalog]:
    place = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    with icefield.load_catalog("lake", type="sql", **place, **{"io.manifest.cache-enabled": "false"}) as catalog:
        catalog.create_namespace("db")
        for name in ("good", "other"):
            rows = pa.table({"id": [1, 2, 3]})
            catalog.create_table(("db", name), rows.schema).append(rows)
        yield catalog


@pytest.fixture
def client(lake: Catalog) -> LocalClient:
    return explorer_client(lake)


def path_of(location: str | None) -> Path:
    assert location is not None
    return Path(location.removeprefix("file://"))


def current_list(table: Table) -> Path:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return path_of(snapshot.manifest_list)


def without_list(table: Table) -> None:
    current_list(table).unlink()


def with_damaged_list(table: Table) -> None:
    current_list(table).write_bytes(b"Obj\x01 and nothing more")


def without_manifest(table: Table) -> None:
    path_of(table.inspect.manifests()["path"].to_pylist()[0]).unlink()


def with_damaged_manifest(table: Table) -> None:
    path = path_of(table.inspect.manifests()["path"].to_pylist()[0])
    path.write_bytes(path.read_bytes()[:-40])


@pytest.mark.parametrize("breaks", [without_list, with_damaged_list, without_manifest, with_damaged_manifest])
def test_pages_of_a_table_with_lost_manifests_keep_their_other_parts(
    lake: Catalog, client: LocalClient, breaks: Any
) -> None:
    breaks(lake.load_table("db.good"))
    for page in TABLE_PAGES:
        answer = settled(client, f"/ui/{page}/db/good")
        assert answer.status_code == 200, (page, answer.text)
        text = ExploredPage(answer.text).text
        says_itself = page in ("table", "branches", "maintenance")
        assert ("A part of this page cannot be shown" in text) is not says_itself, page
        assert text.count("A part of this page cannot be shown") <= 1, page
        assert ".avro" in text or page in ("table", "branches"), page
        assert "has no files" not in text
    assert "append" in settled(client, "/ui/snapshots/db/good").text
    assert "id long" in ExploredPage(settled(client, "/ui/schema/db/good").text).text
    assert "A part" not in settled(client, "/ui/health/db/other").text


@pytest.mark.parametrize("breaks", [without_list, with_damaged_list, without_manifest, with_damaged_manifest])
def test_the_doctor_examines_a_table_with_lost_manifests(lake: Catalog, client: LocalClient, breaks: Any) -> None:
    breaks(lake.load_table("db.good"))
    text = ExploredPage(settled(client, "/ui/health/db/good?doctor=run").text).text
    assert "checks, " in text
    assert " finding" in text


@pytest.mark.parametrize("metadata", ["{", '{"format-version": 2}', None])
def test_a_table_without_readable_metadata_is_an_error_of_the_server(
    lake: Catalog, client: LocalClient, metadata: str | None
) -> None:
    path = path_of(lake.load_table("db.good").metadata_location)
    if metadata is None:
        path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), "current-schema-id": 77}))
    else:
        path.write_text(metadata)
    for page in TABLE_PAGES:
        answer = client.get(f"/ui/{page}/db/good")
        assert answer.status_code == 500, page
        assert path.name in answer.text
        assert settled(client, f"/ui/{page}/db/other").status_code == 200
    assert "/ui/table/db/good" in ExploredPage(client.get("/ui/namespace/db").text).links


def test_a_default_retention_that_cannot_be_read_is_named(lake: Catalog, client: LocalClient) -> None:
    name = "history.expire.max-snapshot-age-ms"
    path = path_of(lake.load_table("db.good").set_properties({name: "7777777"}).metadata_location)
    path.write_text(path.read_text("utf-8").replace("7777777", "<b>7</b>"), "utf-8")
    text = ExploredPage(client.get("/ui/branches/db/good").text).text
    assert f"A part of this page cannot be shown: table property '{name}': '<b>7</b>' is not" in text
    assert " always 1 (default) unknown " in text


def test_passwords_in_locations_are_on_no_page(lake: Catalog, client: LocalClient) -> None:
    table = lake.load_table("db.good")
    append_location(table, "s3://ann:hush@lake/x.parquet")
    path = path_of(table.metadata_location)
    stated = json.dumps({**json.loads(path.read_text("utf-8")), "location": "s3://ann:hush@lake/good"})
    path.write_text(stated, "utf-8")
    texts = {
        page: settled(client, f"/ui/{page.replace('?', '/db/good?') if '?' in page else f'{page}/db/good'}").text
        for page in (*TABLE_PAGES, "health?doctor=run", "plan?filter=id+%3D+1")
    }
    for page, text in texts.items():
        assert "hush" not in text, page
    for page in ("table", "files", "diff", "plan"):
        assert "lake/" in texts[page], page


@pytest.fixture
def hung(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Parts of locations. A file with such a part in its location is not read until the test ends."""
    parts, held = list[str](), threading.Event()
    hold_reads(monkeypatch, parts, held)
    yield parts
    held.set()


def quickly(client: LocalClient, path: str) -> str:
    """The page, when nothing of it is under way, after a short time."""
    end = time.monotonic() + 20
    while "refresh" in (answer := client.get(path)).headers:
        assert time.monotonic() < end, path
        time.sleep(0.1)
    assert answer.status_code == 200, answer.text
    return answer.text


@pytest.mark.slow
def test_a_table_whose_metadata_is_not_read_holds_up_no_page_of_another(client: LocalClient, hung: list[str]) -> None:
    hung.append("/good/metadata/")
    for page in (*TABLE_PAGES, *TABLE_PAGES):
        began = time.monotonic()
        answer = client.get(f"/ui/{page}/db/good")
        assert time.monotonic() - began < 3
        assert (answer.status_code, answer.headers["refresh"]) == (503, "2")
        assert "db.good is being loaded" in answer.text
    for page in TABLE_PAGES:
        quickly(client, f"/ui/{page}/db/other")
    assert "3 rows" in quickly(client, "/ui/rows/db/other?sql=SELECT+*+FROM+db.other")


@pytest.mark.slow
@pytest.mark.parametrize("part", ["/good/metadata/snap-", "/good/data/"])
def test_a_table_whose_files_are_not_read_holds_up_no_page_of_another(
    client: LocalClient, hung: list[str], part: str
) -> None:
    hung.append(part)
    pages = [f"/ui/{page}/db/good" for page in TABLE_PAGES]
    pages += [f"/ui/plan/db/good?filter=id+%3D+{number}" for number in range(30)]
    pages += ["/ui/rows/db/good", "/ui/health/db/good?doctor=run"]
    for path in pages:
        assert client.get(path).status_code == 200, path
    for page in TABLE_PAGES:
        quickly(client, f"/ui/{page}/db/other")


def test_a_search_reads_no_table(client: LocalClient, hung: list[str]) -> None:
    hung.append("/metadata/")
    links = ExploredPage(quickly(client, "/ui/?find=o")).links
    assert [each for each in links if each.startswith("/ui/table/")] == ["/ui/table/db/good", "/ui/table/db/other"]


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], str]]:
    """A work that ends with the test; each is slow at once."""
    held = threading.Event()

    def wait() -> str:
        held.wait(60)
        return "late"

    monkeypatch.setattr(background, "_SLOW", 0.0)
    yield wait
    held.set()


@pytest.mark.parametrize(("subjects", "of_each"), [(40, 1), (12, 8), (200, 2)])
def test_subjects_that_hang_hold_up_no_other_one(waiting: Callable[[], str], subjects: int, of_each: int) -> None:
    results = background.BackgroundResults()
    for number in range(of_each):
        for subject in range(subjects):
            results.get(subject, number, waiting, 0.0)
    for other in range(20):
        assert results.get(f"other {other}", 0, lambda: "soon", 60.0) == "soon"


def test_no_more_threads_than_a_bound_hang(waiting: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_MOST_SLOW", 20)
    results, begun = background.BackgroundResults(), list[int]()
    for subject in range(60):
        results.get(subject, 0, lambda: (begun.append(1), waiting()), 0.0)
    assert results.get("other", 0, lambda: "soon", 1.0) is None
    assert len(begun) == 20


def test_a_page_shows_a_commit_of_the_moment_before(lake: Catalog, client: LocalClient) -> None:
    table = lake.load_table("db.good")
    for number in (2, 3, 4):
        assert f"{number - 1} snapshot" in client.get("/ui/table/db/good").text
        table.append(pa.table({"id": [number]}))
        assert f"{number} snapshots" in client.get("/ui/table/db/good").text
