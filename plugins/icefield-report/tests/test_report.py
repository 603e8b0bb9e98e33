"""What a page says of a table: read as HTML, and compared with the table."""

from __future__ import annotations

import json
import re
import time
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import icefield
import pyarrow as pa
import pytest
from icefield import Catalog, Table, hookimpl
from icefield.errors import InvalidArgument, PluginConflict
from icefield_maintenance import gains
from icefield_report import ReportSection, catalog_report, report, write_catalog_report, write_report
from icefield_report.facts import facts_of
from icefield_report.maintenance import Advice
from icefield_report.manifests import manifests_of
from icefield_report.partitions import partitions_of
from icefield_report.plots import _time_marks
from tables import memory_catalog

SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us")), ("kind", pa.string())])
MARKED = {"format-version": "2", "write.delete.mode": "merge-on-read", "commit.manifest-merge.enabled": "false"}
PLOTS = ["file-sizes", "partitions", "skew", "snapshots", "deletes", "manifests", "columns"]


class Page(HTMLParser):
    """The elements of a page with their attributes, its text, and the text of each element with an id."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html = html
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += f"{data} "

    @property
    def plots(self) -> list[ET.Element]:
        """The plots, as XML."""
        return [ET.fromstring(each) for each in re.findall(r"<svg.*?</svg>", self.html, re.DOTALL)]


def month_rows(months: int, each: int = 4) -> pa.Table:
    """Rows of that many months from 2013-01 on."""
    at = [1_356_998_400_000_000 + month * 31 * 86_400_000_000 for month in range(months) for _ in range(each)]
    count = months * each
    columns = [pa.array(range(count), pa.int64()), pa.array(at, pa.timestamp("us")), ["a"] * count]
    return pa.table(columns, schema=SCHEMA)


def lived_in(catalog: Catalog, name: str = "db.t") -> Table:
    """A table with small files in three months, and with deleted rows in the first."""
    table = catalog.create_table(name, SCHEMA, partition_spec=["month(at)"], properties=MARKED)
    for _ in range(6):
        table.append(month_rows(3))
    table.delete("id = 1")
    return table


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(report(lived_in(memory_catalog())))


def test_plots_have_no_styles_of_their_own_so_that_a_strict_policy_allows_them(page: Page) -> None:
    assert page.plots
    assert not [tag for tag, attributes in page.elements if "style" in attributes]
    assert not [each for plot in page.plots for each in plot.iter() if each.tag.endswith("style")]


def test_a_page_states_the_numbers_of_the_table(page: Page) -> None:
    assert "Rows 72 " in page.text
    assert "Data files 18 " in page.text
    assert "Partitions 3 " in page.text
    assert "Snapshots 7 " in page.text
    assert "partitioned by month(at)" in page.text


def test_partitions_are_shown_as_people_write_them(page: Page) -> None:
    drawn = " ".join(text for plot in page.plots for text in plot.itertext())
    assert "2013-01" in drawn
    assert "516" not in page.text.split()


def test_each_plot_has_a_title_a_description_and_its_numbers_as_a_table(page: Page) -> None:
    figures = [of["id"] for tag, of in page.elements if tag == "figure"]
    assert figures == [f"table-{name}" for name in PLOTS]
    assert len(page.plots) == len(PLOTS)
    assert [tag for tag, _ in page.elements].count("table") == len(PLOTS)
    for plot in page.plots:
        title, description = plot[0], plot[1]
        assert plot.get("role") == "img"
        assert (title.tag.endswith("title"), description.tag.endswith("desc")) == (True, True)
        assert plot.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
        assert title.text
        assert description.text


def test_ids_are_given_once(page: Page) -> None:
    ids = [of["id"] for _, of in page.elements if "id" in of]
    assert len(set(ids)) == len(ids)
    referred = re.findall(r'(?:href="#|url\(#)([\w-]+)', page.html)
    assert set(referred) <= set(ids)


def test_a_page_refers_to_nothing_else_and_holds_no_script(page: Page) -> None:
    assert not [tag for tag, _ in page.elements if tag in ("script", "iframe", "object", "embed", "image", "img")]
    for tag, of in page.elements:
        for name, value in of.items():
            assert not name.startswith("on")
            if name in ("src", "href", "xlink:href"):
                assert value is not None
                assert value.startswith("#") or (tag, value) == ("link", "data:,")
    assert "@import" not in page.html
    assert not re.search(r"url\((?!#)", page.html)
    policy = next(of["content"] for _, of in page.elements if of.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    assert "script" not in policy


@pytest.mark.slow
def test_the_same_table_gives_the_same_page() -> None:
    table = lived_in(memory_catalog())
    assert report(table) == report(table)


def advice(table: Table) -> dict[str, Advice]:
    """What would help, by the calls."""
    return {each.call.removeprefix("table.maintenance."): each for each in facts_of(table).maintenance.advice}


def test_the_advice_is_what_the_calls_then_do() -> None:
    table = lived_in(memory_catalog())
    found = advice(table)
    assert list(found) == ["rewrite_data_files()", "rewrite_manifests()"]
    files, manifests = found.values()
    assert (files.before, files.after) == (18, 3)
    assert (manifests.before, manifests.after) == (6, 1)
    assert files.saved == files.rewritten * 6 // 72
    done = table.maintenance.rewrite_data_files()
    assert (done.rewritten_data_files, done.added_data_files) == (18, 3)
    assert done.rewritten_bytes == files.rewritten
    dangling = advice(table)["remove_dangling_deletes()"]
    assert (dangling.before, dangling.after) == (1, 0)
    assert table.maintenance.remove_dangling_deletes().removed_bytes == dangling.saved
    table.maintenance.rewrite_manifests()
    assert facts_of(table).maintenance.advice == ()


def test_an_expiry_states_the_bytes_that_it_frees() -> None:
    table = memory_catalog().create_table("db.t", SCHEMA, properties={"history.expire.max-snapshot-age-ms": "1"})
    table.append(month_rows(3))
    size = int(table.inspect.files()["file_size_in_bytes"][0].as_py())
    table.overwrite(month_rows(1))
    time.sleep(0.01)
    expiry = advice(table)["expire_snapshots()"]
    assert (expiry.before, expiry.after, expiry.saved) == (2, 1, size)


def test_equality_deletes_are_debt_to_convert() -> None:
    table = memory_catalog().create_table("db.t", SCHEMA, properties=MARKED)
    table.append(month_rows(3))
    table.delete_by_equality(pa.table({"id": pa.array([1, 2], pa.int64())}), ["id"])
    page = Page(report(table))
    assert "1 delete file of" in page.text
    assert "holds 2 deletes" in page.text
    assert "Equality delete files 1 → 0" in page.text
    assert "table.maintenance.convert_equality_deletes()" in page.text


def test_what_must_not_be_expired_is_named_and_ends_nothing() -> None:
    table = memory_catalog().create_table("db.t", SCHEMA, properties={"gc.enabled": "false"})
    table.append(month_rows(2))
    ((title, error),) = facts_of(table).maintenance.unknown
    assert title == "Snapshots"
    assert "gc.enabled" in error


def test_a_property_that_cannot_be_is_named_and_ends_nothing(tmp_path: Path) -> None:
    catalog = icefield.load_catalog("disk", type="directory", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("db")
    table = lived_in(catalog)
    location = Path(table.metadata_location.removeprefix("file://"))
    document = json.loads(location.read_text())
    document["properties"] = {"write.target-file-size-bytes": "banana", "gc.enabled": "maybe"}
    location.write_text(json.dumps(document))
    icefield.clear_caches()
    broken = icefield.open_table(table.metadata_location)
    assert "is not of type integer" in report(broken)
    assert {"Data files", "Snapshots"} <= {title for title, _ in facts_of(broken).maintenance.unknown}


def test_a_table_without_snapshots_has_a_page() -> None:
    page = Page(report(memory_catalog().create_table("db.t", SCHEMA)))
    assert "The table has no snapshot yet" in page.text
    assert page.plots == []


@pytest.mark.parametrize("spec", [["at"], ["kind"], ["day(at)", "bucket[4](id)"], ["truncate[1](kind)", "hour(at)"]])
def test_manifests_span_the_partitions_between_their_bounds(spec: list[str]) -> None:
    table = memory_catalog().create_table("db.t", SCHEMA, partition_spec=spec, properties=MARKED)
    table.append(month_rows(3))
    table.append(pa.table([[7], [None], [None]], schema=SCHEMA))
    found = manifests_of(table, partitions_of(table))
    apart = [
        set(map(str, each))
        for each in (
            table.inspect.files(snapshot.snapshot_id)["partition"].to_pylist() for snapshot in table.snapshots()
        )
    ]
    assert found.spans is not None
    assert sorted(found.spans.tolist()) == sorted([1, len(apart[0])])
    assert found.depth.sum() == sum((found.high - found.low + 1).tolist())


@pytest.mark.parametrize("more", [("kind", "identity"), ("id", "bucket[2]")])
def test_manifests_of_older_specs_count_as_well(more: tuple[str, str]) -> None:
    table = memory_catalog().create_table("db.t", SCHEMA, partition_spec=["month(at)"], properties=MARKED)
    table.append(month_rows(12))
    with table.update_spec() as update:
        update.add_field(*more)
    table.refresh()
    table.append(month_rows(2))
    found = manifests_of(table, partitions_of(table))
    assert found.data == 2
    assert found.spans is not None
    assert len(found.spans) == 2
    assert max(found.spans.tolist()) == 12
    assert len(found.values) == 12
    assert found.depth.tolist() == [2, 2, *[1] * 10]


def test_a_manifest_without_the_field_may_hold_every_value() -> None:
    table = memory_catalog().create_table("db.t", SCHEMA, partition_spec=["kind"], properties=MARKED)
    table.append(month_rows(3))
    with table.update_spec() as update:
        update.remove_field("kind").add_field("at", "month")
    table.refresh()
    table.append(month_rows(3))
    found = manifests_of(table, partitions_of(table))
    assert found.depth.tolist() == [2, 2, 2]


def test_partitions_of_older_specs_keep_their_own_values() -> None:
    table = lived_in(memory_catalog())
    with table.transaction() as tx:
        tx.update_spec().remove_field("at_month").add_field("at", "year").commit()
    table.append(month_rows(1))
    page = Page(report(table))
    assert "partitioned by year(at)" in page.text
    drawn = {text for plot in page.plots for text in plot.itertext()}
    assert {"2013", "2013-01"} <= drawn


@pytest.mark.parametrize("version", ["1", "2"])
def test_partitions_keep_their_values_where_a_later_spec_uses_the_name_of_a_field_again(version: str) -> None:
    table = memory_catalog().create_table("db.t", SCHEMA, properties={"format-version": version})
    for column, transform in (("at", "month"), ("kind", "truncate[1]")):
        if column == "kind":
            with table.update_spec() as update:
                update.remove_field("part")
        with table.update_spec() as update:
            update.add_field(column, transform, "part")
        table.refresh()
        table.append(month_rows(1))
    found = partitions_of(table)
    void = "null, " if version == "1" else ""
    assert {found.label(place) for place in range(len(found))} == {"2013-01", f"{void}a"}


def test_manifests_are_ranked_by_the_field_of_the_current_spec_where_another_had_its_name() -> None:
    table = memory_catalog().create_table("db.t", SCHEMA, partition_spec=["month(at)"], properties=MARKED)
    table.append(month_rows(2))
    for column, transform, removed in (("kind", "truncate[1]", "at_month"), ("at", "month", "at_month")):
        with table.update_spec() as update:
            update.remove_field(removed)
        with table.update_spec() as update:
            update.add_field(column, transform, "at_month")
        table.refresh()
        table.append(month_rows(2))
    assert table.spec().spec_id == 0
    assert manifests_of(table, partitions_of(table)).values == ("2013-01", "2013-02")


HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>]]>--></style></svg>$\\frac{1}{0}$ {{ 7 * 7 }}"


@pytest.mark.slow
def test_hostile_names_values_and_properties_are_only_shown() -> None:
    catalog = memory_catalog()
    schema = pa.schema([("id", pa.int64()), (HOSTILE, pa.string())])
    table = catalog.create_table("db.<b>'\"x", schema, partition_spec=[HOSTILE], properties={HOSTILE: HOSTILE})
    table.append(pa.table([[1, 2], [HOSTILE, "\x00\x1b[31m\u202e"]], schema=schema))
    page = Page(report(table))
    plain = {tag for tag, _ in Page(report(lived_in(memory_catalog()))).elements}
    assert {tag for tag, _ in page.elements} <= plain
    assert not [name for _, of in page.elements for name in of if name.startswith("on")]
    assert HOSTILE in page.text
    assert "{{ 7 * 7 }}" in page.text
    assert "db.<b>'\"x" in page.text
    assert page.plots


@pytest.mark.slow
def test_the_password_of_a_location_is_not_in_the_page(tmp_path: Path) -> None:
    catalog = icefield.load_catalog("lake", type="directory", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("db")
    location = catalog.create_table("db.t", SCHEMA).metadata_location
    assert location is not None
    path = Path(location.removeprefix("file://"))
    stated = {**json.loads(path.read_text("utf-8")), "location": "s3://ann:hush@lake/t"}
    path.write_text(json.dumps(stated), "utf-8")
    made = report(catalog.load_table("db.t"))
    assert "lake/t" in made
    assert "hush" not in made


def test_the_page_of_a_catalog_has_a_row_and_a_section_for_each_table() -> None:
    catalog = memory_catalog()
    lived_in(catalog, "db.one")
    catalog.create_namespace("db.inner")
    catalog.create_table("db.inner.two", SCHEMA)
    page = Page(catalog_report(catalog))
    sections = [of["id"] for tag, of in page.elements if of.get("class") == "of-table"]
    assert sections == ["table-1", "table-2"]
    assert [of["href"] for tag, of in page.elements if tag == "a"] == ["#content", "#table-1", "#table-2"]
    assert "db.inner.two" in page.text
    assert "db.one" in page.text
    ids = [of["id"] for _, of in page.elements if "id" in of]
    assert len(set(ids)) == len(ids)


@pytest.mark.slow
def test_a_table_that_cannot_be_read_is_named_and_the_others_are_there(tmp_path: Path) -> None:
    catalog = icefield.load_catalog("lake", type="directory", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("db")
    broken, _ = lived_in(catalog, "db.broken"), lived_in(catalog, "db.whole")
    current = broken.current_snapshot()
    assert current is not None
    assert current.manifest_list is not None
    Path(current.manifest_list.removeprefix("file://")).write_bytes(b"no list")
    icefield.clear_caches()
    page = Page(catalog_report(catalog))
    assert "2 tables, 1 cannot be read" in page.text
    assert "This table cannot be read: " in page.text
    assert len(page.plots) == len(PLOTS)


def test_a_catalog_without_tables_has_a_page() -> None:
    assert "The catalog has no tables." in Page(catalog_report(memory_catalog())).text


def test_pages_are_written_into_files(tmp_path: Path) -> None:
    catalog = memory_catalog()
    table = catalog.create_table("db.t", SCHEMA)
    write_report(table, tmp_path / "table.html")
    assert (tmp_path / "table.html").read_text("utf-8") == report(table)
    write_catalog_report(catalog, tmp_path / "catalog.html")
    assert (tmp_path / "catalog.html").read_text("utf-8") == catalog_report(catalog)


def test_the_calls_that_are_named_are_there() -> None:
    source = Path(__file__).parents[1] / "src/icefield_report"
    text = (source / "maintenance.py").read_text("utf-8") + (source / "templates/parts.html").read_text("utf-8")
    calls = set(re.findall(r"table\.maintenance\.(\w+)\(\)", text))
    calls |= set(re.findall(r'operation="(\w+)"', Path(gains.__file__).read_text("utf-8")))
    assert len(calls) >= 6
    maintenance = memory_catalog().create_table("db.t", SCHEMA).maintenance
    assert [call for call in sorted(calls) if not hasattr(maintenance, call)] == []


def test_a_table_with_one_file_is_described_in_the_singular() -> None:
    table = memory_catalog().create_table("db.t", SCHEMA)
    table.append(month_rows(1, 1))
    text = Page(report(table)).text
    assert re.search(r"1 data file of \d+ B, below three quarters of the target\.", text)
    assert re.search(r"1 snapshot at \d{4}-\d\d-\d\d \d\d:\d\d UTC: 1 append\.", text)


def test_manifests_that_name_only_files_that_are_gone_would_go() -> None:
    table = memory_catalog().create_table("db.t", SCHEMA)
    table.append(month_rows(1, 1))
    table.delete()
    page = Page(report(table))
    assert "1 manifest names only files that are gone, and would go." in page.text
    assert "about 0" not in page.text
    table.maintenance.rewrite_manifests()
    assert table.inspect.manifests().num_rows == 0


@pytest.mark.parametrize("span", [0, 1, 2, 7, 900, 9_999, 10_000, 599_999, 86_400_000, 10**11])
def test_each_time_at_an_axis_is_there_once(span: int) -> None:
    marks, words = _time_marks(1_356_998_400_123, 1_356_998_400_123 + span)
    assert len(set(words)) == len(words) == len(marks) > 0


def test_no_control_character_of_a_table_is_in_its_page() -> None:
    loud = "a\x1b[31mb\u202ec"
    schema = pa.schema([(loud, pa.string())])
    table = memory_catalog().create_table("db.t", schema, partition_spec=[loud], properties={loud: loud})
    table.append(pa.table({loud: [loud, "x\ny", "plain"]}, schema=schema))
    table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, loud).commit()  # type: ignore[union-attr]
    html = report(table)
    assert not {each for each in html if not each.isprintable()} - {"\n", "\N{NO-BREAK SPACE}"}
    assert "a\N{REPLACEMENT CHARACTER}[31mb\N{REPLACEMENT CHARACTER}c" in html


class TwicePlugin:
    @hookimpl
    def icefield_report_sections(self) -> list[ReportSection]:
        return [ReportSection("plots", "Plots", "no_such:plots")]


class BrokenSectionPlugin:
    @hookimpl
    def icefield_report_sections(self) -> list[ReportSection]:
        return [ReportSection("broken", "Broken", "no_such_module:section", order=15)]


def page_with(plugin: object) -> str:
    return report(memory_catalog(plugin).create_table("db.t", SCHEMA))


def test_two_sections_of_one_name_are_an_error_that_names_both() -> None:
    with pytest.raises(PluginConflict, match=r"report section 'plots' is provided by .*report.* and by 'TwicePlugin'"):
        page_with(TwicePlugin())


def test_a_section_that_cannot_be_imported_is_shown_as_an_error_at_its_place() -> None:
    page = page_with(BrokenSectionPlugin())
    assert page.index('id="table-help"') < page.index('id="table-broken"') < page.index('id="table-plots"')
    assert "BrokenSectionPlugin" in page


@pytest.mark.parametrize(("name", "target"), [("", "m:a"), ("a b", "m:a"), ('"><script>', "m:a"), ("good", "module")])
def test_a_section_that_no_page_can_show_is_refused(name: str, target: str) -> None:
    with pytest.raises(InvalidArgument, match="is no ReportSection"):
        ReportSection(name, "Title", target)
