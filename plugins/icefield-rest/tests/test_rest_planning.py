"""Scans that the service plans: the same rows as by plans made here, whatever the service does with its time."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from http_between import Answered, Asked, Between, Forward
from icefield import Catalog, Table, load_catalog
from icefield.errors import IcefieldError, InvalidArgument, InvalidMetadata, NotSupportedByCatalog, StorageError
from icefield.expressions import In
from icefield_rest_server import Settings, app
from rest_served import served, with_table

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("part", pa.string()),
        ("value", pa.float64()),
        ("day", pa.date32()),
        ("raw", pa.binary()),
        ("deep", pa.struct([("a", pa.int32())])),
    ]
)
FILTERS = (
    "true",
    "id > 20",
    "part = 'a' and id < 19",
    "part in ('a', 'ab') or id = 3",
    "part is null",
    "value is nan",
    "value < 1e300 or deep.a = 4",
    "day >= '1970-01-20'",
    "raw = x'0a'",
    "part not like 'a%'",
    "id = 1000",
    "false",
)
WAITS = {"rest.retry.num-retries": "1", "rest.retry.min-wait-ms": "1"}


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    """The catalog of the server, with a table of several specs, deletes of rows, a tag, and a renamed column."""
    with with_table(tmp_path_factory.mktemp("served"), SCHEMA) as (catalog, made):
        made.append(rows(0, 8))
        with made.update_spec() as update:
            update.add_identity("part")
            update.add_identity("value")
        made.append(rows(8, 12))
        with made.manage_snapshots() as change:
            change.create_tag(made.current_snapshot().snapshot_id, "before")
        made.delete("id in (3, 9, 15)")
        with made.update_schema() as update:
            update.rename_column("raw", "bytes")
        with made.update_spec() as update:
            update.add_field("day", "day")
        made.append(rows(20, 6).rename_columns([*SCHEMA.names[:4], "bytes", "deep"]))
        yield catalog


@pytest.fixture(scope="module")
def service(behind: Catalog) -> Iterator[str]:
    """A server of this repository, two files to an answer."""
    with served(app(behind, Settings(max_plan_page=2))) as address:
        yield address


@pytest.fixture
def between(service: str) -> Iterator[Between]:
    with Between(service).open() as made:
        yield made


def opened(between: Between, **more: str) -> Catalog:
    return load_catalog("test", type="rest", uri=between.url, **{**WAITS, "scan-planning-mode": "server", **more})


@pytest.fixture
def catalog(between: Between) -> Iterator[Catalog]:
    with opened(between) as made:
        yield made


@pytest.fixture
def table(catalog: Catalog) -> Table:
    return catalog.load_table("db.t")


def rows(first: int, count: int) -> pa.Table:
    made = [
        {
            "id": id_,
            "part": (None, "a", "ab", "c")[id_ % 4],
            "value": (float("nan"), None, float("inf"), 0.5)[id_ % 4],
            "raw": bytes([id_]),
            "deep": {"a": id_ % 7},
        }
        for id_ in range(first, first + count)
    ]
    table = pa.Table.from_pylist(made, schema=SCHEMA.remove(3))
    days = pa.array(range(first, first + count), pa.int32()).cast(pa.date32())
    return table.add_column(3, "day", days).cast(SCHEMA)


def asked_for(between: Between, end: str, method: str = "POST") -> list[Asked]:
    return [each for each in between.asked if each.method == method and each.path.rpartition("/")[2] == end]


def here(between: Between) -> Table:
    with load_catalog("here", type="rest", uri=between.url) as catalog:
        return catalog.load_table("db.t")


def comparable(found: pa.Table) -> list[str]:
    return sorted(map(str, found.to_pylist()))


@pytest.mark.slow
@pytest.mark.parametrize("row_filter", FILTERS)
def test_rows_are_those_of_a_plan_made_here(between: Between, table: Table, row_filter: str) -> None:
    row_filter = row_filter.replace("raw", "bytes")
    mine = here(between)
    wanted = mine.scan(row_filter)
    before = len(between.asked)
    found = table.scan(row_filter)
    assert comparable(found.to_arrow()) == comparable(wanted.to_arrow())
    assert found.count() == wanted.count()
    assert table.scan(row_filter, ("id",), limit=3).to_arrow().num_rows == min(3, wanted.count())
    assert {task.file.file_path for task in found.plan_files()} == {task.file.file_path for task in wanted.plan_files()}
    plans = [each for each in between.asked[before:] if each.path.endswith("/plan")]
    assert len(plans) == (0 if row_filter == "false" else 4)
    if row_filter not in ("true", "false"):
        assert "filter" in json.loads(plans[0].body)


@pytest.mark.slow
def test_a_filter_that_is_too_long_for_a_request_is_applied_here(between: Between, table: Table) -> None:
    some = In("id", {4, *range(1_000_000, 1_200_000)})
    assert table.scan(some, selected_fields=["id"]).to_arrow()["id"].to_pylist() == [4]
    (asked,) = asked_for(between, "plan")
    assert "filter" not in json.loads(asked.body)


def test_a_version_is_planned_under_its_own_columns(between: Between, table: Table) -> None:
    mine = here(between)
    for version in ({"ref": "before"}, {"snapshot_id": table.snapshots()[0].snapshot_id}, {"ref": "main"}):
        column = "bytes" if version.get("ref") == "main" else "raw"
        found, wanted = (each.scan(f"{column} > x'05'", ("id", column), **version) for each in (table, mine))
        assert comparable(found.to_arrow()) == comparable(wanted.to_arrow())
        assert found.to_arrow().num_rows > 0
    assert len(asked_for(between, "plan")) >= 6


def test_tables_without_rows_and_ids_of_rows_are_read(between: Between, catalog: Catalog) -> None:
    empty = catalog.create_table("db.e", SCHEMA, properties={"format-version": "3"})
    assert empty.scan().to_arrow().num_rows == empty.scan().count() == 0
    assert not asked_for(between, "plan")
    empty.append(rows(0, 3))
    assert empty.scan(selected_fields=("_row_id",)).to_arrow()["_row_id"].to_pylist() == [0, 1, 2]
    assert len(asked_for(between, "plan")) == 1
    # A service does not say when rows were changed last, so such a scan is planned here.
    changed = empty.scan(selected_fields=("_last_updated_sequence_number",)).to_arrow()
    assert changed.column(0).to_pylist() == [1, 1, 1]
    assert len(asked_for(between, "plan")) == 1


def test_changes_of_rows_are_planned_here(between: Between, catalog: Catalog) -> None:
    changed = catalog.create_table("db.u", SCHEMA)
    changed.append(rows(0, 3))
    changed.delete("id = 1")
    assert not asked_for(between, "plan")
    assert changed.scan().count() == 2
    assert len(asked_for(between, "plan")) == 1


# -- a service that takes its time


class Slow:
    """A service that plans later: asked so many times before it has done it."""

    def __init__(self, between: Between, looks: int, outcome: dict[str, Any] | None = None) -> None:
        self.left, self.outcome = looks, outcome
        self.first: Answered | None = None
        between.behave = self.behave

    def behave(self, asked: Asked, forward: Forward) -> Answered | None:
        if asked.method == "POST" and asked.path.endswith("/plan"):
            self.first = forward(asked)
            return said({"status": "submitted", "plan-id": "a/b"})
        if asked.path.endswith("/plan/a%2Fb"):
            if asked.method == "DELETE":
                return Answered(204)
            self.left -= 1
            if self.left >= 0:
                return said({"status": "submitted"})
            if self.outcome is not None:
                return said(self.outcome)
            assert self.first is not None
            body = decoded(self.first)
            del body["plan-id"]
            return said(body)
        return forward(asked)


def said(body: Any, status: int = 200) -> Answered:
    return Answered(status, {"Content-Type": "application/json"}, json.dumps(body).encode())


def decoded(answered: Answered) -> Any:
    body = answered.body
    return json.loads(gzip.decompress(body) if body[:1] == b"\x1f" else body)


def test_a_plan_that_takes_its_time_is_waited_for(between: Between, table: Table) -> None:
    Slow(between, 3)
    assert table.scan().to_arrow().num_rows == 23
    assert len(asked_for(between, "a%2Fb", "GET")) == 4
    assert not asked_for(between, "a%2Fb", "DELETE")


def test_a_plan_that_takes_too_long_is_cancelled(between: Between, table: Table) -> None:
    with opened(between, **{"rest.planning.timeout-ms": "200"}) as catalog:
        Slow(between, 10_000)
        with pytest.raises(StorageError, match=r"rest\.planning\.timeout-ms") as raised:
            catalog.load_table("db.t").scan().to_arrow()
    assert raised.value.retryable
    assert len(asked_for(between, "a%2Fb", "DELETE")) == 1


FAILURES: dict[str, tuple[dict[str, Any], type[IcefieldError], str]] = {
    "failed": (
        {"status": "failed", "error": {"message": "no such column", "type": "BadRequestException", "code": 400}},
        InvalidArgument,
        "no such column",
    ),
    "failed and no word why": ({"status": "failed"}, StorageError, "is failed"),
    "cancelled": ({"status": "cancelled"}, StorageError, "is cancelled"),
    "of no known status": ({"status": "thinking"}, StorageError, "thinking"),
    "no plan": ({}, StorageError, "status ''"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_plan_that_comes_to_nothing_is_one_error(between: Between, table: Table, name: str) -> None:
    outcome, kind, words = FAILURES[name]
    Slow(between, 1, outcome)
    with pytest.raises(kind, match=words):
        table.scan().to_arrow()


def test_who_wants_no_more_of_a_plan_says_so(between: Between, table: Table) -> None:
    Slow(between, 0)
    tasks = table.scan().plan_files()
    next(tasks)
    tasks.close()
    assert len(asked_for(between, "a%2Fb", "DELETE")) == 1


def test_a_plan_goes_on_after_what_may_pass(between: Between, table: Table) -> None:
    wanted = table.scan().count()
    for end in ("plan", "tasks"):
        for fault in (503, 429, None):
            between.faulty(
                lambda asked, forward, fault=fault: None if fault is None else Answered(fault),  # type: ignore[misc]
                lambda asked, end=end: asked.path.endswith(f"/{end}"),  # type: ignore[misc]
            )
            assert table.scan().to_arrow().num_rows == wanted


# -- what a service says of who plans, and of files


def config_says(between: Between, config: dict[str, str]) -> None:
    def behave(asked: Asked, forward: Forward) -> Answered | None:
        found = forward(asked)
        if asked.method != "GET" or not asked.path.partition("?")[0].endswith("/tables/t"):
            return found
        return said({**decoded(found), "config": config})

    between.behave = behave


@pytest.mark.parametrize(
    ("mine", "theirs", "plans"), [("client", "server", 1), ("server", "client", 0), ("", "server", 1)]
)
def test_the_services_word_on_who_plans_goes_over_the_users(
    between: Between, table: Table, mine: str, theirs: str, plans: int
) -> None:
    config_says(between, {"scan-planning-mode": theirs})
    with load_catalog("other", uri=between.url, **({"scan-planning-mode": mine} if mine else {})) as catalog:
        assert catalog.load_table("db.t").scan().to_arrow().num_rows == 23
    assert len(asked_for(between, "plan")) == plans


def test_a_service_that_does_not_plan_is_not_asked_to(between: Between, table: Table) -> None:
    def without_plans(asked: Asked, forward: Forward) -> Answered | None:
        found = forward(asked)
        if not asked.path.startswith("/v1/config"):
            return found
        body = decoded(found)
        return said({**body, "endpoints": [each for each in body["endpoints"] if "/plan" not in each]})

    between.behave = without_plans
    with opened(between) as catalog, pytest.raises(NotSupportedByCatalog, match="does not offer"):
        catalog.load_table("db.t").scan().to_arrow()


Spoil = Callable[[dict[str, Any]], None]


def of_task(change: dict[str, Any]) -> Spoil:
    return lambda body: body["file-scan-tasks"][0]["data-file"].update(change)


def of_references(places: list[int]) -> Spoil:
    return lambda body: body["file-scan-tasks"][0].update({"delete-file-references": places})


def twice(body: dict[str, Any]) -> None:
    body["file-scan-tasks"].append(body["file-scan-tasks"][0])


def rows_as_deletes(body: dict[str, Any]) -> None:
    body["delete-files"] = [body["file-scan-tasks"][0]["data-file"]]
    body["file-scan-tasks"][0]["delete-file-references"] = [0]


SPOILT: dict[str, Spoil] = {
    "a file twice": twice,
    "a spec that is not there": of_task({"spec-id": 99}),
    "too few values": of_task({"spec-id": 1, "partition": ["a"]}),
    "a value of another type": of_task({"spec-id": 1, "partition": [7, 0.5]}),
    "deletes as rows": of_task({"content": "position-deletes"}),
    "rows as deletes": rows_as_deletes,
    "content of no kind": of_task({"content": "secrets"}),
    "a negative size": of_task({"file-size-in-bytes": -1}),
    "a delete file beyond the list": of_references([5]),
    "a delete file before the list": of_references([-1]),
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_list_that_cannot_be_is_one_error(between: Between, table: Table, name: str) -> None:
    def behave(asked: Asked, forward: Forward) -> Answered | None:
        found = forward(asked)
        if not asked.path.endswith("/plan"):
            return found
        body = decoded(found)
        SPOILT[name](body)
        return said(body)

    between.behave = behave
    with pytest.raises(InvalidMetadata):
        table.scan().to_arrow()


@pytest.mark.parametrize("change", [{"record-count": 2**63}, {"file-path": 5}, {"file-size-in-bytes": "many"}])
def test_a_list_of_another_form_is_one_error(between: Between, table: Table, change: dict[str, Any]) -> None:
    def behave(asked: Asked, forward: Forward) -> Answered | None:
        found = forward(asked)
        if not asked.path.endswith("/plan"):
            return found
        body = decoded(found)
        of_task(change)(body)
        return said(body)

    between.behave = behave
    with pytest.raises(StorageError, match="cannot be read"):
        table.scan().to_arrow()


def test_a_service_that_gives_the_same_part_again_is_found_out(between: Between, table: Table) -> None:
    def behave(asked: Asked, forward: Forward) -> Answered | None:
        if not asked.path.endswith("/tasks"):
            return forward(asked)
        return said({"file-scan-tasks": [], "plan-tasks": [json.loads(asked.body)["plan-task"]]})

    between.behave = behave
    with pytest.raises(StorageError, match="again and again"):
        table.scan().to_arrow()


def test_files_are_opened_with_what_the_plan_says(between: Between, table: Table) -> None:
    at = table.location()

    def behave(asked: Asked, forward: Forward) -> Answered | None:
        found = forward(asked)
        if not asked.path.endswith("/plan"):
            return found
        given = [{"prefix": at, "config": {"s3.secret-access-key": "of-this-plan"}}]
        return said({**decoded(found), "storage-credentials": given})

    between.behave = behave
    scan = table.scan()
    access = scan.context.io.access
    assert [each.prefix for each in access] == [at]
    assert access[0].properties() == {"s3.secret-access-key": "of-this-plan"}
    assert "of-this-plan" not in repr(scan) + repr(scan.context) + repr(access)
    assert scan.to_arrow().num_rows == 23
    assert len(asked_for(between, "plan")) == 1


@pytest.mark.parametrize("given", ["somewhere", ""])
def test_who_plans_is_the_client_or_the_server(between: Between, given: str) -> None:
    with pytest.raises(InvalidArgument, match="'client' or 'server'"):
        opened(between, **{"scan-planning-mode": given})
