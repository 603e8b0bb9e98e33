"""Queries in processes of their own: the same results, and an end at every limit while the server lives on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import icefield
import icefield_frames.query_processes as query_processes
import pyarrow as pa
import pytest
from frame_tables import files_planned
from icefield.errors import FileMissing, InvalidArgument, NoSuchTable
from icefield.types import NestedField
from icefield_frames.duckdb_queries import QueryLimits, querying
from icefield_frames.duckdb_relations import query_table
from icefield_frames.query_processes import QueriesBusy, QueryProcesses
from tables import Listener

ENDLESS = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range + b.range = 7"
LIMITS = QueryLimits(seconds=60.0, memory=256_000_000, threads=2, rows=1000)

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture(scope="module")
def heard() -> Listener:
    return Listener()


@pytest.fixture(scope="module")
def catalog(heard: Listener) -> icefield.Catalog:
    plugins = icefield.Plugins.installed(extra=[heard])
    place = {"uri": "sqlite://", "warehouse": f"memory://{uuid4().hex}"}
    catalog = icefield.load_catalog("lake", type="sql", plugins=plugins, **place)
    catalog.create_namespace("db")
    rows = pa.table({"id": [*range(100)], "kind": ["a", "b"] * 50, "x": [0.5] * 98 + [float("nan"), None]})
    catalog.create_table_as("db.t", rows)
    catalog.create_table("db.u", icefield.Schema(NestedField(1, "u", "uuid"))).append([{"u": uuid4()}, {"u": None}])
    return catalog


@pytest.fixture(scope="module")
def queries() -> QueryProcesses:
    return QueryProcesses(LIMITS, 2)


def asked(queries: QueryProcesses, sql: str, scan_of: Any = None, gone: Future[None] | None = None) -> pa.Table:
    with queries.querying(sql, scan_of, gone) as found:
        return found.read_all()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 AS a, 2 AS a",
        "SELECT * FROM db.t",
        "SELECT kind, count(*) AS n, sum(x) FROM db.t WHERE id > 3 AND x < 'nan'::DOUBLE GROUP BY kind ORDER BY kind",
        "SELECT id FROM db.t WHERE x > 1 OR kind IN ('c') OR x IS NULL ORDER BY id",
        "SELECT count(*) FROM db.t a JOIN db.t b USING (id) WHERE a.id % 2 = 0",
        "SELECT id FROM db.t WHERE id < 2 UNION ALL SELECT id FROM db.t WHERE id > 97 ORDER BY id",
        "SELECT *, u::VARCHAR FROM db.u",
        "SELECT 1::HUGEINT AS h, 'a'::ENUM('a', 'b') AS e, [1, NULL] AS l, {'a': 1} AS s, INTERVAL 1 DAY AS i",
        "SELECT repeat('x', range::INT) AS s FROM range(900)",
        "SELECT * FROM range(1000000000)",
        "SELECT * FROM range(0)",
    ],
)
def test_a_result_is_that_of_a_query_in_the_same_process(
    queries: QueryProcesses, catalog: icefield.Catalog, sql: str
) -> None:
    def scan_of(name: tuple[str, ...]) -> Any:
        return catalog.load_table(name).scan()

    with querying(sql, lambda name: query_table(scan_of(name)), LIMITS) as reader:
        expected = reader.read_all()
    found = asked(queries, sql, scan_of)
    assert found.schema == expected.schema
    assert repr(found.to_pylist()) == repr(expected.to_pylist())


def test_columns_and_filters_reach_the_scan_of_the_server(
    queries: QueryProcesses, catalog: icefield.Catalog, heard: Listener
) -> None:
    table = catalog.load_table("db.t")
    assert asked(queries, "SELECT id FROM db.t WHERE id > 1000", lambda _: table.scan()).num_rows == 0
    assert files_planned(heard) == 0


def test_errors_of_tables_are_those_of_the_server(queries: QueryProcesses, tmp_path: Path) -> None:
    catalog = icefield.load_catalog("c", type="directory", warehouse=tmp_path.as_uri())
    catalog.create_namespace("db")
    catalog.create_table_as("db.t", pa.table({"id": [1]}))
    for file in catalog.load_table("db.t").inspect.files()["file_path"].to_pylist():
        Path(file.removeprefix("file://")).unlink()
    for name, error in (("t", FileMissing), ("none", NoSuchTable)):
        with pytest.raises(error):
            asked(queries, f"SELECT sum(id) FROM db.{name}", lambda name: catalog.load_table(name).scan())
    with pytest.raises(PermissionError, match="not yours"):
        asked(queries, "SELECT * FROM db.t", lambda name: (_ for _ in ()).throw(PermissionError("not yours")))


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT 1 +", "sql takes one query: syntax error"),
        ("SELECT * FROM '/etc/passwd'", "DuckDB: .*does not exist"),
        ("SELECT * FROM read_text('/etc/passwd')", "without DuckDB's function read_text"),
        ("SELECT 'x'::INT FROM range(2)", "DuckDB: Conversion Error"),
        ("SELECT error('said')", "DuckDB: .*said"),
        ("SELECT * FROM db.t WHERE kind = repeat('x', 5000000)", "a filter of the query has more than 4,194,304 bytes"),
        ("SELECT repeat('x', 40000000)", "a row of the result has more than 33,554,432 bytes"),
    ],
)
def test_an_error_of_a_query_is_one_message(
    queries: QueryProcesses, catalog: icefield.Catalog, sql: str, message: str
) -> None:
    with pytest.raises(InvalidArgument, match=message) as raised:
        asked(queries, sql, lambda name: catalog.load_table(name).scan())
    assert "Traceback" not in str(raised.value)


ATTACKS = {
    "a long value": "SELECT repeat('x', 1000000000)",
    "long values": "SELECT length(repeat('x', 1000000000) || repeat('y', 1000000000))",
    "an aggregate": "SELECT length(string_agg(repeat('x', 1000000))) FROM range(3000)",
    "a list": "SELECT len(list(repeat('x', 100000))) FROM range(50000)",
    "a long list": "SELECT len(range(300000000))",
    "recursion": "WITH RECURSIVE r AS (SELECT repeat('x', 1000) AS s UNION ALL SELECT s || s FROM r "
    "WHERE length(s) < 4000000000) SELECT max(length(s)) FROM r",
    "a padded number": "SELECT length(printf('%2000000000d', 1))",
    "a joined list": "SELECT length(array_to_string(range(100000000), ','))",
    "groups": "SELECT list(range) FROM range(500000000) GROUP BY range % 7",
    "a constant of a filter": "SELECT * FROM db.t WHERE kind = repeat('x', 100000000)",
}


@linux
@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_query_beyond_its_memory_ends_alone(queries: QueryProcesses, catalog: icefield.Catalog, attack: str) -> None:
    asked(queries, "SELECT 1")
    before, most, ended = resident(), 0, threading.Event()

    def watch() -> None:
        nonlocal most
        while not ended.wait(0.01):
            most = max(most, resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    errors: list[BaseException] = []

    def attacked() -> None:
        try:
            asked(queries, ATTACKS[attack], lambda name: catalog.load_table(name).scan())
        except InvalidArgument as error:
            errors.append(error)

    attacker = threading.Thread(target=attacked)
    attacker.start()
    meanwhile = 0
    while attacker.is_alive() or not meanwhile:
        assert asked(queries, f"SELECT {meanwhile} AS n").to_pylist() == [{"n": meanwhile}]
        meanwhile += 1
    ended.set()
    watcher.join()
    (error,) = errors
    assert str(error) == "the query was stopped: it needs more memory than 256 MB"
    assert most - before < 50_000_000


def resident() -> int:
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    "sql",
    [
        ENDLESS,
        "SELECT list_transform([1], x -> levenshtein(repeat('a', 100000), repeat('b', 100000)))",
        "SELECT length(lpad('x', 200000000, 'y')) + regexp_replace(repeat('x', 9000000), 'x', 'yy', 'g')::INT",
    ],
)
def test_a_query_ends_at_its_time_whatever_its_process_does(monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    ended, ends = threading.Event(), query_processes._end

    def end(process: subprocess.Popen[bytes]) -> None:
        assert ended.wait(60)
        ends(process)

    monkeypatch.setattr(query_processes, "_end", end)  # so nothing waits for the end of the process
    began = time.monotonic()
    with pytest.raises(InvalidArgument, match="the query was stopped after 4 s"):
        asked(QueryProcesses(replace(LIMITS, seconds=4.0), 2), sql)
    assert time.monotonic() - began >= 4
    ended.set()


def test_a_table_that_is_read_too_slowly_ends_its_query_in_time_and_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(query_processes, "_MOST_LEFT", 1)
    entered, held = threading.Semaphore(0), threading.Event()
    queries = QueryProcesses(LIMITS, 1)

    def scan_of(_: tuple[str, ...]) -> None:
        entered.release()
        held.wait(600)

    def is_left_while_it_reads() -> bool:
        began = time.monotonic()
        with pytest.raises(InvalidArgument, match="stopped after 8 s"):
            asked(queries, "SELECT * FROM db.t", scan_of)
        assert time.monotonic() - began >= 8
        return entered.acquire(blocking=False)  # otherwise its process began too late to read the table

    for left in (1, 2):
        queries.limits = replace(LIMITS, seconds=8.0)
        assert eventually(is_left_while_it_reads)
        queries.limits = LIMITS
        if left < 2:
            assert eventually(lambda: asked(queries, "SELECT 1").num_rows == 1)
    with pytest.raises(QueriesBusy):  # two threads still read: there are no more of them
        asked(queries, "SELECT 1")
    held.set()
    assert eventually(lambda: asked(queries, "SELECT 1").num_rows == 1)


@pytest.mark.slow
def test_many_tables_that_are_not_read_keep_no_query_from_starting() -> None:
    queries, held = QueryProcesses(LIMITS, 1), threading.Event()
    try:
        for _ in range(20):
            gone: Future[None] = Future()

            def scan_of(_: tuple[str, ...], gone: Future[None] = gone) -> None:
                gone.set_result(None)
                held.wait(600)

            with pytest.raises(InvalidArgument, match="the query was stopped"):
                asked(queries, "SELECT * FROM db.t", scan_of, gone)
        assert asked(queries, "SELECT 1").num_rows == 1
    finally:
        held.set()


def test_a_result_that_arrow_does_not_hold_is_an_error_of_the_query(queries: QueryProcesses) -> None:
    with pytest.raises(InvalidArgument, match="does not fit in precision"):
        asked(queries, "SELECT 170141183460469231731687303715884105727::HUGEINT AS large")


def test_a_query_ends_when_its_client_is_gone(queries: QueryProcesses) -> None:
    gone: Future[None] = Future()
    threading.Timer(0.5, gone.set_result, (None,)).start()
    with pytest.raises(InvalidArgument, match=r"the query was stopped$"):  # and not at the end of its time
        asked(queries, ENDLESS, None, gone)


def test_a_result_that_is_left_ends_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    queries, processes, started = QueryProcesses(LIMITS, 2), list[subprocess.Popen[bytes]](), QueryProcesses._started

    def noted(self: QueryProcesses) -> tuple[subprocess.Popen[bytes], float]:
        found = started(self)
        if self is queries:  # threads of earlier tests may still start processes
            processes.append(found[0])
        return found

    monkeypatch.setattr(QueryProcesses, "_started", noted)
    for _ in range(5):
        with queries.querying("SELECT repeat('x', 100000) FROM range(900)", lambda _: None) as found:
            assert next(iter(found)).num_rows > 0
    assert eventually(lambda: len(processes) > 1 and sum(each.poll() is None for each in processes) <= 1)


def test_the_process_that_waits_ends_when_nobody_can_ask_it() -> None:
    def waiting() -> subprocess.Popen[bytes]:
        queries = QueryProcesses(LIMITS, 1)
        asked(queries, "SELECT 1")
        assert eventually(lambda: queries._waiting is not None)
        assert queries._waiting is not None
        return queries._waiting[0]

    process = waiting()
    assert eventually(lambda: process.poll() is not None)


@linux
@pytest.mark.parametrize("sql", [ENDLESS, "SELECT 1"])
def test_a_process_has_no_secret_and_ends_with_its_server(sql: str) -> None:
    """Both while its query runs, and while it waits for one, which it does once another query ended."""
    program = """
