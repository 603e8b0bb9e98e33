"""Replies that are lost, name nodes that are gone, processes that die and fork."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest
from forked import ended
from http_between import Asked, Behaviour, Between, answer, lose_reply, lose_request
from icefield import Plugins
from icefield.abc import Committed, FileSystem, Pointer, PutMode
from icefield.errors import CommitStateUnknown, FileMissing, IcefieldError, StorageError
from icefield_hdfs.hadoop_file_system import TEMPORARY_SUFFIX, path_of
from icefield_hdfs.hdfs_file_system import HdfsFileSystem
from icefield_hdfs.web_file_system import WebHdfsFileSystem
from icefield_testing import CommitStrategySuite
from rpc_between import RpcBetween
from servers.hdfs import Hdfs, read_around

KIT = CommitStrategySuite()
RENAME = Plugins.installed().commit_strategy("rename")


@pytest.fixture
def relay(hdfs: Hdfs) -> Iterator[RpcBetween]:
    with RpcBetween(hdfs.rpc_port).open() as between:
        yield between


@pytest.fixture
def web(hdfs: Hdfs) -> Iterator[Between]:
    with Between(f"http://127.0.0.1:{hdfs.http_port}").open() as between:
        yield between


def system_for(location: str, properties: dict[str, str] | None = None) -> FileSystem:
    return (HdfsFileSystem if location.startswith("hdfs") else WebHdfsFileSystem)(properties)


def table_at(root: str) -> tuple[str, Pointer, FileSystem]:
    """A table of one version, made without faults."""
    system = system_for(root)
    location = f"{root}/{uuid4().hex}/db/t"
    made = RENAME(("db", "t"), location, system).commit(None, KIT.new_table(location))
    return location, KIT.committed(made), system


def commit(system: FileSystem, location: str, base: Pointer) -> object:
    return RENAME(("db", "t"), location, system).commit(base, KIT.changed(system, base, "mine", "1"))


@pytest.mark.spec("COMMIT-02", "FS-13")
@pytest.mark.parametrize("times", [1, 2, 9])
def test_a_rename_whose_reply_is_lost_is_settled_by_reading_back(hdfs: Hdfs, relay: RpcBetween, times: int) -> None:
    location, base, system = table_at(f"hdfs://127.0.0.1:{relay.port}")
    relay.lose("rename2", times)
    outcome = commit(system, location, base)
    assert relay.struck >= 1
    assert isinstance(outcome, Committed)
    assert "mine" in KIT.read(system, outcome.pointer).properties


@pytest.mark.spec("COMMIT-01", "COMMIT-02", "FS-13")
@pytest.mark.parametrize("before", [True, False], ids=["request", "reply"])
@pytest.mark.parametrize("call", ["getFileInfo", "getBlockLocations", "create", "addBlock", "complete", "rename2"])
def test_whichever_call_is_cut_a_commit_is_whole_or_not_there(
    hdfs: Hdfs, relay: RpcBetween, call: str, before: bool
) -> None:
    location, base, system = table_at(f"hdfs://127.0.0.1:{relay.port}")
    relay.lose(call, before=before)
    try:
        outcome = commit(system, location, base)
    except IcefieldError:
        outcome = None
    assert relay.struck == 1
    check_outcome(hdfs, location, base, outcome)


@pytest.mark.spec("COMMIT-01", "COMMIT-02", "FS-13")
@pytest.mark.parametrize("fault", [lose_request, lose_reply, answer(503)], ids=["request", "reply", "503"])
@pytest.mark.parametrize("operation", ["GETFILESTATUS", "OPEN", "CREATE", "RENAME"])
def test_whichever_request_is_cut_a_commit_is_whole_or_not_there(
    hdfs: Hdfs, web: Between, operation: str, fault: Behaviour
) -> None:
    location, base, system = table_at(web.url.replace("http://", "webhdfs://"))
    struck = []

    def is_struck(asked: Asked) -> bool:
        if f"op={operation}&" in f"{asked.path}&" and not struck:
            struck.append(asked)
            return True
        return False

    web.faulty(fault, is_struck, None)
    try:
        outcome = commit(system, location, base)
    except IcefieldError:
        outcome = None
    assert struck
    check_outcome(hdfs, location, base, outcome)


def check_outcome(hdfs: Hdfs, location: str, base: Pointer, outcome: object) -> None:
    """What was said is so, the version is whole, and the next commit goes through."""
    raw = read_around(hdfs, f"{path_of(location)}/metadata/v2.metadata.json")
    system = system_for(location)
    strategy = RENAME(("db", "t"), location, system)
    now = strategy.load()
    assert now is not None
    if isinstance(outcome, Committed):
        assert outcome.pointer == now
        assert now.version == 2
    if raw is not None:
        assert "mine" in KIT.read(system, now).properties
    else:
        assert now == base
    assert isinstance(strategy.commit(now, KIT.changed(system, now, "after", "1")), Committed)


@pytest.mark.spec("COMMIT-02", "FS-13")
def test_a_version_of_another_is_no_success_of_ours_after_a_lost_request(hdfs: Hdfs, relay: RpcBetween) -> None:
    location, base, system = table_at(f"hdfs://127.0.0.1:{relay.port}")
    other = RENAME(("db", "t"), location, system)
    won = KIT.committed(other.commit(base, KIT.changed(system, base, "other", "1")))
    relay.lose("rename2", before=True)
    assert not isinstance(commit(system, location, base), Committed)
    assert other.load() == won


@pytest.mark.spec("COMMIT-02", "FS-13")
def test_a_name_node_that_stays_away_leaves_the_outcome_unknown(hdfs: Hdfs, relay: RpcBetween) -> None:
    root = f"hdfs://127.0.0.1:{relay.port}"
    location, base, _ = table_at(root)
    system = HdfsFileSystem({"hadoop.dfs.client.failover.max.attempts": "1"})
    metadata = KIT.changed(system, base, "mine", "1")
    # The first rename is that of the stream; the second publishes the version.
    strategy = RENAME(("db", "t"), location, system)
    publish = system.rename

    def rename(source: str, target: str) -> None:
        relay.lose("rename2", then_down=True)
        publish(source, target)

    system.rename = rename  # type: ignore[method-assign]
    with pytest.raises(CommitStateUnknown):
        strategy.commit(base, metadata)
    assert relay.struck == 1
    assert read_around(hdfs, f"{path_of(location)}/metadata/v2.metadata.json") is not None


@pytest.mark.spec("COMMIT-02", "FS-13")
def test_a_rename_over_webhdfs_whose_reply_is_lost_is_settled(hdfs: Hdfs, web: Between) -> None:
    location, base, system = table_at(web.url.replace("http://", "webhdfs://"))
    web.faulty(lose_reply, lambda asked: "op=RENAME" in asked.path and "v2.metadata" in asked.path)
    outcome = commit(system, location, base)
    assert isinstance(outcome, Committed)
    assert "mine" in KIT.read(system, outcome.pointer).properties


@pytest.mark.parametrize("fault", [lose_request, lose_reply])
def test_requests_that_may_be_repeated_are(hdfs: Hdfs, web: Between, fault: object) -> None:
    root = web.url.replace("http://", "webhdfs://") + f"/{uuid4().hex}"
    system = WebHdfsFileSystem()
    system.put(f"{root}/a", b"data", PutMode.OVERWRITE)
    for operation in ("GETFILESTATUS", "LISTSTATUS", "OPEN", "DELETE"):
        before = len(web.asked)
        web.faulty(fault, lambda asked, operation=operation: operation in asked.path, 2)  # type: ignore[arg-type]
        if operation == "GETFILESTATUS":
            assert system.stat(f"{root}/a").size == 4
        elif operation == "LISTSTATUS":
            assert [info.location for info in system.list_files(root)] == [f"{root}/a"]
        elif operation == "OPEN":
            assert system.open_input(f"{root}/a").read() == b"data"
        else:
            system.delete_many([f"{root}/a"])
            assert read_around(hdfs, path_of(f"{root}/a")) is None
        assert len([asked for asked in web.asked[before:] if operation in asked.path]) == 3


def test_a_server_that_is_not_there_is_said_so() -> None:
    with pytest.raises(StorageError) as native:
        HdfsFileSystem({"hadoop.dfs.client.failover.max.attempts": "1"}).stat("hdfs://127.0.0.1:1/x")
    with pytest.raises(StorageError) as web:
        WebHdfsFileSystem().rename("webhdfs://127.0.0.1:1/x", "webhdfs://127.0.0.1:1/y")
    for caught in (native, web):
        assert caught.value.retryable
        assert "check the address" in str(caught.value)


@pytest.mark.parametrize("kind", ["hdfs", "webhdfs"])
def test_a_server_that_is_silent_is_given_up(kind: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        root = f"{kind}://127.0.0.1:{silent.getsockname()[1]}"
        system = (
            HdfsFileSystem({"hdfs.timeout": "1"}) if kind == "hdfs" else WebHdfsFileSystem({"webhdfs.timeout": "1"})
        )
        began = time.monotonic()
        with pytest.raises(StorageError) as caught:
            system.rename(f"{root}/a", f"{root}/b")
        assert caught.value.retryable
        assert "no answer" in str(caught.value)
        assert time.monotonic() - began < 10


@pytest.mark.spec("COMMIT-02", "FS-13")
def test_a_name_node_that_falls_silent_leaves_the_outcome_unknown(hdfs: Hdfs, relay: RpcBetween) -> None:
    location, base, _ = table_at(f"hdfs://127.0.0.1:{relay.port}")
    system = HdfsFileSystem({"hdfs.timeout": "2"})
    metadata = KIT.changed(system, base, "mine", "1")
    publish = system.rename

    def rename(source: str, target: str) -> None:
        relay.fall_silent("rename2")
        publish(source, target)

    system.rename = rename  # type: ignore[method-assign]
    with pytest.raises(CommitStateUnknown):
        RENAME(("db", "t"), location, system).commit(base, metadata)
    assert relay.struck == 1
    assert read_around(hdfs, f"{path_of(location)}/metadata/v2.metadata.json") is not None


@pytest.mark.parametrize("kind", ["hdfs", "webhdfs"])
def test_a_process_that_dies_while_writing_leaves_no_file_under_the_name(hdfs: Hdfs, kind: str, tmp_path: Path) -> None:
    root = f"{hdfs.url if kind == 'hdfs' else hdfs.web_url}/{uuid4().hex}"
    system = HdfsFileSystem() if kind == "hdfs" else WebHdfsFileSystem()
    system.put(f"{root}/before", b"x", PutMode.OVERWRITE)

    def write_and_die() -> None:  # which also shows that a fork connects anew
        sink = system.open_output(f"{root}/half")
        sink.write(b"x" * 3_000_000)
        os._exit(9)

    assert ended(write_and_die, 60.0) == 9
    assert read_around(hdfs, path_of(f"{root}/half")) is None
    left = [info.location for info in system.list_files(root)]
    assert all(name.endswith((TEMPORARY_SUFFIX, "/before")) for name in left)


def test_the_child_of_a_fork_reads_writes_and_leaves_the_parents_streams_alone(hdfs: Hdfs) -> None:
    root = f"{hdfs.url}/{uuid4().hex}"
    system = HdfsFileSystem()
    system.put(f"{root}/read", b"x", PutMode.OVERWRITE)
    assert system.open_input(f"{root}/read").read() == b"x"  # so that there is a connection to take along
    held = [system.open_output(f"{root}/parent")]
    held[0].write(b"from ")

    def write_another() -> None:
        system.put(f"{root}/child", b"from the child", PutMode.OVERWRITE)
        held.clear()
        assert system.open_input(f"{root}/child").read() == b"from the child"

    assert ended(write_another, 60.0) == 0
    held[0].write(b"the parent")
    held[0].close()
    assert read_around(hdfs, path_of(f"{root}/parent")) == b"from the parent"
    assert read_around(hdfs, path_of(f"{root}/child")) == b"from the child"


@pytest.mark.skipif(sys.platform != "linux", reason="the threads of the process are counted")
def test_many_name_nodes_leave_few_threads_and_files_that_are_open_go_on(hdfs: Hdfs) -> None:
    folder, system, counts = uuid4().hex, HdfsFileSystem(), []
    first = None
    for _ in range(60):
        with RpcBetween(hdfs.rpc_port).open() as between:
            root = f"hdfs://127.0.0.1:{between.port}/{folder}"
            if first is None:
                system.put(f"{root}/read", b"xyz", PutMode.OVERWRITE)
                first = system.open_input(f"{root}/read")
            assert system.stat(f"{root}/read").size == 3
        counts.append(len(os.listdir("/proc/self/task")))
    assert first is not None
    assert first.read() == b"xyz"
    assert max(counts[40:]) < max(counts[:30]) + 10


def test_a_stream_that_was_forgotten_leaves_nothing(hdfs: Hdfs) -> None:
    for root, system in ((hdfs.url, HdfsFileSystem()), (hdfs.web_url, WebHdfsFileSystem())):
        folder = f"{root}/{uuid4().hex}"
        for size in (100, 3_000_000):
            sink = system.open_output(f"{folder}/f")
            sink.write(b"x" * size)
            del sink
            assert list(system.list_files(folder)) == []


def test_a_listing_outlives_a_folder_that_goes_meanwhile(hdfs: Hdfs) -> None:
    system = HdfsFileSystem()
    root = f"{hdfs.url}/{uuid4().hex}"
    for name in ("a/1", "b/2", "c/3"):
        system.put(f"{root}/{name}", b"x", PutMode.OVERWRITE)
    found = system.list_files(root)
    first = next(found).location
    gone = next(name for name in ("a", "b", "c") if f"/{name}/" not in first)
    system.client(root).delete(path_of(next(system.list_files(f"{root}/{gone}")).location))
    system.client(root).delete(path_of(f"{root}/{gone}"))
    rest = {first, *(info.location for info in found)}
    assert rest == {f"{root}/{name}" for name in ("a/1", "b/2", "c/3") if not name.startswith(gone)}


def test_a_missing_folder_of_the_target_is_made_and_a_missing_source_said(hdfs: Hdfs) -> None:
    for root, system in ((hdfs.url, HdfsFileSystem()), (hdfs.web_url, WebHdfsFileSystem())):
        folder = f"{root}/{uuid4().hex}"
        system.put(f"{folder}/a", b"x", PutMode.OVERWRITE)
        system.rename(f"{folder}/a", f"{folder}/new/deep/b")
        assert read_around(hdfs, path_of(f"{folder}/new/deep/b")) == b"x"
        with pytest.raises(FileMissing):
            system.rename(f"{folder}/a", f"{folder}/elsewhere/b")


def test_a_file_is_read_whole_as_soon_as_it_is_written(hdfs: Hdfs) -> None:
    # The name node closes files whose last block no data node has reported yet; hdfs-native takes them for empty.
    system = HdfsFileSystem()
    root = f"{hdfs.url}/{uuid4().hex}"

    def write_and_read(writer: int) -> set[int]:
        seen = set()
        for number in range(40):
            system.put(f"{root}/{writer}-{number}", b"x" * 1_000, PutMode.OVERWRITE)
            seen.add(len(system.open_input(f"{root}/{writer}-{number}").read()))
        return seen

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(write_and_read, range(8))) == [{1_000}] * 8


def test_readers_of_a_replaced_hint_see_the_old_or_the_new_one(hdfs: Hdfs) -> None:
    system = HdfsFileSystem()
    hint = f"{hdfs.url}/{uuid4().hex}/version-hint.text"
    system.put(hint, b"1" * 8, PutMode.OVERWRITE)
    seen: set[bytes] = set()
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            seen.add(system.open_input(hint).read())

    watcher = threading.Thread(target=watch)
    watcher.start()
    for number in range(30):
        system.put(hint, str(number % 10).encode() * 8, PutMode.OVERWRITE)
    done.set()
    watcher.join()
    assert seen <= {str(digit).encode() * 8 for digit in range(10)}
