"""Servers that are killed while they commit, and many clients of two servers over one catalog: nothing is lost."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path

import pyarrow as pa
import pytest
from catalogs import properties_of
from census import present, referenced
from forked import forking
from icefield import Table, load_catalog
from icefield.errors import CommitStateUnknown
from killing import STATEMENTS, SWAP
from many_writers import RETRIES, SCHEMA
from rest_process import begin, end
from servers.postgres import new_database
from servers.process import listening, uri_of

STEPS = (*SWAP, *STATEMENTS)
EACH = 1 if os.environ.get("ICEFIELD_SOAK") else 9  # of the steps that a kill falls on
CLIENTS, COMMITS, KILLS = (16, 50, 12) if os.environ.get("ICEFIELD_SOAK") else (6, 8, 2)
Row = tuple[int, int]


def made(properties: Mapping[str, str]) -> Table:
    """A table without rows, whose writers try again often."""
    catalog = load_catalog("served", **properties)
    catalog.create_namespace("db")
    return catalog.create_table("db.t", SCHEMA, properties=RETRIES)


def rows_of(table: Table) -> list[Row]:
    return sorted((row["writer"], row["number"]) for row in table.refresh().scan().to_arrow().to_pylist())


def append(uri: str, writer: int, numbers: range) -> dict[Row, bool]:
    """The rows that a client appended, one a commit: True for those that it knows to be there."""
    told = {}
    with load_catalog("client", type="rest", uri=uri) as catalog:
        table = catalog.load_table("db.t")
        for number in numbers:
            try:
                table.append(pa.table({"writer": [writer], "number": [number]}, SCHEMA))
                told[writer, number] = True
            except CommitStateUnknown:
                told[writer, number] = False
                table = catalog.load_table("db.t")
    return told


def check_line(table: Table) -> None:
    """The history is one line, a snapshot for each row."""
    snapshots = table.snapshots()
    assert [snapshot.sequence_number for snapshot in snapshots] == list(range(1, len(snapshots) + 1))
    parents = [None, *(snapshot.snapshot_id for snapshot in snapshots[:-1])]
    assert [snapshot.parent_snapshot_id for snapshot in snapshots] == parents
    assert len(snapshots) == len(rows_of(table))


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.spec("COMMIT-02", "COMMIT-24")
def test_a_server_that_is_killed_at_any_step_of_a_commit_loses_nothing(tmp_path: Path) -> None:
    properties = properties_of("sql", tmp_path)
    behind = made(properties)
    seen = set()
    with listening() as address:
        for step in range(1, 1000, EACH):
            row = (0, step)
            server = begin(properties, address, deadly=step, also=STEPS)
            with replaced(server, properties, address, lambda: rows_of(behind)) as at_death:
                told = append(uri_of(address), 0, range(step, step + 1))
                survived = server.is_alive()
                end(server)
            seen.add(None if survived else row in at_death[0])
            # The next server shows what became of it, so the client is not in doubt; nothing happens twice.
            assert told == {row: True}, f"killed at step {step}"
            assert rows_of(behind).count(row) == 1, f"killed at step {step}"
            if survived:
                break
        else:
            pytest.fail("a commit has more steps than the harness walks")
    assert seen == {False, True, None}, "the harness met no kill on one side of the commit"
    check_line(behind)


@contextmanager
def replaced(
    server: BaseProcess, properties: Mapping[str, str], address: socket.socket, look: Callable[[], list[Row]]
) -> Iterator[list[list[Row]]]:
    """Begin another server at the address when one has died, and end it with the block; the rows at its death."""
    began: list[BaseProcess] = []
    at_death: list[list[Row]] = []

    def begin_another() -> None:
        server.join()
        at_death.append(look())
        began.append(begin(properties, address))

    thread = threading.Thread(target=begin_another)
    thread.start()
    try:
        yield at_death
    finally:
        thread.join()
        for other in began:
            end(other)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.soak)])
def properties(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """The properties of a catalog that several servers share."""
    given = properties_of("sql", tmp_path)
    if request.param == "postgres":
        given["uri"] = new_database(request.getfixturevalue("postgres"))
    return given


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.spec("COMMIT-01", "COMMIT-03", "COMMIT-13")
@pytest.mark.parametrize("kills", [0, pytest.param(KILLS, marks=pytest.mark.soak)])
def test_no_commit_of_many_clients_of_two_servers_is_lost(properties: dict[str, str], kills: int) -> None:
    behind = made(properties)
    with listening() as one, listening() as two, forking().Pool(CLIENTS) as pool:
        servers = [begin(properties, address) for address in (one, two)]
        work = [(uri_of((one, two)[writer % 2]), writer, range(COMMITS)) for writer in range(CLIENTS)]
        ended = pool.starmap_async(append, work, chunksize=1)
        for kill in range(kills):
            ended.wait(1 + kill % 3)
            servers[kill % 2].kill()
            servers[kill % 2].join()
            servers[kill % 2] = begin(properties, (one, two)[kill % 2])
        told = {row: known for each in ended.get(1800) for row, known in each.items()}
        for server in servers:
            end(server)
    found = rows_of(behind)
    assert len(told) == CLIENTS * COMMITS
    assert len(found) == len(set(found))
    assert {row for row, known in told.items() if known} <= set(found)
    assert set(found) <= told.keys()
    check_line(behind)
    if not kills:
        assert all(told.values()), "a client was in doubt, and nothing had failed"
        assert present(behind) == referenced(behind)
