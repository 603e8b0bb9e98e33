"""Several processes of one server: what they count is summed up, and a key is answered once, whichever is asked."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pyarrow as pa
import pytest
from catalogs import properties_of
from forked import forking
from icefield import Catalog, load_catalog
from icefield.errors import InvalidArgument
from icefield_rest_server import Settings, StaticCredentials, app
from icefield_rest_server.answers import Answer, Refused
from icefield_rest_server.idempotency import Begun, IdempotencyStore
from icefield_rest_server.observing import RequestMetrics
from icefield_rest_server.processes import OneProcess, Processes, SharedCounts, shared_folder
from icefield_rest_server.routes import ENDPOINTS
from icefield_rest_server.shared_keys import SharedKeys
from killing import STATEMENTS, SWAP
from local_client import LocalClient
from rest_bodies import SCHEMA
from rest_process import begin, end
from servers.process import free_port, listening, uri_of

STEPS = (*SWAP, *STATEMENTS)
EACH = 1 if os.environ.get("ICEFIELD_SOAK") else 7  # of the steps that a kill falls on


@dataclass
class Command:
    """The command as it serves with several processes; each request goes by a connection of its own."""

    uri: str
    process: subprocess.Popen[str]
    temporary: Path

    def workers(self) -> set[int]:
        """The processes that serve now."""
        found = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        named = {int(each): Path(f"/proc/{each}/cmdline").read_text() for each in found}
        return {each for each, line in named.items() if "spawn_main" in line}

    def metrics(self) -> dict[str, float]:
        """All samples that one of them gives."""
        lines = httpx.get(f"{self.uri}/metrics").text.splitlines()
        return {name: float(value) for name, _, value in (li.rpartition(" ") for li in lines if not li.startswith("#"))}

    def waited_for(self, count: int) -> None:
        """Wait until so many processes serve."""
        deadline = time.monotonic() + 120
        while True:
            try:
                if self.metrics()["icefield_rest_processes"] == count:
                    return
            except httpx.TransportError:
                pass
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.1)


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    port = free_port()
    (tmp_path / "temporary").mkdir()
    environment = {
        **os.environ,
        "TMPDIR": str(tmp_path / "temporary"),
        "ICEFIELD_CATALOG__LAKE__TYPE": "sql",
        "ICEFIELD_CATALOG__LAKE__URI": f"sqlite:///{tmp_path}/catalog.db",
        "ICEFIELD_CATALOG__LAKE__WAREHOUSE": f"file://{tmp_path}/warehouse",
    }
    line = [sys.executable, "-m", "icefield_cli.main", "serve", "--catalog", "lake", "--port", str(port)]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([*line, "--workers", "3"], env=environment, text=True, **pipes)
    made = Command(f"http://127.0.0.1:{port}", process, tmp_path / "temporary")
    try:
        made.waited_for(3)
        yield made
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    assert not list(made.temporary.glob("icefield-rest-server-*")), "the folder of the processes is left"


LISTED = 'icefield_rest_requests_total{operation="listNamespaces",status="200"}'
SECONDS = 'icefield_rest_request_seconds_count{operation="listNamespaces"}'


@pytest.mark.slow
def test_metrics_are_the_sums_of_all_processes_and_do_not_fall_when_one_is_killed(command: Command) -> None:
    def list_them(count: int) -> None:
        for _ in range(count):
            assert httpx.get(f"{command.uri}/v1/namespaces").status_code == 200

    list_them(40)
    assert {command.metrics()[LISTED] for _ in range(12)} == {40.0}
    before = command.workers()
    assert len(before) == 3
    for worker in list(before)[:2]:
        os.kill(worker, signal.SIGKILL)
        command.waited_for(2)
        command.waited_for(3)
        assert command.metrics()[LISTED] == 40
    list_them(20)
    found = [command.metrics() for _ in range(12)]
    assert {each[LISTED] for each in found} == {each[SECONDS] for each in found} == {60.0}
    assert {each["icefield_rest_requests_in_flight"] for each in found} == {0.0}
    folder = next(command.temporary.glob("icefield-rest-server-*"))
    assert len(list(folder.glob("process-*"))) == 3, "a process takes the file of one that died"


@pytest.mark.slow
def test_a_key_that_is_sent_to_all_processes_at_once_is_answered_once(command: Command) -> None:
    def create(number: int, key: str) -> httpx.Response:
        body = {"namespace": [f"n{number}"]}
        return httpx.post(f"{command.uri}/v1/namespaces", json=body, headers={"Idempotency-Key": key}, timeout=60)

    with ThreadPoolExecutor(8) as pool:
        for number in range(25):
            key = str(uuid4())
            found = list(pool.map(lambda _, number=number, key=key: create(number, key), range(8)))
            assert {(each.status_code, each.text) for each in found} == {(200, found[0].text)}, number
    other = httpx.post(f"{command.uri}/v1/namespaces", json={"namespace": ["z"]}, headers={"Idempotency-Key": key})
    assert other.status_code == 400
    assert "another request" in other.json()["error"]["message"]
    again = [create(24, str(uuid4())).status_code for _ in range(3)]
    assert again == [409, 409, 409]


# -- requests whose process dies -------------------------------------------------------------------------------------


@dataclass
class Request:
    """A change that is sent with a key, and how often the catalog shows it."""

    method: str
    path: str
    body: Callable[[Catalog], dict[str, Any]] = lambda _: {}
    times: Callable[[Catalog], int] = lambda _: 1
    doubtful: bool = True
    """Whether nothing in the catalog shows that it was this request."""

    each: int = 7


def snapshot_commit(catalog: Catalog) -> dict[str, Any]:
    """A commit of a snapshot like the one that is there."""
    table = catalog.load_table("db.t")
    first = table.current_snapshot()
    assert first is not None
    added = {
        "snapshot-id": 777,
        "parent-snapshot-id": first.snapshot_id,
        "sequence-number": 2,
        "timestamp-ms": first.timestamp_ms + 1,
        "manifest-list": first.manifest_list,
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    return {
        "requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": first.snapshot_id}],
        "updates": [
            {"action": "add-snapshot", "snapshot": added},
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 777},
        ],
    }


def several(catalog: Catalog) -> dict[str, Any]:
    identifier = {"namespace": ["db"], "name": "t"}
    return {"table-changes": [{"identifier": identifier, **snapshot_commit(catalog)}]}


def snapshots(catalog: Catalog) -> int:
    return sum(each.snapshot_id == 777 for each in catalog.load_table("db.t").snapshots())


REQUESTS = {
    "commit": Request("POST", "/namespaces/db/tables/t", snapshot_commit, snapshots, doubtful=False),
    "transaction": Request("POST", "/transactions/commit", several, snapshots, doubtful=False),
    "create": Request(
        "POST",
        "/namespaces/db/tables",
        lambda _: {"name": "new", "schema": SCHEMA},
        lambda catalog: int(catalog.table_exists("db.new")),
        each=2,  # two steps follow the change: one of them is met
    ),
}


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_whose_process_dies_is_ended_by_another_or_told_to_be_unknown(tmp_path: Path, name: str) -> None:
    request, settings = REQUESTS[name], {"shared": str(tmp_path / "shared")}
    properties = properties_of("sql", tmp_path)
    told = set()
    with load_catalog("served", **properties) as behind, listening() as first, listening() as second:
        other = begin(properties, second, settings=settings)
        for step in range(1, 1_000, min(EACH, request.each)):
            behind.create_namespace("db")
            behind.create_table("db.t", pa.schema([("id", pa.int64())])).append(pa.table({"id": [1]}))
            sent = {"json": request.body(behind), "headers": {"Idempotency-Key": str(uuid4())}, "timeout": 60.0}
            deadly = begin(properties, first, settings=settings, deadly=step, also=STEPS)
            try:
                status = httpx.request(request.method, uri_of(first) + "/v1" + request.path, **sent).status_code
                assert status in (200, 204)
            except httpx.TransportError:
                deadly.join(30)
            survived = deadly.is_alive()
            found = [httpx.request(request.method, uri_of(second) + "/v1" + request.path, **sent) for _ in range(2)]
            statuses = {each.status_code for each in found}
            told |= statuses
            assert len(statuses) == 1, f"killed at step {step}: {found[0].text} and {found[1].text}"
            assert statuses <= ({200, 204, 500} if request.doubtful else {200, 204}), found[0].text
            assert request.times(behind) == 1, f"killed at step {step}: {found[0].text}"
            if survived:
                end(deadly)
                break
            for table in behind.list_tables("db"):
                behind.drop_table(table)
            behind.drop_namespace("db")
        else:
            pytest.fail("a request has more steps than the harness walks")
        end(other)
    assert (500 in told) == request.doubtful, "the harness met no kill after the change"


def die_with_a_key(folder: Path, key: str, ready: Any) -> None:
    keys = SharedKeys(Processes(folder), 1800)
    assert keys.begin("alice", key, "asked", 0) is Begun.NEW
    ready.set()
    time.sleep(600)


@pytest.mark.slow
def test_a_key_is_its_processes_until_that_dies(tmp_path: Path) -> None:
    context, key = forking(), str(uuid4())
    ready = context.Event()
    process = context.Process(target=die_with_a_key, args=(tmp_path, key, ready), daemon=True)
    process.start()
    assert ready.wait(60)
    keys = SharedKeys(Processes(tmp_path), 1800)
    with pytest.raises(Refused, match="under way"):
        keys.begin("alice", key, "asked", 0.05)
    process.kill()
    process.join()
    later = SharedKeys(Processes(tmp_path), 1800)  # in the place of the one that died
    assert keys.begin("alice", key, "asked", 5) is Begun.AGAIN
    with pytest.raises(Refused, match="under way"):
        later.begin("alice", key, "asked", 0.05)
    keys.end("alice", key, None)
    assert later.begin("alice", key, "asked", 5) is Begun.AGAIN
    later.end("alice", key, Answer(204))
    assert keys.begin("alice", key, "asked", 5) == Answer(204, b"")


# -- one store, whoever keeps it -------------------------------------------------------------------------------------


def test_shared_answers_take_no_more_room_than_they_may(tmp_path: Path) -> None:
    keys = SharedKeys(Processes(tmp_path), 1800, most_bytes=100_000)
    names = [str(uuid4()) for _ in range(50)]
    for name in names:
        assert keys.begin("alice", name, "asked", 0) is Begun.NEW
        keys.end("alice", name, Answer(200, os.urandom(10_000), {"ETag": '"x"'}))
    kept = [name for name in names if isinstance(keys.begin("alice", name, "asked", 0), Answer)]
    assert kept == names[-len(kept) :]
    assert 5 <= len(kept) < 12
    assert (tmp_path / "keys.db").stat().st_mode & 0o077 == 0


def test_shared_answers_end_with_their_time(tmp_path: Path) -> None:
    keys, key = SharedKeys(Processes(tmp_path), 0.2), str(uuid4())
    assert keys.begin("alice", key, "asked", 0) is Begun.NEW
    keys.end("alice", key, Answer(200, b"{}"))
    assert keys.begin("alice", key, "asked", 0) == Answer(200, b"{}")
    assert keys.begin("bob", key, "asked", 0) is Begun.NEW, "a key is for those who gave it"
    time.sleep(0.3)
    assert keys.begin("alice", key, "asked", 0) is Begun.NEW


@pytest.mark.parametrize("shared", [True, False])
def test_an_answer_that_is_given_again_has_credentials_that_are_not_kept(tmp_path: Path, shared: bool) -> None:
    place = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    given = {"s3.secret-access-key": "hush-hush"}
    folder = tmp_path / "shared"
    asking = {"X-Iceberg-Access-Delegation": "vended-credentials", "Idempotency-Key": str(uuid4())}
    with load_catalog("served", type="sql", **place) as catalog:
        catalog.create_namespace("db")
        vendor = StaticCredentials({f"file://{tmp_path}/warehouse": given})
        settings = Settings(vendor=vendor, shared=str(folder) if shared else None)
        with LocalClient(app(catalog, settings)) as client:
            body = {"name": "t", "schema": SCHEMA}
            found = [client.post("/v1/namespaces/db/tables", json=body, headers=asking) for _ in range(2)]
            bare = {"Idempotency-Key": asking["Idempotency-Key"]}
            assert "hush" not in client.post("/v1/namespaces/db/tables", json=body, headers=bare).text
    assert found[0].json() == found[1].json()
    assert found[1].json()["config"] == given
    assert found[1].json()["storage-credentials"][0]["config"] == given
    if shared:
        assert not any(b"hush" in path.read_bytes() for path in folder.iterdir())


def test_a_store_that_cannot_be_read_refuses_and_one_that_cannot_be_written_does_not_unsay(tmp_path: Path) -> None:
    keys, key = SharedKeys(Processes(tmp_path), 1800), str(uuid4())
    assert keys.begin("alice", key, "asked", 0) is Begun.NEW
    keys.close()
    keys.end("alice", key, Answer(204))
    with pytest.raises(Refused) as raised:
        keys.begin("alice", key, "asked", 0)
    assert raised.value.status == 503


def test_a_store_of_ones_own_keeps_the_answers(tmp_path: Path) -> None:
    class Store(IdempotencyStore):
        said: list[str] = []  # noqa: RUF012

        def begin(self, who: str, key: str, asked: str, timeout: float) -> Answer | Begun:
            self.said.append(f"begin {key}")
            return Begun.NEW

        def end(self, who: str, key: str, answer: Answer | None) -> None:
            self.said.append(f"end {key} {answer.status if answer else None}")

    with load_catalog("served", type="sql", uri="sqlite://", warehouse=f"file://{tmp_path}") as catalog:
        client = LocalClient(app(catalog, Settings(keys=Store())))
        client.post("/v1/namespaces", json={"namespace": ["a"]}, headers={"Idempotency-Key": "k"})
    assert Store.said == ["begin k", "end k 200"]


# -- counts ----------------------------------------------------------------------------------------------------------


def test_counts_of_processes_are_summed_and_those_of_the_dead_stay(tmp_path: Path) -> None:
    one, two = Processes(tmp_path), Processes(tmp_path)
    for each in (one, two):
        each.counts.add(("a", "b"), 2)
        each.counts.add(("now",))
    assert one.summed(frozenset({"now"})) == ({("a", "b"): 4, ("now",): 2}, 2)
    assert one.is_alive(two.own)
    two.close()
    assert one.summed(frozenset({"now"})) == ({("a", "b"): 4, ("now",): 1}, 1)
    assert not one.is_alive(two.own)
    three = Processes(tmp_path)
    three.counts.clear(("now",))
    three.counts.add(("a", "b"))
    assert one.summed(frozenset({"now"})) == three.summed(frozenset({"now"})) == ({("a", "b"): 5, ("now",): 1}, 2)
    assert not one.is_alive(two.own)
    assert one.is_alive(three.own)
    assert not any(one.is_alive(name) for name in ("", "x", "9.1", "1", "../1.1"))


def test_all_that_the_server_counts_has_room() -> None:
    counting = OneProcess()
    metrics = RequestMetrics(counting)
    statuses = [200, 204, 304, *range(400, 432), 499, *range(500, 505)]
    for endpoint in ENDPOINTS:
        for status in statuses:
            metrics.began()
            metrics.ended(endpoint.operation, status, 0.001)
    text = metrics.text()
    assert len(re.findall("icefield_rest_requests_total{", text)) == len(ENDPOINTS) * len(statuses)
    assert len(counting.counts.found()) < 2_000


def test_counts_of_long_names_or_too_many_are_left_out() -> None:
    counts = SharedCounts(bytearray(2048 * 128))
    for number in range(3_000):
        counts.add((f"n{number}",))
    counts.add(("x" * 200,))
    assert len(counts.found()) == 2_047
    counts.add(("n1",), 2.5)
    assert counts.found()["n1",] == 3.5


def test_a_folder_that_others_write_to_is_not_shared(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(InvalidArgument, match="no other may write"):
        Processes(tmp_path)


def test_folders_of_servers_that_were_killed_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left, young, used = (tmp_path / f"icefield-rest-server-{name}" for name in ("left", "young", "used"))
    for folder in (left, young, used):
        folder.mkdir(mode=0o700)
        (folder / "server").touch()
    held = Processes(used)
    for folder in (left, used):
        os.utime(folder, (1, 1))
    with shared_folder() as made:
        assert sorted(tmp_path.iterdir()) == sorted([made, young, used])
    assert sorted(tmp_path.iterdir()) == sorted([young, used])
    held.close()
