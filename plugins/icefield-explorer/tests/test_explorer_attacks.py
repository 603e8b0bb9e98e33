"""Attacks on the explorer: its pages show nobody more than the protocol does, and no query leaves the catalog."""

from __future__ import annotations

import base64
import datetime as dt
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import icefield
import pyarrow as pa
import pytest
from explored import POLICY, TABLE_PAGES, ExploredPage, explored_catalog, explorer_client, settled
from icefield import Catalog
from icefield_explorer import row_page, show
from icefield_frames.query_processes import QueryProcesses
from icefield_maintenance.tend import TendedOperation
from icefield_rest_server import Principal, S3Keys, S3Signer, Settings, StaticCredentials, StaticTokens, app
from local_client import LocalClient
from rest_served import raw_answer, served
from tended_tables import add_to_record

TOKENS = {"ann": "a" * 20, "bob": "b" * 20}
HIDDEN = "payroll"


class Gives:
    """Gives credentials for every table that it is asked about."""

    def credentials(
        self, principal: Principal | None, table: tuple[str, ...], location: str, writes: bool
    ) -> list[tuple[str, dict[str, str]]]:
        return [(location, {"s3.secret-access-key": "hush"})]


def may(principal: Principal | None, operation: str, name: tuple[str, ...]) -> bool:
    """Ann may do everything; Bob may read ``db.open``, load ``db.shape`` and nothing else of ``db``."""
    assert principal is not None
    if principal.name == "ann":
        return True
    if name in ((), ("db",)):
        return operation in ("listNamespaces", "listTables", "loadNamespaceMetadata")
    return name == ("db", "open") or (name == ("db", "shape") and operation == "loadTable")


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Catalog]:
    place = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    with icefield.load_catalog("lake", type="sql", **place) as catalog:
        catalog.create_namespace("db")
        catalog.create_namespace(HIDDEN)
        for name in ("open", "shape", HIDDEN):
            rows = pa.table({"id": [1], "said": [f"secret of {name}"]})
            catalog.create_table(("db", name), rows.schema).append(rows)
        catalog.create_table((HIDDEN, "t"), pa.schema([("id", pa.int64())]))
        yield catalog


@pytest.fixture
def guarded(lake: Catalog) -> LocalClient:
    tokens = StaticTokens(TOKENS)
    return explorer_client(lake, authenticator=tokens, authorizer=may, vendor=Gives())


def as_(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKENS[name]}"}


def test_a_browser_may_give_its_token_as_a_password_for_pages_alone(guarded: LocalClient) -> None:
    answer = guarded.get("/ui/")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Basic ")
    basic = {"Authorization": "Basic " + base64.b64encode(f"x:{TOKENS['ann']}".encode()).decode()}
    assert guarded.get("/ui/", headers=basic).status_code == 200
    # A browser adds it to each request to this server, also to those that other sites make it send.
    assert guarded.get("/v1/config", headers=basic).status_code == 401
    assert guarded.post("/v1/namespaces", json={"namespace": ["x"]}, headers=basic).status_code == 401
    for wrong in ("Basic", "Basic !!!", "Basic " + "A" * 100_000, "Basic " + base64.b64encode(b"x:\xff").decode()):
        assert guarded.get("/ui/", headers={"Authorization": wrong}).status_code == 401


def test_a_search_finds_no_table_that_the_client_may_not_load(guarded: LocalClient) -> None:
    for name, found in (("ann", 4), ("bob", 2)):
        text = settled(guarded, "/ui/?find=", headers=as_(name)).text
        assert "/ui/table/" not in text
        links = [link for wanted in ("open", "shape", HIDDEN, "t") for link in searched(guarded, name, wanted)]
        assert len(set(links)) == found, links


def searched(guarded: LocalClient, name: str, wanted: str) -> list[str]:
    page = ExploredPage(settled(guarded, f"/ui/?find={wanted}", headers=as_(name)).text)
    return [each for each in page.links if each.startswith("/ui/table/")]


