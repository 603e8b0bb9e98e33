"""Pages beside the protocol: a plugin's function answers them, with the rights of the protocol."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from icefield import Catalog, Plugins, Provider, hookimpl, load_catalog
from icefield.errors import InvalidArgument, MissingPlugin, NotSupportedByCatalog
from icefield_rest_server import Answer, Options, PageRequest, Principal, Settings, StaticTokens, app
from icefield_rest_server.pages import installed_pages
from local_client import LocalClient

SCHEMA = pa.schema([("id", pa.int64())])
TOKENS = {"ann": "a" * 20, "bob": "b" * 20}


def lists(request: PageRequest) -> Answer:
    """The names of the tables of a namespace, and how the request came here."""
    names = request.access.tables(request.name(0, "namespace"), most=2, containing=request.query.get("find", ""))
    said = [request.root, str(request.is_foreign), request.access.user, *(name[-1] for name in names)]
    return Answer(200, "\n".join(said).encode(), {"Content-Type": "text/plain"})


def fails(request: PageRequest) -> Answer:
    raise RuntimeError("a secret")


class HousePlugin:
    @hookimpl(optionalhook=True)
    def icefield_pages(self) -> list[Provider]:
        return [Provider("house", f"{__name__}:lists")]


@pytest.fixture
def catalog() -> Catalog:
    made = load_catalog("served", type="sql", uri="sqlite://", warehouse="memory://pages")
    made.create_namespace("db")
    for name in ("b", "a", "c"):
        if not made.table_exists(("db", name)):
            made.create_table(("db", name), SCHEMA)
    return made


def asked(catalog: Catalog, **settings: Any) -> LocalClient:
    return LocalClient(app(catalog, Settings(pages={"house": lists, "broken": fails}, **settings)))


def test_hook_icefield_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    plugins = Plugins.installed(extra=[HousePlugin()])
    found = {name for _, each in plugins.records("icefield_pages", Provider) for name in each.names}
    assert "house" in found
    monkeypatch.setattr(Plugins, "load", staticmethod(lambda plugin, target, what: target))
    assert installed_pages(plugins)["house"] == f"{__name__}:lists"
    with pytest.raises(MissingPlugin, match="explorer"):
        installed_pages(Plugins(["icefield_rest_server.hooks"]))


def test_a_page_is_answered_by_its_function(catalog: Catalog) -> None:
    answer = asked(catalog).get("/house/db")
    assert answer.headers["content-type"] == "text/plain"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.text.split("\n") == ["/house", "False", "", "a", "b"]
    assert asked(catalog).get("/house/db?find=C").text.endswith("\nc")
    assert asked(catalog).head("/house/db").content == b""
    assert asked(catalog).get("/elsewhere/db").status_code == 404
    assert asked(catalog).get("/house/a%2Fb").status_code == 400


def test_a_page_that_fails_says_nothing_of_why(catalog: Catalog) -> None:
    answer = asked(catalog).get("/broken")
    assert answer.status_code == 500
    assert "secret" not in answer.text


def test_a_page_has_only_the_methods_that_change_nothing(catalog: Catalog) -> None:
    for method in ("POST", "DELETE", "PUT", "PATCH", "OPTIONS"):
        answer = asked(catalog).request(method, "/house/db")
        assert answer.status_code == 405
        assert answer.headers["allow"] == "GET, HEAD"


def test_a_page_knows_the_client_and_that_another_site_led_here(catalog: Catalog) -> None:
    client = asked(catalog, authenticator=StaticTokens(TOKENS))
    assert client.get("/house/db").status_code == 401
    headers = {"Authorization": f"Bearer {TOKENS['ann']}", "Sec-Fetch-Site": "cross-site"}
    assert client.get("/house/db", headers=headers).text.split("\n")[:3] == ["/house", "True", "ann"]


def test_a_page_sees_what_its_client_may_see_and_changes_nothing(catalog: Catalog) -> None:
    def may(principal: Principal | None, operation: str, name: tuple[str, ...]) -> bool:
        return name != ("db", "a")

    seen: list[str] = []

    def page(request: PageRequest) -> Answer:
        table = request.access.table(("db", "b"))
        with pytest.raises(NotSupportedByCatalog):
            table.append(pa.table({"id": [1]}))
        seen.append(table.location())
        request.access.table(("db", "a"))
        raise AssertionError("unreachable")

    client = LocalClient(app(catalog, Settings(pages={"house": lists, "one": page}, authorizer=may)))
    assert client.get("/house/db").text.split("\n")[3:] == ["b", "c"]
    assert client.get("/one").status_code == 403
    assert len(seen) == 1


@pytest.mark.parametrize("name", ["v1", "health", "metrics"])
def test_pages_take_no_path_of_the_servers_own(name: str) -> None:
    with pytest.raises(InvalidArgument, match="path of the server's own"):
        Settings(pages={name: lists})


def test_without_the_protocol_a_server_has_pages_alone(catalog: Catalog) -> None:
    client = asked(catalog, protocol=False)
    assert client.get("/house/db").status_code == 200
    assert client.get("/v1/namespaces").status_code == 404
    assert client.post("/v1/namespaces", json={"namespace": ["x"]}).status_code == 404
    assert Options(protocol=False).settings().protocol is False
