"""Plugins are disabled by name."""

from __future__ import annotations

import pickle

import pytest
from icefield import Plugins, Provider, TableService, hookimpl
from icefield.abc import CommitMade, Event
from icefield.errors import MissingPlugin
from icefield.plugins import Listeners
from made_plugins import plugin, schemes

MADE = CommitMade(("db", "t"), "memory://t/v1.metadata.json", None, None, 1, 0.0)


def test_a_disabled_plugin_provides_nothing_and_hears_nothing() -> None:
    heard: list[Event] = []

    class Listener:
        @hookimpl
        def icefield_file_systems(self) -> list[Provider]:
            return schemes("x")

        @hookimpl
        def icefield_events(self, event: Event) -> None:
            heard.append(event)

    plugins = Plugins([Listener(), plugin("two", icefield_file_systems=schemes("y"))], disable=["Listener"])
    Listeners(plugins, {}, None).tell(MADE)
    assert heard == []
    assert plugins.names("file-systems") == ["y"]
    assert [info.disabled for info in plugins.listing()] == [True, False]
    with pytest.raises(MissingPlugin, match=r"'Listener' .* provides it and is disabled.*plugins.disable"):
        plugins.file_system("x")


def test_the_environment_and_properties_disable_plugins_also_in_another_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ICEFIELD_PLUGINS_DISABLE", "avro, no-such-plugin")
    plugins = Plugins.configured({"plugins.disable": "icefield-orc,"})
    monkeypatch.delenv("ICEFIELD_PLUGINS_DISABLE")
    for each in (plugins, pickle.loads(pickle.dumps(plugins))):
        for name in ("avro", "orc"):
            with pytest.raises(MissingPlugin, match="disabled"):
                each.file_format(name)
        assert each.file_format("parquet").name == "parquet"
    assert Plugins.installed().file_format("avro").name == "avro"


def test_a_service_of_a_disabled_plugin_says_so() -> None:
    service = plugin("one", icefield_table_services=[TableService("spelt", "builtins:repr")])
    with pytest.raises(MissingPlugin, match="disabled"):
        Plugins([service], disable=["one"]).service("table-services", "spelt")
