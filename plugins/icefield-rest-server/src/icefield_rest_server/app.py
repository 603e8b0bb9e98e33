"""The ASGI application: requests checked, recognised and limited, handled in threads, answered and counted."""

# See docs/decisions/0109.

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from icefield import Catalog
from icefield.errors import IcefieldError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from icefield_rest_server.answers import Answer, Refused, error_answer
from icefield_rest_server.calls import Call, parsed
from icefield_rest_server.idempotency import IdempotencyKeys, IdempotencyStore
from icefield_rest_server.observing import Metrics, log_access
from icefield_rest_server.once import Once
from icefield_rest_server.processes import OneProcess, Processes
from icefield_rest_server.routes import Endpoint, Router, allowed_as
from icefield_rest_server.settings import Settings
from icefield_rest_server.shared_keys import SharedKeys
from icefield_rest_server.state import State
from icefield_rest_server.tokens import Principal, bearer_token, is_loopback
from icefield_rest_server.wording import worded

_log = logging.getLogger(__name__)

_METHODS = ["GET", "HEAD", "POST", "DELETE", "PUT", "PATCH", "OPTIONS"]
_MAX_PATH = 16 * 1024
_CONFIG = "/v1/config"
_BESIDES = {_CONFIG: ["GET"], **{path: ["GET", "HEAD"] for path in ("/health/live", "/health/ready", "/metrics")}}
"""What other paths have than those of the router."""


def app(catalog: Catalog, settings: Settings | None = None) -> Starlette:
    """The server of a catalog, to run or to mount."""
    service = _Service(catalog, settings or Settings())

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        service.close()

    routes = [
        Route("/health/live", service.live),
        Route("/health/ready", service.ready),
        Route("/metrics", service.show_metrics),
        Route("/{path:path}", service.serve, methods=_METHODS),
    ]
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: _not_served})


