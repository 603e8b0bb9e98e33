"""Providers of hooks that plugins specify are found by name."""

from __future__ import annotations

import pytest
from icefield import Plugins, Provider, hookimpl, hookspec
from icefield.errors import BrokenPlugin, InvalidArgument, MissingPlugin, PluginConflict


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


@pytest.mark.parametrize("wanted", ["Dyer", "OtherDyer"])
def test_a_preference_chooses_among_plugins_that_provide_one_name(wanted: str) -> None:
    class OtherDyer(Dyer):
        pass

    dyers = Dyer("blue", target="builtins:len"), OtherDyer("blue", target="builtins:max")
    plugins = Plugins([Owner(), *dyers], prefer={"dyes.blue": wanted})
    plugins.check_preferences()
    assert plugins.provided("icefield_dyes", "blue", "dye") is (len if wanted == "Dyer" else max)


@pytest.mark.parametrize(
    ("key", "wanted", "message"),
    [
        ("dies.blue", "Dyer", "no 'dies' is provided by plugins; was 'dyes' meant"),
        ("dyes.bleu", "Dyer", "no plugin provides dyes 'bleu'; was 'blue' meant"),
        ("dyes.blue", "Dier", "dyes 'blue' is provided by Dyer, not by 'Dier'; was 'Dyer' meant"),
    ],
)
def test_a_preference_without_effect_is_refused(key: str, wanted: str, message: str) -> None:
    plugins = Plugins([Owner(), Dyer("blue")], prefer={key: wanted})
    with pytest.raises(InvalidArgument, match=f"plugins.prefer.{key} has no effect: {message}"):
        plugins.check_preferences()
