"""What the properties mean, which names there are, and that no credential is shown."""

from __future__ import annotations

import json
import logging
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from http_between import Answered, Asked, Between, Forward
from icefield import Plugins, load_catalog
from icefield.abc import FileSystem, FileSystemAbility, PutMode
from icefield.errors import AccessDenied, FileMissing, InvalidArgument, LocationRefused, StorageError, UnsafeCommit
from icefield_hdfs.client import HdfsFailure
from icefield_hdfs.hadoop_file_system import authority_of, path_of
from icefield_hdfs.hdfs_file_system import HdfsFileSystem
from icefield_hdfs.native import failure_of
from icefield_hdfs.web_file_system import WebHdfsFileSystem
from icefield_hdfs.web_requests import Requests, ServerAddress
from object_stores import failures, said_by
from servers.hdfs import Hdfs, read_around, write_around

SECRET = "planted-secret-of-hdfs"


@pytest.mark.parametrize(
    ("scheme", "kind"),
    [
        ("hdfs", HdfsFileSystem),
        ("viewfs", HdfsFileSystem),
        ("webhdfs", WebHdfsFileSystem),
        ("swebhdfs", WebHdfsFileSystem),
    ],
)
def test_schemes_lead_to_the_file_systems(scheme: str, kind: type[FileSystem]) -> None:
    assert Plugins.installed().file_system(scheme) is kind


@pytest.mark.spec("FS-09")
@pytest.mark.parametrize("kind", [HdfsFileSystem, WebHdfsFileSystem])
def test_it_renames_and_lists_and_does_not_create(kind: type[FileSystem]) -> None:
    assert kind.abilities == {FileSystemAbility.ATOMIC_RENAME, FileSystemAbility.LIST, FileSystemAbility.REMOTE}


@pytest.mark.spec("FS-09")
def test_the_strategy_create_is_refused_and_rename_named() -> None:
    with pytest.raises(UnsafeCommit, match="commit='rename'"):
        load_catalog("test", type="directory", warehouse="hdfs://namenode:8020/warehouse", commit="create")


def test_rename_is_what_a_table_on_hdfs_gets_by_itself(hdfs: Hdfs) -> None:
    catalog = load_catalog("test", type="directory", warehouse=f"{hdfs.url}/{uuid4().hex}")
    catalog.create_namespace("db")
    catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    assert catalog.table_exists("db.t")


@pytest.mark.parametrize(
    ("location", "authority", "path"),
    [
        ("hdfs://nn:8020/a/b", ("hdfs", "nn:8020"), "/a/b"),
        ("HDFS://nn/a%20b", ("hdfs", "nn"), "/a%20b"),
        ("hdfs:///a", ("hdfs", ""), "/a"),
        ("hdfs:/a/b", ("hdfs", ""), "/a/b"),
        ("viewfs://cluster/a", ("viewfs", "cluster"), "/a"),
    ],
)
def test_a_location_is_taken_apart_to_the_letter(location: str, authority: tuple[str, str], path: str) -> None:
    assert (authority_of(location), path_of(location)) == (authority, path)


@pytest.mark.parametrize("location", ["nothing", "hdfs:relative", "/a/b"])
def test_what_is_no_location_is_refused(location: str) -> None:
    with pytest.raises(InvalidArgument, match="hdfs://namenode:8020/path"):
        path_of(location)


def settings(location: str = "hdfs:///a", **properties: str) -> Any:
    return HdfsFileSystem({name.replace("__", "."): value for name, value in properties.items()}).settings(location)


def test_host_and_port_are_those_of_locations_that_name_none() -> None:
    given = {"hdfs__host": "nn", "hdfs__port": "9000"}
    assert settings(**given).url == "hdfs://nn:9000"
    assert settings("hdfs:/a", **given).url == "hdfs://nn:9000"
    assert settings("hdfs://other:1/a", **given).url == "hdfs://other:1"
    assert settings(hdfs__host="hdfs://nn:1/").url == "hdfs://nn:1"
    assert settings().url == "hdfs://"


