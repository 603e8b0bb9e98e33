"""The examination of plugins names what is broken, outdated or in conflict."""

from __future__ import annotations

import importlib.metadata
from types import ModuleType

import pytest
from icefield import Plugins, Provider, hookimpl
from icefield_maintenance.doctor import Finding, Result, examine_plugins
from icefield_maintenance.doctor import plugins as examination
from planted_plugins import plant


class Another:
    """Provides a name that the kernel provides as well."""

    @hookimpl
    def icefield_file_systems(self) -> list[Provider]:
        return [Provider("memory", "icefield.builtin.memory:MemoryFileSystem")]


class Lost:
    """Provides what is not there."""

    @hookimpl
    def icefield_file_systems(self) -> list[Provider]:
        return [Provider("lost", "no_such_sdk:FileSystem")]


def failed(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.check: finding for finding in findings if finding.result is Result.FAILED}


def test_working_plugins_are_listed_with_their_versions() -> None:
    found = {finding.check: finding for finding in examine_plugins(Plugins.installed())}
    assert found["plugin builtin"] == Finding("plugin builtin", Result.OK, f"icefield {_version()}")
    assert not failed(list(found.values()))


def test_two_providers_of_a_name_are_both_named_with_the_setting_that_helps() -> None:
    found = failed(examine_plugins(Plugins.installed(extra=[Another()])))
    assert list(found) == ["file system memory"]
    assert "'builtin' (icefield " in found["file system memory"].found
    assert "'Another'" in found["file system memory"].found
    assert "plugins.prefer.file-systems.memory" in found["file system memory"].advice
    preferred = Plugins.installed({"file-systems.memory": "icefield"}, extra=[Another()])
    assert not failed(examine_plugins(preferred))


def test_a_provider_whose_sdk_is_missing_is_found_though_its_plugin_loads() -> None:
    found = failed(examine_plugins(Plugins.installed(extra=[Lost()])))
    assert "no_such_sdk" in found["file system lost"].found
    assert found["file system lost"].advice == "reinstall it or report it to its author"


def test_a_plugin_that_does_not_load_is_named_with_its_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, "sad", ImportError("no module named 'sdk'"), "icefield-sad", "1.0")
    found = failed(examine_plugins(Plugins.installed()))["plugin sad"]
    assert found.found == "icefield-sad 1.0 does not load: ImportError: no module named 'sdk'"
    assert found.advice == "reinstall icefield-sad, or uninstall it"


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        ("icefield<0.2,>=0.1", True),
        ("icefield>=0.1.0", True),
        ("icefield", True),
        ("icefield[parquet]>=0.1", True),
        ("icefield~=0.1", True),  # pip's to judge
        ("icefield-avro>=9", True),
        ("icefield>=0.2", False),
        ("icefield<0.1", False),
        ("icefield==0.0.9", False),
    ],
)
def test_a_plugin_for_another_version_of_the_kernel_is_found(
    wanted: str, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examination, "requires", lambda name: ["numpy>=2", wanted])
    monkeypatch.setattr(examination, "version", lambda name: "0.1.0")
    plant(monkeypatch, "old", ModuleType("icefield_old"), "icefield-old", "0.1")
    found = failed(examine_plugins(Plugins.installed()))
    assert bool(found) is not fits
    if found:
        assert "and 0.1.0 is installed" in found["plugin old"].found
        assert found["plugin old"].advice == "pip install --upgrade icefield icefield-old"


def _version() -> str:
    return importlib.metadata.version("icefield")
