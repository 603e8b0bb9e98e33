"""Plugins: discovery, isolation, naming of broken and missing ones, conflicts, events."""

from __future__ import annotations

import logging
import pickle
import re
import subprocess
import sys
import types
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

import icefield
import pytest
from icefield import InstallHint, Plugins, Provider, TableService, hookimpl
from icefield.abc import CommitMade, Event, FileSystem
from icefield.builtin.local import LocalFileSystem
from icefield.errors import BrokenPlugin, InvalidArgument, MissingPlugin, PluginConflict
from icefield.metadata import Property
from icefield.plugins import Listeners, registry
from made_plugins import LOCAL, plugin, schemes

MADE = CommitMade(("db", "t"), "memory://t/v1.metadata.json", None, None, 1, 0.0)


def test_the_kernels_own_things_come_through_its_entry_point() -> None:
    installed = Plugins.installed()
    builtin = next(info for info in installed.listing() if info.name == "builtin")
    assert builtin.distribution == "icefield"
    assert installed.file_system("file") is LocalFileSystem
    assert {"file", "memory"} <= set(installed.names("file-systems"))
    assert {"rename", "create"} <= set(installed.names("commit-strategies"))


def test_hook_icefield_file_formats_provides_by_lower_case_name() -> None:
    installed = Plugins.installed()
    assert installed.file_format("AVRO").name == "avro"
    assert type(installed.file_format("parquet")) is type(installed.file_format("PARQUET"))


def test_hook_icefield_file_systems_provides_by_scheme() -> None:
    plugins = Plugins([plugin("one", icefield_file_systems=schemes("x", "y"))])
    assert plugins.file_system("x") is plugins.file_system("Y") is LocalFileSystem


def test_hook_icefield_commit_strategies_provides_by_name() -> None:
    found = Plugins(
        [plugin("one", icefield_commit_strategies=schemes("r", target="icefield.builtin.strategies:RenameStrategy"))]
    )
    assert found.commit_strategy("r").__name__ == "RenameStrategy"


def test_hook_icefield_key_services_provides_by_each_name() -> None:
    target = "icefield_encryption.local_keystore:LocalKeystore"
    plugins = Plugins([plugin("one", icefield_key_services=schemes("k", "org.example.Client", target=target))])
    assert plugins.key_service("k") is plugins.key_service("org.example.Client")
    with pytest.raises(MissingPlugin, match="key service"):
        plugins.key_service("other")


def test_hook_icefield_encryptions_provides_the_standard_encryption() -> None:
    target = "icefield_encryption.standard:StandardEncryption"
    plugins = Plugins([plugin("one", icefield_encryptions=schemes("standard", target=target))])
    assert plugins.encryption() is Plugins.installed().encryption()
    with pytest.raises(MissingPlugin, match=r"icefield\[encryption\]"):
        Plugins([]).encryption()


def test_hook_icefield_table_services_provides_by_the_name_of_an_attribute() -> None:
    service = TableService("spelt", "builtins:repr")
    plugins = Plugins([plugin("one", icefield_table_services=[service])])
    assert plugins.names("table-services") == ["spelt"]
    assert plugins.service("table-services", "spelt") is repr
    assert plugins.service("scan-services", "spelt") is None


def test_hook_icefield_catalogs_provides_by_type() -> None:
    found = Plugins(
        [plugin("one", icefield_catalogs=schemes("d", target="icefield.builtin.directory:DirectoryBackend"))]
    )
    assert found.catalog("d").__name__ == "DirectoryBackend"


def test_hook_icefield_table_properties_declares_what_is_checked_when_set() -> None:
    declared = Property("write.x.size", int, 5, "A size.", minimum=1)
    other = Property("write.x.size", int, 9, "Another size.", minimum=9)
    formats = [Provider("x", "icefield_avro.avro_format:AvroFormat")]
    plugins = Plugins(
        [
            plugin("one", icefield_table_properties=[declared]),
            plugin("two", icefield_table_properties=[other], icefield_file_formats=formats),
        ]
    )
    known = plugins.table_properties
    assert known.of_plugins == (declared, other)
    known.check({"write.x.size": "1", "write.delete.x.size": "1"})
    for name in ("write.x.size", "write.delete.x.size"):
        with pytest.raises(InvalidArgument, match=f"'{name}': '0' is below 1"):
            known.check({name: "0"})
    assert "write.x.size" not in Plugins().table_properties.declared


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        (RuntimeError("no licence"), "no licence"),
        (["write.x.size"], "no Property"),
        (Property("write.x.size", int, 5, "A size."), "returned one Property, not a list"),
        ([Property("", int, 5, "A size.")], "no Property"),
        ([Property("gc.enabled", bool, True, "Mine.")], "'gc.enabled', which is a property of the kernel"),
        ([Property("uuid", str, None, "Mine.")], "'uuid' is reserved"),
        ([Property("write.x.secret", str, None, "Mine.")], "would store a credential"),
        ([Property("write.x.size", int, "big", "A size.")], "'write.x.size': 'big' is not of type integer"),
        ([Property("write.x.size", int, 0, "A size.", minimum=1)], "'write.x.size': '0' is below 1"),
    ],
)
def test_a_property_that_cannot_be_declared_breaks_its_plugin_only(returned: Any, reason: str) -> None:
    good = plugin("good", icefield_table_properties=[Property("write.y.size", int, 5, "A size.")])
    plugins = Plugins([plugin("bad", icefield_table_properties=returned), good])
    assert reason in (plugins.listing()[0].error or "")
    assert [each.name for each in plugins.table_properties.of_plugins] == ["write.y.size"]


