"""The ASGI application: requests checked, recognised and limited, handled in threads, answered and counted."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from icefield import Catalog
from icefield.errors import IcefieldError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from icefield_rest_server.answers import Answer, Refused, error_answer
from icefield_rest_server.bodies import parsed
from icefield_rest_server.budget import BodyBudget
from icefield_rest_server.calls import Call
from icefield_rest_server.idempotency import IdempotencyKeys, IdempotencyStore
from icefield_rest_server.local_requests import is_local
from icefield_rest_server.observing import RequestMetrics, log_access
from icefield_rest_server.once import Once
from icefield_rest_server.pages import PageRequest, ReadAccess
from icefield_rest_server.processes import OneProcess, Processes
from icefield_rest_server.rights import check_allowed, named_in
from icefield_rest_server.roots import limit_to_roots
from icefield_rest_server.routes import Endpoint, Router, plain
from icefield_rest_server.settings import Settings
from icefield_rest_server.shared_keys import SharedKeys
from icefield_rest_server.state import State
from icefield_rest_server.tokens import Principal, basic_token, bearer_token
from icefield_rest_server.wording import worded

_log = logging.getLogger(__name__)

_METHODS = ["GET", "HEAD", "POST", "DELETE", "PUT", "PATCH", "OPTIONS"]
_MAX_PATH = 16 * 1024
_OF_RIGHTS = 30.0
_CONFIG = "/v1/config"
_PAGE = "showPage"
_PAGE_THREADS = 4
"""Pages have threads of their own: costly ones never hold up requests of the protocol."""

_IN_A_BROWSER = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",  # names of tables may look like a page
}
"""Headers of all answers: those of the protocol are shown in a browser, too, and an error in place of a page."""

_BESIDES = {_CONFIG: ["GET"], **{path: ["GET", "HEAD"] for path in ("/health/live", "/health/ready", "/metrics")}}
"""The methods of the paths outside the router."""


def app(catalog: Catalog, settings: Settings | None = None) -> Starlette:
    """The server of a catalog, to run or to mount.

    With an authenticator or an authorizer, the catalog only opens files below its ``location.allowed-roots`` from then
    on. Without that property, it only opens files below its warehouse and ``Settings.owned_folders``. Raises
    ``UnsafeCommit`` if it has neither roots nor a warehouse location.
    """
    settings = settings or Settings()
    limit_to_roots(catalog, settings)
    service = _CatalogService(catalog, settings)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        gc.collect()
        gc.freeze()  # the collector leaves the modules alone: a walk over them holds up the event loop for 50 ms
        yield
        service.close()

    routes = [
        Route("/health/live", service.live),
        Route("/health/ready", service.ready),
        Route("/metrics", service.show_metrics),
        Route("/{path:path}", service.serve, methods=_METHODS),
    ]
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: _not_served})


class _CatalogService:
    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self.settings = settings
        self.state = State(catalog, settings)
        self.router = Router(catalog.backend, signs=settings.signer is not None, offers=settings.protocol)
        self._opened = ExitStack()
        processes = (
            None if settings.shared is None else self._opened.enter_context(closing(Processes(Path(settings.shared))))
        )
        self.metrics = RequestMetrics(processes or OneProcess())
        self.once: Once | None = None
        if settings.idempotent:
            keys = settings.keys or self._keys(processes, settings.idempotency_seconds)
            self.once = Once(keys, self.state, settings.max_seconds / 2)
        self.pool = ThreadPoolExecutor(settings.threads, thread_name_prefix="icefield-rest")
        self.page_pool = ThreadPoolExecutor(_PAGE_THREADS, thread_name_prefix="icefield-pages")
        self.budget = BodyBudget(settings.max_bodies, settings.max_body)

    def _keys(self, processes: Processes | None, seconds: int) -> IdempotencyStore:
        """Return the store of answers by key: in memory, or shared by all processes of the server."""
        if processes is None:
            return IdempotencyKeys(seconds)
        return self._opened.enter_context(closing(SharedKeys(processes, seconds)))

    def close(self) -> None:
        """Finish the requests under way, and leave the other processes of the server."""
        self.pool.shutdown(wait=True)
        self.page_pool.shutdown(wait=True)
        self._opened.close()

    # -- endpoints outside the protocol -----------------------------------------------------------------------------

    async def live(self, request: Request) -> Response:
        """Answer liveness checks."""
        return PlainTextResponse("ok")

    async def ready(self, request: Request) -> Response:
        """Answer readiness checks: the catalog must respond."""
        try:
            await self._in_thread(lambda: self.state.catalog.backend.list_namespaces((), size=1), 10.0)
        except Exception as error:
            _log.warning("the catalog does not answer: %s", type(error).__name__)
            return PlainTextResponse("the catalog does not answer", 503)
        return PlainTextResponse("ok")

    async def show_metrics(self, request: Request) -> Response:
        """Answer with the metrics. Only authenticated clients may see them."""
        try:
            await self._who(request)
        except (Refused, IcefieldError) as error:
            return _response(error_answer(error))
        text = await self._in_thread(self.metrics.text, 10.0)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    # -- the protocol -----------------------------------------------------------------------------------------------

    async def serve(self, request: Request) -> Response:
        """Serve a request of the protocol."""
        began = time.perf_counter()
        self.metrics.began()
        operation, call, answer, gone = "unknown", None, None, Future[None]()
        path, held = _raw_path(request), 0
        try:
            page = self._page(request, path, gone)
            principal = await self._who(request, of_page=page is not None)
            endpoint, call = self._call(request, path, principal, page)
            operation, body = call.operation, list[bytes]()
            if endpoint is not None and endpoint.method == "POST":
                if self.settings.authorizer is not None:
                    await self._in_thread(partial(check_allowed, self.state, call, _of_path(call)), _OF_RIGHTS)
                body = await self._body(request, _largest(self.settings, endpoint), call)
                held = sum(map(len, body))
            pool = self.pool if page is None else self.page_pool
            with nullcontext() if page is None else _watched(request, gone):
                work = partial(self._done, endpoint, call, body)
                answer = await self._in_thread(work, self.settings.max_seconds, pool)
        except ClientDisconnect:
            answer = error_answer(Refused(400, "BadRequestException", "the request ended before its body did"))
        except (Refused, IcefieldError) as error:
            answer = error_answer(error)
        except Exception as error:
            _log.exception("%s failed", operation)
            answer = error_answer(error)
        finally:
            if call is not None:
                self.budget.give_back(call.who, held)
            seconds = time.perf_counter() - began
            self._count(operation, 499 if answer is None else answer.status, seconds, call)
        response = _response(answer, without_body=request.method == "HEAD")
        who = None if call is None or call.principal is None else call.principal.name
        target = "" if call is None else call.more.get("target", "")
        log_access(operation, request.method, path, answer.status, seconds, len(response.body), who, target)
        return response

    def _count(self, operation: str, status: int, seconds: float, call: Call | None) -> None:
        """Add a request to the metrics. An error is only logged: the request has its answer already."""
        try:
            self.metrics.ended(operation, status, seconds, None if call is None else call.more.get("report"))
        except Exception:
            _log.exception("%s is not counted", operation)

    def _page(self, request: Request, path: str, gone: Future[None]) -> Endpoint | None:
        """The endpoint of a page; None for a request of the protocol."""
        first, *parts = path.removeprefix("/").split("/")
        pages = self.settings.pages.get(first)
        if pages is None or request.method not in ("GET", "HEAD") or len(path) > _MAX_PATH:
            return None
        root = f"{request.scope.get('root_path', '')}/{first}"
        is_foreign = request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin")

        def show(state: State, call: Call) -> Answer:
            access = ReadAccess(state, call.principal)
            given = [plain(part) for part in parts if part]
            return pages(PageRequest(given, call.query, root, is_foreign, access, gone))

        return Endpoint(request.method, f"/{first}", _PAGE, show)

    def _call(
        self, request: Request, path: str, principal: Principal | None, page: Endpoint | None
    ) -> tuple[Endpoint | None, Call]:
        """A request without its body, and its endpoint; None for the configuration."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        query = dict(request.query_params)
        if page is not None:
            return page, Call(_PAGE, {}, query, headers, None, principal)
        if path == _CONFIG and request.method == "GET":
            return None, Call("getConfig", {}, query, headers, None, principal)
        found = self.router.find(request.method, path) if len(path) <= _MAX_PATH else None
        if found is None:
            raise self._unknown(request.method, path)
        endpoint, parts = found
        call = Call(endpoint.operation, parts, query, headers, None, principal)
        call.more["target"] = ".".join(name for each in _of_path(call) for name in each)  # refused here if it cannot be
        return endpoint, call

    def _unknown(self, method: str, path: str) -> Refused:
        if len(path) > _MAX_PATH:
            return Refused(414, "BadRequestException", f"the path has more than {_MAX_PATH:,} characters")
        of_pages = ["GET", "HEAD"] if path.split("/")[1] in self.settings.pages else None
        if methods := _BESIDES.get(path) or of_pages or self.router.methods(path):
            return Refused(
                405, "BadRequestException", f"this path has {', '.join(methods)}", {"Allow": ", ".join(methods)}
            )
        return Refused(404, "NotFoundException", "there is no such endpoint; GET /v1/config lists those that are")

    def _done(self, endpoint: Endpoint | None, call: Call, parts: list[bytes]) -> Answer:
        """The answer to a request, in a thread: its body is read, its rights are checked, and its handler called.

        A request with an idempotency key is done only once.
        """
        if endpoint is None:
            check_allowed(self.state, call, {call.target})
            return self._config()
        if endpoint.method == "POST":
            data = b"".join(parts)
            call = replace(call, body=parsed(data, self.settings.max_depth), digest=sha256(data).digest())
            call.more["target"] = ".".join(call.target)
            check_allowed(self.state, call, named_in(call))
        elif call.operation != _PAGE:  # a page asks for the rights of its parts
            check_allowed(self.state, call, {call.target})
        key = call.headers.get("idempotency-key")
        if key is None or self.once is None or not endpoint.changes:
            return _answered(endpoint, self.state, call)
        return self.once.answer(key, call, lambda: _answered(endpoint, self.state, call), commits=endpoint.commits)

    def _config(self) -> Answer:
        """Answer with the clients' configuration, and the endpoints that the catalog supports."""
        body: dict[str, Any] = {
            "defaults": dict(self.settings.defaults),
            "overrides": dict(self.settings.overrides),
            "endpoints": [f"{each.method} {each.template}" for each in self.router.endpoints],
        }
        if self.once is not None:
            body["idempotency-key-lifetime"] = f"PT{self.settings.idempotency_seconds}S"
        return Answer(body=body)

    async def _who(self, request: Request, *, of_page: bool = False) -> Principal | None:
        """Authenticate the client; None without an authenticator. Raises ``Refused`` for anybody without access.

        A browser asks its user for a name and a password: the client of a page may give the token as the password.
        """
        authenticator = self.settings.authenticator
        if authenticator is None:
            if not is_local(request):
                message = "this server has no authentication and answers programs of its own machine only"
                raise Refused(403, "ForbiddenException", message)
            return None
        stated = request.headers.get("authorization")
        token = bearer_token(stated) or (basic_token(stated) if of_page else None)
        found: Principal | None = None
        if token is not None:
            found = await self._in_thread(lambda: authenticator.principal(token), 30.0)
        if found is None:
            message = "give a valid bearer token in the header Authorization"
            scheme = 'Basic realm="Icefield: a token as the password", charset="UTF-8"' if of_page else "Bearer"
            raise Refused(401, "NotAuthorizedException", message, {"WWW-Authenticate": scheme})
        return found

    async def _body(self, request: Request, most: int, call: Call) -> list[bytes]:
        """The parts of the body; a body that arrived whole counts in the budget from now on.

        They are ``bytes``: Python joins those without the GIL, so that a thread can, while the loop has its turns.
        """
        stated = request.headers.get("content-length", "0")
        too_large = Refused(413, "BadRequestException", f"the body of {call.operation} has more than {most:,} bytes")
        if stated.isascii() and stated.isdigit() and int(stated[:20]) > most:
            raise too_large
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self.settings.max_seconds):
                async for part in request.stream():
                    if size + len(part) > most:
                        raise too_large
                    self.budget.take(call.who, len(part))
                    size += len(part)
                    parts.append(bytes(part))
        except BaseException as error:
            self.budget.give_back(call.who, size)
            if isinstance(error, TimeoutError):
                raise Refused(408, "BadRequestException", "the body did not come in time") from error
            raise
        return parts

    async def _in_thread(self, work: Callable[[], Any], seconds: float, pool: Executor | None = None) -> Any:
        """Run ``work`` in a thread. It continues after the time-out: its commit may become visible later."""
        future = asyncio.get_running_loop().run_in_executor(pool or self.pool, work)
        try:
            return await asyncio.wait_for(asyncio.shield(future), seconds)
        except TimeoutError as error:
            message = f"the request was not done after {seconds:g} s; whether it will be is not known"
            raise Refused(504, "ServiceFailureException", message) from error