class _Service:
    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self.settings = settings
        self.state = State(catalog, settings)
        self.router = Router(catalog.backend.abilities, signs=settings.signer is not None)
        self._opened = ExitStack()
        processes = (
            None if settings.shared is None else self._opened.enter_context(closing(Processes(Path(settings.shared))))
        )
        self.metrics = Metrics(processes or OneProcess())
        self.once: Once | None = None
        if settings.idempotent:
            keys = settings.keys or self._keys(processes, settings.idempotency_seconds)
            self.once = Once(keys, self.state, settings.max_seconds / 2)
        self.pool = ThreadPoolExecutor(settings.threads, thread_name_prefix="icefield-rest")

    def _keys(self, processes: Processes | None, seconds: int) -> IdempotencyStore:
        """Where answers are kept by key: in memory, or where all processes of the server see them."""
        if processes is None:
            return IdempotencyKeys(seconds)
        return self._opened.enter_context(closing(SharedKeys(processes, seconds)))

    def close(self) -> None:
        """End what is under way, and leave the other processes of the server."""
        self.pool.shutdown(wait=True)
        self._opened.close()

    # -- what is not of the protocol --------------------------------------------------------------------------------

    async def live(self, request: Request) -> Response:
        """The process answers."""
        return PlainTextResponse("ok")

    async def ready(self, request: Request) -> Response:
        """The catalog behind answers."""
        try:
            await self._in_thread(lambda: self.state.catalog.backend.list_namespaces((), size=1), 10.0)
        except Exception as error:
            _log.warning("the catalog does not answer: %s", type(error).__name__)
            return PlainTextResponse("the catalog does not answer", 503)
        return PlainTextResponse("ok")

    async def show_metrics(self, request: Request) -> Response:
        """Counts, for whoever may use the catalog."""
        try:
            await self._who(request)
        except (Refused, IcefieldError) as error:
            return _response(error_answer(error))
        return PlainTextResponse(self.metrics.text(), media_type="text/plain; version=0.0.4")

    # -- the protocol -----------------------------------------------------------------------------------------------

    async def serve(self, request: Request) -> Response:
        """Any request of the protocol."""
        began = time.perf_counter()
        self.metrics.began()
        operation, call, answer = "unknown", None, None
        path = _raw_path(request)
        try:
            principal = await self._who(request)
            operation, handle, call = await self._call(request, path, principal)
            self._allow(call)
            answer = await self._in_thread(lambda: handle(call), self.settings.max_seconds)
        except ClientDisconnect:
            answer = error_answer(Refused(400, "BadRequestException", "the request ended before its body did"))
        except (Refused, IcefieldError) as error:
            answer = error_answer(error)
        except Exception as error:
            _log.exception("%s failed", operation)
            answer = error_answer(error)
        finally:
            seconds = time.perf_counter() - began
            self._count(operation, 499 if answer is None else answer.status, seconds, call)
        response = _response(answer, without_body=request.method == "HEAD")
        who = None if call is None or call.principal is None else call.principal.name
        target = "" if call is None else call.more.get("target", "")
        log_access(operation, request.method, path, answer.status, seconds, len(response.body), who, target)
        return response

    def _count(self, operation: str, status: int, seconds: float, call: Call | None) -> None:
        """Add a request to the metrics. Whatever fails there, the request has its answer."""
        try:
            self.metrics.ended(operation, status, seconds, None if call is None else call.more.get("report"))
        except Exception:
            _log.exception("%s is not counted", operation)

    async def _call(
        self, request: Request, path: str, principal: Principal | None
    ) -> tuple[str, Callable[[Call], Answer], Call]:
        headers = {name.lower(): value for name, value in request.headers.items()}
        query = dict(request.query_params)
        if path == _CONFIG and request.method == "GET":
            return "getConfig", lambda _: self._config(), Call("getConfig", {}, query, headers, None, principal)
        found = self.router.find(request.method, path) if len(path) <= _MAX_PATH else None
        if found is None:
            raise self._unknown(request.method, path)
        endpoint, parts = found
        body = parsed(await self._body(request), self.settings.max_depth) if endpoint.method == "POST" else None
        call = Call(endpoint.operation, parts, query, headers, body, principal)
        call.more["target"] = ".".join(call.target)  # names that cannot be are refused here
        return endpoint.operation, lambda given: self._handled(endpoint, given), call

    def _unknown(self, method: str, path: str) -> Refused:
        if len(path) > _MAX_PATH:
            return Refused(414, "BadRequestException", f"the path has more than {_MAX_PATH:,} characters")
        if methods := _BESIDES.get(path) or self.router.methods(path):
            return Refused(
                405, "BadRequestException", f"this path has {', '.join(methods)}", {"Allow": ", ".join(methods)}
            )
        return Refused(404, "NotFoundException", "there is no such endpoint; GET /v1/config lists those that are")

    def _handled(self, endpoint: Endpoint, call: Call) -> Answer:
        """The answer of a handler, once for an idempotency key."""
        key = call.headers.get("idempotency-key")
        if key is None or self.once is None or not endpoint.changes:
            return _answered(endpoint, self.state, call)
        return self.once.answer(key, call, lambda: _answered(endpoint, self.state, call), commits=endpoint.commits)

    def _config(self) -> Answer:
        """What clients are to use, and every endpoint that the catalog can do, and no other."""
        body: dict[str, Any] = {
            "defaults": dict(self.settings.defaults),
            "overrides": dict(self.settings.overrides),
            "endpoints": [f"{each.method} {each.template}" for each in self.router.endpoints],
        }
        if self.once is not None:
            body["idempotency-key-lifetime"] = f"PT{self.settings.idempotency_seconds}S"
        return Answer(body=body)

    def _allow(self, call: Call) -> None:
        if self.settings.authorizer is None:
            return
        operation = allowed_as(call.operation)
        for target in {call.target, *_named_in(call)}:
            if not self.state.allows(call.principal, operation, target):
                name = ".".join(target) or "the catalog"
                raise Refused(403, "ForbiddenException", f"you may not do {call.operation} with {name:.300}")

    async def _who(self, request: Request) -> Principal | None:
        """Who asks. Raises ``Refused`` for nobody, unless everybody on this machine may."""
        authenticator = self.settings.authenticator
        if authenticator is None:
            if not _is_local(request):
                message = "this server has no authentication and answers programs of its own machine only"
                raise Refused(403, "ForbiddenException", message)
            return None
        token = bearer_token(request.headers.get("authorization"))
        found: Principal | None = None
        if token is not None:
            found = await self._in_thread(lambda: authenticator.principal(token), 30.0)
        if found is None:
            message = "give a valid bearer token in the header Authorization"
            raise Refused(401, "NotAuthorizedException", message, {"WWW-Authenticate": "Bearer"})
        return found

    async def _body(self, request: Request) -> bytes:
        most = self.settings.max_body
        stated = request.headers.get("content-length", "0")
        too_large = Refused(413, "BadRequestException", f"the body has more than {most:,} bytes")
        if stated.isascii() and stated.isdigit() and int(stated[:20]) > most:
            raise too_large
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self.settings.max_seconds):
                async for part in request.stream():
                    size += len(part)
                    if size > most:
                        raise too_large
                    parts.append(part)
        except TimeoutError as error:
            raise Refused(408, "BadRequestException", "the body did not come in time") from error
        return b"".join(parts)

    async def _in_thread(self, work: Callable[[], Any], seconds: float) -> Any:
        """What work gives. It goes on when the time is up: what it commits may become visible later."""
        future = asyncio.get_running_loop().run_in_executor(self.pool, work)
        try:
            return await asyncio.wait_for(asyncio.shield(future), seconds)
        except TimeoutError as error:
            message = f"the request was not done after {seconds:g} s; whether it will be is not known"
            raise Refused(504, "ServiceFailureException", message) from error


