"""Pages in a real browser, without a display: nothing is fetched or complained about, and all is seen at any width."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from chromium import running_chromium
from icefield_report import write_catalog_report, write_report
from tables import memory_catalog

pytestmark = [pytest.mark.peer, pytest.mark.slow]

SCHEMA = pa.schema([("id", pa.int64()), ("kind", pa.string()), ("a_column_with_a_rather_long_name" * 3, pa.float64())])
SIZES = """
return [...document.querySelectorAll("svg.plot")].map(plot => {
  const box = plot.getBoundingClientRect();
  const texts = [...plot.querySelectorAll("text")].map(text => text.getBoundingClientRect());
  const inside = texts.filter(text => text.left >= box.left - 2 && text.right <= box.right + 2);
  return [box.width, box.height, texts.length, inside.length];
});
"""

OVERLAPS = """
return [...document.querySelectorAll("svg.plot")].flatMap(plot => {
  const texts = [...plot.querySelectorAll("text")].map(text => [text.textContent, text.getBoundingClientRect()]);
  return texts.flatMap(([one, a], at) => texts.slice(at + 1).filter(([other, b]) =>
    a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1
  ).map(([other]) => [one, other]));
});
"""
"""Texts of a plot of which one is on the other."""

CONTRASTS = """
return [...document.querySelectorAll("h1, h2, h3, p, dt, dd, code, summary, th, td, svg.plot text")].map(each => {
  let below = each;
  while (below && getComputedStyle(below).backgroundColor === "rgba(0, 0, 0, 0)") below = below.parentElement;
  const style = getComputedStyle(each);
  return [each.tagName === "text" ? style.fill : style.color, getComputedStyle(below).backgroundColor];
});
"""
"""The colours of texts and of what is behind them."""


def contrast(one: str, other: str) -> float:
    """How well a colour is told from another: 4.5 is what WCAG asks for texts."""

    def luminance(colour: str) -> float:
        channels = [int(each) / 255 for each in re.findall(r"\d+", colour)[:3]]
        linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
        return sum(each * weight for each, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))

    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with running_chromium() as running:
        yield running


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a catalog: a table with everything that is drawn, one with hostile names, and one without rows."""
    folder, catalog = tmp_path_factory.mktemp("pages"), memory_catalog()
    properties = {"format-version": "2", "write.delete.mode": "merge-on-read", "commit.manifest-merge.enabled": "false"}
    table = catalog.create_table("db.lived_in", SCHEMA, partition_spec=["kind"], properties=properties)
    kinds = [f"partition number {n} " * 4 for n in range(15)]
    for _ in range(3):
        table.append(pa.table([range(60), kinds * 4, [1.0] * 60], schema=SCHEMA))
    table.delete("id < 5")
    hostile = "<script>document.title='owned'</script><img src=http://127.0.0.1:9/x>"
    schema = pa.schema([("id", pa.int64()), (hostile, pa.string())])
    other = catalog.create_table(("db", "x<b>'&amp;\""), schema, partition_spec=[hostile])
    other.append(pa.table([[1, 2], [hostile, "y" * 300]], schema=schema))
    empty = catalog.create_table("db.empty", SCHEMA)
    write_catalog_report(catalog, folder / "catalog.html")
    write_report(empty, folder / "empty.html")
    small, emptied = (catalog.create_table(name, SCHEMA) for name in ("db.small", "db.emptied"))
    for each in (small, emptied):
        each.append(pa.table([[1], ["a"], [1.0]], schema=SCHEMA))
    emptied.delete()
    write_report(small, folder / "small.html")
    write_report(emptied, folder / "emptied.html")
    write_report(table, folder / "table.html")
    return folder / "catalog.html"


def opened(browser: Any, page: Path, width: int, theme: str) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get_log("performance")
    browser.get_log("browser")
    browser.get(page.as_uri())


@pytest.mark.parametrize(("width", "theme"), [(360, "light"), (360, "dark"), (1280, "light"), (1280, "dark")])
def test_a_page_is_whole_in_a_browser(browser: Any, page: Path, tmp_path: Path, width: int, theme: str) -> None:
    opened(browser, page, width, theme)
    assert browser.title == "test: catalog report"
    assert browser.get_log("browser") == []
    assert requested(browser) == {page.as_uri()}
    assert browser.execute_script("return document.documentElement.scrollWidth") == width
    browser.execute_script("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    assert browser.execute_script("return document.documentElement.scrollWidth") == width
    plots = browser.execute_script(SIZES)
    assert len(plots) == 7 + 6
    for wide, high, texts, inside in plots:
        assert wide > 200
        assert high > 60
        assert texts == inside > 0
    background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(16, 22, 28)" if theme == "dark" else "rgb(244, 246, 248)")
    screenshot = tmp_path / f"{width}-{theme}.png"
    assert browser.save_screenshot(str(screenshot))
    assert screenshot.stat().st_size > 10_000


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("name", "plots"), [("empty", 0), ("small", 3), ("emptied", 1)])
def test_a_table_with_little_in_it_fits_a_telephone(
    browser: Any, page: Path, tmp_path: Path, name: str, plots: int, theme: str
) -> None:
    opened(browser, page.with_name(f"{name}.html"), 360, theme)
    assert browser.get_log("browser") == []
    browser.execute_script("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    assert browser.execute_script("return document.documentElement.scrollWidth") == 360
    drawn = browser.execute_script(SIZES)
    assert len(drawn) == plots
    assert all(texts == inside > 0 for _, _, texts, inside in drawn)
    overlapping = browser.execute_script(OVERLAPS)
    assert overlapping == []
    for one, other in browser.execute_script(CONTRASTS):
        assert contrast(one, other) >= 4.5, (one, other)
    assert browser.save_screenshot(str(tmp_path / f"{name}-{theme}.png"))


def test_the_page_of_one_table_is_printed_whole(browser: Any, page: Path) -> None:
    opened(browser, page.with_name("table.html"), 1280, "light")
    assert len(browser.execute_script(SIZES)) == 7
    assert browser.execute_cdp_cmd("Page.printToPDF", {})["data"].startswith("JVBERi0")


def requested(browser: Any) -> set[str]:
    """What the browser asked for since the page was opened; what is written into the page itself is no request."""
    messages = [json.loads(each["message"])["message"] for each in browser.get_log("performance")]
    sent = [each["params"]["request"]["url"] for each in messages if each["method"] == "Network.requestWillBeSent"]
    return {url for url in sent if not url.startswith("data:")}
