"""Pages of notebooks: what they say, what they leave out, and that nothing from a table gets out of its place."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from typing import Any

import pyarrow as pa
import pytest
from icefield import Schema, Table
from icefield.metadata import Snapshot, with_deferred_snapshots
from icefield.toolkit import html_of
from icefield.types import LongType, NestedField
from icefield_maintenance import RewriteDataFilesResult, RewrittenGroup
from tables import memory_catalog, new_table, rows

ATTACK = "<script>alert('x')</script>\"'>&"
TAGS = {"div", "style", "p", "strong", "small", "table", "thead", "tbody", "tr", "th", "td", "details", "summary"}


class Reader(HTMLParser):
    """The tags of a page with their attributes, and its text without the style."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[tuple[str, str | None]] = set()
        self.style = ""
        words: list[str] = []
        self._words = words
        self.feed(html)
        self.text = " ".join(" ".join(words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= set(attrs)

    def handle_data(self, data: str) -> None:
        if self.tags[-1] == "style" and not self.style:
            self.style = data
        else:
            self._words.append(data)


def read(shown: Any) -> Reader:
    """The page about an object."""
    html = shown._repr_html_()
    assert html is not None
    return Reader(html)


@pytest.fixture
def table() -> Table:
    made = new_table(["bucket[4](id)"])
    made.append(rows(range(3)))
    made.append(rows(range(3, 5)))
    made.manage_snapshots().create_tag(made.history()[0].snapshot_id, "v1").commit()
    return made


def test_a_table_states_its_columns_layout_snapshot_and_size(table: Table) -> None:
    page = read(table)
    assert re.match(r"db\.t table · 5 rows · \d data files · [\d.]+ KiB · format version 2 id column type", page.text)
    assert "1 id long yes 2 kind string yes 3 value double yes partitioned by bucket[4](id)" in page.text
    current = table.current_snapshot()
    assert current is not None
    assert f"snapshot {current.snapshot_id}, append, " in page.text
    assert f"Branches and tags (2) name kind snapshot main branch {current.snapshot_id} v1 tag" in page.text
    assert "commit.retry.min-wait-ms 0" in page.text


def test_a_table_without_rows_and_one_without_totals_have_pages() -> None:
    assert "snapshot none" in read(new_table()).text
    strange = Snapshot(snapshot_id=1, timestamp_ms=2**62, summary={"total-records": "many", "total-files-size": "-1"})
    assert read(strange).text.startswith("1 overwrite snapshot time 4611686018427387904 ms since 1970 sequence")


def test_each_object_has_a_page_with_what_it_was_given(table: Table) -> None:
    catalog = memory_catalog()
    assert re.match("test catalog type directory warehouse memory://", read(catalog).text)
    assert read(table.schema()).text.startswith("Schema id 0 · 3 columns id column type nullable comment 1 id long")
    assert read(table.spec()).text.endswith("1000 id_bucket_4 bucket[4] 1")
    assert read(new_table().spec()).text == "Partition spec id 0 · unpartitioned"
    scan = table.scan("id > 1", ("id", "kind"), limit=7)
    assert read(scan).text == "TableScan db.t row filter id > 1 selected fields id, kind limit 7"
    assert read(table.incremental_append_scan()).text == "IncrementalAppendScan db.t"
    plan = next(scan.plan_manifests())
    assert re.match(r"Plan manifest 0 · \d files? · \d rows? · \d+ B rows size file", read(plan).text)
    written = table.append(rows(range(1_000, 3_000)))
    assert re.fullmatch(
        rf"WriteResult snapshot id {written.snapshot_id} rows inserted 2,000 files added \d", read(written).text
    )


def test_the_result_of_maintenance_states_its_fields_and_lists_its_groups() -> None:
    groups = tuple(
        RewrittenGroup(partition=f"p={i}", rewritten_data_files=2, rewritten_bytes=2048, added_data_files=1)
        for i in range(30)
    )
    page = read(RewriteDataFilesResult(groups=groups, dry_run=True))
    assert page.text.startswith("RewriteDataFilesResult dry run yes rewritten data files 60 rewritten bytes 60.0 KiB")
    assert "groups (30) partition rewritten data files" in page.text
    assert "p=19 2 2.0 KiB 1" in page.text
    assert page.text.endswith("... 10 more")


def test_a_write_without_changes_and_one_with_uncounted_rows_say_so(table: Table) -> None:
    assert read(table.delete("id > 100")).text == "WriteResult no changes"
    counted = table.delete_by_equality(pa.table({"id": [1]}), ["id"])
    assert "rows deleted not counted" in read(counted).text


def test_nothing_from_a_table_gets_out_of_its_place() -> None:
    schema = Schema(NestedField(1, f"c{ATTACK}", LongType(), doc=ATTACK))
    catalog = memory_catalog()
    catalog.create_namespace((f"n{ATTACK}".replace("/", ""),))
    made = catalog.create_table(("db", "t"), schema, properties={f"p{ATTACK}": ATTACK})
    scan = made.scan(selected_fields=(ATTACK,), ref=ATTACK, options={ATTACK: ATTACK})
    snapshot = Snapshot(snapshot_id=1, timestamp_ms=0, summary={"operation": ATTACK, ATTACK: ATTACK})
    result = RewriteDataFilesResult(
        groups=(RewrittenGroup(partition=ATTACK, rewritten_data_files=1, rewritten_bytes=1),)
    )
    for shown in (made, made.schema(), scan, snapshot, result):
        page = read(shown)
        assert set(page.tags) <= TAGS, shown
        assert {name for name, _ in page.attributes} == {"class"}
        assert ATTACK in page.text


def test_ten_thousand_columns_and_long_texts_are_shortened() -> None:
    fields = [
        NestedField(i, f"c{i}{'c' * 1_000 if i < 30 else ''}", LongType(), doc="d" * 1_000 if i < 30 else None)
        for i in range(1, 10_001)
    ]
    properties = {f"p{i:05}": "v" * 1_000 for i in range(1_000)}
    made = memory_catalog().create_table("db.t", pa.schema([("id", pa.int64())]), properties=properties)
    for shown in (Schema(*fields), made, Snapshot(snapshot_id=1, timestamp_ms=0, summary=properties)):
        assert len(shown._repr_html_() or "") < 20_000
    assert "... 9,980 more" in read(Schema(*fields)).text
    assert "... 980 more" in read(made).text


def test_a_long_value_takes_no_long_time_and_a_password_that_is_cut_in_two_is_left_out() -> None:
    summary = {"a": "v" * 1_000_000 + "@", "b": f"https://me:{'hunter' * 10_000}@host/", "c": "sig=" + "x" * 1_000_000}
    shown = Snapshot(snapshot_id=1, timestamp_ms=0, summary=summary)
    assert "hunter" not in (shown._repr_html_() or "")
    assert "b https://me:***@" in read(shown).text


def test_lines_stay_whole_and_unprintable_characters_are_replaced() -> None:
    shown = Schema(NestedField(1, "a\u202eb\x00c\ud800", LongType(), doc="one\ntwo\tthree"))
    assert "1 a\ufffdb\ufffdc\ufffd long yes one two three" in read(shown).text


def test_no_credential_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "hunter7351"
    properties = {"s3.secret-access-key": secret, "oauth2-server-uri": f"https://me:{secret}@host/"}
    catalog = memory_catalog(**properties)
    made = new_table(catalog=catalog)
    foreign = {"client.password": secret, "note": f"see https://me:{secret}@host/"}
    metadata = replace(made.metadata, properties=foreign, location=f"s3://me:{secret}@host/t")
    monkeypatch.setattr(Table, "metadata", property(lambda _: metadata))
    snapshot = Snapshot(
        snapshot_id=1, timestamp_ms=0, summary={"wap.token": secret, "from": f"https://me:{secret}@host/"}
    )
    for shown in (catalog, made, snapshot, made.scan(options={"from": f"https://me:{secret}@host/"})):
        assert secret not in (shown._repr_html_() or "")
        assert secret not in repr(shown)
    assert "client.password ***" in read(made).text


def test_a_page_fetches_nothing(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch() -> Any:
        raise AssertionError("a request was sent")

    whole = table.metadata
    latest = table.current_snapshot()
    deferred = with_deferred_snapshots(whole, fetch)
    monkeypatch.setattr(Table, "metadata", property(lambda _: deferred))
    monkeypatch.setattr(Table, "io", property(lambda _: fetch()))
    assert latest is not None
    assert f"snapshot {latest.snapshot_id}, append, " in read(table).text
    assert "snapshot_id=" in repr(table)
    without = with_deferred_snapshots(_without_snapshots(whole), fetch)
    monkeypatch.setattr(Table, "metadata", property(lambda _: without))
    assert f"snapshot {latest.snapshot_id} location" in read(table).text


def _without_snapshots(metadata: Any) -> Any:
    return replace(metadata, snapshots=metadata.snapshots.kept([]))


def test_the_colours_are_those_of_the_theme() -> None:
    style = read(Schema()).style
    assert style.count("{") == style.count("}") > 5
    assert "currentColor" in style
    assert not re.search(r"#[0-9a-f]{3}|rgba?\(|hsla?\(|\b(black|white(?!-)|gr[ae]y|red|blue)\b", style, re.IGNORECASE)


@dataclass
class OtherResult:
    """A class of a plugin of another author."""

    rows_read: int = 0
    files: tuple[str, ...] = field(default=())

    _repr_html_ = html_of


def test_a_dataclass_of_another_plugin_gets_a_page() -> None:
    assert read(OtherResult(1_234, ("a", "b"))).text == "OtherResult rows read 1,234 files a, b"
    assert html_of(object()) is None
