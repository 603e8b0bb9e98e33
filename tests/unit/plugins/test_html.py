"""Plugins draw objects for notebooks, and none of them can make a cell fail."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from icefield import Plugins, Schema, hookimpl


class Drawing:
    """A plugin that draws by a function."""

    def __init__(self, name: str, draw: Callable[[object], str | None]) -> None:
        self.__name__, self._draw = name, draw

    @hookimpl
    def icefield_html(self, shown: object) -> str | None:
        return self._draw(shown)


def test_hook_icefield_html_draws_an_object_by_the_first_plugin_that_does() -> None:
    plugins = Plugins([Drawing("a", lambda _: None), Drawing("b", lambda _: "b"), Drawing("c", lambda _: "c")])
    assert plugins.html(Schema()) == "b"
    assert Plugins().html(Schema()) is None


def test_a_plugin_that_fails_is_logged_and_left_out(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: object) -> str:
        raise RuntimeError("out of ink")

    with caplog.at_level(logging.ERROR):
        assert Plugins([Drawing("pen", fail), Drawing("b", lambda _: "b")]).html(Schema()) == "b"
        assert Plugins([Drawing("pen", fail)]).html(Schema()) is None
    assert "plugin 'pen' (not from a distribution) failed to draw a Schema" in caplog.text
    assert "out of ink" in caplog.text


def test_what_is_no_text_and_what_a_disabled_plugin_draws_is_left_out() -> None:
    assert Plugins([Drawing("a", lambda _: 7)]).html(Schema()) is None  # type: ignore[arg-type, return-value]
    assert Plugins([Drawing("a", lambda _: "a")], disable=["a"]).html(Schema()) is None


def test_a_disabled_plugin_draws_nothing_in_notebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(Schema()._repr_html_(), str)
    monkeypatch.setenv("ICEFIELD_PLUGINS_DISABLE", "notebook")
    assert Schema()._repr_html_() is None