import sys
from icefield_frames.duckdb_queries import QueryLimits
from icefield_frames.query_processes import QueryProcesses
with QueryProcesses(QueryLimits(300.0, 256_000_000, 2, 7), 2).querying(sys.argv[1], None) as found:
    found.read_all()
sys.stdin.read()
"""
    environment = {**os.environ, "AWS_SECRET_ACCESS_KEY": "tr0ub4dor"}
    with subprocess.Popen([sys.executable, "-c", program, sql], env=environment, stdin=subprocess.PIPE) as server:
        assert eventually(lambda: [b"PYTHONPATH=" in each for each in children(server.pid).values()] == [True])
        ((child, found),) = children(server.pid).items()
        assert b"tr0ub4dor" not in found
        assert b"HOME=" not in found
        server.send_signal(signal.SIGKILL)
    assert eventually(lambda: not Path(f"/proc/{child}/environ").exists())


@linux
def test_a_process_writes_no_file(tmp_path: Path) -> None:
    program = """
import sys
from icefield_frames.query_program import bound_memory
bound_memory(10**9)
with open(sys.argv[1], "wb") as file:
    file.write(b"x")
"""
    ended = subprocess.run([sys.executable, "-c", program, tmp_path / "x"], capture_output=True, check=False)
    assert ended.returncode != 0
    assert (tmp_path / "x").read_bytes() == b""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not bound the memory")
def test_a_process_ends_by_itself_where_the_system_does_not_refuse_memory() -> None:
    program = """
import threading, duckdb
from icefield_frames.query_program import end_beyond
threading.Thread(target=end_beyond, args=(200_000_000,), daemon=True).start()
duckdb.sql("SELECT length(repeat('x', 2000000000))").fetchall()
print("lives")
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (ended.returncode, ended.stdout) == (75, b"")


def children(pid: int) -> dict[str, bytes]:
    """The processes of queries that a process started, with their environments."""
    found = {}
    for each in Path("/proc").glob("[0-9]*"):
        try:
            parent = (each / "stat").read_text("utf-8").rpartition(")")[2].split()[1]
            command = (each / "cmdline").read_bytes()
            if int(parent) == pid and b"icefield_frames.query_program" in command:
                found[each.name] = (each / "environ").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def eventually(holds: Any) -> bool:
    """Whether a condition holds within a minute: a busy machine starts processes slowly."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            if holds():
                return True
        except QueriesBusy:
            continue
        time.sleep(0.1)
    return False
