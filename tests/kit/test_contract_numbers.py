"""Each suite checks that a plugin states the versions of its contract."""

from __future__ import annotations

import types
from typing import Any

import pytest
from icefield import FileIO, MemoryFileSystem, Plugins, Provider, hookimpl
from icefield.builtin.directory import DirectoryBackend
from icefield.builtin.strategies import CreateStrategy
from icefield_avro.avro_format import AvroFormat
from icefield_encryption.local_keystore import LocalKeystore
from icefield_testing import (
    CatalogSuite,
    CommitStrategySuite,
    FileFormatSuite,
    FileSystemSuite,
    KeyServiceSuite,
    Suite,
)

WAREHOUSE = {"warehouse": "memory://contract-numbers"}
# For each hook: the suite, the target of the class, and the arguments of the check.
CASES: dict[str, tuple[type[Suite], str, tuple[Any, ...]]] = {
    "icefield_file_formats": (FileFormatSuite, "icefield_avro.avro_format:AvroFormat", (AvroFormat(),)),
    "icefield_file_systems": (FileSystemSuite, "icefield:MemoryFileSystem", (MemoryFileSystem(),)),
    "icefield_commit_strategies": (
        CommitStrategySuite,
        "icefield.builtin.strategies:CreateStrategy",
        (MemoryFileSystem(), "memory://contract-numbers/t"),
    ),
    "icefield_catalogs": (
        CatalogSuite,
        "icefield.builtin.directory:DirectoryBackend",
        (DirectoryBackend("test", WAREHOUSE, FileIO(Plugins.installed(), WAREHOUSE)),),
    ),
    "icefield_key_services": (KeyServiceSuite, "icefield_encryption.local_keystore:LocalKeystore", (LocalKeystore(),)),
}


def check(hook: str, *providers: Provider) -> None:
    """Run the check of the suite, where one plugin with these providers is installed."""
    plugin = types.ModuleType("mine")
    setattr(plugin, hook, hookimpl(lambda: [*providers]))
    suite, _, arguments = CASES[hook]
    own: dict[str, Any] = {
        "plugins": lambda self: Plugins([plugin]),
        "strategy": lambda self, file_system, location: CreateStrategy(("db", "t"), location, file_system),
    }
    type("Mine", (suite,), own)().test_the_plugin_states_its_contract_number(*arguments)


@pytest.mark.parametrize("hook", CASES)
def test_a_plugin_that_states_no_contract_number_is_rejected_with_advice(hook: str) -> None:
    with pytest.raises(AssertionError, match=r"states no contract: give contract=\(lowest, highest\)") as caught:
        check(hook, Provider("x", CASES[hook][1]))
    assert "any kernel loads it" in caught.value.__notes__[0]


@pytest.mark.parametrize("hook", CASES)
def test_a_plugin_that_states_its_contract_number_passes(hook: str) -> None:
    check(hook, Provider("x", CASES[hook][1], contract=(1, 9)))


def test_one_of_several_providers_without_a_contract_number_is_found() -> None:
    target = CASES["icefield_file_systems"][1]
    with pytest.raises(AssertionError, match="states no contract"):
        check("icefield_file_systems", Provider("x", target, contract=(1, 1)), Provider("y", target))


def test_a_class_that_no_plugin_provides_is_skipped_and_other_packages_are_not_imported() -> None:
    with pytest.raises(pytest.skip.Exception, match="no installed plugin provides MemoryFileSystem"):
        check("icefield_file_systems", Provider("x", "a_module_that_is_not_there:FileSystem"))
