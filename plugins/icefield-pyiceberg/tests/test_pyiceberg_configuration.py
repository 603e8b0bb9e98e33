"""PyIceberg's configuration, as PyIceberg itself reads it; what cannot be honoured is refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from icefield import catalog_properties, configured_catalogs, load_catalog
from icefield.errors import IcefieldError, InvalidArgument, UnsupportedFeature
from icefield_pyiceberg.reading import catalogs

FILE = """
default-catalog: Prod
max-workers: 3
catalog:
  Prod:
    type: rest
    URI: http://host/api/catalog
    warehouse: 007
    s3.region: eu-central-1
    rest-page-size: 10
    header.x-on: no
    ssl:
      cabundle: /etc/ca.pem
  lake:
    type: sql
    uri: sqlite:///{folder}/lake.db
    warehouse: file://{folder}/lake
"""
SECRET = "tell-nobody"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory of the test's own, and a file in it."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("PYICEBERG_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    (home / ".pyiceberg.yaml").write_text(FILE.replace("{folder}", str(tmp_path)))
    return home


def flat(tree: dict[str, Any]) -> dict[str, str]:
    """PyIceberg's properties, with dots between the names of mappings within mappings."""
    inner = ((key, flat(value) if isinstance(value, dict) else {"": value}) for key, value in tree.items())
    return {f"{key}.{name}".rstrip("."): value for key, found in inner for name, value in found.items()}


def found(name: str) -> dict[str, str]:
    return catalog_properties(name, {})


def test_a_catalog_of_the_file_opens_and_both_libraries_see_one_table(folder: Path) -> None:
    import pyarrow as pa

    pyiceberg_catalogs = pytest.importorskip("pyiceberg.catalog")
    rows = pa.table({"n": [1, 2]})
    with load_catalog("lake") as catalog:
        catalog.create_namespace("db")
        catalog.create_table("db.t", rows.schema).append(rows)
        with pytest.MonkeyPatch.context() as patched:
            from pyiceberg.utils.config import Config

            patched.setattr(pyiceberg_catalogs, "_ENV_CONFIG", Config())
            theirs = pyiceberg_catalogs.load_catalog("lake")
            assert theirs.load_table("db.t").scan().to_arrow().to_pydict() == rows.to_pydict()
            theirs.close()


@pytest.mark.parametrize("place", ["PYICEBERG_HOME", "home", "working directory"])
def test_the_file_and_the_environment_say_what_pyiceberg_reads_in_them(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    config = pytest.importorskip("pyiceberg.utils.config")
    other = "catalog:\n  prod:\n    type: hive\n    uri: thrift://other:9083\n"
    if place == "PYICEBERG_HOME":
        (tmp_path / "set").mkdir()
        (tmp_path / "set" / ".pyiceberg.yaml").write_text(
            "catalog:\n  prod:\n    type: hive\n    uri: thrift://set:1\n"
        )
        monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path / "set"))
    (tmp_path / ".pyiceberg.yaml").write_text(other)
    if place == "working directory":
        (folder / ".pyiceberg.yaml").unlink()
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__S3__ACCESS_KEY_ID", "key")
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", "thrift://environment:9083")
    monkeypatch.setenv("pyiceberg_catalog__my_other__type", "sql")
    theirs = config.Config()
    for name in ("prod", "my-other"):
        ours = found(name)
        ours.pop("io.threads", None)
        assert ours == flat(theirs.get_catalog_config(name))
    assert set(configured_catalogs()) >= set(theirs.get_known_catalogs())


def test_values_are_strings_as_they_are_written_and_workers_are_threads() -> None:
    made = found("PROD")
    assert made["warehouse"] == "007"
    assert made["header.x-on"] == "no"
    assert made["ssl.cabundle"] == "/etc/ca.pem"
    assert made["io.threads"] == "3"


def test_icefields_own_configuration_goes_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICEFIELD_CATALOG__PROD__REST_PAGE_SIZE", "20")
    assert found("prod")["rest-page-size"] == "20"
    monkeypatch.setenv("ICEFIELD_CATALOG__PROD__TYPE", "directory")
    assert found("prod") == {"rest-page-size": "20", "type": "directory"}


