"""The server as a process of its own, or several of them, under uvicorn."""

from __future__ import annotations

import ctypes
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import uvicorn
from icefield import Plugins, catalog_properties, default_catalog_name, load_catalog
from icefield.errors import InvalidArgument, UnsafeCommit
from starlette.applications import Starlette
from uvicorn.supervisors import Multiprocess

from icefield_rest_server.application import app
from icefield_rest_server.pages import installed_pages
from icefield_rest_server.processes import shared_folder
from icefield_rest_server.providers import OWN, only_reading
from icefield_rest_server.roots import limit_to_roots
from icefield_rest_server.settings import Authorizer, Settings
from icefield_rest_server.tokens import is_loopback

_MMAP_THRESHOLD = -3
_OPTIONS = "ICEFIELD_REST_SERVER_OPTIONS"
_NONE: Mapping[str, str] = {}
_HOOKS = {
    "authenticator": ("icefield_authenticators", "authenticator of the REST server"),
    "authorizer": ("icefield_authorizers", "authorizer of the REST server"),
    "vendor": ("icefield_credential_vendors", "vendor of credentials of the REST server"),
}
_PROPERTIES = (*_HOOKS, "tokens", "jwks", "issuer", "audience", "credentials")
"""The options that are also properties of the catalog."""

_KNOWN = {f"{OWN}{name}" for name in (*_PROPERTIES, "sts.role-arn", "sts.region")}


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command line; worker processes get them through the environment, so they hold no secret.

    ``authenticator``, ``authorizer`` and ``vendor`` are names that plugins provide. ``tokens`` and ``credentials`` are
    files; ``shared`` is the folder of the processes, made where there are several. ``ui`` adds the pages of plugins;
    without ``protocol`` there is nothing else. With ``read_only``, an authorizer only decides on the operations that
    change nothing, and all others are refused.
    """

    catalog: str | None = None
    host: str = "127.0.0.1"
    port: int = 8181
    workers: int = 1
    authenticator: str | None = None
    authorizer: str | None = None
    read_only: bool = False
    vendor: str | None = None
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
    ui: bool = False
    protocol: bool = True

    def properties(self) -> dict[str, str]:
        """The options as properties, such as ``rest-server.tokens``."""
        return {f"{OWN}{name}": value for name in _PROPERTIES if (value := getattr(self, name)) is not None}

    def settings(self, properties: Mapping[str, str] = _NONE, plugins: Plugins | None = None) -> Settings:
        """The settings of the application, for a catalog with these properties; the options win over them.

        Raises ``InvalidArgument``, and ``MissingPlugin`` for an unknown authenticator, authorizer or vendor.
        """
        for name in (*_PROPERTIES, "certificate", "key"):
            if getattr(self, name) == "":
                raise InvalidArgument(f"{name} is empty: give it a value, or leave it out")
        if (self.certificate is None) != (self.key is None):
            raise InvalidArgument("TLS needs a certificate and its key: give both")
        given = {**properties, **self.properties()}
        for key in given:
            if key.startswith(OWN) and key not in _KNOWN:  # a misspelt authorizer would let everybody in
                raise InvalidArgument(f"the property {key} is not known: give one of {', '.join(sorted(_KNOWN))}")
        plugins = plugins or Plugins.installed()
        authorizer: Authorizer | None = _made(plugins, "authorizer", given.get(f"{OWN}authorizer"), given)
        return Settings(
            authenticator=_made(plugins, "authenticator", _authenticator_of(given), given),
            authorizer=only_reading(authorizer) if self.read_only else authorizer,
            vendor=_made(plugins, "vendor", _vendor_of(given), given),
            defaults=self.defaults,
            shared=self.shared,
            pages=installed_pages(plugins) if self.ui else {},
            protocol=self.protocol,
        )


def _made(plugins: Plugins, kind: str, name: str | None, properties: Mapping[str, str]) -> Any:
    """The authenticator, authorizer or vendor of a name; None without a name."""
    if name is None:
        return None
    hook, noun = _HOOKS[kind]
    return plugins.provided(hook, name, noun)(properties)


def _authenticator_of(given: Mapping[str, str]) -> str | None:
    """The name of the authenticator: as stated, or the one for the given tokens or issuer."""
    of_issuer = any(f"{OWN}{name}" in given for name in ("jwks", "issuer", "audience"))
    has_tokens = f"{OWN}tokens" in given
    if of_issuer and has_tokens:
        raise InvalidArgument("tokens come from a file or from an issuer: give one of the two")
    return given.get(f"{OWN}authenticator", "jwt" if of_issuer else "tokens" if has_tokens else None)


def _vendor_of(given: Mapping[str, str]) -> str | None:
    """The name of the vendor: as stated, or the one for the given file of credentials."""
    return given.get(f"{OWN}vendor", "static" if f"{OWN}credentials" in given else None)


def serve(options: Options, begins: Callable[[], None] = lambda: None, **properties: Any) -> None:
    """Serve a catalog until the process is stopped; requests under way are answered first.

    ``begins`` is called as soon as a client can connect.
    Raises ``InvalidArgument``, and ``UnsafeCommit`` where others could reach a server without authentication.
    """
    settings = check(options, **properties)
    catalog = load_catalog(options.catalog, **properties)
    limit_to_roots(catalog, settings)
    if options.workers > 1 and properties:
        raise InvalidArgument("several processes read the catalog from its configuration: give no properties here")
    common: dict[str, Any] = {
        "host": options.host,
        "port": options.port,
        "log_level": "warning",
        "access_log": False,
        "server_header": False,
        "timeout_graceful_shutdown": 30,
        "limit_concurrency": 1000,
        "proxy_headers": False,  # a header would decide whether a request comes from this machine
        # The class is given by its name, so that a new process answers its supervisor before it imports this module.
        "http": "icefield_rest_server.wire:BoundedHttp",
        "timeout_worker_healthcheck": 60,
        "ssl_certfile": options.certificate,
        "ssl_keyfile": options.key,
    }
    if options.workers == 1:
        _give_memory_back()
        _log_accesses(options)
        run(app(catalog, settings), begins, **common)
        return
    catalog.close()
    with shared_folder() if options.shared is None else nullcontext(options.shared) as shared:
        given = {**{name: getattr(options, name) for name in options.__dataclass_fields__}, "shared": str(shared)}
        os.environ[_OPTIONS] = json.dumps(given)
        run("icefield_rest_server.serving:of_environment", begins, factory=True, workers=options.workers, **common)


class _AnnouncedServer(uvicorn.Server):
    """A server that calls a function when it listens."""

    def __init__(self, config: uvicorn.Config, begins: Callable[[], None]) -> None:
        super().__init__(config)
        self._begins = begins

    async def startup(self, sockets: list[Any] | None = None) -> None:
        await super().startup(sockets)
        self._begins()


def run(application: Starlette | str, begins: Callable[[], None], **options: Any) -> None:
    """Run an application under uvicorn, in one process or in several; ``begins`` is called when it listens.

    Raises ``InvalidArgument`` if the address is taken, or is none of this machine.
    """
    config = uvicorn.Config(application, **options)
    with suppress(KeyboardInterrupt), _address_faults(config):
        if config.workers == 1:
            _AnnouncedServer(config, begins).run()
            return
        with config.bind_socket() as address:
            address.listen(config.backlog)  # clients wait until a process answers
            begins()
            # Versions of uvicorn differ in whether the function of a process is given, too.
            takes_target = "target" in signature(Multiprocess).parameters
            target = [uvicorn.Server(config).run] if takes_target else []
            supervisor: Any = Multiprocess
            supervisor(config, *target, [address]).run()


@contextmanager
def _address_faults(config: uvicorn.Config) -> Iterator[None]:
    """Raise the error for which uvicorn would end the process with a status of its own."""
    try:
        yield
    except SystemExit as ended:
        if not isinstance(fault := ended.__context__, OSError):
            raise
        raise InvalidArgument(
            f"no server can listen on {config.host}:{config.port}: {fault.strerror}; give another host or port"
        ) from fault


def check(options: Options, **properties: Any) -> Settings:
    """The settings for a catalog with these properties, if they are safe.

    Raises ``InvalidArgument``, ``MissingPlugin``, ``UnsafeCommit``.
    """
    if options.workers < 1:
        raise InvalidArgument(f"{options.workers} processes cannot be: give 1 or more")
    settings = options.settings(catalog_properties(options.catalog or default_catalog_name(), properties))
    if settings.authenticator is None and not is_loopback(options.host):
        raise UnsafeCommit(
            f"a server on {options.host} would let everybody change the catalog: give tokens or an issuer of tokens, "
            "or serve on 127.0.0.1"
        )
    return settings


def of_environment() -> Starlette:
    """Return the application of a worker process, with the options in the environment."""
    options = Options(**json.loads(os.environ[_OPTIONS]))
    _give_memory_back()
    _log_accesses(options)
    return app(load_catalog(options.catalog), check(options))


def _give_memory_back() -> None:
    """Make the C library return large blocks of memory to the system when they are freed.

    By default, the C library of Linux keeps freed blocks for each thread: after 120 answers of 10 MB, it held 1.3 GB
    instead of 0.2.
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
