"""A table with hostile text in every place for text, and pages that show it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from html.parser import HTMLParser

import icefield
import pyarrow as pa
from icefield.types import StringType

PIECES = [
    *("'", '"', "`", ">", "<", "--", "\n", "\r\n", "\t", "\\", ";", "|", "&", "%s", "{0}", "é", "\u202e", "\x1b[31m"),
    *("]]>", "-->", "&lt;", "\x9b2J", " ", "../", "*/", "/*"),
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
"""Text that ends quotes and comments, starts programs, or makes a page or a terminal do something."""
PRODUCT = "43211"
"""The result of the product in ``PIECES``. Only a template or a shell that ran it prints it."""

NAME = "t'\"`><img src=x onerror=canary()>--; $(touch canary)${env:HOME}|*"
"""A name that catalogs take for a table, a namespace or a view."""


class Texts:
    """A source of hostile texts. Each text ends in its own number, so that no two are equal."""

    def __init__(self, rng: random.Random, pieces: Sequence[str] = PIECES) -> None:
        self._rng, self._pieces = rng, pieces
        self.made: list[str] = []

    def __call__(self) -> str:
        """A new text."""
        self.made.append("".join(self._rng.choices(self._pieces, k=self._rng.randint(1, 4))) + f"x{len(self.made)}")
        return self.made[-1]


class Page(HTMLParser):
    """The tags of a page, their attributes, and the text of its links."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "xlink:href")]


def check_page(html: str) -> None:
    """Fail for a page in which a hostile text became a tag, an attribute or a link."""
    page = Page(html)
    assert not page.tags & {"script", "img", "iframe", "object", "embed", "form", "base"}
    assert not [name for name in page.attributes if name.startswith("on") or not name.isascii()]
    assert all(link.startswith("#") or link == "data:," for link in page.links)


def hostile_table(catalog: icefield.Catalog, text: Callable[[], str], name: str | tuple[str, ...]) -> icefield.Table:
    """A table with one remaining row of two. Its names, docs, values, refs and similar texts are hostile.

    Its columns are ``id``, a hostile partition column, a struct ``s``, a map ``m`` and a column with a default.
    """
    column, inner, doc = text(), text(), text()
    nested = pa.struct([(inner, pa.string())])
    schema = pa.schema([("id", pa.int64()), (column, pa.string()), ("s", nested), ("m", pa.map_(pa.string(), nested))])
    properties = {"format-version": "3", text(): text(), "comment": text()}
    table = catalog.create_table(name, schema, partition_spec=[column], properties=properties)
    with table.update_schema() as update:
        update.add_column((text(),), StringType(), doc=doc, default_value=text())
    for id_ in range(2):
        value = {inner: text()}
        row = {"id": id_, column: text(), "s": value, "m": [(text(), value)]}
        table.append(pa.Table.from_pylist([row], schema=schema), snapshot_properties={text(): text()})
    table.delete("id = 0")
    for ref in (text(), text()):
        snapshot = table.current_snapshot()
        assert snapshot is not None
        with table.manage_snapshots() as change:
            change.create_branch(snapshot.snapshot_id, ref)
            change.create_tag(snapshot.snapshot_id, f"{ref} tag")
    return table