def test_settings_of_hadoop_are_handed_on_and_the_users_come_first() -> None:
    given = settings(
        "hdfs://nn:1/a", **{"hadoop.dfs.client.failover.max.attempts": "9", "hadoop.dfs.nameservices": "n"}
    )
    assert dict(given.config) == {"dfs.client.failover.max.attempts": "9", "dfs.nameservices": "n"}
    assert dict(settings("hdfs://nn:1/a").config) == {"dfs.client.failover.max.attempts": "5"}
    assert dict(settings("hdfs://service/a").config) == {}


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (HdfsFileSystem, "hdfs.port", "many"),
        (HdfsFileSystem, "hdfs.port", "8020"),
        (HdfsFileSystem, "hdfs.timeout", "0"),
        (HdfsFileSystem, "hdfs.kerberos_ticket", "/no/such/ticket"),
        (WebHdfsFileSystem, "webhdfs.port", "x"),
        (WebHdfsFileSystem, "webhdfs.timeout", "-1"),
        (WebHdfsFileSystem, "webhdfs.kerberos", "true"),
        (WebHdfsFileSystem, "webhdfs.kerberos", "perhaps"),
    ],
)
def test_a_value_that_cannot_be_used_is_named(kind: type[FileSystem], name: str, value: str) -> None:
    scheme, more = ("hdfs", {}) if kind is HdfsFileSystem else ("webhdfs", {"webhdfs.host": "host"})
    with pytest.raises(InvalidArgument, match=name):
        kind({**more, name: value}).stat(f"{scheme}:///a")


def test_a_web_location_needs_a_host_and_a_port_that_is_one() -> None:
    with pytest.raises(InvalidArgument, match=r"webhdfs\.host"):
        WebHdfsFileSystem().stat("webhdfs:///a")
    for authority in ("host:port", "host:0", "host:65536", "host:1:2", "user@host", "[::1", "[::1]x", "host.", "a..b"):
        with pytest.raises(LocationRefused, match="names no host and port"):
            WebHdfsFileSystem().stat(f"webhdfs://{authority}/a")


def test_a_token_goes_to_the_server_that_the_configuration_names_and_to_no_other() -> None:
    for named in (
        {"webhdfs.host": "gateway", "webhdfs.port": "14000"},
        {"webhdfs.host": "gateway:14000"},
        {"warehouse": "webhdfs://gateway:14000/wh"},
        {"location.allowed-roots": "webhdfs://Gateway:14000/wh"},
        {"location.map.hdfs://nn/wh": "webhdfs://gateway:14000/wh"},
        {"location.credentials-for": "hdfs://nn/x, webhdfs://gateway:14000"},
    ):
        system = WebHdfsFileSystem({"webhdfs.token": SECRET, **named})
        assert system.client("webhdfs://gateway:14000/a")
        for foreign in (
            "webhdfs://evil:14000",
            "webhdfs://gateway:9870",
            "webhdfs://gateway",
            "webhdfs://gateway.evil",
        ):
            with pytest.raises(LocationRefused, match=r"webhdfs\.host.*location\.credentials-for") as refused:
                system.stat(f"{foreign}/a")
            assert SECRET not in str(refused.value)
            assert WebHdfsFileSystem(named).client(f"{foreign}/a")  # there is nothing that could be stated


def test_a_token_for_a_server_of_https_is_not_sent_there_without_it() -> None:
    for named in ({"warehouse": "swebhdfs://nn:9871/wh"}, {"warehouse": "swebhdfs://nn/wh", "webhdfs.host": "nn:9871"}):
        system = WebHdfsFileSystem({"webhdfs.token": SECRET, **named})
        assert system.client("swebhdfs://nn:9871/a")
        with pytest.raises(LocationRefused, match="reached by webhdfs"):
            system.client("webhdfs://nn:9871/a")


def test_tickets_are_for_the_name_nodes_that_the_configuration_names(tmp_path: Path) -> None:
    (tmp_path / "hdfs-site.xml").write_text(
        "<configuration><property><name>dfs.nameservices</name><value>lake, pond</value></property></configuration>"
    )
    kerberos = {"hdfs.kerberos-keytab": "/etc/keytab", "hdfs.host": "nn", "hdfs.config-dir": str(tmp_path)}
    for given in (
        kerberos,
        {**kerberos, "hdfs.kerberos-keytab": "", "hadoop.hadoop.security.authentication": "kerberos"},
    ):
        system = HdfsFileSystem({**given, "location.allowed-roots": "hdfs://other:9000/x"})
        for place in ("hdfs://nn", "hdfs://nn:8020", "hdfs://", "hdfs://lake", "hdfs://pond", "hdfs://other:9000"):
            assert system.settings(f"{place}/a")
        for place in ("hdfs://evil", "hdfs://nn:9000", "hdfs://other"):
            with pytest.raises(LocationRefused, match=r"hdfs\.host.*location\.credentials-for"):
                system.stat(f"{place}/a")


