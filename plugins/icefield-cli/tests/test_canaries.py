"""Text that others wrote is shown by every command and page, and is never run."""

from __future__ import annotations

import random
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield.types import StringType

PIECES = [
    *(
        "'",
        '"',
        "`",
        ">",
        "<",
        "--",
        "\n",
        "\r\n",
        "\t",
        "\\",
        ";",
        "|",
        "&",
        "%s",
        "{0}",
        "é",
        "\u202e",
        "\x1b[31m",
        "]]>",
    ),
    *("-->", "&lt;", "\x9b2J", " ", "../", "*/", "/*"),
    *("${env:HOME}", "$HOME", "~", "$(touch canary)", "`touch canary`", "| touch canary", "; touch canary\n"),
    *("__import__('pathlib').Path('canary').touch()", "{{ 6173 * 7 }}", "{% set x = 6173 * 7 %}{{ x }}", "${6173*7}"),
    *(
        "<script>canary()</script>",
        "<img src=x onerror=canary()>",
        "' onclick='canary()' x='",
        "</style></svg></title>",
    ),
    *("javascript:canary()", '" onload="canary()', "<!--", "=canary()", "$\\frac{1}{0}$"),
]


class Page(HTMLParser):
    """The tags of a page, their attributes, and the text of its links."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "xlink:href")]


def hostile_table(catalog: icefield.Catalog, rng: random.Random) -> tuple[icefield.Table, list[str]]:
    """A table that holds such text wherever text goes, and that text."""
    made: list[str] = []

    def text() -> str:
        made.append("".join(rng.choices(PIECES, k=rng.randint(1, 4))) + f"x{len(made)}")
        return made[-1]

    column, inner, doc = text(), text(), text()
    nested = pa.struct([(inner, pa.string())])
    schema = pa.schema([("id", pa.int64()), (column, pa.string()), ("s", nested), ("m", pa.map_(pa.string(), nested))])
    properties = {"format-version": "3", text(): text(), "comment": text()}
    table = catalog.create_table("db.t", schema, partition_spec=[column], properties=properties)
    with table.update_schema() as update:
        update.add_column(text(), StringType(), doc=doc, default_value=text())
    for id_ in range(2):
        value = {inner: text()}
        row = {"id": id_, column: text(), "s": value, "m": [(text(), value)]}
        table.append(pa.Table.from_pylist([row], schema=schema), snapshot_properties={text(): text()})
    table.delete("id = 0")
    for name in (text(), text()):
        snapshot = table.current_snapshot()
        assert snapshot is not None
        with table.manage_snapshots() as change:
            change.create_branch(snapshot.snapshot_id, name)
            change.create_tag(snapshot.snapshot_id, f"{name} tag")
    return table, made


READERS = [
    *("describe", "schema", "properties", "scan", "files", "partitions", "manifests", "snapshots", "history", "refs"),
    *("changes", "metadata", "doctor"),
]
CHANGES = ["compute-stats", "rewrite-data-files", "rewrite-deletes", "rewrite-manifests", "expire-snapshots"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0])
def test_no_command_runs_what_a_table_says(run: Any, catalog: icefield.Catalog, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    _, made = hostile_table(catalog, rng)
    if icefield.abc.CatalogAbility.VIEWS in catalog.backend.abilities:
        catalog.create_view("db.v", pa.schema([(made[0], pa.string())]), {"spark": f"SELECT {made[1]} AS x"})
    printed = []

    def check(*arguments: str, status: int | None = 0) -> Any:
        ran = run(*arguments)
        assert ran.status == status or status is None, (arguments, ran.err)
        assert ran.status in (0, 1, 2)
        assert "Traceback" not in ran.err
        for line in f"{ran.out}\n{ran.err}".split("\n"):
            assert line.isprintable(), (arguments, line)
        printed.append(ran.out + ran.err)
        return ran

    for command in READERS:
        check(command, "db.t")
        check(command, "db.t", "--output", "json")
    shown = check("properties", "db.t", "--output", "json").objects
    assert set(made) & {value for each in shown for value in each.values()}
    for string in [each for each in made if not each.startswith("-")][:6]:  # others would be options
        check("scan", "db.t", "--where", string, status=None)
        check("scan", "db.t", "--columns", string, status=None)
        check("tag", "db.t", string, status=None)
        check("properties", "db.t", "--set", f"{string}={string}", status=None)
        check("describe", f"db.{string}", status=None)
        check("scan", "db.t", "--ref", string, status=None)
    for command in CHANGES:
        check(command, "db.t")
    check("tables")
    for page in ("db.t", None):
        check("report", *([page] if page else []), "-o", str(tmp_path / "page.html"))
        html = (tmp_path / "page.html").read_text("utf-8")
        parsed = Page(html)
        assert not parsed.tags & {"script", "img", "iframe", "object", "embed", "form", "base"}
        assert not [name for name in parsed.attributes if name.startswith("on") or not name.isascii()]
        assert all(link.startswith("#") or link == "data:," for link in parsed.links)
        printed.append(html)
    assert not [path for path in tmp_path.rglob("canary") if path.is_file()]
    for each in printed:
        assert "43211" not in each
        assert str(tmp_path / "home") not in each
