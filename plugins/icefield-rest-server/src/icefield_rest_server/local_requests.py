"""Which requests come from a program of this machine itself: not through a proxy, and from no page of a browser."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request

from icefield_rest_server.tokens import is_loopback

_OF_PROXIES: Final = frozenset(
    {
        "via",
        "forwarded",
        "client-ip",
        "true-client-ip",
        "cdn-loop",
        "max-forwards",
        "proxy-connection",
        "proxy-authorization",
        "x-host",
        "x-real-ip",
        "x-client-ip",
        "x-cluster-client-ip",
        "x-remote-ip",
        "x-remote-addr",
        "x-originating-ip",
        "x-appengine-user-ip",
        "x-azure-clientip",
        "x-azure-socketip",
    }
)
_OF_PROXIES_BEGIN: Final = (
    "x-forwarded",
    "x-original-",
    "x-envoy-",
    "x-arr-",
    "x-proxy",
    "x-amzn-",
    "x-amz-cf-",
    "x-akamai-",
    "cf-",
    "cloudfront-",
    "fastly-",
    "fly-",
    "x-nginx-",
    "x-sendfile-",
    "x-accel-",
)
"""Headers by which proxies name the original client or host: no client of the protocol sends one."""


def is_local(request: Request) -> bool:
    """Whether a request came straight over the loopback interface, or from within the process.

    A foreign web page can make the browser send requests to this machine. Their ``Origin``, ``Host`` or
    ``Sec-Fetch-Site`` shows that. The presence of a proxy's headers, with any values, shows a proxy on this machine.
    """
    headers, client = request.headers, request.client
    if any(name in _OF_PROXIES or name.startswith(_OF_PROXIES_BEGIN) for name in headers):
        return False
    if client is None:
        return request.scope.get("server") is None or request.scope["server"][1] is None
    origins = headers.getlist("origin")
    if not origins and headers.get("sec-fetch-site", "none") not in ("none", "same-origin", "same-site"):
        return False
    stated = [*(f"//{host}" for host in headers.getlist("host")), *origins]  # a browser always sends the first
    try:
        names = [urlsplit(each).hostname or "" for each in stated]
    except ValueError:
        return False
    return all(is_loopback(name) for name in (client.host, *names))
