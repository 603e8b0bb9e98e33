"""Requests and replies that are lost, rivals in between, odd services: a change is made once or not at all."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from http_between import Answered, Asked, Between, Forward, answer, lose_reply, lose_request
from icefield import Catalog, Table, load_catalog
from icefield.errors import (
    AccessDenied,
    CommitStateUnknown,
    InvalidArgument,
    NoSuchTable,
    StorageError,
    TableExists,
    UnsafeCommit,
    UnsupportedFeature,
)
from icefield_glue.renaming import rename
from icefield_glue.service import GlueService
from icefield_glue.strategy import GlueStrategy
from servers.glue import SECRET, client

SCHEMA = pa.schema([("n", pa.int64())])
QUICK = {"commit.retry.num-retries": "2", "commit.retry.min-wait-ms": "10", "commit.status-check.min-wait-ms": "20"}


@pytest.fixture
def between(glue: dict[str, str]) -> Iterator[Between]:
    with Between(glue["glue.endpoint"]).open() as relay:
        yield relay


@pytest.fixture
def direct(glue: dict[str, str], tmp_path: Path) -> Iterator[Catalog]:
    with load_catalog("test", type="glue", warehouse=f"file://{tmp_path}/warehouse", **glue) as catalog:
        yield catalog


@pytest.fixture
def faulty(between: Between, direct: Catalog) -> Iterator[Catalog]:
    """The same catalog through a relay that loses what a test says."""
    given = {**direct.properties, "glue.endpoint": between.url, "glue.max-retries": "1"}
    with load_catalog("test", **given) as catalog:
        yield catalog


@pytest.fixture
def table(direct: Catalog) -> Table:
    space = f"f{uuid4().hex[:12]}"
    direct.create_namespace(space)
    return direct.create_table(f"{space}.t", SCHEMA, properties=QUICK)


def rows(*numbers: int) -> pa.Table:
    return pa.table({"n": [*numbers]}, schema=SCHEMA)


def held_by(table: Table) -> list[int]:
    return sorted(table.refresh().scan().to_arrow().column("n").to_pylist())


def asks_for(operation: str) -> Callable[[Asked], bool]:
    return lambda asked: asked.headers.get("x-amz-target", "") == f"AWSGlue.{operation}"


def refused(code: str, status: int = 400) -> Answered:
    body = json.dumps({"__type": code, "message": "because"}).encode()
    return Answered(status, {"content-type": "application/x-amz-json-1.1"}, body)


def glue_table(glue: dict[str, str], name: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = client(glue["glue.endpoint"]).get_table(DatabaseName=name[0], Name=name[1])["Table"]
    return found


@pytest.mark.spec("COMMIT-18", "COMMIT-01")
@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("fault", [lose_request, lose_reply, answer(500)], ids=["request", "reply", "500"])
def test_an_append_is_made_once_whatever_is_lost_of_it(
    between: Between, faulty: Catalog, table: Table, fault: Any, times: int
) -> None:
    between.faulty(fault, asks_for("UpdateTable"), times)
    faulty.load_table(table.name()).append(rows(1))
    table.append(rows(2))
    assert held_by(table) == [1, 2]
    assert len(table.refresh().snapshots()) == 2


@pytest.mark.spec("COMMIT-18", "COMMIT-01")
def test_an_append_that_is_never_answered_is_said_to_be_unknown_and_loses_no_file(
    between: Between, faulty: Catalog, table: Table
) -> None:
    seen = faulty.load_table(table.name())
    between.faulty(lose_request, asks_for("UpdateTable"), None)
    with pytest.raises(CommitStateUnknown, match="no file was deleted"):
        seen.append(rows(1))
    assert held_by(table) == []
    between.faulty(lose_reply, asks_for("UpdateTable"), None)
    seen.append(rows(2))  # the pointer tells
    assert held_by(table) == [2]


@pytest.mark.spec("COMMIT-18")
def test_a_commit_that_glue_refuses_as_its_own_second_try_is_made(
    between: Between, faulty: Catalog, table: Table
) -> None:
    """Behind one request Glue may itself try twice."""

    def made_and_refused(asked: Asked, forward: Forward) -> Answered:
        forward(asked)
        return refused("ConcurrentModificationException")

    seen = faulty.load_table(table.name())
    between.faulty(made_and_refused, asks_for("UpdateTable"))
    seen.append(rows(1))
    assert held_by(table) == [1]
    assert len(table.refresh().snapshots()) == 1


@pytest.mark.spec("COMMIT-01")
def test_a_change_of_the_table_in_glue_that_is_no_commit_conflicts_and_is_kept(
    between: Between, faulty: Catalog, table: Table, glue: dict[str, str]
) -> None:
    seen = faulty.load_table(table.name())

    def another_writes_first(asked: Asked, forward: Forward) -> Answered:
        given = json.loads(asked.body)["TableInput"]
        present = glue_table(glue, table.name())
        of_another = {**given, "Owner": "crawler", "Parameters": {**present["Parameters"], "crawled": "yes"}}
        client(glue["glue.endpoint"]).update_table(DatabaseName=table.name()[0], TableInput=of_another)
        return forward(asked)

    between.faulty(another_writes_first, asks_for("UpdateTable"))
    seen.append(rows(1))
    found = glue_table(glue, table.name())
    assert (found["Owner"], found["Parameters"]["crawled"]) == ("crawler", "yes")
    assert held_by(table) == [1]


@pytest.mark.spec("COMMIT-01", "COMMIT-07")
def test_a_commit_while_the_table_is_renamed_is_not_lost(between: Between, faulty: Catalog, table: Table) -> None:
    space = table.name()[0]

    def another_commits_first(asked: Asked, forward: Forward) -> Answered:
        table.append(rows(1))
        return forward(asked)

    between.faulty(another_commits_first, asks_for("UpdateTable"))  # the mark, after the copy was made
    renamed = faulty.rename_table(table.name(), (space, "u"))
    assert held_by(renamed) == [1]
    assert faulty.list_tables(space) == [(space, "u")]
    with pytest.raises(NoSuchTable):
        faulty.load_table(table.name())


@pytest.mark.spec("COMMIT-01")
def test_a_writer_of_the_old_name_finds_no_table_once_the_rename_is_decided(
    between: Between, faulty: Catalog, direct: Catalog, table: Table, glue: dict[str, str]
) -> None:
    space = table.name()[0]
    between.faulty(lambda asked, forward: refused("AccessDeniedException"), asks_for("DeleteTable"), None)
    renamed = faulty.rename_table(table.name(), (space, "u"))  # it is done, though the old record stays
    assert glue_table(glue, table.name())["Parameters"]["icefield.renamed-to"] == f"{space}.u"
    assert direct.list_tables(space) == [(space, "u")]
    with pytest.raises(NoSuchTable):
        table.append(rows(1))
    with pytest.raises(TableExists, match=r"is being renamed to .*\.u, or is left over from that"):
        direct.create_table(table.name(), SCHEMA)
    renamed.append(rows(2))
    assert held_by(renamed) == [2]


def test_a_rename_that_is_refused_leaves_one_name(
    between: Between, faulty: Catalog, direct: Catalog, table: Table
) -> None:
    space = table.name()[0]

    def mark_is_refused(asked: Asked, forward: Forward) -> Answered | None:
        of_source = json.loads(asked.body)["TableInput"]["Name"] == "t"
        return refused("AccessDeniedException") if of_source else forward(asked)

    between.faulty(mark_is_refused, asks_for("UpdateTable"), None)
    with pytest.raises(AccessDenied, match="because"):
        faulty.rename_table(table.name(), (space, "u"))
    assert direct.list_tables(space) == [table.name()]
    table.append(rows(1))
    assert held_by(table) == [1]


def test_a_copy_that_another_has_written_to_is_left_by_a_rename_that_fails(
    between: Between, faulty: Catalog, direct: Catalog, table: Table
) -> None:
    space = table.name()[0]

    def another_writes_to_the_copy(asked: Asked, forward: Forward) -> Answered | None:
        if json.loads(asked.body)["TableInput"]["Name"] != "t":
            return forward(asked)
        direct.load_table((space, "u")).append(rows(7))
        return refused("AccessDeniedException")

    between.faulty(another_writes_to_the_copy, asks_for("UpdateTable"), None)
    with pytest.raises(AccessDenied):
        faulty.rename_table(table.name(), (space, "u"))
    assert held_by(direct.load_table((space, "u"))) == [7]


def test_a_rename_whose_request_is_never_answered_says_so(between: Between, faulty: Catalog, table: Table) -> None:
    between.faulty(lose_request, asks_for("UpdateTable"), None)
    with pytest.raises(StorageError, match="look which of the two names is there"):
        faulty.rename_table(table.name(), (table.name()[0], "u"))


def test_a_throttled_change_is_sent_again_and_a_forbidden_one_is_said_to_be(
    between: Between, faulty: Catalog, table: Table
) -> None:
    seen = faulty.load_table(table.name())
    between.faulty(lambda asked, forward: refused("ThrottlingException"), asks_for("UpdateTable"))
    seen.append(rows(1))
    assert held_by(table) == [1]
    between.faulty(lambda asked, forward: refused("AccessDeniedException"), asks_for("UpdateTable"), None)
    with pytest.raises(AccessDenied, match="look at the permissions and the credentials"):
        seen.append(rows(2))
    assert held_by(table) == [1]


def without_version(asked: Asked, forward: Forward) -> Answered:
    answered = forward(asked)
    found = json.loads(answered.body)
    del found["Table"]["VersionId"]
    return Answered(answered.status, answered.headers, json.dumps(found).encode())


@pytest.mark.spec("COMMIT-01")
def test_a_service_without_versions_is_refused_before_anything_changes(
    between: Between, faulty: Catalog, table: Table
) -> None:
    seen = faulty.load_table(table.name())
    between.faulty(without_version, asks_for("GetTable"), None)
    with pytest.raises(UnsafeCommit, match="no VersionId"):
        seen.append(rows(1))
    assert held_by(table) == []


ODD = {
    "no table": {"Other": 1},
    "a table without a name": {"Table": {"DatabaseName": "d"}},
    "no JSON object": [1],
    "a name that is a number": {"Table": {"Name": 7}},
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_answer_is_an_error_of_icefield(between: Between, faulty: Catalog, table: Table, name: str) -> None:
    body = json.dumps(ODD[name]).encode()
    between.faulty(lambda asked, forward: Answered(200, {}, body), asks_for("GetTable"), None)
    with pytest.raises((StorageError, ValueError), match=r"glue\.endpoint"):
        faulty.load_table(table.name())


def test_a_listing_that_never_ends_is_an_error(between: Between, faulty: Catalog) -> None:
    body = json.dumps({"DatabaseList": [], "NextToken": "again"}).encode()
    between.faulty(lambda asked, forward: Answered(200, {}, body), asks_for("GetDatabases"), None)
    with pytest.raises(ValueError, match=r"none of Glue's"):
        faulty.list_namespaces()


def test_a_service_that_is_down_is_named_within_the_retries(direct: Catalog) -> None:
    given = {**direct.properties, "glue.endpoint": "http://127.0.0.1:1", "glue.max-retries": "1"}
    with load_catalog("test", **given) as down, pytest.raises(StorageError, match=r"look at glue\.endpoint"):
        down.list_namespaces()


@pytest.mark.parametrize("name", ["glue.lakeformation-enabled", "lock-impl", "client.factory"])
def test_a_property_that_cannot_be_honoured_is_refused_by_name(glue: dict[str, str], name: str) -> None:
    value = "true" if name.endswith("enabled") else "org.apache.iceberg.aws.dynamodb.DynamoDbLockManager"
    with pytest.raises(UnsupportedFeature, match=f"'{name}' cannot be honoured"):
        load_catalog("test", type="glue", **{**glue, name: value})


@pytest.mark.parametrize(
    "properties",
    [{"commit": "create"}, {"glue.skip-archive": "perhaps"}, {"glue.max-retries": "-1"}, {"glue.request-timeout": "x"}],
)
def test_a_property_of_another_form_is_refused(glue: dict[str, str], properties: dict[str, str]) -> None:
    with pytest.raises(InvalidArgument, match=next(iter(properties))):
        load_catalog("test", type="glue", **{**glue, **properties})


def test_half_of_the_keys_is_refused_and_no_secret_is_shown(glue: dict[str, str]) -> None:
    given = {"glue.endpoint": glue["glue.endpoint"], "glue.region": "us-east-1", "glue.secret-access-key": SECRET}
    with load_catalog("test", type="glue", **given) as catalog:
        with pytest.raises(AccessDenied, match=r"glue\.access-key-id") as error:
            catalog.list_namespaces()
        assert SECRET not in repr(error.value) + repr(catalog) + repr(catalog._backend)


def test_requests_name_the_account_the_archive_and_the_version(between: Between, faulty: Catalog, table: Table) -> None:
    given = {**faulty.properties, "glue.id": "123456789012", "glue.skip-archive": "false"}
    with load_catalog("test", **given) as catalog:
        catalog.load_table(table.name()).append(rows(1))
    asked = [json.loads(each.body) for each in between.asked if asks_for("UpdateTable")(each)]
    assert [(each["CatalogId"], each["SkipArchive"], each["VersionId"]) for each in asked] == [
        ("123456789012", False, "1")
    ]


def test_a_namespace_with_a_location_is_where_its_tables_are(direct: Catalog, tmp_path: Path) -> None:
    space = f"f{uuid4().hex[:12]}"
    direct.create_namespace(space, {"location": f"file://{tmp_path}/place", "comment": "given"})
    assert direct.load_namespace_properties(space) == {"location": f"file://{tmp_path}/place", "comment": "given"}
    assert direct.create_table(f"{space}.t", SCHEMA).location() == f"file://{tmp_path}/place/t"


def test_names_of_other_characters_are_refused_unless_the_property_allows_them(direct: Catalog) -> None:
    name = f"f-{uuid4().hex[:12]}"
    with pytest.raises(InvalidArgument, match=r"glue\.skip-name-validation"):
        direct.create_namespace(name)
    with load_catalog("test", **{**direct.properties, "glue.skip-name-validation": "true"}) as catalog:
        catalog.create_namespace(name)
        assert (name,) in catalog.list_namespaces()
        catalog.drop_namespace(name)


def test_the_comment_of_a_table_is_its_description_in_glue(direct: Catalog, table: Table, glue: dict[str, str]) -> None:
    with table.transaction() as change:
        change.set_properties({"comment": "sold\u00fc"})
    assert glue_table(glue, table.name())["Description"] == "sold\u00fc"


def test_a_catalog_works_in_a_forked_process_and_its_service_can_be_pickled(direct: Catalog, table: Table) -> None:
    table.append(rows(1))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # the parent's connections are not its own
        try:
            os.write(writing, str(held_by(direct.load_table(table.name()))).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 100) == b"[1]"
    os.close(reading)
    os.close(writing)
    service: GlueService = direct._backend._service  # type: ignore[attr-defined]
    copied = pickle.loads(pickle.dumps(service))
    strategy = GlueStrategy(table.name(), table.location(), table.io.storage(table.location()), {}, copied)
    assert strategy.read_pointer() == table.metadata_location


def test_a_rename_to_the_same_name_is_refused(direct: Catalog, table: Table) -> None:
    service: GlueService = direct._backend._service  # type: ignore[attr-defined]
    with pytest.raises(TableExists):
        rename(service, table.name(), table.name())
    assert held_by(table) == []