@pytest.mark.parametrize("page", TABLE_PAGES)
def test_a_page_of_a_table_needs_the_rights_of_the_protocol(guarded: LocalClient, page: str) -> None:
    path = f"/ui/{page}/db/{HIDDEN}"
    assert settled(guarded, path, headers=as_("ann")).status_code == 200
    refused, unknown = (guarded.get(f"/ui/{page}/db/{name}", headers=as_("bob")) for name in (HIDDEN, "missing"))
    assert refused.status_code == unknown.status_code == 403
    assert refused.text.replace(HIDDEN, "missing") == unknown.text
    assert guarded.get(f"/v1/namespaces/db/tables/{HIDDEN}", headers=as_("bob")).status_code == 403


def test_names_that_a_client_may_not_load_are_on_no_page(guarded: LocalClient) -> None:
    for path in ("/ui/", "/ui/namespace/db", f"/ui/namespace/db?find={HIDDEN}", "/ui/table/db/open"):
        answer = guarded.get(path, headers=as_("bob"))
        assert answer.status_code == 200
        assert f">{HIDDEN}<" not in answer.text
    assert guarded.get(f"/ui/namespace/{HIDDEN}", headers=as_("bob")).status_code == 403
    assert f">{HIDDEN}<" in guarded.get("/ui/namespace/db", headers=as_("ann")).text


def test_files_and_statistics_need_the_right_to_plan(guarded: LocalClient) -> None:
    for page in ("files", "health", "plan"):
        assert guarded.get(f"/ui/{page}/db/shape", headers=as_("bob")).status_code == 403
    for page in ("table", "schema", "snapshots", "diff"):
        answer = settled(guarded, f"/ui/{page}/db/shape", headers=as_("bob"))
        assert answer.status_code == 200
        assert "secret of" not in answer.text
        assert ".parquet" not in answer.text


def test_rows_need_the_right_to_plan_and_credentials(guarded: LocalClient, lake: Catalog) -> None:
    assert "secret of open" in guarded.get("/ui/rows/db/open", headers=as_("bob")).text
    assert "secret of" not in guarded.get("/ui/rows/db/shape", headers=as_("bob")).text
    for name in ("shape", HIDDEN):
        sql = quote(f"SELECT * FROM db.{name}")
        answer = guarded.get(f"/ui/rows/db/open?sql={sql}", headers=as_("bob"))
        assert answer.status_code == 403
        assert "secret of" not in answer.text
    without = explorer_client(lake, authenticator=StaticTokens(TOKENS))
    assert "secret of" not in without.get("/ui/rows/db/open", headers=as_("ann")).text


class GivesToAnn(Gives):
    """Gives credentials to Ann alone."""

    def credentials(
        self, principal: Principal | None, table: tuple[str, ...], location: str, writes: bool
    ) -> list[tuple[str, dict[str, str]]]:
        assert principal is not None
        return super().credentials(principal, table, location, writes) if principal.name == "ann" else []


@pytest.mark.parametrize(
    "opens",
    [
        {"vendor": GivesToAnn()},
        {"vendor": StaticCredentials({"s3://elsewhere/": {"s3.secret-access-key": "hush"}})},
        {"signer": S3Signer(lambda: S3Keys("k", "hush"), "us-east-1")},
    ],
)
def test_rows_need_credentials_that_the_protocol_would_give(lake: Catalog, opens: Any) -> None:
    guarded = explorer_client(lake, authenticator=StaticTokens(TOKENS), authorizer=may, **opens)
    loaded = guarded.get("/v1/namespaces/db/tables/open/credentials", headers=as_("bob"))
    assert loaded.json().get("storage-credentials", []) == []
    for path in ("/ui/rows/db/open", "/ui/rows/db/open?sql=SELECT+*+FROM+db.open", "/ui/health/db/open?doctor=run"):
        answer = settled(guarded, path, headers=as_("bob"))
        assert "secret of open" not in answer.text
        assert "rows" not in path or "You may not read rows" in answer.text
    is_given = isinstance(opens.get("vendor"), GivesToAnn)
    assert ("secret of open" in settled(guarded, "/ui/rows/db/open", headers=as_("ann")).text) is is_given


