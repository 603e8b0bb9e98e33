"""The server as a process of its own, or several of them, under uvicorn."""

from __future__ import annotations

import ctypes
import json
import logging
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from icefield import load_catalog
from icefield.errors import InvalidArgument, UnsafeCommit
from starlette.applications import Starlette

from icefield_rest_server.app import app
from icefield_rest_server.credentials import StaticCredentials
from icefield_rest_server.processes import shared_folder
from icefield_rest_server.roots import limit_to_roots
from icefield_rest_server.settings import Settings
from icefield_rest_server.tokens import Authenticator, JwtTokens, StaticTokens, is_loopback

_MMAP_THRESHOLD = -3
_OPTIONS = "ICEFIELD_REST_SERVER_OPTIONS"


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command line; worker processes get them through the environment, so they hold no secret.

    ``tokens`` and ``credentials`` are files; ``shared`` is the folder of the processes, made where there are several.
    """

    catalog: str | None = None
    host: str = "127.0.0.1"
    port: int = 8181
    workers: int = 1
    tokens: str | None = None
    jwks: str | None = None
    issuer: str | None = None
    audience: str | None = None
    credentials: str | None = None
    certificate: str | None = None
    key: str | None = None
    shared: str | None = None
    defaults: Mapping[str, str] = field(default_factory=dict)
    log: bool = True

    def authenticator(self) -> Authenticator | None:
        """Return the authenticator; None without options for one. Raises ``InvalidArgument`` for incomplete options."""
        for name in ("tokens", "jwks", "issuer", "audience", "credentials", "certificate", "key"):
            if getattr(self, name) == "":
                raise InvalidArgument(f"{name} is empty: give it a value, or leave it out")
        of_issuer = (self.jwks, self.issuer, self.audience)
        if any(of_issuer) and self.tokens:
            raise InvalidArgument("tokens come from a file or from an issuer: give one of the two")
        if any(of_issuer) and not all(of_issuer):
            raise InvalidArgument("tokens of an issuer need its keys and names: give jwks, issuer and audience")
        if (self.certificate is None) != (self.key is None):
            raise InvalidArgument("TLS needs a certificate and its key: give both")
        if self.tokens:
            return StaticTokens.from_file(self.tokens)
        if self.jwks and self.issuer and self.audience:
            return JwtTokens(self.jwks, issuer=self.issuer, audience=self.audience)
        return None

    def settings(self) -> Settings:
        """The settings of the application. Raises ``InvalidArgument``."""
        vendor = None
        if self.credentials:
            with open(self.credentials, encoding="utf-8") as source:
                vendor = StaticCredentials(json.load(source))
        return Settings(authenticator=self.authenticator(), vendor=vendor, defaults=self.defaults, shared=self.shared)


def serve(options: Options, begins: Callable[[], None] = lambda: None, **properties: Any) -> None:
    """Serve a catalog until the process is stopped; requests under way are answered first.

    ``begins`` is called once nothing is refused any more, before the address is opened.
    Raises ``InvalidArgument``, and ``UnsafeCommit`` where others could reach a server without authentication.
    """
    settings = check(options)
    catalog = load_catalog(options.catalog, **properties)
    limit_to_roots(catalog, settings)
    if options.workers > 1 and properties:
        raise InvalidArgument("several processes read the catalog from its configuration: give no properties here")
    begins()
    common: dict[str, Any] = {
        "host": options.host,
        "port": options.port,
        "log_level": "warning",
        "access_log": False,
        "server_header": False,
        "timeout_graceful_shutdown": 30,
        "limit_concurrency": 1000,
        "proxy_headers": False,  # a header would decide whether a request comes from this machine
        # Named, so that a process that begins answers its supervisor before it imports this.
        "http": "icefield_rest_server.wire:BoundedHttp",
        "timeout_worker_healthcheck": 60,
        "ssl_certfile": options.certificate,
        "ssl_keyfile": options.key,
    }
    if options.workers == 1:
        _give_memory_back()
        _log_accesses(options)
        uvicorn.run(app(catalog, settings), **common)
        return
    catalog.close()
    with shared_folder() if options.shared is None else nullcontext(options.shared) as shared:
        given = {**{name: getattr(options, name) for name in options.__dataclass_fields__}, "shared": str(shared)}
        os.environ[_OPTIONS] = json.dumps(given)
        uvicorn.run("icefield_rest_server.serving:of_environment", factory=True, workers=options.workers, **common)


def check(options: Options) -> Settings:
    """The settings of options that are safe. Raises ``InvalidArgument``, ``UnsafeCommit``."""
    if options.workers < 1:
        raise InvalidArgument(f"{options.workers} processes cannot be: give 1 or more")
    if options.authenticator() is None and not is_loopback(options.host):
        raise UnsafeCommit(
            f"a server on {options.host} would let everybody change the catalog: give tokens or an issuer of tokens, "
            "or serve on 127.0.0.1"
        )
    return options.settings()


def of_environment() -> Starlette:
    """Return the application of a worker process, with the options in the environment."""
    options = Options(**json.loads(os.environ[_OPTIONS]))
    _give_memory_back()
    _log_accesses(options)
    return app(load_catalog(options.catalog), options.settings())


def _give_memory_back() -> None:
    """Have large blocks of memory returned to the system when they are freed.

    The C library of Linux keeps them for each thread once one was freed: 120 answers of 10 MB left 1.3 GB, not 0.2.
    """
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, 1024 * 1024)


def _log_accesses(options: Options) -> None:
    if options.log:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(message)s"))
        logger = logging.getLogger("icefield_rest_server.access")
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logger.propagate = False
