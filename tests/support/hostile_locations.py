"""Hostile locations by the thousand, opened in a process of their own that records every name, connection and file.

Each file system is configured with an endpoint on the loopback address and with planted secrets. Every location is made
from its number, so that a failure can be repeated. ``fuzz`` raises ``AssertionError`` when

- any code in this process resolves a name or makes a connection other than the configured one;
- the path that arrives at the endpoint differs from the checked path in any character;
- an error is not one of Icefield's, or shows a secret; a file outside the allowed roots is opened.
"""

from __future__ import annotations

import json
import logging
import pickle
import random
import subprocess
import sys
import tempfile
import traceback
import types
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from fsspec.implementations.http import HTTPFileSystem
from icefield import Plugins, Provider, hookimpl
from icefield.abc import FileSystem, PutMode
from icefield.errors import IcefieldError, LocationRefused
from icefield.storage import FileIO
from icefield.toolkit import FsspecFileSystem, split_location
from icefield_hdfs import native
from icefield_hdfs import web as web_client
from icefield_testing import RecordingServer
from loopback import Watch

SECRET = "planted-secret-7351"
AZURE = "account.dfs.core.windows.net"
_SECONDS = 3_000
_QUICK = {f"{prefix}.retry.num-retries": "0" for prefix in ("s3", "gcs", "adls")}


class Store(NamedTuple):
    """A file system under attack: its configuration, and the request path for a location, unquoted."""

    schemes: tuple[str, ...]
    authorities: tuple[str, ...]
    """Authorities of the file system's own."""
    properties: Mapping[str, str]
    sent: Callable[[str, str], str] | None = None
    """The path of a request for an authority and a path; None where nothing is sent over HTTP."""
    names: tuple[str, ...] = ()
    """The names that may be resolved."""
    folder: str = ""
    """The prefix of each path."""


def stores(port: int, folder: str) -> dict[str, Store]:
    """Every file system, with its endpoint at a port."""
    here = f"127.0.0.1:{port}"
    s3 = {
        "s3.endpoint": f"http://{here}",
        "s3.region": "us-east-1",
        "s3.access-key-id": "test",
        "s3.secret-access-key": SECRET,
        "s3.session-token": SECRET,
    }
    azure = {"adls.sas-token": f"sv=1&sig={SECRET}", "adls.account-name": "account"}
    own = {"adls.account-host": f"{here}/account", "adls.blob-storage-scheme": "http"}
    blobs = ("abfss", "abfs", "wasb", "wasbs", "az")
    buckets = ("bucket", "bucket.with.dots", "Bucket_1")
    return {
        "s3": Store(("s3", "s3a", "s3n"), buckets, s3, lambda bucket, key: f"/{bucket}/{key}"),
        "gcs": Store(
            ("gs", "gcs"),
            buckets,
            {"gcs.service.host": f"http://{here}", "gcs.oauth2.token": SECRET},
            lambda bucket, key: f"/b/{bucket}/o/{key}",
        ),
        "azurite": Store(
            blobs,
            ("container", f"container@{AZURE}", f"$logs@{AZURE}", "container@account.blob.core.windows.net"),
            {**azure, **own},
            lambda container, path: f"/account/{container.partition('@')[0]}/{path}",
        ),
        "azure": Store(
            blobs,
            ("container", f"container@{AZURE}"),
            {"adls.token": SECRET, "warehouse": f"abfss://c@{AZURE}/wh", "adls.account-name": "account"},
            names=("account.blob.core.windows.net",),
        ),
        "hdfs": Store(
            ("hdfs",), ("", here), {"hdfs.host": here, "hdfs.kerberos-principal": SECRET, "hdfs.timeout": "5"}
        ),
        "webhdfs": Store(
            ("webhdfs", "swebhdfs"),
            ("", here),
            {"webhdfs.host": "127.0.0.1", "webhdfs.port": str(port), "webhdfs.token": SECRET, "webhdfs.timeout": "5"},
            lambda _, path: f"/webhdfs/v1/{path}",
        ),
        "file": Store(
            ("file", ""), ("", "localhost"), {"location.allowed-roots": f"file://{folder}/root"}, folder=folder
        ),
        "memory": Store(("memory",), ("here", ""), {"location.allowed-roots": "memory://here/root, memory:///root"}),
        "fsspec": Store(
            ("http",),
            (here,),
            {"warehouse": f"http://{here}/wh", "web.token": SECRET},
            lambda _, path: unquote(f"/{path}"),
        ),
    }


class Web(FsspecFileSystem):
    """A plugin over fsspec's file system of URLs, with a token for each request."""

    def connect(self) -> Any:
        return HTTPFileSystem(client_kwargs={"headers": {"Authorization": f"Bearer {self.properties['web.token']}"}})


class Trusting(Web):
    """A file system that is broken on purpose: it passes each location on unchanged."""

    def path(self, location: str) -> str:
        return location