def test_a_table_that_names_files_of_another_shows_none_of_their_rows(guarded: LocalClient, lake: Catalog) -> None:
    (task,) = lake.load_table(("db", HIDDEN)).scan().plan_files()
    with lake.load_table("db.open").transaction() as tx, tx.update_snapshot().fast_append() as append:
        append.append_file(task.file)
    assert f"secret of {HIDDEN}" in explorer_client(lake).get("/ui/rows/db/open").text
    for path in ("/ui/rows/db/open", "/ui/rows/db/open?sql=SELECT+*+FROM+db.open", "/ui/health/db/open?doctor=run"):
        answer = settled(guarded, path, headers=as_("bob"))
        assert f"secret of {HIDDEN}" not in answer.text


@pytest.fixture(scope="module")
def client() -> LocalClient:
    return explorer_client(explored_catalog())


@pytest.mark.parametrize(
    "sql",
    [
        "COPY (SELECT 1) TO '{folder}/out'",
        "COPY sales.orders TO '{folder}/out'",
        "EXPORT DATABASE '{folder}/out'",
        "ATTACH '{folder}/out' AS x",
        "CREATE TABLE x AS SELECT 1",
        "INSERT INTO sales.orders SELECT * FROM sales.orders",
        "DROP VIEW sales.orders",
        "SET enable_external_access = true",
        "PRAGMA database_list",
        "INSTALL httpfs",
        "LOAD httpfs",
        "CALL pragma_version()",
        "SELECT 1; COPY (SELECT 1) TO '{folder}/out'",
        "SELECT * FROM '{folder}/in.csv'",
        "SELECT * FROM read_csv('{folder}/in.csv')",
        "SELECT * FROM read_text('{folder}/in.csv')",
        "SELECT * FROM read_blob('{folder}/in.csv')",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM parquet_scan('{folder}/in.csv')",
        "SELECT * FROM read_csv('http://127.0.0.1:9/x')",
        "SELECT * FROM sales.orders, read_csv('{folder}/in.csv')",
        "WITH x AS (SELECT * FROM '{folder}/in.csv') SELECT * FROM x",
        "SELECT getenv('HOME')",
        "SELECT * FROM query('COPY (SELECT 1) TO ''{folder}/out''')",
        "SELECT * FROM query_table('values')",
        "SELECT * FROM values",
        "SELECT * FROM duckdb_secrets()",
        "SELECT " + "(" * 5000 + "x" + ")" * 5000,
    ],
)
def test_a_query_reads_and_writes_no_file(client: LocalClient, tmp_path: Path, sql: str) -> None:
    (tmp_path / "in.csv").write_text("id\nTOPSECRET\n")
    answer = client.get(f"/ui/rows/sales/orders?sql={quote(sql.format(folder=tmp_path))}")
    shown = ExploredPage(answer.text).text.replace(sql.format(folder=tmp_path), "")
    assert answer.status_code == 200
    assert "TOPSECRET" not in shown
    assert "There are no rows" in shown or "DuckDB:" in shown or "sql takes one query" in shown, shown
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in.csv"]