@pytest.mark.parametrize("error", [ValueError("the listener is broken"), SystemExit(3)], ids=repr)
def test_hook_icefield_events_hears_what_happens_and_fails_nothing(
    caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    heard: list[Event] = []

    class Listener:
        @hookimpl
        def icefield_events(self, event: Event) -> None:
            heard.append(event)

    class Fails:
        @hookimpl
        def icefield_events(self, event: Event) -> None:
            raise error

    with caplog.at_level(logging.ERROR):
        Listeners(Plugins([Fails(), Listener()]), {}, None).tell(MADE)
    assert heard == [MADE]
    assert "Fails" in caplog.text


def test_a_plugin_that_cannot_be_imported_is_named_and_the_rest_work() -> None:
    plugins = Plugins(["no_such_plugin_module", plugin("good", icefield_file_systems=schemes("x"))])
    broken = plugins.listing()[0]
    assert broken.name == "no_such_plugin_module"
    assert "no_such_plugin_module" in (broken.error or "")
    assert plugins.file_system("x") is LocalFileSystem
    with pytest.raises(MissingPlugin, match="no_such_plugin_module"):
        plugins.file_system("other")


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        (RuntimeError("no licence"), "no licence"),
        (["not a provider"], "no Provider"),
        ([Provider((), LOCAL)], "no Provider"),
        ([Provider(("x",), "module.without.attribute")], "no Provider"),
        (Provider(("x",), LOCAL), "icefield_file_systems returned one Provider, not a list"),
    ],
)
def test_a_hook_that_fails_or_returns_nonsense_breaks_its_plugin_only(returned: Any, reason: str) -> None:
    plugins = Plugins(
        [plugin("bad", icefield_file_systems=returned), plugin("good", icefield_file_systems=schemes("x"))]
    )
    assert reason in (plugins.listing()[0].error or "")
    assert plugins.file_system("x") is LocalFileSystem


def test_a_misspelt_hook_is_an_error_and_not_silence() -> None:
    plugins = Plugins([plugin("typo", icefield_file_system=schemes("x"))])
    assert "icefield_file_systems" in (plugins.listing()[0].error or "")


def test_a_hook_that_is_not_marked_is_an_error_and_not_silence() -> None:
    forgotten = types.ModuleType("forgotten")
    forgotten.icefield_file_systems = lambda: schemes("x")  # type: ignore[attr-defined]
    plugins = Plugins([forgotten])
    assert "'icefield_file_systems' is not marked with @hookimpl" in (plugins.listing()[0].error or "")


def test_a_provider_whose_class_cannot_be_loaded_names_its_plugin() -> None:
    plugins = Plugins(
        [
            plugin("gone", icefield_file_systems=schemes("x", target="icefield.builtin.local:NoSuchClass")),
            plugin("wrong", icefield_file_systems=schemes("y", target="icefield.builtin.strategies:RenameStrategy")),
        ]
    )
    with pytest.raises(BrokenPlugin, match=r"'gone'.*NoSuchClass"):
        plugins.file_system("x")
    with pytest.raises(BrokenPlugin, match=r"'wrong'.*icefield\.abc\.FileSystem"):
        plugins.file_system("y")


@pytest.mark.parametrize(
    ("scheme", "extra"), [("s3", "s3"), ("s3a", "s3"), ("gs", "gcs"), ("abfss", "adls"), ("hdfs", "hdfs")]
)
def test_a_missing_plugin_is_an_instruction(scheme: str, extra: str) -> None:
    with pytest.raises(MissingPlugin) as caught:
        Plugins([]).file_system(scheme)
    assert str(caught.value) == f"no file system for '{scheme}'; pip install \"icefield[{extra}]\""
    assert isinstance(caught.value, LookupError)


