"""The pages for authors of plugins state the names, the numbers and the kinds that the code has."""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import icefield.abc
import pytest
from fenced import Page
from icefield import Plugins
from icefield.plugins.records import KINDS
from kit_mutants import CONTRACTS
from plugin_templates import KINDS as TEMPLATES
from repository import ROOT

KNOWN = Page(Path("docs/plugins/known.md")).text.partition("## Plugins of other authors")[0]
VERSIONS = Page(Path("docs/plugins/versions.md")).text
KIT = Page(Path("docs/plugins/kit.md")).text
TEMPLATE = Page(Path("docs/plugins/templates.md")).text


def known() -> dict[str, str]:
    """The text about each distribution on the page of known plugins."""
    return dict(re.findall(r"^\| `(icefield[\w-]*)` \| (.+) \|$", KNOWN, re.MULTILINE))


def test_every_distribution_of_this_repository_is_listed() -> None:
    files = [ROOT / "pyproject.toml", *ROOT.glob("plugins/*/pyproject.toml")]
    assert sorted(known()) == sorted(tomllib.loads(path.read_text("utf-8"))["project"]["name"] for path in files)


def test_the_list_has_the_names_that_each_distribution_provides() -> None:
    of_contracts = {"file-formats", "file-systems", "commit-strategies", "catalogs"}
    for plugin in Plugins.installed().listing():
        if plugin.distribution in known():
            names = {name for kind, name in plugin.provides if kind in of_contracts}
            said = set(re.findall(r"`([^`]+)`", known()[plugin.distribution]))
            assert names <= said, f"{plugin.distribution} provides {names - said}"


def test_the_page_of_versions_has_the_numbers_of_the_contracts() -> None:
    rows = re.findall(r"^\| \[.*\| `icefield\.abc\.(\w+)` \| (\d+) \|$", VERSIONS, re.MULTILINE)
    stated = {name: int(number) for name, number in rows}
    contracts = {kind.contract for kind in KINDS.values() if kind.contract is not None}
    assert stated == {contract.__name__: contract.contract for contract in contracts}
    assert set(stated) <= set(icefield.abc.__all__)


def test_the_page_of_the_template_has_its_kinds() -> None:
    assert tuple(re.findall(r"^\| `([\w-]+)` \|", TEMPLATE, re.MULTILINE)) == TEMPLATES


def test_the_page_of_the_kit_has_the_number_of_broken_plugins_of_each_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "tests/kit")
    for name, contract in CONTRACTS.items():
        count = len(import_module(f"mutants.{name}").MUTANTS)
        assert f"| {contract} | {count} | {count} |" in KIT
    assert f"| icefield-testing {version('icefield-testing')} |" in KIT
