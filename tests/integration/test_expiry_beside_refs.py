"""Branches and tags that others create, move and publish while snapshots expire: expiry deletes none of their files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from catalogs import properties_of
from census import present, referenced
from icefield import Catalog, IcefieldError, Table, load_catalog
from icefield_maintenance.doctor import examine_table
from icefield_rest_server import app
from rest_served import served
from tables import again, around

ALL = 2**60
SCHEMA = pa.schema([("id", pa.int64())])
Rewrite = Callable[[dict[str, Any]], None]


def rows(number: int) -> pa.Table:
    return pa.table({"id": [number]}, schema=SCHEMA)


def ids(table: Table, **at: Any) -> list[int]:
    return sorted(table.scan(**at).to_arrow()["id"].to_pylist())


class Rewriting:
    """An ASGI application that changes the metadata of tables in the responses of another."""

    def __init__(self, application: Any) -> None:
        self._application = application
        self.rewrite: Rewrite | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        rewrite = self.rewrite
        if scope["type"] != "http" or rewrite is None:
            await self._application(scope, receive, send)
            return
        begun: list[Any] = []
        body = b""

        async def sent(message: Any) -> None:
            nonlocal body
            if message["type"] == "http.response.start":
                begun.append(message)
                return
            body += message.get("body", b"")
            if message.get("more_body"):
                return
            with suppress(ValueError, TypeError, KeyError):
                answer = json.loads(body)
                rewrite(answer["metadata"])
                body = json.dumps(answer).encode()
            headers = [each for each in begun[0]["headers"] if each[0] not in (b"content-length", b"etag")]
            await send({**begun[0], "headers": [*headers, (b"content-length", str(len(body)).encode())]})
            await send({"type": "http.response.body", "body": body})

        await self._application(scope, receive, sent)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Rewriting]]:
    """The address of a REST server over SQLite, and the wrapper that can change its responses."""
    with load_catalog("served", **properties_of("sql", tmp_path)) as catalog:
        rewriting = Rewriting(app(catalog))
        with served(rewriting) as address:
            yield address, rewriting


@pytest.fixture(params=["create", "rename", "sql", "rest", "rest refs"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    """A catalog of each kind."""
    if request.param.startswith("rest"):
        address, _ = request.getfixturevalue("server")
        given = {"type": "rest", "uri": address, "snapshot-loading-mode": request.param[5:] or "all"}
    else:
        given = properties_of(request.param, tmp_path)
    with load_catalog("test", **given) as made:
        yield made


def aged(catalog: Catalog) -> tuple[Table, list[int]]:
    """A table whose first snapshots have files of their own; the fourth snapshot is staged."""
    catalog.create_namespace("db")
    properties = {"commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "2"}
    table = catalog.create_table("db.t", SCHEMA, properties=properties)
    table.append(rows(0))
    table.overwrite(rows(1))
    table.overwrite(rows(2))
    table.append(rows(5), branch=None)
    return table, [snapshot.snapshot_id for snapshot in table.snapshots()]


def refs_of(table: Table) -> Any:
    return table.refresh().manage_snapshots()


MEANWHILE: dict[str, Callable[[Table, list[int]], Any]] = {
    "a tag": lambda table, at: refs_of(table).create_tag(at[0], "kept").commit(),
    "a branch": lambda table, at: refs_of(table).create_branch(at[1], "kept").commit(),
    "a branch with rows": lambda table, at: (
        refs_of(table).create_branch(at[0], "kept").commit(),
        table.append(rows(7), branch="kept"),
    ),
    "a tag of what is staged": lambda table, at: refs_of(table).create_tag(at[3], "kept").commit(),
    "a branch that is moved": lambda table, at: refs_of(table).replace_branch("other", at[0]).commit(),
    "a rollback": lambda table, at: refs_of(table).rollback_to_snapshot(at[0]).commit(),
    "a publication": lambda table, at: refs_of(table).cherry_pick(at[3]).commit(),
    "a dropped branch": lambda table, at: refs_of(table).remove_branch("other").commit(),
}


def check(table: Table, *, clean: bool = True) -> None:
    """Check that the files of every branch and tag are there, and no other files."""
    table.refresh()
    assert referenced(table) <= present(table)
    for name in table.refs():
        ids(table, ref=name)
    if clean:
        assert {name for name in present(table) - referenced(table) if name.endswith((".parquet", ".avro"))} == set()
    found = [each for group in examine_table(table, whole=True) for each in group.findings]
    assert [each.check for each in found if each.result.value == "failed"] == []


@pytest.mark.slow
@pytest.mark.spec("REF-02", "SNAP-18")
@pytest.mark.parametrize("change", MEANWHILE)
def test_what_comes_between_the_plan_and_the_commit_is_kept(catalog: Catalog, change: str) -> None:
    table, at = aged(catalog)
    table.manage_snapshots().create_branch(at[2], "other").commit()
    other = again(table)
    seen: list[dict[str, list[int]]] = []

    def meddle(attempt: int) -> None:
        if attempt == 1:
            MEANWHILE[change](other, at)
            seen.append({name: ids(other.refresh(), ref=name) for name in other.refs()})

    done = around(table, before=meddle).maintenance.expire_snapshots(ALL)
    assert done.snapshot_ids
    table.refresh()
    assert {name: ids(table, ref=name) for name in table.refs()} == seen[0]
    check(table)


@pytest.mark.slow
@pytest.mark.spec("REF-02", "SNAP-18")
@pytest.mark.parametrize("change", MEANWHILE)
def test_what_comes_between_the_commit_and_the_deletion_is_refused_or_kept(catalog: Catalog, change: str) -> None:
    """A change that began before the commit of the expiry finds its snapshot expired, and is refused."""
    table, at = aged(catalog)
    table.manage_snapshots().create_branch(at[2], "other").commit()
    stale, refusals = again(table), []

    def meddle(attempt: int, outcome: Any) -> Any:
        try:
            MEANWHILE[change](stale, at)
        except IcefieldError as error:
            refusals.append(str(error))
        return outcome

    done = around(table, after=meddle).maintenance.expire_snapshots(ALL)
    assert set(done.snapshot_ids) == {at[0], at[1], at[3]}
    assert len(refusals) == (change != "a dropped branch")
    assert all(any(str(each) in refusal for each in done.snapshot_ids) for refusal in refusals)
    check(table)


@pytest.mark.slow
@pytest.mark.spec("SNAP-18")
def test_a_publication_whose_manifests_are_written_when_its_snapshot_expires_is_refused(catalog: Catalog) -> None:
    table, at = aged(catalog)
    table.append(rows(6))  # so that what is published is a new snapshot
    expiring = again(table)

    def meddle(attempt: int) -> None:
        if attempt == 1:
            assert at[3] in expiring.maintenance.expire_snapshots(ALL).snapshot_ids

    stalled = around(table, before=meddle)
    with pytest.raises(IcefieldError, match=str(at[3])):
        stalled.manage_snapshots().cherry_pick(at[3]).commit()
    assert ids(table.refresh()) == [2, 6]
    check(table, clean=False)  # a service that refuses a change does not say that it never made it


@pytest.mark.slow
@pytest.mark.spec("SNAP-18")
def test_a_snapshot_that_is_staged_while_the_one_below_it_expires_stands_on_the_new_one(catalog: Catalog) -> None:
    table, _ = aged(catalog)
    expiring = again(table)

    def meddle(attempt: int) -> None:
        if attempt == 1:
            expiring.overwrite(rows(6))
            expiring.maintenance.expire_snapshots(ALL)

    around(table, before=meddle).append(rows(8), branch=None)
    staged = table.refresh().snapshots()[-1]
    assert ids(table, snapshot_id=staged.snapshot_id) == [6, 8]
    check(table)


REWRITTEN: dict[str, Rewrite] = {
    "without refs": lambda metadata: metadata.pop("refs", None),
    "with main alone": lambda metadata: metadata.update(
        {"refs": {name: ref for name, ref in metadata.get("refs", {}).items() if name == "main"}}
    ),
    "without the snapshots of tags": lambda metadata: metadata.update(
        {
            "refs": {name: ref for name, ref in metadata.get("refs", {}).items() if name == "main"},
            "snapshots": [
                each for each in metadata["snapshots"] if each["snapshot-id"] == metadata["current-snapshot-id"]
            ],
            "snapshot-log": [],
        }
    ),
}


@pytest.mark.slow
@pytest.mark.spec("SNAP-18")
@pytest.mark.parametrize("rewritten", REWRITTEN)
@pytest.mark.parametrize("when", ["always", "in the reply to the commit"])
@pytest.mark.parametrize("maintenance", ["expiry", "orphans"])
def test_a_server_that_keeps_refs_to_itself_loses_nothing(
    server: tuple[str, Rewriting], rewritten: str, when: str, maintenance: str
) -> None:
    address, rewriting = server
    with load_catalog("test", type="rest", uri=address) as catalog:
        table, at = aged(catalog)
        table.manage_snapshots().create_tag(at[1], "kept").create_branch(at[0], "other").commit()
        rewriting.rewrite = REWRITTEN[rewritten] if when == "always" else None
        table = catalog.load_table("db.t")
        if when != "always":
            begun = around(table, before=lambda attempt: setattr(rewriting, "rewrite", REWRITTEN[rewritten]))
        else:
            begun = table
        with suppress(IcefieldError):  # the server knows better than to remove what a tag names
            if maintenance == "expiry":
                begun.maintenance.expire_snapshots(ALL)
            else:
                begun.append(rows(9))
                begun.maintenance.remove_orphan_files(ALL, dry_run=False, allow_recent=True)
    rewriting.rewrite = None
    with load_catalog("test", type="rest", uri=address) as catalog:
        found = catalog.load_table("db.t")
        assert (ids(found, ref="kept"), ids(found, ref="other")) == ([1], [0])
        check(found, clean=False)


@pytest.mark.slow
def test_a_request_of_another_client_for_what_a_tag_names_is_a_conflict(server: tuple[str, Rewriting]) -> None:
    address, _ = server
    with load_catalog("test", type="rest", uri=address) as catalog:
        table, at = aged(catalog)
        table.manage_snapshots().create_tag(at[0], "kept").commit()
        change = {"requirements": [], "updates": [{"action": "remove-snapshots", "snapshot-ids": [at[0]]}]}
        answer = httpx.post(f"{address}/v1/namespaces/db/tables/t", json=change)
        assert (answer.status_code, answer.json()["error"]["type"]) == (409, "CommitFailedException")
        assert ids(table.refresh(), ref="kept") == [0]
