"""The explorer in a real browser, without a display: whole at any width, in both themes, for keyboard and reader."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from chromium import running_chromium
from explored import HOSTILE, MARK, POLICY, TABLE_PAGES, explored_catalog, with_record
from icefield_explorer import show
from icefield_rest_server import Settings, app
from rest_served import served
from servers.process import npm_package

pytestmark = [pytest.mark.peer, pytest.mark.slow]

_HOSTILE = f"{quote(HOSTILE, safe='')}/{quote(HOSTILE, safe='')}"
PAGES = {
    "catalog": "/",
    "found tables": "/?find=e",
    "found nothing": "/?find=no-such-name",
    "namespace": "/namespace/sales",
    "view": "/view/sales/by_country",
    "error": "/table/no/such",
    "no page": "/no/such/page",
    "found names": "/namespace/sales?find=order",
    "table": "/table/sales/orders",
    "schema": "/schema/sales/orders",
    "snapshots": "/snapshots/sales/orders",
    "diff": "/diff/sales/orders",
    "branches": "/branches/sales/orders",
    "files": "/files/sales/orders",
    "health": "/health/sales/orders?doctor=run",
    "maintenance": "/maintenance/sales/orders",
    "difference of a tag": "/diff/sales/orders?from=audit-2023&to=main",
    "older files": "/files/sales/orders?at=audit-2023",
    "older rows": "/rows/sales/orders?at=dev",
    "plan": "/plan/sales/orders?filter=country%20%3D%20'DE'",
    "plan of an error": f"/plan/sales/orders?filter={quote('nothing = ' + 'x' * 300)}",
    "rows": "/rows/sales/orders",
    "query": f"/rows/sales/orders?sql={quote('SELECT * FROM sales.orders JOIN sales.orders o USING (id)')}",
    "query of an error": f"/rows/sales/orders?sql={quote('SELECT ' + 'x' * 300)}",
    "query beyond its memory": f"/rows/sales/orders?sql={quote('SELECT repeat(1::VARCHAR, 2000000000)')}",
    **{f"empty {name}": f"/{name}/web/empty" for name in TABLE_PAGES},
    "hostile namespace": f"/namespace/{quote(HOSTILE, safe='')}",
    "hostile view": f"/view/{quote(HOSTILE, safe='')}/{quote('v' + HOSTILE, safe='')}",
    **{f"hostile {name}": f"/{name}/{_HOSTILE}" for name in ("table", "schema", "snapshots", "diff")},
    **{f"hostile {name}": f"/{name}/{_HOSTILE}" for name in ("branches", "files", "health", "maintenance")},
    "hostile plan": f"/plan/{_HOSTILE}",
    "hostile rows": f"/rows/{_HOSTILE}",
}
SEEN = {"color-contrast", "label", "link-name", "aria-required-attr", "document-title"}
"""Rules of axe that must have been tried on some page: an axe that tries nothing would be content with all."""

INSIDE = """
return [...document.querySelectorAll("body *")].filter(each => {
  const box = each.getBoundingClientRect();
  const sticksOut = box.width && box.right > document.documentElement.clientWidth + 1;
  return sticksOut && !each.closest(".scroll, .skip, .unseen, svg, pre");
}).map(each => each.outerHTML.slice(0, 200));
"""
"""Elements that stick out of the page to the right."""

GAP = """
const [above, first] = [document.querySelector("header"), document.querySelector("main").firstElementChild];
return first.getBoundingClientRect().top - above.getBoundingClientRect().bottom;
"""
"""The pixels between the heading and the content."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with running_chromium() as running:
        yield running


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    pages, catalog = partial(show, policy=POLICY), with_record(explored_catalog())
    catalog.load_table("sales.orders").maintenance.compute_table_stats()
    with served(app(catalog, Settings(pages={"ui": pages}))) as url:
        yield f"{url}/ui"


@pytest.fixture(scope="module")
def axe() -> str:
    """The checks of axe-core, to be run in a page."""
    return (npm_package("axe-core", "4.10.3").parent / "axe-core" / "axe.min.js").read_text("utf-8")