def test_a_name_of_one_kind_is_no_reason_to_install_what_brings_another() -> None:
    with pytest.raises(MissingPlugin) as caught:
        Plugins([]).catalog("spark")
    assert str(caught.value) == "no catalog for 'spark'; installed are: none"


def test_a_slip_in_a_name_that_could_be_installed_is_asked_about() -> None:
    with pytest.raises(MissingPlugin, match=r"installed are: none; was 'parquet' meant\?"):
        Plugins([]).file_format("parqet")


def test_hook_icefield_install_hints_says_what_brings_a_name() -> None:
    hints = [InstallHint("file-systems", ("x", "xs"), "icefield-x[fs]"), InstallHint("catalogs", "x", "icefield-xc")]
    plugins = Plugins([plugin("hinting", icefield_install_hints=hints)])
    with pytest.raises(MissingPlugin) as caught:
        plugins.file_system("XS")
    assert str(caught.value) == "no file system for 'xs'; pip install \"icefield-x[fs]\""
    with pytest.raises(MissingPlugin, match='pip install "icefield-xc"'):
        plugins.catalog("x")
    with pytest.raises(MissingPlugin, match="installed are: none"):
        plugins.commit_strategy("x")


def test_hints_are_added_to_what_extras_bring_and_given_once() -> None:
    other = [InstallHint("file-systems", "s3", "other-s3"), InstallHint("file-systems", "s3", "icefield[s3]")]
    twice = [plugin("one", icefield_install_hints=other), plugin("two", icefield_install_hints=other)]
    with pytest.raises(MissingPlugin) as caught:
        Plugins(twice).file_system("s3")
    assert str(caught.value) == 'no file system for \'s3\'; pip install "icefield[s3]" or pip install "other-s3"'


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        (RuntimeError("no licence"), "no licence"),
        (InstallHint("catalogs", "x", "y"), "icefield_install_hints returned one InstallHint, not a list"),
        ([Provider("x", LOCAL)], "no InstallHint"),
        ([InstallHint("catalogs", (), "y")], "no InstallHint"),
        ([InstallHint("catalogs", "x", "")], "no InstallHint"),
        ([InstallHint("catalogs", "x", 'y"; $(z)')], "no InstallHint"),
        ([InstallHint("catalogs", "x", "-r y")], "no InstallHint"),
        ([InstallHint("catalog", "x", "y")], "was 'catalogs' meant"),
    ],
)
def test_a_hint_that_is_none_breaks_its_plugin_only(returned: Any, reason: str) -> None:
    bad = plugin("bad", icefield_install_hints=returned, icefield_file_systems=schemes("z"))
    plugins = Plugins([bad, plugin("good", icefield_file_systems=schemes("x"))])
    assert reason in (plugins.listing()[0].error or "")
    assert plugins.names("file-systems") == ["x"]


def test_requirements_are_those_of_extras_and_hints() -> None:
    hints = plugin("hints", icefield_install_hints=[InstallHint("commands", ("lint", "serve"), "table-lint")])
    plugins = Plugins([hints])
    assert plugins.requirements("commands", "lint") == ["table-lint"]
    assert plugins.requirements("commands", "serve") == ["icefield[rest-server]", "table-lint"]
    assert plugins.requirements("commands", "absent") == []


def test_an_unknown_name_lists_what_is_installed() -> None:
    with pytest.raises(MissingPlugin, match="installed are: x, y"):
        Plugins([plugin("one", icefield_file_systems=schemes("y", "x"))]).file_system("zzz")


def test_two_providers_of_one_name_are_an_error_that_names_both() -> None:
    one, two = plugin("one", icefield_file_systems=schemes("x", "a")), plugin("two", icefield_file_systems=schemes("x"))
    plugins = Plugins([one, two])
    with pytest.raises(PluginConflict, match=r"'one'.*'two'.*plugins\.prefer\.file-systems\.x"):
        plugins.file_system("x")
    assert plugins.file_system("a") is LocalFileSystem
    assert Plugins([one, two], {"file-systems.x": "two"}).file_system("x") is LocalFileSystem
    with pytest.raises(PluginConflict):
        Plugins([one, two], {"file-systems.x": "three"}).file_system("x")


