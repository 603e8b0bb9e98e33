"""The kit's model of faults strikes each request in turn, and its secrets are found wherever they show."""

from __future__ import annotations

import logging
import socket
import threading

import pytest
from icefield import MemoryFileSystem
from icefield.abc import PutMode
from icefield.errors import StorageError
from icefield_testing import FaultyFileSystem, LossyCalls, LossyProxy
from icefield_testing.fault_model import KINDS, CallFaults, Hold, late_request, walk
from icefield_testing.planted_secrets import PlantedSecret

# For each kind of fault at the second of three requests: the executed requests, and the failed ones.
STRUCK = {
    "lost request": ([0, 2], [1]),
    "lost reply": ([0, 1, 2], [1]),
    "stays down": ([0, 1], [1, 2]),
    "cut off": ([0], [1, 2]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_strikes_the_requests_of_its_kind(kind: str) -> None:
    calls, done, failed = LossyCalls(), [], []
    request = calls.wrap(done.append)
    calls.arm(KINDS[kind](1))
    for number in range(3):
        try:
            request(number)
        except ConnectionError:
            failed.append(number)
    assert (done, failed) == STRUCK[kind]


def test_a_late_request_fails_at_once_and_is_executed_when_it_is_delivered() -> None:
    calls, done = LossyCalls(), list[int]()
    request = calls.wrap(done.append)
    calls.arm(late_request(0))
    with pytest.raises(ConnectionError):
        request(1)
    request(2)
    assert done == [2]
    calls.deliver_late()
    calls.deliver_late()
    assert done == [2, 1]


def test_a_proxy_keeps_a_late_request_whole_for_the_server() -> None:
    got = list[bytes]()
    with socket.create_server(("127.0.0.1", 0)) as server, LossyProxy(server.getsockname()[1]) as proxy:
        proxy.arm(late_request(0))
        with socket.create_connection(("127.0.0.1", proxy.port)) as client:
            client.sendall(b"first half, ")
            client.sendall(b"second half")
            assert client.recv(100) == b""

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                got.append(connection.recv(100, socket.MSG_WAITALL))

        serving = threading.Thread(target=serve)
        serving.start()
        assert got == []
        proxy.deliver_late()
        serving.join(10)
    assert got == [b"first half, second half"]


def test_a_walk_ends_at_the_first_request_that_is_not_made() -> None:
    calls = CallFaults({"put"})
    system = FaultyFileSystem(MemoryFileSystem(), calls)
    struck = []
    for step in walk(calls, KINDS["lost request"], "lost request at"):
        with step:
            try:
                system.put("memory://fault-model/a", b"", PutMode.OVERWRITE)
                system.stat("memory://fault-model/a")
                system.put("memory://fault-model/b", b"", PutMode.OVERWRITE)
            except StorageError as error:
                struck.append((step.number, str(error.data["location"])))
    assert struck == [(0, "memory://fault-model/a"), (1, "memory://fault-model/b")]
    assert (step.number, step.reached) == (2, False)


def test_a_step_names_its_call() -> None:
    calls = CallFaults()
    system = FaultyFileSystem(MemoryFileSystem(), calls)
    step = next(walk(calls, KINDS["lost reply"], "lost reply at"))
    with step, pytest.raises(StorageError):
        system.put("memory://fault-model/a", b"", PutMode.OVERWRITE)
    assert str(step) == "lost reply at call 1 (put memory://fault-model/a) of 1"


def test_all_requests_stand_still_while_one_is_held_up() -> None:
    calls, order = LossyCalls(), list[str]()
    request = calls.wrap(order.append)
    heartbeat = threading.Thread(target=request, args=("heartbeat",))

    def meanwhile() -> None:
        heartbeat.start()
        heartbeat.join(0.05)
        order.append("rival")

    calls.arm(Hold(meanwhile).at(0))
    request("writer")
    heartbeat.join()
    assert order[0] == "rival"
    assert sorted(order[1:]) == ["heartbeat", "writer"]


@pytest.mark.parametrize("place", ["text", "data", "note", "cause", "context"])
def test_a_secret_is_found_in_each_part_of_an_error(place: str) -> None:
    secret = PlantedSecret()
    shown = f"password={secret.value}"
    error = StorageError(shown if place == "text" else "failed")
    if place == "data":
        error.data["options"] = {"password": secret.value}
    elif place == "note":
        error.add_note(shown)
    elif place == "cause":
        error.__cause__ = OSError(shown)
    elif place == "context":
        error.__context__ = OSError(shown)
    with pytest.raises(AssertionError, match="the secret of a property is in"):
        secret.check_error("a commit", error)
    PlantedSecret().check_error("a commit", error)


def test_a_secret_is_found_in_a_log_of_any_level(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = PlantedSecret()
    with pytest.raises(AssertionError, match="in the log of a commit"), secret.watching_logs("a commit"):
        logging.getLogger("icefield.test").debug("asked with %s", secret.planted({"a": "{secret}"}))
    monkeypatch.setattr(logging.getLogger("icefield.quiet"), "level", logging.WARNING)
    with pytest.raises(AssertionError, match="in the log of a commit"), secret.watching_logs("a commit"):
        logging.getLogger("icefield.quiet").debug("asked with %s", secret.planted({"a": "{secret}"}))
    assert logging.getLogger("icefield.quiet").level == logging.WARNING
    with secret.watching_logs("a commit"):
        logging.getLogger("icefield.test").debug("asked")
