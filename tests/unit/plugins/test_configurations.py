"""The catalogs that plugins find in the configuration of other tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from icefield import Plugins, Provider, load_catalog
from icefield.catalog.config import catalog_properties
from icefield.errors import BrokenPlugin, InvalidArgument
from made_plugins import plugin


def first(environment: Mapping[str, str]) -> dict[str, Callable[[], Mapping[str, str]]]:
    return {
        "prod": lambda: {"type": "directory", "warehouse": environment["PLACE"], "a": "of first", "b": "of first"},
        "bad": refused,
    }


def second(environment: Mapping[str, str]) -> dict[str, Callable[[], Mapping[str, str]]]:
    return {"prod": lambda: {"type": "sql"}, "other": lambda: {"type": "directory", "warehouse": "here"}}


def refused() -> Mapping[str, str]:
    raise InvalidArgument("'odd' of the catalog 'bad' cannot be honoured")


@pytest.fixture
def plugins() -> Plugins:
    made = [
        plugin("two", icefield_configurations=[Provider("b-tool", f"{__name__}:second")]),
        plugin("one", icefield_configurations=[Provider("a-tool", f"{__name__}:first")]),
    ]
    return Plugins.installed(extra=made)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    path = tmp_path / "icefield.toml"
    path.write_text('[catalog.prod]\na = "of the file"\n[catalog.mine]\nwarehouse = "file:///mine"\n')
    return {"ICEFIELD_CONFIG": str(path), "PLACE": "file:///there"}


def test_hook_icefield_configurations_gives_a_catalog_that_nothing_else_names(
    plugins: Plugins, environment: dict[str, str]
) -> None:
    found = catalog_properties("prod", {"c": "given"}, environment, plugins=plugins)
    assert found == {
        "type": "directory",
        "warehouse": "file:///there",
        "a": "of the file",
        "b": "of first",
        "c": "given",
    }


@pytest.mark.parametrize("given", [{"type": "rest"}, {"uri": "sqlite://"}, {"warehouse": "file:///w"}])
def test_a_catalog_of_icefields_own_configuration_takes_nothing_from_another_tool(
    plugins: Plugins, environment: dict[str, str], given: dict[str, str]
) -> None:
    assert catalog_properties("prod", given, environment, plugins=plugins) == {"a": "of the file", **given}


def test_names_in_lower_case_are_found_and_a_relative_warehouse_is_below_the_working_directory(
    plugins: Plugins, environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = catalog_properties("Other", {}, {}, plugins=plugins)
    assert found["warehouse"] == f"{tmp_path}/here"


def test_a_catalog_that_cannot_be_honoured_is_refused_only_when_it_is_asked_for(
    plugins: Plugins, environment: dict[str, str]
) -> None:
    assert catalog_properties("nothing", {}, environment, plugins=plugins) == {}
    with pytest.raises(InvalidArgument, match="'odd'"):
        catalog_properties("bad", {}, environment, plugins=plugins)


def test_a_configuration_that_cannot_be_imported_names_its_plugin() -> None:
    broken = plugin("three", icefield_configurations=[Provider("c-tool", "no_such_module:catalogs")])
    with pytest.raises(BrokenPlugin, match="three"):
        load_catalog("prod", plugins=Plugins([broken]))