class Hooks:
    """Of a plugin for ``http``."""

    @hookimpl
    def icefield_file_systems(self) -> list[Provider]:
        return [Provider("http", "hostile_web:Web")]


def plugins(web: str) -> Plugins:
    """The installed plugins, and one for ``http``."""
    module = types.ModuleType("hostile_web")
    module.Web = {"Web": Web, "Trusting": Trusting}[web]  # type: ignore[attr-defined]
    sys.modules["hostile_web"] = module

    return Plugins.installed(extra=[Hooks()])


# -- locations made from a number

_TOKENS = [
    "#", "?", "@", ":", "%", "%2f", "%23", "%40", "%00", "%2e%2e", "\\", " ", "\t", "\n", "\r\n", "\0", "\x7f",
    "\xa0", "\u3002", "\uff0f", "\uff20", "\u2100", "\u200b", "\u2024", "\ud800", "\u017f", "\u212a", "..", ".", "-",
    "_", "~", "$", "[", "]", "[::1]", "::1", "::ffff:127.0.0.1", "0x7f.1", "2130706433", "localhost", "evil.example",
    "user:pass@", ":443", ":0", ":65536", ":443#", "?.core.windows.net", "#.core.windows.net", ".core.windows.net",
    ".amazonaws.com", "@evil.example", ".evil.example", "evil.example/", "/evil.example", "//evil.example", "http://evil.example/",
    "::", "arn:aws:s3:eu-1:123456789012:accesspoint:",
    "arn:aws:s3-outposts:eu-1:123456789012:outpost:op-1:accesspoint:x",
    "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmno000000000000000000e0b0--op-s3", "--x-s3", ".mrap", ";", ",",
    "&", "=", "*", "{}", "<>", "|", "^", "`", "'", '"', "ü", "日本", "x" * 70, "",
]  # fmt: skip
_PATHS = [
    "root/file", "wh/db/t/metadata/v1.metadata.json", "root/../outside/file", "root/./file", "root//file",
    "//root/file", "root/%2e%2e/file", "root/..%2ffile", "..", ".", "../..", "root/..", "root\\..\\outside\\file",
    "root/a b", "root/ü", "root/a?b=c#d", "root/a\r\nHost: evil.example", "root/@evil.example/x", "root/..;/x",
    "root/.../x", "root/x/.",
    "root/link/file", "%2e%2e/x", "?x", "#x", "root/\ud800", "root/a%20b", "root/a+b", "root/~x", "root/p=1%2F..%2F2/f",
    "root/x::http://evil.example/y", "root/[x]*?", "root/x?versionId=1", "root/" + "deep/" * 40 + "x", "",
]  # fmt: skip


def location_of(store: Store, foreign: int, rng: random.Random) -> str:
    """A random location, hostile or not: both kinds must be handled correctly."""
    scheme = rng.choice(store.schemes)
    authority = rng.choice(store.authorities)
    strangers = [f"127.0.0.1:{foreign}", f"localhost:{foreign}", f"[::1]:{foreign}", "evil.example", "evil.example:443"]
    for _ in range(rng.choice((0, 0, 1, 1, 1, 2, 3))):
        token = rng.choice([*_TOKENS, *strangers, *strangers])
        match rng.randrange(6):
            case 0:
                authority = token + authority
            case 1:
                authority += token
            case 2:
                at = rng.randrange(len(authority) + 1)
                authority = authority[:at] + token + authority[at:]
            case 3:
                head, at_sign, _ = authority.partition("@")
                authority = f"{head}@{token}" if at_sign or rng.random() < 0.5 else token
            case 4:
                authority = f"{rng.choice(strangers)}{rng.choice('#?@/%&;,')}{authority}"
            case _:
                authority = f"{authority}{rng.choice('#?@/%&;,')}{rng.choice(strangers)}"
    path = rng.choice(_PATHS)
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        at = rng.randrange(len(path) + 1)
        path = path[:at] + rng.choice(_TOKENS) + path[at:]
    if rng.random() < 0.05:
        scheme = rng.choice((scheme.upper(), f" {scheme}", f"{scheme}+x", scheme.replace("s", "\u017f"), ""))
    slashes = rng.choice(("://",) * 12 + (":/", ":", ":///", "://///", ":\\\\", "//"))
    path = f"{store.folder}/{path}".lstrip("/")
    return f"{scheme}{slashes}{authority}/{path}" if scheme else f"/{authority}/{path}"


# -- the process


def fuzz(count: int, *, seed: int = 0, only: str = "", web: str = "Web") -> dict[str, dict[str, int]]:
    """Open locations by their numbers: how many were ``refused``, ``sent`` or only ``accepted``, by file system."""
    command = [sys.executable, "-X", "faulthandler", str(Path(__file__)), str(seed), str(count), only, web]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False, errors="replace")
    assert done.returncode == 0, done.stderr[-3_000:]
    found: dict[str, dict[str, int]] = json.loads(done.stdout.splitlines()[-1])
    return found


