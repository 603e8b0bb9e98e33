"""A server without authentication answers programs of its own machine, and no header makes anybody one of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from icefield_rest_server import Options, serving
from rest_served import raw_answer, served

LOCAL = ("127.0.0.1", "::1", "localhost", "testclient", "unix:", "")
OF_PROXIES = {
    "Via": ("1.1 nginx", "1.1 127.0.0.1", ""),
    "Forwarded": ("for=8.8.8.8", "for=127.0.0.1", "for=testclient"),
    "X-Forwarded-For": ("8.8.8.8", "8.8.8.8, 127.0.0.1", "127.0.0.1, 8.8.8.8", *LOCAL),
    "X-Forwarded-Host": ("lake.example.org", *LOCAL),
    "X-Forwarded-Proto": ("https", "http"),
    "X-Forwarded-Server": ("lake.example.org",),
    "X-Forwarded-Port": ("8181",),
    "X-Forwarded": ("for=127.0.0.1",),
    "X-Real-IP": ("8.8.8.8", *LOCAL),
    "X-Client-IP": LOCAL,
    "X-Cluster-Client-IP": LOCAL,
    "X-Original-Host": ("lake.example.org",),
    "X-Original-Forwarded-For": LOCAL,
    "X-Envoy-External-Address": LOCAL,
    "X-Amzn-Trace-Id": ("Root=1-67891233-abcdef012345678912345678",),
    "True-Client-IP": LOCAL,
    "CF-Connecting-IP": LOCAL,
    "Fastly-Client-IP": LOCAL,
    "Fly-Client-IP": LOCAL,
    "CDN-Loop": ("cloudflare",),
    "Max-Forwards": ("10",),
}
"""Headers that proxies add, each with what it may say."""

PAGES = {
    "of another site": {"Sec-Fetch-Site": "cross-site"},
    "of another site, without asking first": {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    "of another origin": {"Origin": "http://evil.example:8181"},
    "of no origin": {"Origin": "null"},
    "at another name of this machine": {"Host": "evil.example:8181"},
    "at another name, by both": {"Host": "evil.example:8181", "Origin": "http://evil.example:8181"},
}
"""What browsers send of pages."""


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with the options that the command gives it."""
    folder = tmp_path_factory.mktemp("local")
    given: list[tuple[Any, dict[str, Any]]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serving, "run", lambda application, begins, **options: given.append((application, options)))
        place = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}
        serving.serve(Options(catalog="served", log=False), type="sql", **place)
    ((application, options),) = given
    assert options.pop("timeout_graceful_shutdown") == 30
    del options["host"], options["port"]
    # As uvicorn has it where nothing is said: what a header states about the client is believed.
    with served(application, **{"proxy_headers": True, **options}) as uri:
        yield uri


def status(uri: str, headers: dict[str, str], method: str = "GET", body: bytes = b"") -> int:
    """What a request with exactly these headers and a ``Host`` is answered with."""
    lines = {
        "Host": f"127.0.0.1:{urlsplit(uri).port}",
        "Content-Length": str(len(body)),
        "Connection": "close",
        **headers,
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    answer = raw_answer(uri, f"{method} /v1/namespaces HTTP/1.1\r\n{head}\r\n".encode() + body)
    return int(answer.split(b" ", 2)[1])


def test_a_program_of_this_machine_is_answered(uri: str) -> None:
    assert status(uri, {}) == 200
    assert status(uri, {"Origin": uri}) == 200
    assert status(uri, {"Host": "localhost:8181", "User-Agent": "curl/8", "Accept": "*/*"}) == 200


@pytest.mark.parametrize("name", OF_PROXIES)
def test_a_request_that_came_through_a_proxy_is_refused(uri: str, name: str) -> None:
    for value in OF_PROXIES[name]:
        for spelled in (name, name.lower(), name.upper()):
            assert status(uri, {spelled: value}) == 403, f"{spelled}: {value}"


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("forwarded", [{}, *({"X-Forwarded-For": each} for each in LOCAL)])
def test_no_forwarding_header_makes_a_page_local(uri: str, page: str, forwarded: dict[str, str]) -> None:
    headers = {**PAGES[page], **forwarded}
    assert status(uri, headers) == 403
    assert status(uri, headers, "POST", json.dumps({"namespace": ["pwned"]}).encode()) == 403


@pytest.mark.parametrize("more", ["Host: evil.example", "Origin: http://evil.example", "X-Forwarded-For: testclient"])
def test_a_repeated_header_is_read_each_time(uri: str, more: str) -> None:
    headers = {"Origin": uri} if more.startswith("Origin") else {}
    assert status(uri, {**headers, "Accept": f"*/*\r\n{more}"}) in (400, 403)