def test_a_set_of_plugins_pickles() -> None:
    installed = pickle.loads(pickle.dumps(Plugins.installed({"file-systems.x": "y"}, ["icefield.builtin.hooks"])))
    assert {"builtin", "icefield.builtin.hooks"} <= {info.name for info in installed.listing()}
    given = pickle.loads(pickle.dumps(Plugins(["icefield.builtin.hooks"])))
    assert [info.name for info in given.listing()] == ["icefield.builtin.hooks"]
    assert given.file_system("file") is LocalFileSystem


def test_listing_plugins_imports_nothing_heavy() -> None:
    code = (
        "import sys; from icefield import Plugins; found = Plugins.installed().listing(); "
        "assert len(found) >= 4, found; "
        "heavy = {'fastavro', 'sqlalchemy', 'pyspark', 's3fs', 'pyarrow.parquet', 'pandas'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("key", "wanted", "message"),
    [
        ("file-system.file", "local", "was 'file-systems' meant"),
        ("file-systems.fil", "local", "was 'file' meant"),
        ("file-systems.file", "builtn", "was 'builtin' meant"),
        ("file-systems.file", "nobody", "not by 'nobody'"),
        ("catalogs", "builtin", "no plugin provides"),
        ("", "builtin", "no '' is provided"),
    ],
)
def test_a_preference_without_effect_is_refused_with_the_nearest_name(key, wanted, message, tmp_path):
    for use in (
        lambda given: icefield.load_catalog("test", type="directory", warehouse=f"file://{tmp_path}", **given),
        lambda given: icefield.open_table(f"file://{tmp_path}/v1.metadata.json", properties=given),
    ):
        with pytest.raises(InvalidArgument, match=re.escape(f"plugins.prefer.{key} has no effect")) as caught:
            use({f"plugins.prefer.{key}": wanted})
        assert message in str(caught.value)


def test_a_preference_for_the_only_provider_is_fine(tmp_path):
    given = {"plugins.prefer.file-systems.file": "icefield"}
    icefield.load_catalog("test", type="directory", warehouse=f"file://{tmp_path}", **given).close()


def test_a_provider_takes_one_name_as_a_string_and_its_type_says_so():
    assert Provider("x", "module:X") == Provider(("x",), "module:X") == Provider(["x"], target="module:X")
    assert Provider("x", "module:X").names == ("x",)
    assert str in get_args(get_type_hints(Provider.__init__)["names"])
    assert pickle.loads(pickle.dumps(Provider("x", "module:X"))) == Provider("x", "module:X")


def test_a_plugin_whose_module_ends_the_program_is_named_and_the_rest_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "module_that_exits.py").write_text("raise SystemExit(3)")
    monkeypatch.syspath_prepend(tmp_path)
    offered = plugin("exits", icefield_file_formats=schemes("x", target="module_that_exits:Format"))
    plugins = Plugins(["module_that_exits", offered])
    assert plugins.listing()[0].error == "SystemExit: 3"
    with pytest.raises(BrokenPlugin, match="SystemExit"):
        plugins.file_format("x")


ABSENT = "a_module_that_is_not_there:Class"


@pytest.mark.parametrize(
    ("hook", "load", "contract", "versions", "older"),
    [
        ("icefield_file_formats", "file_format", (98, 99), "versions 98 to 99", "icefield"),
        ("icefield_file_systems", "file_system", (99, 99), "version 99", "icefield"),
        ("icefield_commit_strategies", "commit_strategy", (0, 1), "versions 0 to 1", "the plugin"),
        ("icefield_catalogs", "catalog", (99, 99), "version 99", "icefield"),
    ],
)
def test_a_plugin_for_other_versions_of_its_contract_is_refused_before_it_is_imported(
    hook: str, load: str, contract: tuple[int, int], versions: str, older: str
) -> None:
    plugins = Plugins([plugin("other", **{hook: [Provider("x", ABSENT, contract=contract)]})])
    with pytest.raises(BrokenPlugin) as caught:
        getattr(plugins, load)("x")
    said = str(caught.value)
    assert "'other'" in said
    assert f" for {versions} of the contract icefield.abc." in said
    assert f": {older} is older" in said
    assert "\n" not in said


@pytest.mark.parametrize("contract", [(1, 1), (0, 1), (1, 99), None])
def test_a_plugin_for_a_range_with_the_version_of_the_kernel_is_loaded(contract: tuple[int, int] | None) -> None:
    assert FileSystem.contract == 1
    provider = Provider("x", LOCAL, contract=contract)
    assert Plugins([plugin("mine", icefield_file_systems=[provider])]).file_system("x") is LocalFileSystem


