"""No plugin shows a credential in an error, a log line, a ``repr`` or a table's file.

The tests take the properties from the code and pages of the installed plugins, so a new plugin or property needs no
change here. The addresses of stores are addresses at which no server answers.
"""

from __future__ import annotations

import ast
import base64
import json
import logging
import pickle
import re
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from icefield import Plugins, load_catalog, open_table
from icefield.abc import FileSystemAbility, PutMode
from icefield.base.secrets import holds_credential
from icefield.builtin.directory import DirectoryBackend
from icefield.errors import IcefieldError, InvalidArgument
from icefield.storage import FileIO
from icefield_cli.main import main
from icefield_maintenance.doctor import examine
from repository import ROOT

MARK = "planted7351"
_NAME = re.compile(r"[a-z][a-z0-9]*(?:\.[a-z0-9][a-z0-9_-]*)+")
_FAMILIES = ("s3", "client", "gcs", "adls", "hdfs", "webhdfs", "dynamodb", "glue", "hive", "sql")
_HINT = re.compile(rf"(?:{'|'.join(_FAMILIES)})\.[a-z0-9]")
NOWHERE = "127.0.0.1:1"
# The address of each store, at which no server answers.
ADDRESSES = {
    "s3.endpoint": f"http://{NOWHERE}",
    "s3.region": "us-east-1",
    "gcs.service.host": f"http://{NOWHERE}",
    "adls.account-name": "account",
    "adls.account-host": f"{NOWHERE}/account",
    "adls.blob-storage-scheme": "http",
    "hdfs.host": "127.0.0.1",
    "hdfs.port": "1",
    "hdfs.timeout": "1",
    "webhdfs.host": "127.0.0.1",
    "webhdfs.port": "1",
    "webhdfs.timeout": "1",
    "hadoop.dfs.client.retry.max.attempts": "0",
    "dynamodb.endpoint": f"http://{NOWHERE}",
    "dynamodb.region": "us-east-1",
    "glue.endpoint": f"http://{NOWHERE}",
    "glue.region": "us-east-1",
    "glue.max-retries": "0",
    "lock.table": "locks",
    **{f"{prefix}.retry.num-retries": "0" for prefix in ("s3", "gcs", "adls", "hdfs", "webhdfs")},
    **{f"{prefix}.connect-timeout": "1" for prefix in ("s3", "gcs", "adls")},
}
# A secret key of the user needs the id of the key.
BESIDES = {
    "s3.secret-access-key": {"s3.access-key-id": "key-id"},
    "s3.session-token": {"s3.access-key-id": "key-id", "s3.secret-access-key": "xxxxxxxx"},
    "client.secret-access-key": {"client.access-key-id": "key-id"},
    "client.session-token": {"client.access-key-id": "key-id", "client.secret-access-key": "xxxxxxxx"},
    "dynamodb.secret-access-key": {"dynamodb.access-key-id": "key-id"},
    "dynamodb.session-token": {"dynamodb.access-key-id": "key-id", "dynamodb.secret-access-key": "xxxxxxxx"},
    "adls.client-secret": {"adls.client-id": "client", "adls.tenant-id": "tenant"},
}


@cache
def credentials() -> list[str]:
    """The properties that hold credentials, according to the code and the pages of plugins."""
    found = set()
    for path in (*ROOT.glob("plugins/*/src/**/*.py"), *ROOT.glob("framework/src/**/*.py")):
        code = path.read_text("utf-8")
        if _HINT.search(code):  # most modules name no such property: parsing them all takes seconds
            for node in ast.walk(ast.parse(code)):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.add(node.value)
    for path in (*ROOT.glob("plugins/*/README.md"), *ROOT.glob("docs/guide/*.md")):
        found |= set(re.findall(r"`([^`\s]+)`", path.read_text("utf-8")))
    return sorted(name for name in found if _NAME.fullmatch(name) and holds_credential(name) and _is_property(name))