def test_a_page_of_another_site_starts_no_query_and_no_examination(client: LocalClient) -> None:
    guarded = explorer_client(explored_catalog(), authenticator=StaticTokens(TOKENS), vendor=Gives())
    for site, runs in (("cross-site", False), ("same-site", False), ("same-origin", True), ("none", True)):
        headers = {**as_("ann"), "Sec-Fetch-Site": site}
        text = guarded.get("/ui/rows/web/clicks?sql=SELECT+41%2B1+AS+answer", headers=headers).text
        assert ("<td>42</td>" in text) is runs
        examined = settled(guarded, "/ui/health/web/clicks?doctor=run", headers=headers).text
        assert ("checks," in examined) is runs
    # Without authentication, the server answers no page of another site at all.
    assert client.get("/ui/", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert client.get("/ui/", headers={"Host": "evil.example"}).status_code == 403


@pytest.mark.parametrize(
    "path",
    [
        "table/..%2f..%2fetc/passwd",
        "table/%2e%2e/%2e%2e/passwd",
        "table/sales/..%5corders",
        "table/sales/%00",
        "table/sales/%ff",
        "table/sales/" + "x" * 2000,
        "table" + "/x" * 70,
        "table/orders",
        "view/orders",
        "style-..%2fpage.html",
        "style.css/../../x",
        "namespace/sales/%0d%0aSet-Cookie:x=1",
        "snapshots/sales/orders?first=-1",
        "snapshots/sales/orders?first=99999999999999999999999",
        "files/sales/orders?first=x",
        "diff/sales/orders?from=99999999999999999999&to=1",
        "diff/sales/orders?to=-5",
        "plan/sales/orders?filter=" + "x" * 5000,
    ],
)
def test_a_path_or_parameter_without_a_meaning_is_an_error_page(client: LocalClient, path: str) -> None:
    answer = client.get(f"/ui/{path}")
    assert answer.status_code in (400, 404), answer.text
    assert "set-cookie" not in answer.headers
    assert len(answer.content) < 10_000


@pytest.mark.parametrize("nested", ["not (" * 900 + "id = 1" + ")" * 900, "id = 1 or " * 390 + "id = 2"])
def test_a_deeply_nested_filter_is_answered(client: LocalClient, nested: str) -> None:
    assert settled(client, f"/ui/plan/sales/orders?filter={quote(nested)}").status_code in (200, 400)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT repeat('x', 100000000) AS long",
        "SELECT range(3000000) AS many",
        "SELECT * FROM range(100000000)",
        "SELECT " + ", ".join(f"{n} c{n}" for n in range(1400)),
        "SELECT repeat('x', 5000)::BLOB AS bytes FROM range(600)",
    ],
)
def test_a_huge_answer_is_cut(client: LocalClient, sql: str) -> None:
    answer = client.get(f"/ui/rows/web/clicks?sql={quote(sql)}")
    assert answer.status_code == 200
    assert len(answer.content) < 2_000_000


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT length(repeat('x', 2000000000))", "it needs more memory than 512 MB"),
        ("SELECT list(range) FROM range(500000000) GROUP BY range % 7", "it needs more memory than 512 MB"),
        ("SELECT list_transform([1], x -> levenshtein(repeat('a', 99999), repeat('b', 99999)))", "stopped after 5 s"),
        ("SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range + b.range = 7", "stopped after 5 s"),
    ],
)
def test_a_query_ends_at_its_time_and_its_memory(
    client: LocalClient, monkeypatch: pytest.MonkeyPatch, sql: str, message: str
) -> None:
    seconds = 5.0 if "after" in message else 500.0  # a busy machine may need long to fill the memory
    monkeypatch.setattr(row_page, "_QUERIES", QueryProcesses(replace(row_page._LIMITS, seconds=seconds), 1))
    answer = client.get(f"/ui/rows/web/clicks?sql={quote(sql)}")
    assert answer.status_code == 200
    assert f"the query was stopped: {message}".replace(": stopped", "") in ExploredPage(answer.text).text