@contextmanager
def _watched(request: Request, gone: Future[None]) -> Iterator[None]:
    """Set ``gone`` when the client closes its connection within the context, or when the context ends."""

    async def leave() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    leaving = asyncio.get_running_loop().create_task(leave())
    leaving.add_done_callback(lambda _: gone.set_result(None))
    try:
        yield
    finally:
        leaving.cancel()


async def _not_served(request: Request, error: Exception) -> Response:
    """Answer requests that Starlette itself rejects: targets that are no path, and methods outside the protocol."""
    assert isinstance(error, HTTPException)
    kind = "NotFoundException" if error.status_code == 404 else "BadRequestException"
    answer = error_answer(Refused(error.status_code, kind, "there is no such endpoint", error.headers))
    return _response(answer, without_body=request.method == "HEAD")


def _answered(endpoint: Endpoint, state: State, call: Call) -> Answer:
    """The answer of a handler, or an error of the kernel as an answer; it is encoded here, in the thread."""
    try:
        answer = endpoint.handler(state, call)
    except Refused as error:
        answer = error_answer(error)
    except IcefieldError as error:
        answer = error_answer(error, worded(error, call), nothing_done=endpoint.commits)
    return Answer(answer.status, None if answer.body is None else answer.encoded(), answer.headers)


def _of_path(call: Call) -> tuple[tuple[str, ...], ...]:
    """Return the name in the path of a request, before its body is read."""
    return () if call.operation == "createNamespace" else (call.target,)


def _largest(settings: Settings, endpoint: Endpoint) -> int:
    """The most bytes that the body of a request has: many where it holds metadata, few elsewhere."""
    return settings.max_body if endpoint.holds_metadata else min(settings.max_body, settings.max_small_body)


def _raw_path(request: Request) -> str:
    """The path as it was sent, below where the application is mounted."""
    raw = request.scope.get("raw_path")
    path: str = raw.decode("latin-1") if isinstance(raw, bytes) else request.scope["path"]
    path = path.partition("?")[0]
    root = request.scope.get("root_path", "")
    return path.removeprefix(root) if root else path


def _response(answer: Answer, *, without_body: bool = False) -> Response:
    body = b"" if without_body else answer.encoded()
    headers = {**_IN_A_BROWSER, **answer.headers}
    media = "application/json" if body and "Content-Type" not in answer.headers else None
    return Response(body, answer.status, headers, media)