AUTH = {
    "basic": ({"auth.basic.username": "u", "auth.basic.password": "p"}, {"rest.auth.basic.username": "u"}),
    "oauth2": (
        {"auth.oauth2.client_id": "c", "auth.oauth2.client_secret": "s", "auth.oauth2.token_url": "http://t"},
        {"credential": "c:s", "oauth2-server-uri": "http://t"},
    ),
    "legacyoauth2": ({"auth.legacyoauth2.credential": "c:s"}, {"credential": "c:s", "rest.auth.type": "oauth2"}),
    "google": ({"auth.google.credentials_path": "/k"}, {"gcp.auth.credentials-path": "/k"}),
    "noop": ({}, {"rest.auth.type": "none"}),
}


@pytest.mark.parametrize("kind", AUTH)
def test_ways_to_authenticate_are_translated(folder: Path, kind: str) -> None:
    given, expected = AUTH[kind]
    nested = "".join(f"        {key.rpartition('.')[2]}: {value}\n" for key, value in given.items())
    inner = f"      {kind}:\n{nested}" if given else ""
    text = f"catalog:\n  x:\n    uri: http://h\n    auth:\n      type: {kind}\n{inner}"
    (folder / ".pyiceberg.yaml").write_text(text)
    made = found("x")
    assert {key: made[key] for key in expected} == expected
    assert not [key for key in made if key.startswith("auth")]


REFUSED = {
    "type": ("    type: dynamodb\n", "'type: dynamodb'"),
    "class": ("    type: rest\n    auth:\n      type: custom\n      impl: a.B\n", "'auth.impl'"),
    "margin": (
        "    type: rest\n    auth:\n      type: oauth2\n      oauth2:\n        refresh_margin: 5\n",
        "'auth.oauth2.refresh_margin'",
    ),
    "signer": ("    type: rest\n    s3.signer: S3V4RestSigner\n", "'s3.signer'"),
    "retries": ("    type: rest\n    s3.retry-strategy-impl: a.B\n", "'s3.retry-strategy-impl'"),
    "host": ("    type: rest\n    adls.dfs-storage-authority: 127.0.0.1:10000\n", "'adls.dfs-storage-authority'"),
    "versions": ("    type: rest\n    gcs.version-aware: on\n", "'gcs.version-aware'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_property_that_cannot_be_honoured_is_refused_by_name(folder: Path, case: str) -> None:
    text, named = REFUSED[case]
    (folder / ".pyiceberg.yaml").write_text(f"catalog:\n  fine:\n    type: sql\n  x:\n{text}")
    with pytest.raises(UnsupportedFeature, match=named):
        found("x")
    assert found("fine") == {"type": "sql"}


def test_settings_that_are_off_are_not_refused(folder: Path) -> None:
    path = folder / ".pyiceberg.yaml"
    path.write_text("legacy-current-snapshot-id: off\ncatalog:\n  x:\n    type: sql\n    gcs.version-aware: f\n")
    assert found("x")["type"] == "sql"


def test_a_setting_of_all_catalogs_that_cannot_be_honoured_is_refused_by_name(folder: Path) -> None:
    path = folder / ".pyiceberg.yaml"
    path.write_text("downcast-ns-timestamp-to-us-on-write: true\n" + path.read_text())
    with pytest.raises(UnsupportedFeature, match="'downcast-ns-timestamp-to-us-on-write'"):
        found("lake")


def test_a_class_of_pyiceberg_is_refused(folder: Path) -> None:
    (folder / ".pyiceberg.yaml").write_text("catalog:\n  x:\n    type: rest\n    py-catalog-impl: a.B\n")
    with pytest.raises(InvalidArgument, match="py-catalog-impl"):
        load_catalog("x")


DAMAGED = {
    "no YAML": f"catalog: [{SECRET}\n",
    "an alias": f"a: &a [{SECRET}]\nb: [*a, *a]\n",
    "a list": f"- {SECRET}\n",
    "deep": "[" * 5_000,
    "bytes": "catalog: \udcff",
    "no catalogs": "catalog: x\n",
    "an object of Python": "a: !!python/object/apply:os.system ['true']\n",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_file_that_cannot_be_read_is_named_and_shows_no_line_of_it(folder: Path, name: str) -> None:
    (folder / ".pyiceberg.yaml").write_bytes(DAMAGED[name].encode("utf-8", "surrogateescape"))
    with pytest.raises(IcefieldError, match=r"pyiceberg\.yaml") as error:
        catalogs({})
    assert SECRET not in str(error.value)
    assert error.value.__cause__ is None
