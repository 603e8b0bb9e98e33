"""``icefield kit`` on plugins of other authors: a strategy over a service, catalogs; and the table of suites."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import icefield_testing
import pytest
from authors.register.register_catalog import RegisterBackend
from authors.register.register_strategy import RegisterStrategy
from authors.register.test_register_strategy import running_service
from fenced import Page
from icefield import LocalFileSystem, MemoryFileSystem, Plugins
from icefield.errors import InvalidArgument
from icefield_cli.main import main
from icefield_encryption.local_keystore import LocalKeystore, add_key
from icefield_testing.command import suites
from icefield_testing.command.places import Places, attribute
from icefield_testing.command.request import LISTENER, Request, suites_of

STRATEGY = "authors.register.register_strategy:RegisterStrategy"
CATALOG = "authors.register.register_catalog:RegisterBackend"


@pytest.mark.slow
def test_replies_of_a_service_are_lost_when_its_port_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    lost = ("--suite", "CommitStrategySuite", "--check", "lost and creation")
    with running_service() as port:
        given = ("-p", f"register.port={port}", *lost)
        assert main(["kit", STRATEGY, *given, "--service-port", "register.port"]) == 0
        tried = capsys.readouterr().out
        assert main(["kit", STRATEGY, *given]) == 0
    assert "the strategy asks no service" not in tried
    assert "the strategy asks no service" in capsys.readouterr().out


@pytest.mark.slow
def test_a_catalog_that_is_not_empty_is_refused_with_the_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    with running_service() as port:
        given = ("-p", f"register.port={port}", "--suite", "CatalogSuite", "--check", "test_creating_a_namespace_twice")
        assert main(["kit", CATALOG, *given]) == 0
        assert main(["kit", CATALOG, *given]) == 1
    assert "put {fresh} or {folder} into a property" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("value", "through"),
    [
        ("6379", "7"),
        ("localhost:6379", "localhost:7"),
        ("redis://127.0.0.1:6379/0", "redis://127.0.0.1:7/0"),
        ("http://me@127.0.0.1:6379?a=b:1", "http://me@127.0.0.1:7?a=b:1"),
    ],
)
def test_the_port_in_a_property_is_that_of_the_proxy(value: str, through: str, tmp_path: Path) -> None:
    places = Places(Request("m:C", {"my.url": value}, service_port="my.url"), tmp_path)
    assert places.port == 6379
    assert places.through(7) == {"my.url": through}


def test_a_property_without_a_port_is_named(tmp_path: Path) -> None:
    places = Places(Request("m:C", {"my.url": "localhost"}, service_port="my.url"), tmp_path)
    with pytest.raises(InvalidArgument, match=r"the property 'my\.url' has no port"):
        _ = places.port


def test_each_check_has_places_of_its_own(tmp_path: Path) -> None:
    request = Request("m:C", {"db": "{folder}/{fresh}.db"}, location="my://{fresh}")
    first, second = Places(request, tmp_path / "1"), Places(request, tmp_path / "2")
    assert first.properties["db"].startswith(f"{tmp_path}/1/kit")
    assert first.properties["db"].removesuffix(".db").endswith(first.base.removeprefix("my://"))
    assert first.base != second.base


@pytest.mark.parametrize(
    ("key", "given", "default", "value"),
    [
        ("part_size", "65536", 8, 65536),
        ("lease_seconds", "inf", None, float("inf")),
        ("one_process", "True", False, True),
        ("unsupported", "A,B", (), (1, 2)),
        ("secrets", "token", (), ("token",)),
        ("small_blocks", "rows=7,a=b=c", {}, {"rows": "7", "a": "b=c"}),
        ("credentials", "user=u,password={secret}", (), ({"user": "u", "password": "{secret}"},)),
        ("namespaces_of_the_store", "default,a.b", frozenset(), {("default",), ("a", "b")}),
        ("key_ids", "orders,others", (), ("orders", "others")),
        ("properties_of_the_store", "location", frozenset(), {"location"}),
    ],
)
def test_an_attribute_has_the_form_of_its_default(key: str, given: str, default: Any, value: Any) -> None:
    assert attribute(key, given, default, {"A": 1, "B": 2}) == value


EXAMPLES = {
    "a file format": ("file format", type(Plugins.installed().file_format("parquet"))),
    "a format of manifests": ("file format", type(Plugins.installed().file_format("avro"))),
    "a file system with an atomic step": ("file system", LocalFileSystem),
    "a strategy that publishes a pointer": ("commit strategy", RegisterStrategy),
    "a catalog": ("catalog", RegisterBackend),
    "a key service": ("key service", LocalKeystore),
    "a listener": (LISTENER, None),
}
"""A class for each row of the table, as far as the command knows classes of that kind."""


def rows_of_the_page() -> dict[str, set[str]]:
    """The suites in each row of the table of the page."""
    table = Page(Path("docs/plugins/kit.md")).text.partition("Which suites a plugin needs:")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (a [^|]+?) \| ([^|]+) \|$", table, re.MULTILINE)
    return {kind: set(re.findall(r"`(\w+Suite)`", suites)) for kind, suites in rows}


@pytest.mark.parametrize("row", EXAMPLES)
def test_the_page_names_the_suites_that_the_command_runs(row: str) -> None:
    kind, found = EXAMPLES[row]
    assert rows_of_the_page()[row] == set(suites_of(kind, found, {}))


def test_the_page_has_all_suites() -> None:
    suites = {name for name in icefield_testing.__all__ if name.endswith("Suite")} - {"Suite"}
    assert set().union(*rows_of_the_page().values()) == suites


def test_a_file_system_without_an_atomic_step_carries_no_tables_by_itself() -> None:
    class Lists(MemoryFileSystem):
        abilities = frozenset()

    assert suites_of("file system", Lists, {}) == ("FileSystemSuite",)
    assert rows_of_the_page()["a file system without one"] == {"FileSystemSuite"}


@pytest.mark.slow
def test_a_right_catalog_passes_the_checks_that_look_for_files(capsys: pytest.CaptureFixture[str]) -> None:
    catalog = "icefield.builtin.directory:DirectoryBackend"
    assert main(["kit", catalog, "--suite", "CatalogSuite", "--check", "leaves_no_file"]) == 0, capsys.readouterr().out


@pytest.mark.slow
def test_a_key_service_passes_with_the_ids_of_two_master_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for key_id in ("orders", "others"):
        add_key(tmp_path / "keys.json", key_id)
    given = ("-p", f"encryption.local.keystore={tmp_path / 'keys.json'}", "--set", "key_ids=orders,others")
    assert main(["kit", "icefield_encryption.local_keystore:LocalKeystore", *given]) == 0, capsys.readouterr().out


def test_no_helper_of_the_command_hides_one_of_a_suite() -> None:
    classes = [each for each in vars(suites).values() if isinstance(each, type) and each.__module__ == suites.__name__]
    helpers = {name for each in classes for name in vars(each) if re.match("_[a-z]", name)}
    every = [name for name in icefield_testing.__all__ if name.endswith("Suite")]
    taken = {name for suite in every for name in dir(getattr(icefield_testing, suite))}
    assert helpers & taken == set()
