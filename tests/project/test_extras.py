"""The kernel's advice on extras to install agrees with the names that the distributions provide."""

from __future__ import annotations

import re
import runpy
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from icefield import Plugins, Provider
from icefield.errors import MissingPlugin
from icefield.plugins import hookspecs
from icefield.plugins.extras import EXTRAS
from icefield_cli import Command
from repository import ROOT, text_of

SCRIPT = ROOT / "docs/make_extras.py"
MODULE = Path("framework/src/icefield/plugins/extras.py")


def distributions() -> list[dict[str, Any]]:
    found = (tomllib.loads(path.read_text("utf-8"))["project"] for path in ROOT.glob("plugins/*/pyproject.toml"))
    return sorted(found, key=lambda project: str(project["name"]))


def commands(hooks: str) -> set[tuple[str, str]]:
    """The commands that a plugin provides, as pairs of a kind and a name."""
    plugins = Plugins(dict.fromkeys([hooks, "icefield_cli.hooks"]))
    records = plugins.records("icefield_commands", Command)
    return {("commands", record.name) for plugin, record in records if plugin.name == hooks}


def records_of(hooks: str) -> list[Any]:
    """The records that a plugin returns from hooks that plugins specify."""
    given = vars(import_module(hooks)).items()
    own = [hook for name, hook in given if hasattr(hook, "icefield_impl") and not hasattr(hookspecs, name)]
    return [record for hook in own for record in hook()]


def test_the_list_of_extras_is_current() -> None:
    written: str = runpy.run_path(str(SCRIPT))["module"]()
    assert text_of(MODULE) == written, f"{MODULE} is out of date: run `make reference`"


@pytest.mark.parametrize("project", distributions(), ids=lambda project: project["name"])
def test_each_name_that_a_plugin_provides_says_what_to_install(project: dict[str, Any]) -> None:
    extras = tomllib.loads(text_of(Path("pyproject.toml")))["project"]["optional-dependencies"]
    for hooks in project.get("entry-points", {}).get("icefield", {}).values():
        (plugin,) = Plugins([hooks]).listing()
        alone = Plugins([hooks])
        read = alone.records("icefield_configurations", Provider)
        draws = hasattr(import_module(hooks), "icefield_html")
        told = alone.table_properties.of_plugins or plugin.listens
        assert plugin.provides or read or records_of(hooks) or told or draws
        for _, name in commands(hooks) if hooks != "icefield_cli.hooks" else ():
            assert project["name"] in [each.partition("[")[0] for each in extras[EXTRAS["commands", name]]]
            assert Plugins([]).requirements("commands", name) == [f"icefield[{EXTRAS['commands', name]}]"]
        for kind, name in plugin.provides:
            extra = EXTRAS[kind, name]
            assert project["name"] in extras[extra]
            with pytest.raises(MissingPlugin) as missing:
                Plugins([])._load(kind, name)
            assert str(missing.value).endswith(f"for '{name}'; pip install \"icefield[{extra}]\"")


def test_no_extra_is_said_to_bring_what_no_plugin_provides() -> None:
    hooks = [
        each for project in distributions() for each in project.get("entry-points", {}).get("icefield", {}).values()
    ]
    provided = {each for plugin in Plugins(hooks).listing() for each in plugin.provides}
    added = {each for plugin in hooks if plugin != "icefield_cli.hooks" for each in commands(plugin)}
    assert set(EXTRAS) == provided | added


def test_the_readme_has_a_row_for_each_extra() -> None:
    extras = tomllib.loads(text_of(Path("pyproject.toml")))["project"]["optional-dependencies"]
    rows = re.findall(r"^\| `icefield\[([\w-]+)\]` \|", text_of(Path("README.md")), re.MULTILINE)
    assert sorted(rows) == sorted(extras)
