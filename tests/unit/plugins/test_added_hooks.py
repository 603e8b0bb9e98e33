"""Plugins specify hooks of their own, which other plugins implement."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest
from icefield import Plugins, hookimpl, hookspec
from icefield.errors import BrokenPlugin
from made_plugins import plugin, schemes


def specifications(monkeypatch: pytest.MonkeyPatch, name: str, *hooks: str) -> types.ModuleType:
    """An importable module with specifications of hooks without arguments."""
    module = types.ModuleType(name)
    for hook in hooks:
        setattr(module, hook, hookspec(lambda: None))
    monkeypatch.setitem(sys.modules, name, module)
    return module


def test_hook_icefield_addhooks_lets_a_plugin_specify_a_hook_that_others_implement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    specifications(monkeypatch, "paints_hooks", "icefield_paints")
    user = plugin("user", icefield_paints=["red", "green"])
    owner = plugin("owner", icefield_addhooks=["paints_hooks"], icefield_paints=["blue"])
    plugins = Plugins([user, owner, plugin("other", icefield_file_systems=schemes("x"))])
    assert [info.error for info in plugins.listing()] == [None, None, None]
    found = [(info.name, paint) for info, paint in plugins.records("icefield_paints", str)]
    assert found == [("user", "red"), ("user", "green"), ("owner", "blue")]
    (alone,) = Plugins([user]).listing()
    assert "'icefield_paints' is no hook of Icefield" in (alone.error or "")


@pytest.mark.parametrize("returned", [ValueError("no paint"), [1], "red", SystemExit(2)], ids=repr)
def test_a_plugin_that_fails_in_a_hook_of_another_plugin_is_logged_and_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, returned: Any
) -> None:
    specifications(monkeypatch, "paints_hooks", "icefield_paints")

    @hookimpl
    def icefield_paints() -> Any:
        if isinstance(returned, BaseException):
            raise returned
        return returned

    bad = types.ModuleType("bad")
    bad.icefield_paints = icefield_paints  # type: ignore[attr-defined]
    owner = plugin("owner", icefield_addhooks=["paints_hooks"], icefield_paints=["blue"])
    found = Plugins([bad, owner]).records("icefield_paints", str)
    assert [paint for _, paint in found] == ["blue"]
    assert "the hook icefield_paints of plugin 'bad' (not from a distribution) failed" in caplog.text


@pytest.mark.parametrize(
    ("name", "reason"),
    [("absent_hooks", "No module named 'absent_hooks'"), ("again_hooks", "icefield_catalogs"), ("json", "json")],
)
def test_specifications_that_are_missing_or_specified_already_break_their_plugin_only(
    monkeypatch: pytest.MonkeyPatch, name: str, reason: str
) -> None:
    specifications(monkeypatch, "again_hooks", "icefield_catalogs")
    plugins = Plugins([plugin("bad", icefield_addhooks=[name]), plugin("good", icefield_file_systems=schemes("x"))])
    bad, good = plugins.listing()
    assert reason in (bad.error or "")
    assert good.error is None


def test_the_target_of_a_record_is_loaded_and_a_failure_names_its_plugin() -> None:
    (info,) = Plugins([plugin("painter")]).listing()
    assert Plugins.load(info, "builtins:repr", "paint 'red'") is repr
    with pytest.raises(BrokenPlugin, match=r"plugin 'painter' .* provides paint 'red' but builtins:red cannot"):
        Plugins.load(info, "builtins:red", "paint 'red'")
