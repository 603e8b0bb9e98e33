"""Whatever becomes of a request, what the client says of a change is so, and nothing is done twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from http_between import Answered, Asked, Behaviour, Between, Forward, answer, lose_reply, lose_request
from icefield import Catalog, load_catalog
from icefield.errors import CommitStateUnknown, IcefieldError, NoSuchTable, TableExists
from servers.java_rest import drop_everything

SCHEMA = pa.schema([("id", pa.int64())])
ROWS = pa.table({"id": [1, 2, 3]}, schema=SCHEMA)
WAITS = {"rest.retry.min-wait-ms": "1", "rest.retry.max-wait-ms": "10", "rest.retry.num-retries": "3"}
QUICK = {"commit.retry.min-wait-ms": 1, "commit.status-check.min-wait-ms": 1, "commit.status-check.num-retries": 1}


def cut(asked: Asked, forward: Forward) -> Answered | None:
    """The server does it, and the reply breaks off."""
    found = forward(asked)
    return Answered(found.status, found.headers, found.body, cut=len(found.body) // 2) if found.body else None


def twice(asked: Asked, forward: Forward) -> Answered | None:
    """Something on the way sends the request twice, and gives the second reply."""
    forward(asked)
    return forward(asked)


def done_and(status: int) -> Behaviour:
    """The server does it, and a gateway says that it failed."""

    def behave(asked: Asked, forward: Forward) -> Answered | None:
        forward(asked)
        return Answered(status)

    return behave


FAULTS: dict[str, Behaviour] = {
    "request lost": lose_request,
    "reply lost": lose_reply,
    "reply cut": cut,
    "sent twice": twice,
    **{f"refused by {status}": answer(status) for status in (419, 429, 500, 502, 503, 504)},
    **{f"done, and {status}": done_and(status) for status in (500, 502, 503, 504)},
}
CERTAIN = ("refused by 419", "refused by 429")
"""Faults after which it is known that nothing was done."""


@pytest.fixture
def between(java_rest: str) -> Iterator[Between]:
    drop_everything(java_rest)
    with Between(java_rest).open() as made:
        yield made


@pytest.fixture
def catalog(between: Between) -> Iterator[Catalog]:
    with load_catalog("test", type="rest", uri=between.url, **WAITS) as made:
        made.create_namespace("db")
        yield made


def is_request(method: str, end: str) -> Callable[[Asked], bool]:
    return lambda asked: asked.method == method and asked.path.partition("?")[0].endswith(end)


def attempted(act: Callable[[], object]) -> bool | None:
    """Whether a change is said to be made; None where it is said that nobody knows."""
    try:
        act()
    except CommitStateUnknown:
        return None
    except (TableExists, NoSuchTable) as error:
        raise AssertionError(f"nobody else was there: {error}") from error
    except IcefieldError as error:
        return None if "may have been done or not" in str(error) else False
    return True


@pytest.mark.parametrize("fault", FAULTS)
def test_a_commit_is_there_once_when_it_is_said_to_be(catalog: Catalog, between: Between, fault: str) -> None:
    table = catalog.create_table("db.t", SCHEMA, properties=QUICK)
    between.faulty(FAULTS[fault], is_request("POST", "/tables/t"))
    said = attempted(lambda: table.append(ROWS))
    rows = catalog.load_table("db.t").scan().to_arrow().num_rows
    snapshots = len(catalog.load_table("db.t").snapshots())
    assert rows == 3 * snapshots
    assert snapshots <= 1
    if said is None:
        assert fault not in CERTAIN, "it is known that nothing was done"
        assert snapshots == 0, "the table shows the snapshot: the outcome is known"
    else:
        assert (snapshots == 1) is said


@pytest.mark.parametrize("fault", FAULTS)
def test_a_change_of_properties_is_said_to_be_what_it_is(catalog: Catalog, between: Between, fault: str) -> None:
    table = catalog.create_table("db.t", SCHEMA, properties=QUICK)
    between.faulty(FAULTS[fault], is_request("POST", "/tables/t"))
    said = attempted(lambda: table.set_properties({"x": "1"}))
    done = catalog.load_table("db.t").properties.get("x") == "1"
    assert said is done if said is not None else not done


@pytest.mark.parametrize("fault", FAULTS)
def test_a_table_is_created_when_it_is_said_to_be(catalog: Catalog, between: Between, fault: str) -> None:
    if fault == "sent twice":
        pytest.skip("without keys of requests the second reply cannot be distinguished from another creator's")
    between.faulty(FAULTS[fault], is_request("POST", "/namespaces/db/tables"))
    said = attempted(lambda: catalog.create_table("db.t", SCHEMA))
    if said is not None:
        assert catalog.table_exists("db.t") is said


@pytest.mark.parametrize("fault", FAULTS)
def test_a_table_that_is_created_with_rows_is_settled(catalog: Catalog, between: Between, fault: str) -> None:
    between.faulty(FAULTS[fault], is_request("POST", "/tables/t"))

    def create() -> None:
        with catalog.create_table_transaction("db.t", SCHEMA, properties=QUICK) as tx:
            tx.append(ROWS)

    said = attempted(create)
    there = catalog.table_exists("db.t")
    assert said is there if said is not None else not there
    if there:
        assert catalog.load_table("db.t").scan().to_arrow().num_rows == 3


@pytest.mark.parametrize("fault", FAULTS)
def test_a_dropped_table_is_gone_when_it_is_said_to_be(catalog: Catalog, between: Between, fault: str) -> None:
    if fault == "sent twice":
        pytest.skip("the second reply cannot be distinguished from what follows another's drop")
    catalog.create_table("db.t", SCHEMA)
    between.faulty(FAULTS[fault], is_request("DELETE", "/tables/t"))
    said = attempted(lambda: catalog.drop_table("db.t"))
    there = catalog.table_exists("db.t")
    assert there is not said if said is not None else there


@pytest.mark.parametrize("fault", FAULTS)
def test_a_renamed_table_has_one_name(catalog: Catalog, between: Between, fault: str) -> None:
    if fault == "sent twice":
        pytest.skip("the second reply cannot be distinguished from what follows another's renaming")
    catalog.create_table("db.t", SCHEMA)
    between.faulty(FAULTS[fault], is_request("POST", "/tables/rename"))
    said = attempted(lambda: catalog.rename_table("db.t", "db.u"))
    names = catalog.list_tables("db")
    assert len(names) == 1
    if said is not None:
        assert names == [("db", "u" if said else "t")]


@pytest.mark.parametrize("fault", FAULTS)
def test_loading_goes_on_after_what_may_pass(catalog: Catalog, between: Between, fault: str) -> None:
    catalog.create_table("db.t", SCHEMA)
    catalog.backend._tables._known.clear()  # type: ignore[attr-defined]
    between.faulty(FAULTS[fault], is_request("GET", "/tables/t"))
    if "419" in fault or "500" in fault:
        with pytest.raises(IcefieldError):
            catalog.load_table("db.t")
    else:
        assert catalog.load_table("db.t").name() == ("db", "t")
