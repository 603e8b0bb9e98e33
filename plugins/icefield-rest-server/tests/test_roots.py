"""A server for others opens files below stated locations only: a setting that is missing never means all of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from icefield import load_catalog
from icefield.errors import InvalidArgument, LocationRefused, UnsafeCommit
from icefield_rest_server import JwtTokens, Options, Settings, StaticCredentials, app, check
from local_client import LocalClient
from rest_bodies import SCHEMA
from rest_served import served
from servers.process import free_port

TOKEN = "alicealicealice1"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
WAREHOUSES: dict[str, str | None] = {
    "a location": "file://{folder}/warehouse",
    "a location with a slash": "file://{folder}/warehouse/",
    "blanks around one": "  file://{folder}/warehouse ",
    "a location in capitals": "FILE://{folder}/warehouse",
    "a location of one slash": "file:{folder}/warehouse",
    "a plain path": "{folder}/warehouse",
    "a plain path with a slash": "{folder}/warehouse/",
    "a plain path with dots": "{folder}/warehouse/../warehouse",
    "a name": "lake",
    "two": "file://{folder}/warehouse,file:///",
    "two, the second without a scheme": "file://{folder}/warehouse,/",
    "two, and a blank": "file://{folder}/warehouse, file://{folder}/beside",
    "one and a comma": "file://{folder}/warehouse,",
    "a comma": ",",
    "a blank": " ",
    "nothing": "",
    "none": None,
}


@pytest.fixture
def options(tmp_path: Path) -> Options:
    (tmp_path / "tokens").write_text(f"alice {TOKEN}\n")
    return Options(catalog="served", tokens=str(tmp_path / "tokens"), log=False)


def properties(folder: Path, warehouse: str | None) -> dict[str, str]:
    found = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db"}
    return found if warehouse is None else {**found, "warehouse": warehouse.format(folder=folder)}


@pytest.mark.parametrize("name", WAREHOUSES)
def test_a_server_for_others_opens_nothing_outside_its_warehouse_or_does_not_start(
    tmp_path: Path, options: Options, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a warehouse may be relative to it
    for folder in ("warehouse", "beside", "lake"):
        (tmp_path / folder).mkdir()
    (tmp_path / "beside/secret.txt").write_text("TOPSECRET")
    with load_catalog("served", **properties(tmp_path, WAREHOUSES[name])) as catalog:
        try:
            client = LocalClient(app(catalog, options.settings()), headers=HEADERS)
        except UnsafeCommit:
            assert "a location" not in name
            return
        assert client.post("/v1/namespaces", json={"namespace": ["db"]}).status_code == 200
        for number, place in enumerate(("file://{0}/beside/t", "{0}/beside/t", "file:{0}/beside/t", "{0}/warehouse-2")):
            body: dict[str, Any] = {"name": f"t{number}", "schema": SCHEMA, "location": place.format(tmp_path)}
            for staged in (False, True):
                answer = client.post("/v1/namespaces/db/tables", json={**body, "stage-create": staged})
                assert answer.status_code in (400, 403), f"{place}: {answer.text}"
        for place in (f"file://{tmp_path}/beside/secret.txt", f"{tmp_path}/beside/secret.txt", "file:///etc/passwd"):
            body = {"name": "r", "metadata-location": place}
            answer = client.post("/v1/namespaces/db/register", json=body)
            assert answer.status_code in (400, 403)
            assert "TOPSECRET" not in answer.text
            assert "no metadata" not in answer.text, "whether there is such a file is not said"
        with pytest.raises(LocationRefused):
            catalog.create_table("db.u", pa.schema([("id", pa.int64())]), location=f"file://{tmp_path}/beside/u")
    assert [path.name for path in (tmp_path / "beside").rglob("*")] == ["secret.txt"]


def test_a_catalog_whose_files_a_service_keeps_is_not_served_to_others_without_roots(
    tmp_path: Path, options: Options
) -> None:
    behind = load_catalog("behind", **properties(tmp_path, "file://{folder}/warehouse"))
    with behind, served(app(behind, Settings())) as uri:
        given = {"type": "rest", "uri": uri, "warehouse": f"file://{tmp_path}/warehouse"}
        with load_catalog("c", **given) as catalog, pytest.raises(UnsafeCommit, match=r"location\.allowed-roots"):
            app(catalog, options.settings())
        roots = {"location.allowed-roots": f"file://{tmp_path}/warehouse"}
        with load_catalog("c", **given, **roots) as catalog:
            app(catalog, options.settings())


def test_clients_with_limited_rights_open_files_of_the_warehouse_and_of_owned_folders_alone(tmp_path: Path) -> None:
    owned = f"file://{tmp_path}/owned"
    with load_catalog("served", **properties(tmp_path, "file://{folder}/warehouse")) as catalog:
        client = LocalClient(app(catalog, Settings(authorizer=lambda *_: True, owned_folders=[owned])))
        assert client.post("/v1/namespaces", json={"namespace": ["db"]}).status_code == 200
        for name, place in {"a": f"{owned}/a", "b": f"file://{tmp_path}/warehouse/db/b", "c": f"{owned}-2"}.items():
            body = {"name": name, "schema": SCHEMA, "location": place}
            answer = client.post("/v1/namespaces/db/tables", json=body)
            assert (answer.status_code == 200) is (name != "c"), answer.text
        with pytest.raises(LocationRefused):
            catalog.io.exists(f"{owned}-2/x")


def test_owned_folders_that_no_list_of_roots_can_hold_are_refused(tmp_path: Path) -> None:
    settings = Settings(authorizer=lambda *_: True, owned_folders=[f"file://{tmp_path}/a,file:///"])
    with (
        load_catalog("served", **properties(tmp_path, "{folder}/warehouse")) as catalog,
        pytest.raises(UnsafeCommit, match=r"location\.allowed-roots"),
    ):
        app(catalog, settings)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two", "none"])
def test_the_command_ends_where_it_would_open_any_file(tmp_path: Path, options: Options, name: str) -> None:
    prefix = "ICEFIELD_CATALOG__LAKE__"
    settings = {f"{prefix}{key.upper()}": value for key, value in properties(tmp_path, WAREHOUSES[name]).items()}
    command = [sys.executable, "-m", "icefield_cli.main", "serve", "--catalog", "lake", "--port", str(free_port())]
    command += ["--tokens", str(options.tokens)]
    ended = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, timeout=120)
    assert ended.returncode not in (0, None)
    assert "location.allowed-roots" in ended.stderr
    assert "serving" not in ended.stdout


@pytest.mark.parametrize(
    "given",
    [
        {"tokens": ""},
        {"jwks": ""},
        {"jwks": "https://id/keys", "issuer": "", "audience": "lake"},
        {"jwks": "https://id/keys", "issuer": "me"},
        {"issuer": "me", "audience": "lake"},
        {"audience": "lake"},
        {"certificate": ""},
        {"certificate": "cert.pem"},
        {"key": "key.pem"},
        {"credentials": ""},
    ],
    ids=str,
)
def test_half_of_what_a_server_needs_to_know_its_clients_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(InvalidArgument, match="give"):
        check(Options(catalog="served", **given))


@pytest.mark.parametrize("given", [{"issuer": "", "audience": "lake"}, {"issuer": "me", "audience": None}], ids=str)
def test_tokens_of_an_issuer_without_a_name_or_an_audience_are_refused(given: Any) -> None:
    with pytest.raises(InvalidArgument, match="issuer and audience"):
        JwtTokens("https://id/keys", **given)


@pytest.mark.parametrize(
    "given", [{"": {"k": "v"}}, {"/": {"k": "v"}}, {"s3:": {"k": "v"}}, ["s3://b"], {"s3://b": "x"}]
)
def test_credentials_for_no_store_in_particular_are_refused(given: Any) -> None:
    with pytest.raises(InvalidArgument, match="credentials are"):
        StaticCredentials(given)


@pytest.mark.parametrize("given", ["s3://bucket/shared", [""], ["/"], ["s3://"], ["s3://bucket", " "]])
def test_owned_folders_that_could_be_any_folder_are_refused(given: Any) -> None:
    with pytest.raises(InvalidArgument, match="owned_folders"):
        Settings(owned_folders=given)