def test_a_scheme_that_is_not_of_hdfs_is_refused() -> None:
    for kind, location in ((HdfsFileSystem, "hdfs+x://evil/a"), (WebHdfsFileSystem, "webhdfs+x://evil/a")):
        with pytest.raises(LocationRefused, match="viewfs"):
            kind({"hdfs.kerberos-keytab": "k"}).stat(location)


@pytest.mark.parametrize("kind", [HdfsFileSystem, WebHdfsFileSystem])
def test_a_new_name_on_another_host_is_refused_and_not_given_on_this_one(kind: type[FileSystem], hdfs: Hdfs) -> None:
    scheme, port = ("hdfs", hdfs.rpc_port) if kind is HdfsFileSystem else ("webhdfs", hdfs.http_port)
    path = f"/{uuid4().hex}"
    write_around(hdfs, path, b"x")
    with pytest.raises(InvalidArgument, match="on another host") as refused:
        kind({}).rename(f"{scheme}://127.0.0.1:{port}{path}", f"{scheme}://elsewhere:{port}{path}-new")
    assert refused.value.data["location"] == f"{scheme}://elsewhere:{port}{path}-new"
    assert read_around(hdfs, path) == b"x"


def test_a_redirection_to_what_is_no_address_leads_nowhere() -> None:
    for address in ("http://evil@host/x", "http://host:99999/x", "http://[::1/x", "http://a b/x", "ftp://host/x", None):
        with pytest.raises(HdfsFailure, match="nowhere"):
            Requests().follow(ServerAddress(False, "host", 1), address)


def test_settings_are_found_in_the_folder_of_hadoop(hdfs: Hdfs, tmp_path: Path) -> None:
    root = f"/{uuid4().hex}"
    write_around(hdfs, f"{root}/a", b"found")
    (tmp_path / "core-site.xml").write_text(
        f"<configuration><property><name>fs.defaultFS</name><value>{hdfs.url}</value></property></configuration>"
    )
    (tmp_path / "hdfs-site.xml").write_text("<configuration></configuration>")
    assert HdfsFileSystem({"hdfs.config-dir": str(tmp_path)}).open_input(f"hdfs://{root}/a").read() == b"found"
    code = (
        f"from icefield_hdfs.hdfs_file_system import HdfsFileSystem as F;print(F().open_input('hdfs:{root}/a').read())"
    )
    environment = {**os.environ, "HADOOP_CONF_DIR": str(tmp_path)}
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert said.stdout.strip() == "b'found'"


def test_a_name_service_turns_to_the_name_node_that_is_there(hdfs: Hdfs) -> None:
    system = HdfsFileSystem(
        {
            "hadoop.dfs.nameservices": "lake",
            "hadoop.dfs.ha.namenodes.lake": "a,b",
            "hadoop.dfs.namenode.rpc-address.lake.a": "127.0.0.1:1",
            "hadoop.dfs.namenode.rpc-address.lake.b": f"127.0.0.1:{hdfs.rpc_port}",
        }
    )
    name = uuid4().hex
    system.put(f"hdfs://lake/{name}", b"here", PutMode.OVERWRITE)
    assert read_around(hdfs, f"/{name}") == b"here"


def test_a_view_leads_to_what_is_mounted(hdfs: Hdfs) -> None:
    name = uuid4().hex
    table = "hadoop.fs.viewfs.mounttable.lake"
    with pytest.raises(StorageError, match="No viewfs fallback mount found"):
        HdfsFileSystem({f"{table}.link./mounted": f"{hdfs.url}/{name}"}).stat("viewfs://lake/mounted/a")
    mounts = {f"{table}.link./mounted": f"{hdfs.url}/{name}", f"{table}.linkFallback": f"{hdfs.url}/rest-{name}"}
    system = HdfsFileSystem(mounts)
    with system.open_output("viewfs://lake/mounted/d/a") as sink:
        sink.write(b"here")
    assert read_around(hdfs, f"/{name}/d/a") == b"here"
    system.rename("viewfs://lake/mounted/d/a", "viewfs://lake/mounted/e/b")
    assert [info.location for info in system.list_files("viewfs://lake/mounted")] == ["viewfs://lake/mounted/e/b"]
    system.delete_many(["viewfs://lake/mounted/e/b"])
    assert read_around(hdfs, f"/{name}/e/b") is None


