"""One fault, or many, at each request of a plan that the service makes: all rows, or one error in time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa
import pytest
from http_between import Answered, Asked, Behaviour, Between, Forward, answer, lose_reply, lose_request, slow
from icefield import Catalog, Table, load_catalog
from icefield.errors import IcefieldError
from icefield_rest_server import Settings, app
from rest_served import served, with_table

SCHEMA = pa.schema([("id", pa.int64())])
PATIENCE = 1.0
WAITS = {
    "scan-planning-mode": "server",
    "rest.retry.min-wait-ms": "1",
    "rest.retry.max-wait-ms": "10",
    "rest.retry.num-retries": "3",
    "rest.client.socket-timeout-ms": str(int(PATIENCE * 1_000)),
    "rest.planning.timeout-ms": "20000",
}
FILES, ROWS = 7, 14


def late(asked: Asked, forward: Forward) -> Answered | None:
    """The reply comes when nobody waits for it any more."""
    return slow(PATIENCE * 1.5)(asked, forward)


def cut(asked: Asked, forward: Forward) -> Answered | None:
    """The reply breaks off; one without a body is lost."""
    found = forward(asked)
    return replace(found, cut=len(found.body) // 2) if found.body else None


def twice(asked: Asked, forward: Forward) -> Answered | None:
    """Something on the way sends the request twice, and gives the second reply."""
    forward(asked)
    return forward(asked)


def half(asked: Asked, forward: Forward) -> Answered | None:
    """A proxy gives a reply that is whole to the connection and breaks off in its JSON."""
    found = forward(asked)
    return Answered(found.status, {"Content-Type": "application/json"}, b'{"status":"completed","file-scan-ta')


def empty(asked: Asked, forward: Forward) -> Answered | None:
    """A proxy says that all is well, and nothing else."""
    return Answered(200)


PASSES: dict[str, Behaviour] = {
    "request lost": lose_request,
    "reply lost": lose_reply,
    "reply cut": cut,
    "reply late": late,
    "sent twice": twice,
    **{str(status): answer(status) for status in (429, 502, 503, 504)},
}
STAYS: dict[str, Behaviour] = {
    "half a text": half,
    "nothing": empty,
    **{str(status): answer(status) for status in (404, 419, 500)},
}
FAULTS = PASSES | STAYS


class Planner:
    """Makes the service plan later: it names a plan, is asked for it twice, and has done it then."""

    def __init__(self, between: Between) -> None:
        self._looks = 0
        self._between = between
        between.server = self.serve

    def serve(self, asked: Asked, forward: Forward) -> Answered | None:
        """What the service answers, had it planned in its own time."""
        path = asked.path.partition("?")[0]
        if asked.method == "POST" and path.endswith("/plan"):
            self._first, self._looks = asked, 0
            return said({"status": "submitted", "plan-id": "p1"})
        if path.endswith("/plan/p1"):
            if asked.method == "DELETE":
                return Answered(204)
            self._looks += 1
            return said({"status": "submitted"}) if self._looks < 2 else forward(self._first)
        return forward(asked)


def said(body: object) -> Answered:
    return Answered(200, {"Content-Type": "application/json"}, json.dumps(body).encode())


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a table of seven files and deletes of rows, two files to an answer."""
    with with_table(tmp_path_factory.mktemp("served"), SCHEMA) as (catalog, table):
        for number in range(FILES):
            table.append(pa.table({"id": [2 * number, 2 * number + 1]}, SCHEMA))
        table.delete("id in (1, 4, 7, 12)")
        with served(app(catalog, Settings(max_plan_page=2))) as address:
            yield address


@pytest.fixture
def between(service: str) -> Iterator[Between]:
    with Between(service).open() as made:
        yield made


@pytest.fixture
def catalog(between: Between) -> Iterator[Catalog]:
    with load_catalog("test", type="rest", uri=between.url, **WAITS) as made:
        yield made