def _is_property(name: str) -> bool:
    return name.split(".")[0] in _FAMILIES


def planted(name: str) -> list[dict[str, str]]:
    """The property with a credential in each of its usual forms."""
    secret = f"{MARK}-{name}"
    forms = [secret]
    if "key" in name:
        forms.append(base64.b64encode(secret.encode()).decode())
    if "sas" in name or name.endswith("credential"):
        forms.append(f"sv=2024-01-01&sig={secret}")
    if "connection-string" in name:
        forms.append(
            f"DefaultEndpointsProtocol=http;AccountName=account;AccountKey={_plain(secret)};"
            f"BlobEndpoint=http://{NOWHERE}/account"
        )
    if name == "gcs.oauth2.token":
        forms.append(json.dumps({"type": "service_account", "private_key": secret, "client_email": "me@here"}))
    return [{**ADDRESSES, **BESIDES.get(name, {}), name: form} for form in forms]


def _plain(secret: str) -> str:
    return base64.b64encode(secret.encode()).decode()


class Seen:
    """What was shown so far."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def add(self, *values: object) -> None:
        for value in values:
            self.texts += [repr(value), str(value), f"{value}"]

    @contextmanager
    def errors(self, kinds: type[BaseException] | tuple[type[BaseException], ...] = Exception) -> Iterator[None]:
        """Catch errors, and keep all texts and data in them."""
        try:
            yield
        except kinds as error:
            self.texts += traceback.format_exception(error)
            self.add(error, getattr(error, "data", None), error.args, getattr(error, "__notes__", None))
            again = pickle.loads(pickle.dumps(error)) if isinstance(error, IcefieldError) else None
            self.add(again)

    def check(self, properties: Mapping[str, str]) -> None:
        """Check that no kept text contains a credential."""
        wanted = {MARK, base64.b64encode(MARK.encode()).decode()[:10]}
        for text in self.texts:
            for secret in wanted:
                at = text.find(secret)
                assert at < 0, f"a credential is shown: {text[max(0, at - 400) : at + 60]!r}"
        assert self.texts


@pytest.fixture
def seen(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Iterator[Seen]:
    """All texts that a test shows: added texts, log records of any level, warnings and printed output."""
    caplog.set_level(logging.DEBUG)
    found = Seen()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        yield found
    for record in caplog.records:
        found.texts.append(f"{record.name} {record.getMessage()} {record.args!r}")
        if record.exc_info:
            found.texts += traceback.format_exception(*record.exc_info)
    found.texts += [str(warning.message) for warning in warned]
    found.texts += [*capfd.readouterr()]
    found.check({})


def used(system: Any, seen: Seen, root: str) -> None:
    """Every operation of a file system, each of which may fail."""
    seen.add(system, pickle.loads(pickle.dumps(system)))
    actions: list[Callable[[], Any]] = [
        lambda: system.credentials(f"{root}/a"),
        lambda: system.put(f"{root}/a", b"x", PutMode.CREATE),
        lambda: system.open_input(f"{root}/a").read(),
        lambda: _write(system, f"{root}/b"),
        lambda: system.stat(f"{root}/a"),
        lambda: list(system.list_files(root)) if FileSystemAbility.LIST in system.abilities else None,
        lambda: system.rename(f"{root}/a", f"{root}/c"),
        lambda: system.delete_many([f"{root}/a", f"{root}/b"]),
    ]
    for action in actions:
        with seen.errors(IcefieldError):
            seen.add(action())
    for inner in ("_fs", "_clients", "fs"):
        with seen.errors():
            seen.add(getattr(system, inner, None))


def _write(system: Any, location: str) -> None:
    with system.open_output(location) as sink:
        sink.write(b"x")


def schemes_of(name: str) -> list[str]:
    """The schemes whose file systems the property may be for."""
    kinds = {
        "s3": ("s3",),
        "client": ("s3",),
        "gcs": ("gs",),
        "adls": ("az", "abfss"),
        "hdfs": ("hdfs",),
        "webhdfs": ("webhdfs",),
    }
    installed = Plugins.installed().names("file-systems")
    return [scheme for scheme in kinds.get(name.split(".")[0], ()) if scheme in installed]


def test_the_properties_that_hold_credentials_are_found() -> None:
    assert set(credentials()) >= {
        "adls.account-key",
        "adls.client-secret",
        "adls.connection-string",
        "adls.sas-token",
        "dynamodb.secret-access-key",
        "gcs.oauth2.token",
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", credentials())
def test_no_file_system_shows_a_credential(name: str, seen: Seen) -> None:
    for scheme in schemes_of(name):
        kind = Plugins.installed().file_system(scheme)
        place = "container@account.dfs.core.windows.net" if scheme == "abfss" else "bucket"
        if "hdfs" in scheme:
            place = NOWHERE
        for properties in planted(name):
            with seen.errors(IcefieldError):
                used(kind(properties), seen, f"{scheme}://{place}/root")
    seen.add("done")


@pytest.mark.parametrize("kind", Plugins.installed().names("file-systems"))
def test_a_file_system_that_is_given_all_of_them_shows_none(kind: str, seen: Seen, tmp_path: Path) -> None:
    properties = {**ADDRESSES, **{name: planted(name)[0][name] for name in credentials()}}
    system = Plugins.installed().file_system(kind)(properties)
    seen.add(system, pickle.loads(pickle.dumps(system)), FileIO(Plugins.installed(), properties))
    with seen.errors(IcefieldError):
        seen.add(system.credentials(f"{kind}://container@account.dfs.core.windows.net/x"))


@pytest.mark.parametrize("strategy", Plugins.installed().names("commit-strategies"))
def test_no_strategy_shows_a_credential(strategy: str, seen: Seen, tmp_path: Path) -> None:
    properties = {**ADDRESSES, **{name: planted(name)[0][name] for name in credentials()}}
    properties |= {"dynamodb.access-key-id": "key-id", "client.access-key-id": "key-id"}
    with seen.errors(IcefieldError):
        made = FileIO(Plugins.installed(), properties).commit_strategy(strategy, ("db", "t"), f"file://{tmp_path}/t")
        seen.add(made, pickle.loads(pickle.dumps(made)), vars(made).get("_road"), vars(made).get("_options"))
        for action in (made.load, made.drop):
            with seen.errors(IcefieldError):
                seen.add(action())


def catalogs() -> list[tuple[str, dict[str, str]]]:
    """The installed catalogs, each at an address without a server, also with a password in the URI."""
    uris = [
        f"postgresql+psycopg://me:{MARK}-uri@{NOWHERE}/db",
        f"postgresql+psycopg://me@{NOWHERE}/db?password={MARK}-uri",
        f"nosuch://me:{MARK}-uri@{NOWHERE}/db",
        f"me:{MARK}-uri@{NOWHERE}",
        f"thrift://me:{MARK}-uri@{NOWHERE}",
        f"thrift://me:{MARK}-uri@127.0.0.1:port",
    ]
    found = []
    for kind in Plugins.installed().names("catalogs"):
        found += [(kind, {"uri": uri}) for uri in (uris if kind != "directory" else uris[:1])]
    return found


@pytest.mark.parametrize(("kind", "given"), catalogs())
def test_no_catalog_shows_a_credential(kind: str, given: dict[str, str], seen: Seen, tmp_path: Path) -> None:
    secrets = {name: planted(name)[0][name] for name in credentials()}
    quick = {
        "hive.metastore.client.connection.timeout": "1",
        "hive.metastore.client.socket.timeout": "1",
        "echo": "true",
    }
    properties = {**ADDRESSES, **secrets, **quick, "warehouse": f"file://{tmp_path}/w", **given}
    with seen.errors(IcefieldError):
        catalog = load_catalog("test", type=kind, **properties)
        seen.add(catalog, catalog.io, catalog.backend, vars(catalog.backend).get("_database"))
        for action in (
            catalog.list_namespaces,
            lambda: catalog.create_namespace("db"),
            lambda: catalog.load_table("db.t"),
            lambda: catalog.create_table("db.t", pa.schema([("id", pa.int64())])),
            catalog.backend.credentials,
            lambda: catalog.rename_table("db.t", "db.u"),
            lambda: catalog.drop_table("db.t", purge=True),
            catalog.close,
        ):
            with seen.errors(IcefieldError):
                seen.add(action())


def test_no_error_of_an_unknown_kind_shows_a_credential_on_the_command_line(
    seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    def burst(*_: object, **__: object) -> None:
        raise RuntimeError(f"GET https://host/?sig={MARK}-sas: 403")

    monkeypatch.setattr(DirectoryBackend, "list_namespaces", burst)
    given = ["-p", "type=directory", "-p", "warehouse=memory://w", "-p", f"x.sas-token=sv=1&sig={MARK}-sas"]
    assert main(["namespaces", *given]) == 1
    assert main(["doctor", *given]) == 1
    monkeypatch.setenv("ICEFIELD_DEBUG", "1")
    assert main(["namespaces", *given]) == 1


def test_no_finding_of_the_doctor_shows_a_credential(seen: Seen, tmp_path: Path) -> None:
    secrets = {name: planted(name)[0][name] for name in credentials()}
    for warehouse in (f"file://{tmp_path}/w", "az://container/w", "gs://bucket/w"):
        for finding in examine("test", **{**ADDRESSES, **secrets, "type": "directory", "warehouse": warehouse}):
            seen.add(finding)


def test_no_file_of_a_table_holds_a_credential(seen: Seen, tmp_path: Path) -> None:
    secrets = {name: planted(name)[0][name] for name in credentials()}
    uri = f"sqlite:///{tmp_path}/c.db"
    for kind in ({"type": "directory"}, {"type": "sql", "uri": uri}):
        properties = {**ADDRESSES, **secrets, **kind, "warehouse": f"file://{tmp_path}/{kind['type']}"}
        with load_catalog("test", **properties) as catalog:
            catalog.create_namespace("db")
            rows = pa.table({"id": [1, 2], "kind": ["a", "b"]})
            table = catalog.create_table("db.t", rows.schema, partition_spec=["kind"])
            table.append(rows)
            table.delete("id = 1")
            table.set_properties({"owner": "me"})
            seen.add(table, table.metadata, table.scan(), table.scan().plan_files(), table.history(), table.inspect)
            seen.add(
                pickle.loads(pickle.dumps(table.write_context())), pickle.loads(pickle.dumps(table.scan().context))
            )
            seen.add(*table.scan().plan_files())
            seen.add(open_table(table.metadata_location, properties))
            transaction = table.transaction()
            seen.add(transaction, transaction.context)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} >= {".json", ".avro", ".parquet", ".db"}
    for path in files:
        seen.texts.append(path.read_bytes().decode("utf-8", "replace"))
        if path.suffix == ".avro":
            with path.open("rb") as file:
                seen.texts.append(repr([*fastavro.reader(file)]))


@pytest.mark.parametrize("name", credentials())
def test_no_table_takes_a_credential_for_a_property(name: str, seen: Seen) -> None:
    with load_catalog("test", type="directory", warehouse=f"memory://{name}") as catalog:
        catalog.create_namespace_if_not_exists("db")
        columns = pa.schema([("id", pa.int64())])
        with pytest.raises(InvalidArgument) as refused:
            catalog.create_table("db.t", columns, properties={name: f"{MARK}-here"})
        seen.add(refused.value)
    defaults = {f"table-default.{name}": f"{MARK}-here"}
    with (
        load_catalog("test", type="directory", warehouse=f"memory://{name}", **defaults) as catalog,
        pytest.raises(InvalidArgument) as refused,
    ):
        catalog.create_table("db.u", columns)
    seen.add(refused.value)