@pytest.mark.parametrize("contract", [1, "1", (1,), (2, 1), (1, "2"), (True, 2), [1, 2], (1, 2, 3)])
def test_a_contract_that_is_no_range_breaks_the_plugin_and_says_so(contract: Any) -> None:
    plugins = Plugins([plugin("wrong", icefield_file_systems=[Provider("x", LOCAL, contract=contract)])])
    assert "whose contract is no pair (lowest, highest)" in (plugins.listing()[0].error or "")
    assert plugins.names("file-systems") == []


def test_the_providers_of_a_kind_are_listed_once_each() -> None:
    both, other = Provider(("x", "y"), LOCAL, contract=(1, 1)), Provider("z", LOCAL)
    plugins = Plugins([plugin("mine", icefield_file_systems=[other, both])])
    assert plugins.providers("file-systems") == [both, other]
    assert plugins.providers("catalogs") == []


def test_every_installed_plugin_states_the_versions_of_its_contracts() -> None:
    installed = Plugins.installed()
    kinds = [kind.name for kind in registry.KINDS.values() if kind.contract is not None]
    found = [provider for kind in kinds for provider in installed.providers(kind)]
    assert len(found) > 10
    assert [provider for provider in found if provider.contract is None] == []


def test_a_hook_marked_as_optional_may_be_unknown_here() -> None:
    @hookimpl(optionalhook=True)
    def icefield_hook_of_another_plugin() -> None:
        """A hook of a plugin that is not installed."""

    given = plugin("mine", icefield_file_systems=schemes("x"))
    given.icefield_hook_of_another_plugin = icefield_hook_of_another_plugin  # type: ignore[attr-defined]
    plugins = Plugins([given])
    assert plugins.listing()[0].error is None
    assert plugins.file_system("x") is LocalFileSystem


def test_a_provider_has_names_a_target_a_contract_and_uri_schemes_and_nothing_else() -> None:
    assert [field.name for field in fields(Provider)] == ["names", "target", "contract", "uri_schemes"]
    with pytest.raises(TypeError):
        Provider("x", LOCAL, {})  # type: ignore[call-arg]
    assert pickle.loads(pickle.dumps(Provider("x", LOCAL, contract=(1, 2)))).contract == (1, 2)


def test_a_class_is_imported_once_and_a_failure_is_met_again(monkeypatch):
    """Every request to storage looks up a file system, so its class is imported only once."""
    asked = []
    real = registry.import_module
    monkeypatch.setattr(registry, "import_module", lambda name: (asked.append(name), real(name))[1])
    plugins = Plugins(["icefield.builtin.hooks"])
    first = plugins.file_system("memory")
    asked.clear()
    assert plugins.file_system("memory") is plugins.file_system("MEMORY") is first
    assert asked == []
    for _ in range(2):
        with pytest.raises(MissingPlugin):
            plugins.file_system("nowhere")


def test_plugins_that_come_to_a_process_again_are_assembled_once() -> None:
    installed, named = Plugins.installed({"file-systems.s3": "mine"}), Plugins(["icefield.builtin.hooks"])
    for plugins in (installed, named):
        data = pickle.dumps(plugins)
        assert pickle.loads(data) is pickle.loads(data)
    other = pickle.loads(pickle.dumps(Plugins.installed({"file-systems.s3": "yours"})))
    assert other is not pickle.loads(pickle.dumps(installed))
    given = Plugins([types.SimpleNamespace(state=1)])
    assert pickle.loads(pickle.dumps(given)) is not pickle.loads(pickle.dumps(given))


def test_a_file_system_is_found_by_its_uri_schemes_and_not_by_its_name() -> None:
    provider = Provider("store", LOCAL, uri_schemes=("x", "xs"))
    plugins = Plugins([plugin("one", icefield_file_systems=[provider])])
    assert plugins.names("file-systems") == ["x", "xs"]
    assert plugins.file_system("XS") is LocalFileSystem
    with pytest.raises(MissingPlugin):
        plugins.file_system("store")


def test_a_catalog_is_found_by_the_scheme_of_a_uri() -> None:
    directory = Provider("d", "icefield.builtin.directory:DirectoryBackend", uri_schemes="tree")
    plugins = Plugins([plugin("one", icefield_catalogs=[directory])])
    assert plugins.catalog_of_uri("tree+driver://host").__name__ == "DirectoryBackend"
    assert plugins.catalog_of_uri("TREE://host") is plugins.catalog("d")
    with pytest.raises(MissingPlugin, match="no catalog of URIs for 'd'; installed are: tree"):
        plugins.catalog_of_uri("d://host")
    with pytest.raises(MissingPlugin, match=r"icefield\[hive\]"):
        plugins.catalog_of_uri("thrift://host")