@pytest.fixture
def table(catalog: Catalog, between: Between) -> Table:
    found = catalog.load_table("db.t")
    assert ids(found) == WANTED
    Planner(between)
    return found


WANTED = [number for number in range(ROWS) if number not in (1, 4, 7, 12)]


def ids(table: Table) -> list[int]:
    found: list[int] = sorted(table.scan().to_arrow()["id"].to_pylist())
    return found


def nth(method: str, end: str, number: int) -> Callable[[Asked], bool]:
    """The requests of one kind from a certain one on."""
    seen = [0]

    def is_one(asked: Asked) -> bool:
        if asked.method != method or not asked.path.partition("?")[0].endswith(end):
            return False
        seen[0] += 1
        return seen[0] > number

    return is_one


REQUESTS = {
    "start": ("POST", "/plan", 0),
    "poll": ("GET", "/plan/p1", 0),
    "poll again": ("GET", "/plan/p1", 1),
    "first tasks": ("POST", "/tasks", 0),
    "later tasks": ("POST", "/tasks", 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", PASSES)
@pytest.mark.parametrize("name", REQUESTS)
def test_a_fault_that_passes_loses_no_rows(between: Between, table: Table, name: str, fault: str) -> None:
    method, end, number = REQUESTS[name]
    before = len(between.asked)
    is_one = nth(method, end, number)
    between.faulty(PASSES[fault], is_one)
    assert ids(table) == WANTED
    after = [each for each in between.asked[before:] if each.path.partition("?")[0].endswith(end)]
    assert len(after) > number, "the fault was met"


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", REQUESTS)
def test_a_fault_that_stays_is_one_error_in_time(between: Between, table: Table, name: str, fault: str) -> None:
    method, end, number = REQUESTS[name]
    between.faulty(FAULTS[fault], nth(method, end, number), None)
    began = time.monotonic()
    if fault == "sent twice":
        assert ids(table) == WANTED
    else:
        with pytest.raises(IcefieldError, match=r"planning a scan of db\.t"):
            ids(table)
        if name != "start":
            cancels = [each for each in between.asked if each.method == "DELETE"]
            assert len(cancels) == 1, "the plan is not wanted any more, and the service is told so"
    assert time.monotonic() - began < 20


@pytest.mark.slow
@pytest.mark.parametrize("fault", STAYS)
@pytest.mark.parametrize("name", REQUESTS)
def test_an_answer_that_is_wrong_once_is_an_error_or_all_rows(
    between: Between, table: Table, name: str, fault: str
) -> None:
    method, end, number = REQUESTS[name]
    between.faulty(STAYS[fault], nth(method, end, number))
    found, said = WANTED, ""
    try:
        found = ids(table)
    except IcefieldError as error:
        said = str(error)
    assert found == WANTED
    assert not said or "planning a scan of db.t" in said


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_plan_that_cannot_be_cancelled_concerns_nobody(between: Between, table: Table, fault: str) -> None:
    between.faulty(FAULTS[fault], nth("DELETE", "/plan/p1", 0), None)
    tasks = table.scan().plan_files()
    next(tasks)
    began = time.monotonic()
    tasks.close()
    assert time.monotonic() - began < 20
    assert any(each.method == "DELETE" for each in between.asked)
    assert ids(table) == WANTED


@pytest.mark.slow
@pytest.mark.parametrize("end", ["/plan", "/plan/p1", "/tasks"])
def test_rows_that_are_read_while_a_plan_breaks_off_are_followed_by_its_error(
    between: Between, table: Table, end: str
) -> None:
    method = "GET" if end == "/plan/p1" else "POST"
    between.faulty(answer(500), nth(method, end, 1 if end == "/tasks" else 0), None)
    with pytest.raises(IcefieldError):
        for _ in table.scan().to_arrow_batch_reader():
            pass
    with pytest.raises(IcefieldError):
        table.scan().count()