def opened(browser: Any, url: str, width: int = 1400, theme: str = "light") -> None:
    """Open a page and wait until nothing of it is under way."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    for kind in ("performance", "browser"):
        browser.get_log(kind)
    browser.get(url)
    end = time.monotonic() + 60
    while browser.find_elements("css selector", ".wait"):
        assert time.monotonic() < end, url
        time.sleep(0.5)
        browser.get(url)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1400])
def test_every_page_is_whole_and_fetches_nothing_from_elsewhere(
    browser: Any, address: str, tmp_path: Path, width: int, theme: str
) -> None:
    for name, path in PAGES.items():
        opened(browser, f"{address}{path}", width, theme)
        errors = [each for each in browser.get_log("browser") if "404 (Not Found)" not in each["message"]]
        assert errors == [], name
        assert all(url.startswith(f"{address}/") for url in requested(browser)), name
        assert browser.title != MARK, name
        browser.execute_script("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        assert browser.execute_script("return document.documentElement.scrollWidth") == width, name
        assert browser.execute_script(INSIDE) == [], name
        assert browser.execute_script(GAP) >= 8, name
        background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert background == ("rgb(16, 22, 28)" if theme == "dark" else "rgb(244, 246, 248)")
        assert browser.save_screenshot(str(tmp_path / f"{name}-{width}-{theme}.png"))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_violation(browser: Any, address: str, axe: str, theme: str) -> None:
    tried: set[str] = set()
    for name, path in PAGES.items():
        opened(browser, f"{address}{path}", 375 if theme == "dark" else 1400, theme)
        browser.execute_script(axe)
        found = browser.execute_async_script("axe.run().then(arguments[0])")
        tried.update(each["id"] for each in found["passes"])
        violations = [(each["id"], each["impact"], each["nodes"][0]["html"][:200]) for each in found["violations"]]
        assert violations == [], name
    assert tried >= SEEN


def test_plots_follow_the_theme_under_the_policy(browser: Any, address: str) -> None:
    colours = set()
    for theme in ("light", "dark"):
        opened(browser, f"{address}/files/sales/orders", theme=theme)
        bars = browser.execute_script("return getComputedStyle(document.querySelector('svg.plot text')).fill")
        colours.add(bars)
    assert len(colours) == 2


CONTROLS = "a, input:not([type=hidden]), select, button, textarea, [tabindex='0'], summary"


@pytest.mark.parametrize("name", ["found tables", "namespace", "view", "error", *TABLE_PAGES])
def test_every_control_of_a_page_is_reached_by_the_keyboard(browser: Any, address: str, name: str) -> None:
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    opened(browser, f"{address}{PAGES[name]}")
    active = browser.switch_to
    browser.find_element("tag name", "body").send_keys(keys.TAB)
    assert active.active_element.text == "Skip to the content"
    wanted = [each for each in browser.find_elements("css selector", CONTROLS) if is_shown(browser, each)]
    reached = {active.active_element.id}
    for _ in wanted:
        active.active_element.send_keys(keys.TAB)
        reached.add(active.active_element.id)
    missed = [each.get_attribute("outerHTML")[:200] for each in wanted if each.id not in reached]
    assert missed == []


def is_shown(browser: Any, element: Any) -> bool:
    """Whether an element has a place on the page; those of a closed ``details`` have none."""
    return bool(browser.execute_script("return arguments[0].checkVisibility()", element))


def test_a_filter_is_given_by_the_keyboard(browser: Any, address: str) -> None:
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    opened(browser, f"{address}/plan/sales/orders")
    field = browser.find_element("id", "filter")
    field.send_keys("country = 'DE'", keys.ENTER)
    assert "Left out by partition" in browser.find_element("id", "content").text
    assert browser.find_element("id", "filter").get_attribute("value") == "country = 'DE'"


def requested(browser: Any) -> set[str]:
    """The addresses that the browser asked for since the page was opened."""
    messages = [json.loads(each["message"])["message"] for each in browser.get_log("performance")]
    sent = [each["params"]["request"]["url"] for each in messages if each["method"] == "Network.requestWillBeSent"]
    return {url for url in sent if not url.startswith("data:")}
