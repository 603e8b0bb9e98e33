"""Configuration: arguments over environment over file."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import icefield
import pytest
from icefield import Plugins, Provider
from icefield.catalog.config import catalog_properties, configured_catalogs, default_catalog_name
from icefield.errors import InvalidArgument
from icefield.metadata.property_checks import PropertyWarning
from made_plugins import plugin

FILE = """
default-catalog = "lake"

[catalog.lake]
type = "directory"
warehouse = "s3://lake/wh"
s3.endpoint = "http://127.0.0.1:9000"
"location.map.hdfs://nn/wh" = "file:///copy"
retries = 3
strict = true
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    path = tmp_path / "icefield.toml"
    path.write_text(FILE)
    return {"ICEFIELD_CONFIG": str(path)}


def test_a_file_gives_properties_as_strings_with_dotted_names_joined(environment: dict[str, str]) -> None:
    assert catalog_properties("lake", {}, environment) == {
        "type": "directory",
        "warehouse": "s3://lake/wh",
        "s3.endpoint": "http://127.0.0.1:9000",
        "location.map.hdfs://nn/wh": "file:///copy",
        "retries": "3",
        "strict": "true",
    }


def test_the_environment_wins_over_the_file_and_arguments_over_both(environment: dict[str, str]) -> None:
    environment |= {
        "ICEFIELD_CATALOG__LAKE__WAREHOUSE": "s3://other/wh",
        "ICEFIELD_CATALOG__LAKE__S3__ACCESS_KEY_ID": "key",
        "ICEFIELD_CATALOG__LAKE__TYPE": "sql",
        "ICEFIELD_CATALOG__OTHER__TYPE": "hive",
    }
    found = catalog_properties("lake", {"type": "rest", "absent": None}, environment)
    assert found["warehouse"] == "s3://other/wh"
    assert found["s3.access-key-id"] == "key"
    assert found["type"] == "rest"
    assert "absent" not in found
    assert configured_catalogs(environment) == ["lake", "other"]


def test_the_default_catalog_is_named_by_environment_or_file(environment: dict[str, str]) -> None:
    assert default_catalog_name(environment) == "lake"
    assert default_catalog_name({**environment, "ICEFIELD_DEFAULT_CATALOG": "mine"}) == "mine"


def test_a_file_that_is_not_toml_is_named(tmp_path: Path) -> None:
    path = tmp_path / "icefield.toml"
    path.write_bytes(b"[catalog\xff")
    with pytest.raises(InvalidArgument, match=r"icefield\.toml"):
        catalog_properties("x", {}, {"ICEFIELD_CONFIG": str(path)})
    with pytest.raises(InvalidArgument, match="no file"):
        catalog_properties("x", {}, {"ICEFIELD_CONFIG": str(tmp_path / "none.toml")})


def test_a_file_may_begin_with_the_mark_of_editors_on_windows(tmp_path: Path) -> None:
    path = tmp_path / "icefield.toml"
    path.write_bytes(b'\xef\xbb\xbf[catalog.x]\r\ntype = "sql"\r\n')
    assert catalog_properties("x", {}, {"ICEFIELD_CONFIG": str(path)})["type"] == "sql"


def test_a_value_that_is_no_scalar_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="'type'"):
        catalog_properties("x", {"type": object()}, {})


def test_a_relative_warehouse_is_below_the_folder_of_its_file_or_else_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf").mkdir()
    path = tmp_path / "conf" / "icefield.toml"
    path.write_text('[catalog.lake]\nwarehouse = "../wh"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/somebody")
    environment = {"ICEFIELD_CONFIG": "conf/icefield.toml"}
    assert catalog_properties("lake", {}, environment) == {"warehouse": f"{tmp_path}/wh"}
    assert catalog_properties("lake", {"warehouse": "own/wh"}, environment)["warehouse"] == f"{tmp_path}/own/wh"
    environment["ICEFIELD_CATALOG__LAKE__WAREHOUSE"] = "wh2/"
    assert catalog_properties("lake", {}, environment)["warehouse"] == f"{tmp_path}/wh2"
    for given, found in {"~/wh": "/somebody/wh", "/abs/wh": "/abs/wh", "s3://b/wh": "s3://b/wh", "": ""}.items():
        assert catalog_properties("lake", {"warehouse": given}, environment)["warehouse"] == found


@pytest.mark.parametrize("name", ["py-catalog-impl", "catalog-impl"])
def test_a_catalog_of_another_implementation_is_refused_with_advice(name, tmp_path):
    given = {name: "some.Class", "warehouse": f"file://{tmp_path}"}
    for more in ({}, {"type": "directory"}):
        with pytest.raises(InvalidArgument, match=f"'{name}'.*give type="):
            icefield.load_catalog("test", **given, **more)


def test_the_file_io_of_other_implementations_is_passed_over(tmp_path):
    given = {"io-impl": "org.apache.iceberg.aws.s3.S3FileIO", "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        icefield.load_catalog("test", warehouse=f"file://{tmp_path}", **given).close()


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("comit", "commit"),
        ("wharehouse", "warehouse"),
        ("table-defaults.owner", "table-default.owner"),
        ("table-overide.owner", "table-override.owner"),
        ("plugin.prefer.file-systems.s3", "plugins.prefer.file-systems.s3"),
        ("locations.map.s3://a", "location.map.s3://a"),
        ("io.thread", "io.threads"),
    ],
)
def test_a_slip_in_the_name_of_a_catalog_property_is_reported(name, meant, tmp_path):
    with pytest.warns(PropertyWarning, match=re.escape(f"'{name}'") + ".*" + re.escape(f"'{meant}'")) as caught:
        icefield.load_catalog("test", type="directory", warehouse=f"file://{tmp_path}", **{name: "x"})
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "name", ["ugi", "uri", "user", "clients", "s3.region", "rest.sigv4-enabled", "x", "cache-enabled"]
)
def test_names_of_plugins_and_other_engines_are_kept_in_silence(name, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given = {name: "x"}
        icefield.load_catalog("test", type="directory", warehouse=f"file://{tmp_path}", **given).close()


@pytest.mark.parametrize(
    "properties", [{"type": "rest"}, {"uri": "http://host"}, {"uri": "https://host"}, {"type": "no-such-catalog"}]
)
def test_a_warehouse_that_a_service_knows_stays_as_it_is(properties: dict[str, str]) -> None:
    assert catalog_properties("x", {**properties, "warehouse": "lake"}, {})["warehouse"] == "lake"


@pytest.mark.parametrize("properties", [{"type": "hive"}, {"uri": "thrift://host"}, {"uri": "sqlite:///x.db"}])
def test_a_warehouse_of_a_metastore_is_made_absolute(properties: dict[str, str]) -> None:
    assert catalog_properties("x", {**properties, "warehouse": "lake"}, {})["warehouse"] == str(Path.cwd() / "lake")


def test_the_given_plugins_say_what_a_warehouse_is() -> None:
    served = plugin("one", icefield_catalogs=[Provider("tree", "icefield_rest.backend:RestBackend")])
    found = catalog_properties("x", {"type": "tree", "warehouse": "lake"}, {}, plugins=Plugins([served]))
    assert found["warehouse"] == "lake"
    tree = plugin("two", icefield_catalogs=[Provider("tree", "icefield.builtin.directory:DirectoryBackend")])
    found = catalog_properties("x", {"type": "tree", "warehouse": "lake"}, {}, plugins=Plugins([tree]))
    assert found["warehouse"] == str(Path.cwd() / "lake")
