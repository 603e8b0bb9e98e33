"""What is said of a commit to PostgreSQL is so when the connection breaks, whichever message is lost or unanswered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from icefield import Catalog, Table, load_catalog
from icefield.abc import Proposal
from icefield.errors import CommitStateUnknown, IcefieldError
from icefield_sql.strategy import SqlStrategy
from rpc_between import RpcBetween
from servers.postgres import new_database
from sqlalchemy import make_url

SCHEMA = pa.schema([("n", pa.int64())])
# As many look-ups after a lost reply as ever, but milliseconds apart and not 1, 2 and 4 seconds.
QUICK = {"commit.retry.num-retries": "0", "commit.status-check.min-wait-ms": "20"}


@pytest.fixture
def database(postgres: str) -> str:
    return new_database(postgres)


@pytest.fixture
def between(database: str) -> Iterator[RpcBetween]:
    with RpcBetween(int(make_url(database).port or 0)).open() as relay:
        yield relay


@pytest.fixture
def direct(database: str, tmp_path: Path) -> Iterator[Catalog]:
    given = {"type": "sql", "uri": database, "warehouse": f"file://{tmp_path}/warehouse", "file.sync": "false"}
    with load_catalog("test", **given) as catalog:
        yield catalog


@pytest.fixture
def faulty(between: RpcBetween, direct: Catalog, database: str) -> Iterator[Catalog]:
    """The same catalog through a relay that loses what a test says."""
    uri = make_url(database).set(port=between.port).render_as_string(hide_password=False)
    with load_catalog("test", **{**direct.properties, "uri": uri}) as catalog:
        yield catalog


@pytest.fixture
def table(direct: Catalog) -> Table:
    direct.create_namespace("db")
    return direct.create_table("db.t", SCHEMA, properties=QUICK)


def rows(*numbers: int) -> pa.Table:
    return pa.table({"n": [*numbers]}, schema=SCHEMA)


def held_by(table: Table) -> list[int]:
    return sorted(table.refresh().scan().to_arrow().column("n").to_pylist())


@pytest.fixture(params=[True, False], ids=["request", "reply"])
def lose(request: pytest.FixtureRequest, between: RpcBetween, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Lose a message of the change of the pointer, or the reply to it."""

    def arm(message: str) -> None:
        swap = SqlStrategy.swap_pointer

        def armed(self: SqlStrategy, old: str | None, new: str, proposal: Proposal) -> bool:
            monkeypatch.undo()
            between.lose(message, before=request.param)
            return swap(self, old, new, proposal)

        monkeypatch.setattr(SqlStrategy, "swap_pointer", armed)

    return arm


def said_of(action: Callable[[], object]) -> bool | None:
    """Whether it is said to be done; None when it is said to be unknown."""
    try:
        action()
    except CommitStateUnknown:
        return None
    except IcefieldError:
        return False
    return True


@pytest.mark.spec("COMMIT-18", "COMMIT-01")
@pytest.mark.parametrize("message", ["BEGIN", "UPDATE iceberg_tables", "COMMIT"])
def test_what_is_said_of_an_append_is_so(
    between: RpcBetween, faulty: Catalog, table: Table, lose: Callable[[str], None], message: str
) -> None:
    seen = faulty.load_table(table.name())
    lose(message)
    said = said_of(lambda: seen.append(rows(1)))
    assert between.struck == 1
    held = held_by(table)
    assert (said, held) in ((None, []), (True, [1]))
    table.append(rows(2))
    assert held_by(table) == [*held, 2]


@pytest.mark.spec("COMMIT-18", "COMMIT-30")
@pytest.mark.parametrize("message", ["BEGIN", "INSERT INTO iceberg_tables", "COMMIT"])
def test_what_is_said_of_a_creation_is_so(
    between: RpcBetween, direct: Catalog, faulty: Catalog, table: Table, lose: Callable[[str], None], message: str
) -> None:
    faulty.list_tables("db")
    lose(message)
    said = said_of(lambda: faulty.create_table("db.new", SCHEMA))
    assert between.struck == 1
    there = direct.table_exists("db.new")
    assert (said, there) in ((None, False), (True, True))
    if there:
        direct.load_table("db.new").append(rows(1))
    else:
        direct.create_table("db.new", SCHEMA)