class Attack:
    """The state of an attacking process: its servers, its watch, and counts of the results for locations."""

    def __init__(self, folder: str, web: str) -> None:
        self.here, self.there = RecordingServer(), RecordingServer()
        self.stores = stores(self.here.port, folder)
        self.watch = Watch({("127.0.0.1", self.here.port)}, f"{folder}/outside")
        self.plugins = plugins(web)
        self.counts: dict[str, Counter[str]] = {name: Counter() for name in self.stores}
        self.named: list[str] = []
        # hdfs-native connects outside of Python, where the watch cannot see it: record the requested name nodes.
        native.Connection = self._connect  # type: ignore[assignment,misc]
        web_client._RETRIES = 0  # type: ignore[misc]

    def _connect(self, url: str, *more: Any, **options: Any) -> Any:
        self.named.append(url)
        raise RuntimeError('InvalidArgument("nobody is there")')

    def run(self, number: int, name: str) -> None:
        """Open the location of a number."""
        rng = random.Random(number)
        store = self.stores[name]
        location = location_of(store, self.there.port, rng)
        io = pickle.loads(pickle.dumps(FileIO(self.plugins, {**_QUICK, **store.properties})))
        self.here.forget()
        self.watch.forget(store.names)
        self.named.clear()
        through = rng.random() < 0.7
        step = rng.randrange(len(_STEPS))
        try:
            outcome = _STEPS[step](io if through else _system(self.plugins, name, store), location)
        except LocationRefused as error:
            outcome = "refused"
            self._check_error(error)
        except IcefieldError as error:
            outcome = "accepted"
            self._check_error(error)
        seen = self.here.requests()
        if seen or self.watch.names or self.named:
            assert outcome != "refused", f"it was refused, and this was asked: {seen or self.watch.names}"
            outcome = "sent"
        self.counts[name][outcome] += 1
        self._check_targets(store, location, seen, step)

    def _check_error(self, error: Exception) -> None:
        shown = f"{error!r}{''.join(traceback.format_exception(error))}"
        assert SECRET not in shown, "an error shows a secret"

    def _check_targets(self, store: Store, location: str, seen: list[tuple[str, bytes]], step: int) -> None:
        assert not self.there.received(), "bytes arrived at another host"
        assert not self.watch.violations, f"reached for: {self.watch.violations}"
        assert set(self.named) <= {f"hdfs://127.0.0.1:{self.here.port}"}, f"hdfs-native was asked for {self.named}"
        if store.sent is None or step >= _WHOLE_PATHS:
            return
        for target, data in seen:
            if data.startswith(b"\x16"):  # TLS
                continue
            if target == f"/{split_location(location).authority}?session":  # asked first for a directory bucket of S3
                continue
            _, authority, path = split_location(location)
            sent = unquote(target.partition("?")[0], errors="surrogatepass")
            assert sent.endswith(store.sent(authority, path)), f"sent as {target}"


def _system(found: Plugins, name: str, store: Store) -> FileSystem:
    if name in ("file", "memory"):  # their bounds are the file IO's
        return FileIO(found, store.properties)  # type: ignore[return-value]
    return found.file_system(store.schemes[0])({**_QUICK, **store.properties})


def _open(system: Any, location: str) -> str:
    source = system.open_input(location)
    with suppress(ValueError):
        assert SECRET.encode() not in source.read(1_000), "a file outside the allowed roots was read"
    source.close()
    return "accepted"


def _ask(method: str, system: Any, location: str) -> str:
    getattr(system, method)(location)
    return "accepted"


def _put(system: Any, location: str) -> str:
    system.put(location, b"x", PutMode.OVERWRITE)
    return "accepted"


def _list(system: Any, location: str) -> str:
    next(iter(system.list_files(location)), None)
    return "accepted"


def _delete(system: Any, location: str) -> str:
    system.delete_many([location, f"{location}2"])
    return "accepted"


# The first steps send the path of the location as the path of each request.
_STEPS: list[Callable[[Any, str], str]] = [
    _open,
    partial(_ask, "stat"),
    _open,
    partial(_ask, "stat"),
    _list,
    _put,
    _delete,
]
_WHOLE_PATHS = 4


def _main(seed: int, count: int, only: str, web: str) -> None:
    logging.disable()
    with tempfile.TemporaryDirectory() as folder:
        for part in ("root", "outside"):
            (Path(folder) / part).mkdir()
            (Path(folder) / part / "file").write_text(SECRET if part == "outside" else "x")
        (Path(folder) / "root" / "link").symlink_to(Path(folder) / "outside")
        attack = Attack(folder, web)
        names = only.split(",") if only else sorted(attack.stores)
        attack.watch.begin()
        for number in range(seed, seed + count):
            name = names[number % len(names)]
            try:
                attack.run(number, name)
            except BaseException:
                location = location_of(attack.stores[name], attack.there.port, random.Random(number))
                print(f"number {number}, {name}: {location!a}", file=sys.stderr)
                raise
        print(json.dumps(attack.counts))
    sys.stdout.flush()


if __name__ == "__main__":
    _main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4])
