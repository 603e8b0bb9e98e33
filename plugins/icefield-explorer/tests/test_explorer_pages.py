"""The explorer's pages: read as HTML, and compared with the tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest
from explored import (
    HOSTILE,
    MARK,
    TABLE_PAGES,
    ExploredPage,
    explored_catalog,
    explorer_client,
    settled,
    with_record,
)
from icefield import Catalog, Plugins, Schema
from icefield.metadata import BlobMetadata, StatisticsFile
from icefield_explorer import show, table_pages
from icefield_rest_server import Options, Settings, app
from local_client import LocalClient

ELEMENTS = {"img", "script", "iframe", "object", "embed", "style", "base"}
"""Elements that no page has: each in an answer would come from a name."""


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return explored_catalog()


@pytest.fixture(scope="module")
def client(catalog: Catalog) -> LocalClient:
    return explorer_client(catalog)


def page(client: LocalClient, path: str) -> ExploredPage:
    answer = settled(client, f"/ui{path}")
    assert answer.status_code == 200, answer.text
    return ExploredPage(answer.text)


def test_every_link_from_the_catalog_on_leads_to_a_page_without_foreign_markup(client: LocalClient) -> None:
    waiting, seen = ["/ui/"], set[str]()
    while waiting:
        path = waiting.pop()
        if path in seen or len(seen) > 150:
            continue
        seen.add(path)
        answer = settled(client, path)
        assert answer.status_code == 200, (path, answer.text)
        found = ExploredPage(answer.text)
        names = {tag for tag, _ in found.elements}
        assert not names & ELEMENTS, path
        for tag, attributes in found.elements:
            assert not [key for key in attributes if key.startswith("on") or key in ("style", "srcdoc")], (path, tag)
        assert all(each.startswith(("/ui", "#")) for each in found.links), path
        waiting += [each.partition("#")[0] for each in found.links if each.startswith("/ui")]
    assert {path.split("/")[2].partition("?")[0] for path in seen} >= {"", "namespace", "view", *TABLE_PAGES}
    assert quote(HOSTILE, safe="") in "".join(seen)


def test_the_overview_states_the_numbers_columns_and_properties_of_a_table(
    client: LocalClient, catalog: Catalog
) -> None:
    text = page(client, "/table/sales/orders").text
    current = catalog.load_table("sales.orders").current_snapshot()
    assert current is not None
    assert f"Rows {current.summary['total-records']} " in text
    assert f"Data files {current.summary['total-data-files']} " in text
    assert "month(at), country" in text
    assert "audit-2023 tag" in page(client, "/branches/sales/orders").text
    assert "comment All orders since 2023" in text
    assert "ISO code of the country" in text


def test_the_list_of_tables_has_all_in_whatever_order_the_catalog_lists_them(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = explored_catalog()
    names = [("sales", f"{letter}{number:03}") for letter in "aBcD" for number in range(90)]  # as a database sorts them
    monkeypatch.setattr(Catalog, "list_tables", lambda self, namespace: names)
    client, path, seen = explorer_client(catalog), "/ui/namespace/sales", set[str]()
    while path:
        found = ExploredPage(client.get(path).text)
        seen |= {each.rpartition("/")[2] for each in found.links if each.startswith("/ui/table/")}
        path = next((each for each in found.links if "after=" in each), "")
    assert seen == {name for _, name in names}


def test_pages_show_times_that_python_does_not_have() -> None:
    catalog = explored_catalog()
    day = pa.array([7_300_000], pa.int32()).view(pa.date32())
    at = pa.array([7_300_000 * 86_400_000_000], pa.int64()).view(pa.timestamp("us", "UTC"))
    rows = pa.table({"day": day, "at": at, "days": pa.ListArray.from_arrays([0, 1], day)})
    catalog.create_table("sales.late", rows.schema, partition_spec=["day"]).append(rows)
    client = explorer_client(catalog)
    every = (
        *TABLE_PAGES,
        "rows?sql=" + quote("SELECT * FROM sales.late"),
        "plan?filter=" + quote("day > '2020-01-01'"),
    )
    texts = {
        each: page(client, f"/{each.replace('?', '/sales/late?')}" if "?" in each else f"/{each}/sales/late").text
        for each in every
    }
    for each in ("schema", "rows", every[-2]):
        assert texts[each].count("21956-09-21") >= 3, (each, texts[each])


def test_the_schema_page_has_statistics_and_history(client: LocalClient, catalog: Catalog) -> None:
    text = page(client, "/schema/sales/orders").text
    ids = catalog.load_table("sales.orders").scan(selected_fields=("id",)).to_arrow()["id"].to_pylist()
    lowest = re.search(r" id long required 0 0 % (\d+) (\d+) ", text)
    assert lowest is not None
    assert int(lowest[1]) <= min(ids)
    assert int(lowest[2]) >= max(ids)
    assert "renamed amount to total" in text
    assert "added note: string" in text


def test_only_the_schemas_that_are_shown_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog, compared = explored_catalog(), list[int]()
    for name in ("b", "c", "d"):
        with catalog.load_table("web.clicks").update_schema() as change:
            change.add_column(name, "long")

    def changes(before: Schema, after: Schema) -> list[str]:
        compared.append(after.schema_id)
        return ["changed"]

    monkeypatch.setattr(table_pages, "changes", changes)
    monkeypatch.setattr(table_pages, "_MOST_SCHEMAS", 2)
    assert explorer_client(catalog).get("/ui/schema/web/clicks").status_code == 200
    assert compared == [3, 2]


def test_the_time_line_has_each_snapshot_with_its_operation_and_author(client: LocalClient, catalog: Catalog) -> None:
    text = page(client, "/snapshots/sales/orders").text
    for snapshot in catalog.load_table("sales.orders").snapshots():
        assert f"{snapshot.snapshot_id}: what it changed" in text
    assert text.count(" append ") >= 4
    assert " delete · icefield" in text


def test_the_difference_of_two_snapshots_lists_exactly_the_files_that_differ(
    client: LocalClient, catalog: Catalog
) -> None:
    table = catalog.load_table("sales.orders")
    found = page(client, "/diff/sales/orders?from=audit-2023&to=main").text
    before, after = (
        set(table.inspect.scan("files", snapshot_id=table.refs()[name].snapshot_id).to_arrow()["file_path"].to_pylist())
        for name in ("audit-2023", "main")
    )
    assert f"Added: {len(after - before)} file" in found
    assert f"Removed: {len(before - after)} file" in found
    assert "renamed amount to total" in found


def test_the_heat_map_has_each_partition(client: LocalClient, catalog: Catalog) -> None:
    partitions = catalog.load_table("sales.orders").inspect.partitions()
    for measure in ("size", "files", "rows", "deletes"):
        cells = [
            each
            for tag, each in page(client, f"/files/sales/orders?by={measure}").elements
            if tag == "li" and (each.get("class") or "").startswith("heat-")
        ]
        assert len(cells) == partitions.num_rows


@pytest.mark.parametrize("given", ["", "country = 'DE'", "id < 100000", "country = 'DE' and id < 50000", "id is null"])
def test_a_plan_reads_the_files_of_the_scan_and_says_why_no_others(
    client: LocalClient, catalog: Catalog, given: str
) -> None:
    table = catalog.load_table("sales.orders")
    read = table.scan(given).plan_arrow().num_rows if given else table.scan().plan_arrow().num_rows
    every = table.scan().plan_arrow()
    countries = [each["country"] for each in every["partition"].to_pylist()]
    pruned = countries.count("FR") if "country" in given else 0
    text = page(client, f"/plan/sales/orders?filter={quote(given)}").text
    assert f"Files read {read} " in text
    assert f"Left out by partition {pruned} " in text
    assert f"Left out by statistics {every.num_rows - read - pruned} " in text


def test_a_filter_that_cannot_be_read_is_explained(client: LocalClient) -> None:
    assert "cannot read the filter" in page(client, "/plan/sales/orders?filter=id+%3C").text
    assert "nope" in page(client, "/plan/sales/orders?filter=nope+%3D+1").text


def test_rows_are_shown_of_a_tag_and_by_a_query(client: LocalClient) -> None:
    assert "50 rows" in page(client, "/rows/sales/orders?at=audit-2023").text
    query = quote('SELECT country, count(*) AS n FROM "sales"."orders" GROUP BY ALL ORDER BY country')
    text = page(client, f"/rows/sales/orders?sql={query}").text
    assert re.search(r"2 rows Rows country n DE \d+ FR \d+", text)


def test_the_health_page_has_advice_debt_manifests_and_the_doctors_findings(client: LocalClient) -> None:
    text = page(client, "/health/sales/orders?doctor=run").text
    assert "`" not in text
    assert "table.maintenance.rewrite_data_files(delete_file_threshold=1) applies the deletes" in text
    assert "Compact data files" in text
    assert "Delete debt" in text
    assert re.search(r"\d+ checks, \d+ finding", text)


def test_sections_of_other_plugins_are_on_the_health_page(client: LocalClient) -> None:
    assert "Tending Nothing was done to sales.orders <b>yet</b>." in page(client, "/health/sales/orders").text


@pytest.mark.parametrize("name", TABLE_PAGES)
def test_a_table_without_rows_has_all_pages(client: LocalClient, name: str) -> None:
    assert "empty" in page(client, f"/{name}/web/empty").text


def test_the_pages_change_nothing_and_say_so_to_other_methods(client: LocalClient, catalog: Catalog) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        answer = client.request(method, "/ui/rows/web/clicks")
        assert answer.status_code == 405
        assert answer.headers["allow"] == "GET, HEAD"
    assert client.head("/ui/table/web/clicks").content == b""
    for path in ("/ui/", "/ui/table/web/clicks", "/ui/rows/web/clicks", "/ui/table/no/such"):
        for tag, attributes in ExploredPage(client.get(path).text).elements:
            assert tag != "form" or attributes["method"] == "get"


def test_each_answer_has_the_headers_that_keep_others_out(client: LocalClient) -> None:
    for path in (
        "/ui",
        "/ui/",
        "/ui/table/web/clicks",
        "/ui/table/no/such",
        "/ui/nothing",
        "/ui/rows/web/clicks?sql=x",
    ):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"


def test_credentials_among_properties_are_hidden(client: LocalClient, catalog: Catalog) -> None:
    given = {"s3.secret-access-key": "hush-hush", "owner": "ann"}
    catalog.load_table("web.clicks").append(pa.table({"id": [4]}), snapshot_properties=given)
    text = page(client, "/diff/web/clicks").text
    assert "owner ann" in text
    assert "hush-hush" not in text


def test_installed_plugins_provide_the_pages_to_serve_with_ui() -> None:
    settings = Options(ui=True).settings(plugins=Plugins.installed())
    assert "ui" in settings.pages
    assert Options().settings(plugins=Plugins.installed()).pages == {}


def test_the_pages_work_below_another_application(catalog: Catalog) -> None:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    inner = explorer_client(catalog).app
    mounted = LocalClient(Starlette(routes=[Mount("/lake", inner)]))
    found = ExploredPage(mounted.get("/lake/ui/").text)
    assert found.links
    assert all(each.startswith(("/lake/ui", "#")) for each in found.links)
    assert mounted.get(found.links[-1]).status_code == 200


def test_the_page_about_maintenance_shows_goals_the_plan_and_the_record(catalog: Catalog) -> None:
    client = explorer_client(with_record(explored_catalog()))
    text = page(client, "/maintenance/sales/orders").text
    assert "others commit faster" in text
    assert "35 of 36" in text
    assert "files-per-scan 2" in text
    assert "deleted-rows 15 %" in text
    assert re.search(r"rewrite data files \d+ data files in \d+ partitions become about", text)
    assert "it lost, failed or gained nothing before" in text or "the whole budget of a day is 1,000" in text
    assert MARK in page(client, f"/maintenance/{quote(HOSTILE, safe='')}/{quote(HOSTILE, safe='')}").text
    assert "no operation of the last 90 days" in page(client, "/maintenance/web/clicks").text


def test_a_policy_is_found_by_the_configuration_of_the_catalog(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, catalog: Catalog
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('[[rules]]\ntables = "web.*"\nfiles-per-scan = 7\n')
    (tmp_path / "icefield.toml").write_text(f'[catalog.lake]\n"tend.policy" = "{policy}"\n')
    monkeypatch.setenv("ICEFIELD_CONFIG", str(tmp_path / "icefield.toml"))
    client = LocalClient(app(catalog, Settings(pages={"ui": show})))
    assert "files-per-scan 7" in page(client, "/maintenance/web/clicks").text
    assert "no goal is stated" in page(client, "/maintenance/sales/orders").text
    policy.write_text("rules = [")
    broken = client.get("/ui/maintenance/web/clicks")
    assert broken.status_code == 500
    assert str(tmp_path) not in broken.text


def test_an_older_snapshot_has_a_heat_map_that_the_time_line_links_to(client: LocalClient, catalog: Catalog) -> None:
    oldest = catalog.load_table("sales.orders").snapshots()[0]
    links = page(client, "/snapshots/sales/orders").links
    (address,) = [each for each in links if each.endswith(f"/files/sales/orders?at={oldest.snapshot_id}")]
    found = page(client, address.removeprefix("/ui"))
    assert "Rows 60" in found.text
    assert "Delete files 0" in found.text
    assert any(f"by=deletes&at={oldest.snapshot_id}" in each for each in found.links)
    assert "Delete files 0" not in page(client, "/files/sales/orders").text
    assert client.get("/ui/files/sales/orders?at=1").status_code == 404


def test_the_schema_page_has_the_distinct_values_that_statistics_state() -> None:
    catalog = explored_catalog()
    table = catalog.load_table("sales.orders")
    distinct = len(set(table.scan(selected_fields=("id",)).to_arrow()["id"].to_pylist()))
    client = explorer_client(catalog)
    assert "Distinct" not in page(client, "/schema/sales/orders").text
    table.maintenance.compute_table_stats(["id", "country"])
    text = page(client, "/schema/sales/orders").text
    assert f" id long required {distinct} 0 0 % " in text
    assert " ISO code of the country 2 0 " in text
    assert "estimates of the current snapshot, " in text
    counted = table.refresh().metadata.current_snapshot_id
    table.append(table.scan().to_arrow())
    text = page(client, "/schema/sales/orders").text
    assert f" id long required {distinct} 0 0 % " in text
    assert f"estimates of snapshot {counted}, " in text


@pytest.mark.parametrize("stated", [None, "", "-1", "1e9", "٣", "9" * 400, "<b>7</b>"])
def test_a_number_of_distinct_values_that_is_none_is_left_out(stated: str | None) -> None:
    catalog = explored_catalog()
    table = catalog.load_table("web.clicks")
    head = table.metadata.current_snapshot_id
    assert head is not None
    properties = {} if stated is None else {"ndv": stated}
    blob = BlobMetadata("apache-datasketches-theta-v1", head, 1, (1,), properties)
    table.update_statistics().set_statistics(StatisticsFile(head, "memory://none", 1, 1, (blob,))).commit()
    assert "Distinct" not in page(explorer_client(catalog), "/schema/web/clicks").text


def test_the_page_about_branches_states_how_long_they_and_their_snapshots_are_kept() -> None:
    catalog = explored_catalog()
    table = catalog.load_table("web.clicks")
    head = table.metadata.current_snapshot_id
    assert head is not None
    day = 86_400_000
    change = table.manage_snapshots().create_tag(head, "audit", max_ref_age_ms=30 * day)
    change.create_branch(
        head, "dev", max_ref_age_ms=7 * day, max_snapshot_age_ms=90_000, min_snapshots_to_keep=3
    ).create_tag(head, "release").commit()
    text = page(explorer_client(catalog), "/branches/web/clicks").text
    assert re.search(r" main branch \d+ [-\d]+ [:\d]+ UTC always 1 \(default\) 5 days \(default\) ", text)
    assert re.search(r" audit tag \d+ [-\d]+ [:\d]+ UTC 30 days dev ", text)
    assert re.search(r" dev branch \d+ [-\d]+ [:\d]+ UTC 7 days 3 90.0 s release ", text)
    assert re.search(r" release tag \d+ [-\d]+ [:\d]+ UTC always \(default\) ", text)


def test_a_search_finds_tables_of_all_namespaces(client: LocalClient) -> None:
    found = page(client, "/?find=LIC")
    assert [each for each in found.links if each.startswith("/ui/table/")] == ["/ui/table/web/clicks"]
    assert "Tables" not in page(client, "/").text
    assert "No table matches." in page(client, "/?find=no-such-name").text
    assert f"/ui/table/{quote(HOSTILE, safe='')}/{quote(HOSTILE, safe='')}" in page(client, "/?find=%3Cimg").links


def test_a_search_is_bounded_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog, walked = explored_catalog(), list[int]()

    def names(self: Catalog) -> Iterator[tuple[str, ...]]:
        for number in count():
            walked.append(number)
            yield ("sales", f"t{number:07}")

    monkeypatch.setattr(Catalog, "walk_tables", names)
    client = explorer_client(catalog)
    found = page(client, "/?find=t")
    assert sum(each.startswith("/ui/table/") for each in found.links) == 200
    assert "There may be more" in found.text
    assert len(walked) == 201
    walked.clear()
    assert "There may be more" in page(client, "/?find=none").text
    assert len(walked) == 100_001