def test_more_queries_than_run_at_the_same_time_are_asked_to_come_later(
    client: LocalClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = QueryProcesses(row_page._LIMITS, 1)
    monkeypatch.setattr(row_page, "_QUERIES", queries)
    with queries.querying("SELECT 1", lambda _: None):
        answer = client.get("/ui/rows/web/clicks?sql=SELECT+1")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert "other queries are running" in answer.text
        assert "3 rows" in ExploredPage(settled(client, "/ui/rows/web/clicks").text).text
    assert client.get("/ui/rows/web/clicks?sql=SELECT+1").status_code == 200


class NotedQueries(QueryProcesses):
    """One query at once, for a long time; ``begun`` is set as the first one begins."""

    def __init__(self) -> None:
        super().__init__(replace(row_page._LIMITS, seconds=1000.0), 1)
        self.begun = threading.Event()

    def _begun(self, *args: Any) -> Any:
        query = super()._begun(*args)
        self.begun.set()
        return query


def test_a_query_ends_when_its_browser_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    queries = NotedQueries()
    monkeypatch.setattr(row_page, "_QUERIES", queries)
    page = "/ui/rows/web/clicks?sql="
    endless = quote("SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range + b.range = 7")
    with served(app(explored_catalog(), Settings(pages={"ui": show}))) as url, httpx.Client(timeout=60) as client:
        host, port = urlsplit(url).hostname, urlsplit(url).port
        with socket.create_connection((host, port)) as browser:
            browser.sendall(f"GET {page}{endless} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
            assert queries.begun.wait(100)
            assert client.get(f"{url}{page}SELECT+1").status_code == 503
        end = time.monotonic() + 100
        while client.get(f"{url}{page}SELECT+1").status_code != 200:
            assert time.monotonic() < end


def answered(url: str, request: bytes) -> tuple[int, dict[str, str]]:
    """The status and the headers of the answer to a request as it is sent."""
    answer = raw_answer(url, request.replace(b"HOST", urlsplit(url).netloc.encode()))
    status, *lines = answer.partition(b"\r\n\r\n")[0].decode("ascii").split("\r\n")
    pairs = (line.partition(": ") for line in lines)
    return int(status.split(" ")[1]), {name.lower(): value for name, _, value in pairs}


@pytest.mark.parametrize(
    ("status", "request_line", "more"),
    [
        (200, "GET /ui/", ""),
        (200, "GET http://evil.example/ui/table/web/clicks", ""),
        (400, "GET /ui/table/web/%ff", ""),
        (400, "GET /ui/table/web/%c0%ae%c0%ae", ""),
        (400, "GET /ui/table/web/%ed%a0%80", ""),
        (403, "GET /ui/", "Origin: null\r\n"),
        (403, "GET /ui/", "Via: 1.1 x\r\n"),
        (403, "GET /ui/rows/web/clicks", "Sec-Fetch-Site: cross-site\r\n"),
        (404, "GET /ui/no/such", ""),
        (404, "GET /ui/..%2f..%2fetc%2fpasswd", ""),
        (404, "GET /ui/table/web/%252e%252e", ""),
        (404, "GET /ui/table/web/%0d%0aSet-Cookie:%20a=b", ""),
        (404, "GET //evil.example/ui/", ""),
        (404, "GET /%75i/", ""),
        (405, "POST /ui/rows/web/clicks", "Content-Length: 0\r\n"),
        (405, "OPTIONS /ui/rows/web/clicks", ""),
        (405, "TRACE /ui/", ""),
        (414, f"GET /ui/{'a' * 20_000}", ""),
    ],
)
def test_each_answer_over_a_socket_keeps_others_out(address: str, status: int, request_line: str, more: str) -> None:
    request = f"{request_line} HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n{more}\r\n".encode()
    found, headers = answered(address, request)
    assert found == status
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert not {"set-cookie", "location", "access-control-allow-origin"} & headers.keys()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(app(explored_catalog(), Settings(pages={"ui": show}))) as url:
        yield url


def test_costly_pages_hold_up_no_request_of_the_protocol(client: LocalClient, monkeypatch: pytest.MonkeyPatch) -> None:
    held = threading.Event()

    def hold(*_: Any, **__: Any) -> Any:
        held.wait(20)
        return {}

    monkeypatch.setattr(row_page, "_sampled", hold)
    pages = [threading.Thread(target=client.get, args=("/ui/rows/web/clicks",)) for _ in range(8)]
    for each in pages:
        each.start()
    try:
        began = time.monotonic()
        assert client.get("/v1/namespaces").status_code == 200
        assert time.monotonic() - began < 5
    finally:
        held.set()
        for each in pages:
            each.join()


def test_the_record_of_maintenance_needs_the_rights_to_read_its_rows(lake: Catalog) -> None:
    done = TendedOperation(
        at=dt.datetime.now(dt.UTC), table="db.open", operation="erase", outcome="done", reason="erasure of ann"
    )
    add_to_record(lake, str(POLICY.record), done)
    guarded = explorer_client(lake, authenticator=StaticTokens(TOKENS), authorizer=may, vendor=Gives())
    assert "erasure of ann" in settled(guarded, "/ui/maintenance/db/open", headers=as_("ann")).text
    answer = settled(guarded, "/ui/maintenance/db/open", headers=as_("bob"))
    assert answer.status_code == 200
    assert "may not read the record" in answer.text
    assert "erasure of ann" not in answer.text
    assert guarded.get("/ui/maintenance/db/shape", headers=as_("bob")).status_code == 403
