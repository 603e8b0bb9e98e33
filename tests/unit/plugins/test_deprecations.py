"""Plugins that use a deprecated hook or member are warned, with the version of removal."""

from __future__ import annotations

import sys
import types
import warnings

import pytest
from icefield import Plugins, Provider, hookspec
from icefield.abc import FileSystem
from icefield.builtin.memory import MemoryFileSystem
from icefield.toolkit import deprecated, deprecation
from made_plugins import plugin

OLD_HOOK = deprecation("the hook icefield_dyes", since="0.2", removal="0.4", use="icefield_paints")
SAID = "is deprecated since icefield 0.2 and is removed in 0.4; use"


@pytest.fixture
def owner(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A plugin that specifies a deprecated hook and its successor."""
    module = types.ModuleType("dye_hooks")
    module.icefield_dyes = hookspec(warn_on_impl=OLD_HOOK)(lambda: None)  # type: ignore[attr-defined]
    module.icefield_paints = hookspec(lambda: None)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "dye_hooks", module)
    return plugin("owner", icefield_addhooks=["dye_hooks"])


def test_a_plugin_that_implements_a_deprecated_hook_is_warned_and_works(owner: types.ModuleType) -> None:
    user = plugin("user", icefield_dyes=["red"])
    with pytest.warns(DeprecationWarning, match=f"the hook icefield_dyes {SAID} icefield_paints"):
        found = Plugins([owner, user]).records("icefield_dyes", str)
    assert [dye for _, dye in found] == ["red"]


def test_a_plugin_that_implements_the_successor_is_not_warned(owner: types.ModuleType) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        listing = Plugins([owner, plugin("user", icefield_paints=["red"])]).listing()
    assert [info.error for info in listing] == [None, None]


class Contract(FileSystem):
    """A contract with a deprecated member, as a later version may have it."""

    @deprecated(since="0.2", removal="0.4", use="stat")
    def size_of(self, location: str) -> int:
        """The size of a file."""
        return 7


@pytest.fixture
def contract(monkeypatch: pytest.MonkeyPatch) -> None:
    """The contract of file systems has the deprecated member, and plugins find this module by its name."""
    monkeypatch.setattr(FileSystem, "size_of", vars(Contract)["size_of"], raising=False)
    module = types.ModuleType(__name__)
    vars(module).update(globals())
    monkeypatch.setitem(sys.modules, __name__, module)


class Implements(MemoryFileSystem):
    """Implements the deprecated member."""

    def size_of(self, location: str) -> int:
        return 8


class Inherits(MemoryFileSystem):
    """Leaves the deprecated member alone."""


def loaded(name: str) -> type:
    """A class of this module, loaded as a plugin's file system."""
    given = plugin("mine", icefield_file_systems=[Provider("mine", f"{__name__}:{name}", contract=(1, 1))])
    return Plugins([given]).file_system("mine")


def test_a_class_that_implements_a_deprecated_member_is_warned(contract: None) -> None:
    with pytest.warns(DeprecationWarning, match=rf"Implements implements size_of, and Contract\.size_of {SAID} stat"):
        assert loaded("Implements") is Implements


def test_a_class_that_inherits_a_deprecated_member_is_not_warned(contract: None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert loaded("Inherits") is Inherits


def test_a_call_of_a_deprecated_member_warns_at_the_line_of_the_call() -> None:
    with pytest.warns(DeprecationWarning, match=rf"Contract\.size_of {SAID} stat") as caught:
        assert Contract.size_of(None, "memory://f") == 7  # type: ignore[arg-type]
    assert caught[0].filename == __file__
    assert Contract.size_of.__doc__ == "The size of a file."
