"""Providers of hooks that plugins specify are found by name."""

from __future__ import annotations

import pytest
from icefield import Plugins, Provider, hookimpl, hookspec
from icefield.errors import BrokenPlugin, MissingPlugin, PluginConflict


@hookspec
def icefield_dyes() -> list[Provider]:  # type: ignore[empty-body]
    """Provide dyes."""


class Owner:
    @hookimpl
    def icefield_addhooks(self) -> list[str]:
        return [__name__]


class Dyer:
    def __init__(self, *names: str, target: str = "builtins:len") -> None:
        self._providers = [Provider(name, target) for name in names]

    @hookimpl(optionalhook=True)
    def icefield_dyes(self) -> list[Provider]:
        return self._providers


def provided(name: str, *plugins: object) -> object:
    return Plugins([Owner(), *plugins]).provided("icefield_dyes", name, "dye")


def test_a_provider_is_imported_by_its_name() -> None:
    assert provided("blue", Dyer("red", "blue")) is len


def test_an_unknown_name_is_an_error_that_names_the_known_ones_and_the_failed_plugins() -> None:
    with pytest.raises(MissingPlugin, match=r"no dye 'bleu'; installed are: blue, red; was 'blue' meant\?"):
        provided("bleu", Dyer("red", "blue"))
    with pytest.raises(MissingPlugin, match=r"installed are: none; plugin 'no_such_module' .* failed to load"):
        provided("blue", "no_such_module")


def test_a_name_of_two_plugins_is_an_error_that_names_both() -> None:
    class OtherDyer(Dyer):
        pass

    with pytest.raises(PluginConflict, match=r"dye 'blue' is provided by 'Dyer' .* and by 'OtherDyer'"):
        provided("blue", Dyer("blue"), OtherDyer("blue"))


def test_a_target_that_cannot_be_imported_is_an_error_of_its_plugin() -> None:
    with pytest.raises(BrokenPlugin, match=r"plugin 'Dyer' .* provides dye 'blue' but no_such:dye cannot be loaded"):
        provided("blue", Dyer("blue", target="no_such:dye"))