async def _not_served(request: Request, error: Exception) -> Response:
    """What Starlette itself refuses: a target that is no path, and methods that are not of the protocol."""
    assert isinstance(error, HTTPException)
    kind = "NotFoundException" if error.status_code == 404 else "BadRequestException"
    answer = error_answer(Refused(error.status_code, kind, "there is no such endpoint", error.headers))
    return _response(answer, without_body=request.method == "HEAD")


def _answered(endpoint: Endpoint, state: State, call: Call) -> Answer:
    """An answer, which an error of the kernel is as well: encoded here, in the thread."""
    try:
        answer = endpoint.handler(state, call)
    except Refused as error:
        answer = error_answer(error)
    except IcefieldError as error:
        answer = error_answer(error, worded(error, call), nothing_done=endpoint.commits)
    return Answer(answer.status, None if answer.body is None else answer.encoded(), answer.headers)


def _named_in(call: Call) -> set[tuple[str, ...]]:
    """What a body names, which the path does not: tables and views, and what a new namespace is in."""
    if not isinstance(call.body, dict):
        return set()
    given = [call.body.get("source"), call.body.get("destination")]
    changes = call.body.get("table-changes")
    if isinstance(changes, list):
        given += [change.get("identifier") for change in changes if isinstance(change, dict)]
    found = set()
    for each in given:
        if isinstance(each, dict) and isinstance(each.get("namespace"), list):
            found.add(tuple(str(level) for level in (*each["namespace"], each.get("name"))))
    if call.operation in ("createTable", "createView", "registerTable", "registerView") and "namespace" in call.parts:
        found.add((*call.namespace, str(call.body.get("name"))))
    if call.operation == "createNamespace":
        found.add(call.target[:-1])
    return found


def _raw_path(request: Request) -> str:
    """The path as it was sent, below where the application is mounted."""
    raw = request.scope.get("raw_path")
    path: str = raw.decode("latin-1") if isinstance(raw, bytes) else request.scope["path"]
    path = path.partition("?")[0]
    root = request.scope.get("root_path", "")
    return path.removeprefix(root) if root else path


def _is_local(request: Request) -> bool:
    """Whether the request came over the loopback interface, or from within the process, and of no page of a browser.

    A page from elsewhere can have its browser ask this machine; its ``Origin`` says so, or the name in ``Host``.
    """
    client = request.client
    if client is None:
        return request.scope.get("server") is None or request.scope["server"][1] is None
    if client.host == "testclient":
        return True
    host, origin = request.headers.get("host"), request.headers.get("origin")  # a browser always sends the first
    stated = (None if host is None else f"//{host}", origin)
    try:
        names = [urlsplit(each).hostname or "" for each in stated if each is not None]
    except ValueError:
        return False
    return all(is_loopback(name) for name in (client.host, *names))


def _response(answer: Answer, *, without_body: bool = False) -> Response:
    body = b"" if without_body else answer.encoded()
    headers = dict(answer.headers)
    media = "application/json" if body else None
    return Response(body, answer.status, headers, media)
