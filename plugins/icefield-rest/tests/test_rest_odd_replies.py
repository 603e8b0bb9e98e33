"""Replies that are legal, or nearly so, and that a careless client stumbles over."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

import httpx
import pyarrow as pa
import pytest
from http_between import Answered, Asked, Between, Forward
from icefield import Catalog, load_catalog
from icefield.errors import AccessDenied, IcefieldError, InvalidArgument, NoSuchNamespace, NoSuchTable, StorageError
from icefield_rest.auth.authenticator import Nobody
from icefield_rest.connection import Connection
from icefield_rest.service import Service
from icefield_rest.settings import settings_of

SCHEMA = pa.schema([("id", pa.int64())])
WAITS = {"rest.retry.min-wait-ms": "1", "rest.retry.max-wait-ms": "5", "rest.retry.num-retries": "2"}
JSON = {"Content-Type": "application/json"}
CONFIG, TABLES, NAMESPACES = "/v1/config", "/db/tables", "/v1/namespaces"
SECRET = "token-that-nobody-else-sees"

Change = Callable[[dict[str, Any]], Any]


@pytest.fixture
def between(our_rest: str) -> Iterator[Between]:
    with load_catalog("first", type="rest", uri=our_rest) as made:
        made.create_namespace("db")
        made.create_table("db.t", SCHEMA).append(pa.table({"id": [1, 2]}))
    with Between(our_rest).open() as made:
        yield made


def no_post(*_: Any) -> tuple[int, bytes]:
    raise AssertionError("no token is fetched")


def opened(between: Between, **more: str) -> Catalog:
    return load_catalog("test", type="rest", uri=between.url, **{**WAITS, **more})


def said(body: Any, status: int = 200, **headers: str) -> Answered:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Answered(status, {**JSON, **headers}, data)


def replying(between: Between, end: str, reply: Callable[[Asked, Forward], Answered | None], method: str = "") -> None:
    """Let requests of one kind be answered otherwise."""

    def behave(asked: Asked, forward: Forward) -> Answered | None:
        fits = asked.path.partition("?")[0].endswith(end) and method in ("", asked.method)
        return reply(asked, forward) if fits else forward(asked)

    between.behave = behave


def changing(between: Between, end: str, change: Change, **headers: str) -> None:
    """Let the answers of one kind be changed: ``change`` alters them, or gives another."""

    def reply(asked: Asked, forward: Forward) -> Answered | None:
        found = forward(asked)
        if not found.body:
            return found
        body = json.loads(found.body)
        other = change(body)
        own = {name: value for name, value in found.headers.items() if name.lower() not in map(str.lower, headers)}
        return said(body if other is None else other, found.status, **own, **headers)

    replying(between, end, reply)


def use(between: Between, **more: str) -> None:
    """Ask for one of each kind."""
    with opened(between, **more) as catalog:
        catalog.list_tables("db")
        catalog.load_namespace_properties("db")
        catalog.load_table("db.t")


def works(catalog: Catalog) -> None:
    """The catalog is one that can be used."""
    assert catalog.list_tables("db") == [("db", "t")]
    assert catalog.load_table("db.t").scan().to_arrow().num_rows == 2


# -- configuration


GOOD_CONFIGS: dict[str, Change] = {
    "nothing at all": lambda body: {},
    "nulls": lambda body: {"defaults": None, "overrides": None, "endpoints": None},
    "null values": lambda body: body.update(defaults={"a": None}, overrides={"prefix": None}),
    "unknown members": lambda body: body.update(version=7, extensions={"a": [1]}),
    "unknown endpoints": lambda body: body["endpoints"].append("BREW /v1/{prefix}/coffee"),
    "a lifetime of another form": lambda body: body.update({"idempotency-key-lifetime": 1800}),
    "the same endpoint twice": lambda body: body["endpoints"].extend(body["endpoints"]),
    "its own address again": lambda body: body["overrides"].update(a="b"),
    "a property of another language": lambda body: body["overrides"].update({"io-impl": "org.apache.X", "type": "x"}),
    "who the user is": lambda body: body["overrides"].update({"token": "theirs", "credential": "a:b", "scope": "x"}),
    "an object store's switch": lambda body: body["overrides"].update({"s3.path-style-access": "true"}),
}


@pytest.mark.parametrize("name", GOOD_CONFIGS)
def test_a_configuration_that_can_be_used_is_used(between: Between, name: str) -> None:
    changing(between, CONFIG, GOOD_CONFIGS[name])
    with opened(between) as catalog:
        works(catalog)


BAD_CONFIGS: dict[str, Change] = {
    "a list": lambda body: [],
    "numbers as properties": lambda body: {"overrides": {"a": 1}},
    "an empty separator": lambda body: {"overrides": {"namespace-separator": ""}},
    "a page of no size": lambda body: {"overrides": {"rest-page-size": "0"}},
    "a wait that is no number": lambda body: {"overrides": {"rest.retry.max-wait-ms": "soon"}},
    "a header that cannot be sent": lambda body: {"overrides": {"header.x-a": "a\r\nAuthorization: b"}},
    "a header in letters that it cannot have": lambda body: {"overrides": {"header.x-a": "\u20ac"}},
    "a header whose name is none": lambda body: {"overrides": {"header.x a:": "b"}},
    "another way to plan": lambda body: {"overrides": {"uri": "ftp://127.0.0.1/"}},
    "an address without a host": lambda body: {"overrides": {"uri": "http://"}},
    "an address with a port beyond all": lambda body: {"overrides": {"uri": "http://127.0.0.1:99999"}},
    "an address of brackets": lambda body: {"overrides": {"uri": "http://[::1"}},
}


@pytest.mark.parametrize("name", BAD_CONFIGS)
def test_a_configuration_that_cannot_be_used_is_one_error(between: Between, name: str) -> None:
    changing(between, CONFIG, BAD_CONFIGS[name])
    with pytest.raises(IcefieldError), opened(between) as catalog:
        catalog.list_tables("db")


@pytest.mark.parametrize("prefix", ["a/b", "/ws/", "my lake", "main%7Cwarehouse", "a|b", "what?x=1", "a#b", "\u00e9"])
def test_a_prefix_is_a_part_of_the_path_and_of_nothing_else(prefix: str) -> None:
    service = Service.__new__(Service)
    service.settings = settings_of("test", {"uri": "http://127.0.0.1/api", "prefix": prefix})
    address = Connection("test", service.settings, Nobody("test", {}, no_post)).url(service.table_path(("db", "t")))
    sent = httpx.Request("GET", address).url.raw_path.decode()
    assert sent.startswith("/api/v1/")
    assert sent.endswith("/namespaces/db/tables/t")
    assert "?" not in sent
    assert unquote(sent).removeprefix("/api/v1/").partition("/namespaces")[0] == unquote(prefix.strip("/"))


def test_a_service_that_was_asked_in_secret_does_not_lead_to_where_all_can_read() -> None:
    own = {"uri": "https://lake.example.org:8443/api", "rest.trusted-hosts": "other, http://signer:9000, old:80"}
    given = settings_of("test", own)
    assert given.trusts("https://lake.example.org:8443/other")
    assert given.trusts("https://other/")
    assert given.trusts("http://signer:9000/sign")
    assert given.trusts("http://old/sign")
    assert not given.trusts("http://lake.example.org:8443/api")
    assert not given.trusts("http://other:443/")
    assert not given.trusts("https://lake.example.org/api")
    open_to_all = settings_of("test", {"uri": "http://127.0.0.1:8181", "rest.trusted-hosts": "other:9000"})
    assert open_to_all.trusts("http://other:9000/")
    assert open_to_all.trusts("http://127.0.0.1:8181/v1")
    with pytest.raises(AccessDenied, match="http in place of https"):
        Connection("test", given, Nobody("test", {}, no_post)).url("http://lake.example.org:8443/sign")


# -- where credentials go


@pytest.mark.parametrize("status", [300, 301, 302, 303, 307, 308])
@pytest.mark.parametrize("end", [CONFIG, TABLES, "/tables/t"])
def test_nobody_is_led_elsewhere_with_credentials(between: Between, our_rest: str, status: int, end: str) -> None:
    with Between(our_rest).open() as elsewhere:
        where = elsewhere.url.replace("127.0.0.1", "localhost") + "/v1/config?token=in-the-address"
        replying(between, end, lambda asked, forward: Answered(status, {"Location": where}))
        with pytest.raises(StorageError, match="redirects") as raised:
            use(between, token=SECRET)
        assert elsewhere.asked == []
        assert "in-the-address" not in str(raised.value)
    replying(between, end, lambda asked, forward: Answered(status))
    with pytest.raises(StorageError, match="redirects to nowhere"):
        use(between)


@pytest.mark.parametrize("token", ["line\r\nx-evil: 1", "nul\0", "euro\u20ac"])
def test_a_token_that_cannot_be_sent_is_not_shown(between: Between, token: str) -> None:
    with pytest.raises(IcefieldError) as raised, opened(between, token=SECRET + token) as catalog:
        catalog.list_tables("db")
    assert SECRET not in str(raised.value)
    assert SECRET not in repr(raised.value.__cause__)


@pytest.mark.parametrize(
    "answer",
    [
        {"access_token": SECRET + "\r\nx: y", "token_type": "bearer"},
        {"access_token": SECRET + "\u20ac", "token_type": "bearer"},
        {"access_token": "", "token_type": "bearer"},
        {"access_token": 7, "token_type": "bearer"},
        [],
    ],
)
def test_a_token_service_that_gives_what_is_no_token_is_one_error(between: Between, answer: Any) -> None:
    replying(between, "/tokens", lambda asked, forward: said(answer))
    given = {"credential": "a:b", "oauth2-server-uri": "v1/oauth/tokens"}
    with pytest.raises(IcefieldError) as raised, opened(between, **given) as catalog:
        catalog.list_tables("db")
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"expires_in": 10**30},
        {"expires_in": None},
        {"expires_in": 3600.5},
        {"expires_in": "3600"},
        {"expires_in": -5},
        {"expires_in": "soon"},
        {"expires_in": "nan"},
        {"expires_in": [60]},
        {"token_type": None},
        {"issued_token_type": 5},
        {"token_type": "N_A"},
        {"refresh_token": None, "issued_token_type": None, "scope": None},
        {"unknown": {"a": []}},
    ],
)
def test_a_token_with_odd_company_is_a_token(between: Between, more: dict[str, Any]) -> None:
    answer = {"access_token": SECRET, "token_type": "bearer", **more}
    replying(between, "/tokens", lambda asked, forward: said(answer))
    with opened(between, credential="a:b", **{"oauth2-server-uri": "v1/oauth/tokens"}) as catalog:
        works(catalog)


class Pages:
    """A service that gives a listing in pages; each has names and the token of the next."""

    def __init__(self, between: Between, pages: dict[str, tuple[list[str], str | None]]) -> None:
        self.pages = pages
        replying(between, TABLES, self.reply, "GET")

    def reply(self, asked: Asked, forward: Forward) -> Answered | None:
        token = asked.path.partition("pageToken=")[2].partition("&")[0]
        names, after = self.pages[token]
        found = [{"namespace": ["db"], "name": name} for name in names]
        return said({"identifiers": found, "next-page-token": after})


def test_empty_pages_with_a_next_one_are_gone_through(between: Between) -> None:
    Pages(between, {"": ([], "a"), "a": (["x"], "b"), "b": ([], "c"), "c": (["y"], None)})
    with opened(between) as catalog:
        assert catalog.list_tables("db") == [("db", "x"), ("db", "y")]


@pytest.mark.parametrize(
    "pages", [{"": ([], "a"), "a": (["x"], "a")}, {"": ([], "a"), "a": ([], "b"), "b": (["x"], "a")}]
)
def test_pages_in_a_circle_are_one_error(between: Between, pages: dict[str, tuple[list[str], str | None]]) -> None:
    Pages(between, pages)
    with opened(between) as catalog, pytest.raises(StorageError, match="again and again"):
        catalog.list_tables("db")


@pytest.mark.slow
def test_empty_pages_without_an_end_are_one_error(between: Between) -> None:
    count = iter(range(10**9))
    replying(
        between, TABLES, lambda asked, forward: said({"identifiers": [], "next-page-token": f"t{next(count)}"}), "GET"
    )
    began = time.monotonic()
    with opened(between) as catalog, pytest.raises(StorageError, match="empty pages"):
        catalog.list_tables("db")
    assert time.monotonic() - began < 60


@pytest.mark.slow
def test_pages_of_the_same_names_without_an_end_are_one_error(between: Between) -> None:
    count = iter(range(10**9))
    page = {"identifiers": [{"namespace": ["db"], "name": "t"}]}
    replying(between, TABLES, lambda asked, forward: said({**page, "next-page-token": f"t{next(count)}"}), "GET")
    with opened(between) as catalog, pytest.raises(StorageError, match="old names"):
        catalog.list_tables("db")
    namespaces = {"namespaces": [["db"]]}
    replying(
        between, NAMESPACES, lambda asked, forward: said({**namespaces, "next-page-token": f"n{next(count)}"}), "GET"
    )
    with opened(between) as catalog, pytest.raises(StorageError, match="old names"):
        catalog.list_namespaces()


@pytest.mark.parametrize("token", ["", None])
def test_a_listing_ends_where_no_page_follows(between: Between, token: str | None) -> None:
    changing(between, TABLES, lambda body: body.update({"next-page-token": token, "total": 1}))
    with opened(between) as catalog:
        works(catalog)


def test_a_listing_of_nothing_may_be_null(between: Between) -> None:
    changing(between, TABLES, lambda body: {"identifiers": None})
    with opened(between) as catalog:
        assert catalog.list_tables("db") == []
        changing(between, NAMESPACES, lambda body: {"namespaces": None, "next-page-token": None})
        assert catalog.list_namespaces() == []


@pytest.mark.parametrize(
    "body", [{}, {"error": "x"}, [], "x", None, 7, {"identifiers": [None]}, {"identifiers": [{"name": "t"}]}]
)
def test_what_is_no_listing_is_one_error(between: Between, body: Any) -> None:
    replying(between, TABLES, lambda asked, forward: said(body))
    with opened(between) as catalog, pytest.raises(StorageError, match="cannot be read"):
        catalog.list_tables("db")


@pytest.mark.parametrize("body", [b"", b"<html>", b"\xef\xbb\xbf[]", b"\xff\xfe{\0}\0", b"[" * 100_000])
def test_what_is_no_json_is_one_error(between: Between, body: bytes) -> None:
    for end in (CONFIG, TABLES, "/tables/t", "/namespaces/db"):
        replying(between, end, lambda asked, forward: Answered(200, JSON, body), "GET")
        with pytest.raises(StorageError):
            use(between)


@pytest.mark.parametrize("depth", [950, 100_000])
def test_json_that_is_nested_too_deeply_is_one_error(between: Between, depth: int) -> None:
    deep = '{"a":' * depth + "1" + "}" * depth
    for end, key in ((CONFIG, "defaults"), (TABLES, "identifiers"), ("/tables/t", "metadata"), ("/namespaces/db", "a")):
        body = f'{{"{key}":{deep}}}'.encode()
        replying(between, end, lambda asked, forward, body=body: Answered(200, JSON, body), "GET")
        with suppress(IcefieldError):  # a member that is not known may be anything
            use(between)


# -- names


NAMES = ["a.b", "a b", "100%", "%1F", "a/b", "a+b", "\u00e9\u4e2d", "a?b#c", "a&b=c", "..a", "'\"", "a\\b"]


@pytest.mark.parametrize("name", NAMES)
def test_names_with_what_paths_are_made_of_are_names(between: Between, name: str) -> None:
    with opened(between) as catalog:
        try:
            catalog.create_namespace((name,))
            catalog.create_namespace((name, name))
            catalog.create_table((name, name, name), SCHEMA)
        except InvalidArgument as error:  # what the catalog behind cannot hold
            assert "the service says" in str(error)  # noqa: PT017
            return
        assert (name, name) in catalog.list_namespaces((name,))
        assert catalog.list_tables((name, name)) == [(name, name, name)]
        assert catalog.load_table((name, name, name)).name() == (name, name, name)


@pytest.mark.parametrize(("separator", "level"), [("%1F", "a\x1fb"), ("%2E", "a.b"), (".", "a.b"), ("--", "a--b")])
def test_a_level_that_holds_the_separator_leads_to_no_other_namespace(
    between: Between, separator: str, level: str
) -> None:
    changing(between, CONFIG, lambda body: body["overrides"].update({"namespace-separator": separator}))
    with opened(between) as catalog:
        before = len(between.asked)
        for act in (
            lambda: catalog.list_tables((level,)),
            lambda: catalog.load_table((level, "t")),
            lambda: catalog.drop_table((level, "t")),
            lambda: catalog.create_namespace((level,)),
            lambda: catalog.list_namespaces((level,)),
            lambda: catalog.drop_namespace((level,)),
            lambda: catalog.rename_table(("db", "t"), (level, "t")),
        ):
            with pytest.raises((InvalidArgument, NoSuchNamespace, NoSuchTable)):
                act()
        assert not any(each.method == "DELETE" for each in between.asked[before:])


# -- tables


GOOD_TABLES: dict[str, Change] = {
    "unknown members": lambda body: body.update(extra={"a": 1}) or body["metadata"].update({"x-new": [1]}),
    "no configuration": lambda body: (body.pop("config"), None)[1],
    "null configuration": lambda body: body.update(config=None),
    "null properties": lambda body: body.update(config={"a": None}),
    "null credentials": lambda body: body.update({"storage-credentials": None}),
    "credentials with null": lambda body: body.update(
        {"storage-credentials": [{"prefix": "s3://x", "config": {"s3.session-token": None}}]}
    ),
    "credentials of every place": lambda body: body.update({"storage-credentials": [{"prefix": "", "config": {}}]}),
    "no place of metadata": lambda body: body.update({"metadata-location": None}),
    "credentials that never end": lambda body: body.update(config={"s3.session-token-expires-at-ms": "9" * 40}),
    "credentials that end at no time": lambda body: body.update(config={"s3.session-token-expires-at-ms": "never"}),
    "credentials that end before time": lambda body: body.update(config={"s3.session-token-expires-at-ms": "-1"}),
    "limits of the user's": lambda body: body.update(config={"location.allowed-schemes": "none"}),
    "a null signing configuration": lambda body: body.update({"remote-signing-config": None}),
    "signing with nulls": lambda body: body.update({"remote-signing-config": {"properties": None, "headers": None}}),
}


@pytest.mark.parametrize("name", GOOD_TABLES)
def test_a_table_that_can_be_used_is_used(between: Between, name: str) -> None:
    changing(between, "/tables/t", GOOD_TABLES[name])
    with opened(between) as catalog:
        works(catalog)


BAD_TABLES: dict[str, Change] = {
    "no metadata": lambda body: (body.pop("metadata"), None)[1],
    "null metadata": lambda body: body.update(metadata=None),
    "metadata of another form": lambda body: body.update(metadata=[]),
    "a version to come": lambda body: body["metadata"].update({"format-version": 99}),
    "a place of metadata that is none": lambda body: body.update({"metadata-location": 5}),
    "an error": lambda body: {"error": {"message": "x", "type": "y", "code": 200}},
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_a_table_that_cannot_be_used_is_one_error(between: Between, name: str) -> None:
    changing(between, "/tables/t", BAD_TABLES[name])
    with opened(between) as catalog, pytest.raises(IcefieldError):
        catalog.load_table("db.t")


@pytest.mark.parametrize("tag", ['W/"x"', '"' + "x" * 5_000 + '"', "no quotes", '"\u00e9"', '""', '"a", "b"'])
def test_an_odd_entity_tag_does_no_harm(between: Between, tag: str) -> None:
    changing(between, "/tables/t", lambda body: None, ETag=tag)
    with opened(between) as catalog:
        works(catalog)
        works(catalog)


def test_nothing_has_changed_since_nothing_was_loaded_is_one_error(between: Between) -> None:
    replying(between, "/tables/t", lambda asked, forward: Answered(304))
    with opened(between) as catalog, pytest.raises(StorageError, match="nothing was loaded"):
        catalog.load_table("db.t")


# -- errors


MODELS: dict[str, tuple[Any, type[IcefieldError]]] = {
    "the model": ({"error": {"message": "no", "type": "NoSuchTableException", "code": 404}}, NoSuchTable),
    "a code as a string": ({"error": {"message": "no", "type": "NoSuchTableException", "code": "404"}}, NoSuchTable),
    "no code": ({"error": {"message": "no", "type": "NoSuchTableException"}}, NoSuchTable),
    "a null type": ({"error": {"message": "no", "type": None, "code": 404}}, NoSuchTable),
    "a null message": ({"error": {"message": None, "type": "NoSuchTableException", "code": 404}}, NoSuchTable),
    "a stack": ({"error": {"message": "no", "type": "NoSuchTableException", "code": 404, "stack": ["a"]}}, NoSuchTable),
    "a null stack": ({"error": {"message": "", "type": "NoSuchTableException", "stack": None}}, NoSuchTable),
    "another shape": ({"message": "no"}, NoSuchTable),
    "a string": ({"error": "no"}, NoSuchTable),
    "null": ({"error": None}, NoSuchTable),
    "a list": ([], NoSuchTable),
    "a page": (b"<html><body>404</body></html>", NoSuchTable),
    "nothing": (b"", NoSuchTable),
    "bytes": (b"\x00\xff" * 100, NoSuchTable),
    "a long page": (b"x" * 200_000, NoSuchTable),
}


@pytest.mark.parametrize("name", MODELS)
def test_errors_in_odd_forms_are_typed(between: Between, name: str) -> None:
    body, kind = MODELS[name]
    replying(between, "/tables/t", lambda asked, forward: said(body, 404))
    with opened(between) as catalog, pytest.raises(kind) as raised:
        catalog.load_table("db.t")
    assert type(raised.value) is kind
    assert len(str(raised.value)) < 2_000


@pytest.mark.parametrize("given", ["99999", "1e9", "-1", "soon", "Wed, 21 Oct 2015 07:28:00 GMT", "0", ""])
def test_who_says_when_to_come_again_is_not_waited_for_without_an_end(between: Between, given: str) -> None:
    replying(between, TABLES, lambda asked, forward: Answered(503, {"Retry-After": given}))
    began = time.monotonic()
    with opened(between, **{"rest.retry.total-timeout-ms": "2000"}) as catalog, pytest.raises(StorageError):
        catalog.list_tables("db")
    assert time.monotonic() - began < 15


def test_a_commit_whose_reply_is_empty_is_looked_for(between: Between) -> None:
    with opened(between) as catalog:
        table = catalog.load_table("db.t")

        def reply(asked: Asked, forward: Forward) -> Answered | None:
            forward(asked)
            return Answered(204)

        replying(between, "/tables/t", reply, "POST")
        table.append(pa.table({"id": [3]}))
        assert catalog.load_table("db.t").scan().to_arrow().num_rows == 3
        assert len(catalog.load_table("db.t").snapshots()) == 2


@pytest.mark.parametrize("status", [200, 204])
def test_a_table_is_there_by_either_status(between: Between, status: int) -> None:
    replying(between, "/tables/t", lambda asked, forward: Answered(status), "HEAD")
    with opened(between) as catalog:
        assert catalog.table_exists("db.t")