def test_the_user_owns_what_is_written_and_a_process_has_one(hdfs: Hdfs) -> None:
    name = uuid4().hex
    code = (
        "from icefield_hdfs.hdfs_file_system import HdfsFileSystem as F; from icefield.abc import PutMode;"
        f"F({{'hdfs.user': 'alice'}}).put('{hdfs.url}/{name}', b'x', PutMode.OVERWRITE);"
        f"F({{'hdfs.user': 'bob'}}).stat('{hdfs.url}/{name}')"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "hdfs.user is 'bob', but this process uses HDFS as alice already" in said.stderr
    assert owner(hdfs, f"/{name}") == "alice"
    WebHdfsFileSystem({"webhdfs.user": "carol"}).put(f"{hdfs.web_url}/{name}-2", b"x", PutMode.OVERWRITE)
    assert owner(hdfs, f"/{name}-2") == "carol"


def owner(hdfs: Hdfs, path: str) -> str:
    status = WebHdfsFileSystem().client(hdfs.web_url + path)._ask("GET", path, "GETFILESTATUS")  # type: ignore[attr-defined]
    found: str = status["FileStatus"]["owner"]
    return found


@pytest.mark.spec("FS-06")
@pytest.mark.parametrize("web", [False, True], ids=["hdfs", "webhdfs"])
def test_a_big_folder_is_listed_page_by_page_and_deleted(hdfs: Hdfs, web: bool) -> None:
    system: FileSystem = WebHdfsFileSystem() if web else HdfsFileSystem()
    root = f"{hdfs.web_url if web else hdfs.url}/{uuid4().hex}"
    client = HdfsFileSystem().client(f"{hdfs.url}/")
    names = {f"{root}/{number}" for number in range(1_203)}  # many pages, see `dfs.ls.limit`
    for name in names:
        client.create(path_of(name)).close()
    assert {info.location for info in system.list_files(root)} == names
    system.delete_many(sorted(names))
    assert list(system.list_files(root)) == []


def test_a_server_that_knows_no_pages_lists_at_once(hdfs: Hdfs) -> None:
    def old(asked: Asked, forward: Forward) -> Answered | None:
        if "LISTSTATUS_BATCH" not in asked.path:
            return forward(asked)
        said = {"RemoteException": {"exception": "IllegalArgumentException", "message": "No enum constant"}}
        return Answered(400, {"Content-Type": "application/json"}, json.dumps(said).encode())

    name = uuid4().hex
    write_around(hdfs, f"/{name}/a/b", b"x")
    with Between(f"http://127.0.0.1:{hdfs.http_port}").open() as between:
        between.behave = old
        root = f"{between.url.replace('http', 'webhdfs', 1)}/{name}"
        assert [info.location for info in WebHdfsFileSystem().list_files(root)] == [f"{root}/a/b"]


def test_a_gateway_that_answers_a_rename_with_a_boolean_is_understood(hdfs: Hdfs) -> None:
    """HttpFS knows no options of a rename: it answers false where the name is taken."""

    def gateway(asked: Asked, forward: Forward) -> Answered | None:
        return forward(Asked(asked.method, asked.path.replace("&renameoptions=NONE", ""), asked.headers, asked.body))

    name = uuid4().hex
    for letter in "ab":
        write_around(hdfs, f"/{name}/{letter}", letter.encode())
    with Between(f"http://127.0.0.1:{hdfs.http_port}").open() as between:
        between.behave = gateway
        root = f"{between.url.replace('http', 'webhdfs', 1)}/{name}"
        system = WebHdfsFileSystem()
        with pytest.raises(FileExistsError):
            system.rename(f"{root}/a", f"{root}/b")
        with pytest.raises(FileMissing):
            system.rename(f"{root}/no", f"{root}/c")
        system.rename(f"{root}/a", f"{root}/new/c")
    assert (read_around(hdfs, f"/{name}/a"), read_around(hdfs, f"/{name}/b")) == (None, b"b")
    assert read_around(hdfs, f"/{name}/new/c") == b"a"


def test_an_empty_folder_is_removed_and_no_other_thing(hdfs: Hdfs) -> None:
    for root, system in ((hdfs.url, HdfsFileSystem()), (hdfs.web_url, WebHdfsFileSystem())):
        folder = f"{root}/{uuid4().hex}"
        system.put(f"{folder}/full/a", b"x", PutMode.OVERWRITE)
        system.client(folder).make_folder(path_of(f"{folder}/empty"))
        for location in (f"{folder}/full", f"{folder}/full/a", f"{folder}/empty", f"{folder}/nothing"):
            system.remove_empty_folder(location)
        assert {info.location for info in system.list_files(folder, shallow=True)} == {f"{folder}/full/"}
        assert read_around(hdfs, path_of(f"{folder}/full/a")) == b"x"


def test_a_right_that_is_wanting_is_said_so() -> None:
    refused = failure_of(
        'RPCError("org.apache.hadoop.security.AccessControlException", "Permission denied: user=a\\n\\tat x")'
    )
    assert refused.denied
    assert not refused.passing

    def deny(asked: Asked, forward: Forward) -> Answered | None:
        said = {"RemoteException": {"exception": "AccessControlException", "message": "Permission denied: user=a"}}
        return Answered(403, {"Content-Type": "application/json"}, json.dumps(said).encode())

    with Between("http://127.0.0.1:1").open() as between:
        between.behave = deny
        with pytest.raises(AccessDenied, match="permission denied"):
            WebHdfsFileSystem().stat(between.url.replace("http", "webhdfs", 1) + "/a")


@pytest.mark.parametrize(
    ("text", "said", "passing"),
    [
        ('RPCError("org.apache.hadoop.ipc.StandbyException", "in state standby\\n\\tat x")', "state standby", True),
        ('FatalRPCError("o.a.SafeModeException", "in safe mode\\nmore")', "safe mode", True),
        ('RPCError("o.a.InvalidPathException", "Invalid file name: /a:b\\n\\tat")', "name: /a:b", False),
        ('GSSAPIError(1, 2, "no ticket")', "renew the ticket", False),
        ('InvalidArgument("No NameNode hosts found")', "No NameNode hosts found", False),
    ],
)
def test_what_hdfs_says_is_stated_without_its_stack(text: str, said: str, passing: bool) -> None:
    failure = failure_of(text)
    assert said in failure.said
    assert "\\n" not in failure.said
    assert failure.passing is passing


def test_a_name_that_hdfs_cannot_hold_is_reported(hdfs: Hdfs) -> None:
    for root, system in ((hdfs.url, HdfsFileSystem()), (hdfs.web_url, WebHdfsFileSystem())):
        with pytest.raises(StorageError, match="a:b") as caught:
            system.put(f"{root}/{uuid4().hex}/a:b", b"x", PutMode.OVERWRITE)
        assert not caught.value.retryable


def test_no_credential_is_in_an_error_a_log_line_or_a_repr(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    def quote_it(asked: Asked, forward: Forward) -> Answered | None:
        assert SECRET in asked.path
        said = {"RemoteException": {"exception": "IOException", "message": f"bad request {asked.path}"}}
        return Answered(400, {"Content-Type": "application/json"}, json.dumps(said).encode())

    with Between("http://127.0.0.1:1").open() as between:
        between.behave = quote_it
        root = between.url.replace("http", "webhdfs", 1)
        system = WebHdfsFileSystem({"webhdfs.token": SECRET, "warehouse": root})
        seen = [repr(system), str(system), str(system.credentials(root))]
        moved = failures(system, f"{root}/a", lambda: system.rename(f"{root}/a", f"{root}/b"))
        seen.append(said_by(*moved))
    native = HdfsFileSystem(
        {"hdfs.kerberos-keytab": SECRET, "hdfs.host": "127.0.0.1:1", "hadoop.dfs.client.failover.max.attempts": "0"}
    )
    seen += [
        repr(native),
        str(native.credentials("hdfs://127.0.0.1:1/a")),
        repr(native.settings("hdfs://127.0.0.1:1/a")),
    ]
    seen += [record.getMessage() for record in caplog.records]
    assert SECRET not in "".join(seen)


def test_file_systems_of_the_same_properties_share_a_client(hdfs: Hdfs) -> None:
    one, two = HdfsFileSystem({"other": "1"}), pickle.loads(pickle.dumps(HdfsFileSystem()))
    assert one.client(f"{hdfs.url}/a") is two.client(f"{hdfs.url}/b")
    assert one.client(f"{hdfs.url}/a") is not HdfsFileSystem({"hdfs.timeout": "7"}).client(f"{hdfs.url}/a")


def test_listing_plugins_imports_no_client() -> None:
    code = "import sys, icefield; icefield.Plugins.installed().listing(); print('hdfs_native' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"
