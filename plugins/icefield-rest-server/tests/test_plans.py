"""Scan planning on the server: what it gives is the kernel's plan, in pages that any process can continue."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import compress

import pyarrow as pa
import pytest
from icefield import Catalog, Table, clear_caches, load_catalog
from icefield_rest_server import Settings, StaticCredentials, StaticTokens, app, plans
from local_client import LocalClient
from rest_description import check_answer, check_request

TABLE = "/v1/namespaces/db/tables/t"
SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("name", pa.string()), ("raw", pa.binary())])


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    uri, warehouse = f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse"
    with load_catalog("served", type="sql", uri=uri, warehouse=warehouse) as made:
        made.create_namespace("db")
        yield made


@pytest.fixture
def table(catalog: Catalog) -> Table:
    """Five files in two partitions and one of nulls, and deletes of rows in one of them."""
    properties = {"format-version": "2", "write.delete.mode": "merge-on-read"}
    made = catalog.create_table("db.t", SCHEMA, properties=properties)
    with made.update_spec() as update:
        update.add_identity("name")
    for number in range(5):
        name = None if number == 4 else "ab"[number % 2]
        rows = [{"id": number * 10 + row, "day": row, "name": name, "raw": bytes([number, row])} for row in range(3)]
        made.append(pa.Table.from_pylist(rows, SCHEMA))
    made.delete("id = 11")
    return made


def asking(catalog: Catalog, settings: Settings | None = None, **more: Any) -> LocalClient:
    made = LocalClient(app(catalog, settings), **more)
    made.event_hooks = {"response": [described]}
    return made


def described(answer: Any) -> None:
    answer.read()
    request = answer.request
    if answer.status_code < 400 and request.content:
        check_request(request.method, str(request.url), request.content)
    check_answer(request.method, str(request.url), answer.status_code, answer.content)


def planned(client: LocalClient, body: Any, **more: Any) -> list[dict[str, Any]]:
    """The tasks of all pages, each with its delete files put in."""
    answer = client.post(f"{TABLE}/plan", json=body, **more)
    assert answer.status_code == 200, answer.text
    page = answer.json()
    assert page["status"] == "completed"
    found = _tasks(page)
    while waiting := page.get("plan-tasks"):
        answer = client.post(f"{TABLE}/tasks", json={"plan-task": waiting[0]}, **more)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        found += _tasks(page)
    return found


def _tasks(page: dict[str, Any]) -> list[dict[str, Any]]:
    deletes = page.get("delete-files", [])
    return [
        {**task, "deletes": [deletes[place]["file-path"] for place in task.get("delete-file-references", [])]}
        for task in page["file-scan-tasks"]
    ]


def paths(tasks: list[dict[str, Any]]) -> list[str]:
    return [task["data-file"]["file-path"] for task in tasks]


def refused(answer: Any, status: int, kind: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]["type"] == kind


@pytest.mark.parametrize("most", [1, 2, 5, 100])
def test_a_plan_is_the_kernels_whatever_the_pages(catalog: Catalog, table: Table, most: int) -> None:
    client = asking(catalog, Settings(max_plan_page=most))
    wanted = list(table.scan().plan_files())
    found = planned(client, {})
    assert paths(found) == [task.file.file_path for task in wanted]
    assert [each["deletes"] for each in found] == [[file.file_path for file in task.delete_files] for task in wanted]
    assert sum(bool(each["deletes"]) for each in found) == 1
    assert [each["data-file"]["partition"] for each in found] == [[task.file.partition[0]] for task in wanted]
    assert {each["residual-filter"] for each in found} == {True}


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (True, "id is not null or id is null"),
        ({"type": "false"}, "id is null and id is not null"),
        ({"type": "eq", "term": "name", "value": "a"}, "name = 'a'"),
        ({"type": "gt", "term": "id", "value": 11}, "id > 11"),
        (
            {
                "type": "lt",
                "left": {"type": "literal", "value": 11, "data-type": "long"},
                "right": {"type": "reference", "id": 1},
            },
            "id > 11",
        ),
        (
            {"type": "not", "child": {"type": "is-null", "child": {"type": "reference", "name": "name"}}},
            "name is not null",
        ),
        (
            {
                "type": "and",
                "left": {"type": "in", "term": "name", "values": ["a", "c"]},
                "right": {"type": "not-in", "term": "id", "values": [0, 1, 2]},
            },
            "name in ('a', 'c') and id not in (0, 1, 2)",
        ),
        (
            {
                "type": "or",
                "left": {"type": "starts-with", "term": "name", "value": "b"},
                "right": {"type": "eq", "term": "raw", "value": "0001"},
            },
            "name like 'b%' or raw = X'0001'",
        ),
        ({"type": "lt-eq", "term": "day", "value": "1970-01-01"}, "day <= '1970-01-01'"),
    ],
)
def test_a_filter_of_the_protocol_plans_what_it_means(catalog: Catalog, table: Table, given: Any, meant: str) -> None:
    found = planned(asking(catalog), {"filter": given})
    assert paths(found) == [task.file.file_path for task in table.scan(meant).plan_files()]
    again = [paths(planned(asking(catalog), {"filter": each["residual-filter"]})) for each in found]
    assert all(path in those for path, those in zip(paths(found), again, strict=True))


def test_what_is_left_of_the_filter_goes_with_each_file(catalog: Catalog, table: Table) -> None:
    both = {
        "type": "and",
        "left": {"type": "eq", "term": "NAME", "value": "a"},
        "right": {"type": "lt", "term": "ID", "value": 22},
    }
    found = planned(asking(catalog), {"filter": both, "case-sensitive": False, "select": ["Day"]})
    assert [each["residual-filter"] for each in found] == [{"type": "lt", "term": "id", "value": 22}] * 2
    refused(asking(catalog).post(f"{TABLE}/plan", json={"filter": both}), 400, "IllegalArgumentException")


def test_statistics_are_sent_of_the_columns_that_are_named(catalog: Catalog, table: Table) -> None:
    (file,) = (each["data-file"] for each in planned(asking(catalog), {"stats-fields": ["day", "id"]})[:1])
    keys = dict(zip(file["lower-bounds"]["keys"], file["lower-bounds"]["values"], strict=True))
    assert set(keys) == {1, 2}
    assert keys[2] == "1970-01-01"
    assert file["value-counts"]["values"] == [3, 3]
    assert "lower-bounds" not in planned(asking(catalog), {})[0]["data-file"]


def test_a_version_is_planned_under_its_schema_or_the_current_one(catalog: Catalog, table: Table) -> None:
    old = table.snapshots()[1].snapshot_id
    table.update_schema().rename_column("id", "number").commit()
    client = asking(catalog)

    def body(column: str, **more: Any) -> dict[str, Any]:
        return {"snapshot-id": old, "filter": {"type": "not-null", "term": column}, **more}

    assert (
        len(planned(client, body("number"))) == len(planned(client, body("id", **{"use-snapshot-schema": True}))) == 2
    )
    refused(client.post(f"{TABLE}/plan", json=body("id")), 400, "IllegalArgumentException")
    refused(client.post(f"{TABLE}/plan", json={"snapshot-id": 7}), 404, "NoSuchSnapshotException")


def test_what_was_appended_between_two_snapshots_is_planned(catalog: Catalog, table: Table) -> None:
    ids = [snapshot.snapshot_id for snapshot in table.snapshots()]
    client = asking(catalog, Settings(max_plan_page=1))
    found = planned(client, {"start-snapshot-id": ids[0], "end-snapshot-id": ids[2]})
    scan = table.incremental_append_scan(from_snapshot_id_exclusive=ids[0], to_snapshot_id_inclusive=ids[2])
    assert paths(found) == [task.file.file_path for task in scan.plan_files()]
    assert len(found) == 2
    refused(client.post(f"{TABLE}/plan", json={"end-snapshot-id": ids[2]}), 400, "IllegalArgumentException")
    three = {"snapshot-id": ids[0], "start-snapshot-id": ids[0], "end-snapshot-id": ids[2]}
    refused(client.post(f"{TABLE}/plan", json=three), 400, "IllegalArgumentException")


def test_a_plan_of_a_range_ends_when_the_range_expires(catalog: Catalog, table: Table) -> None:
    ids = [snapshot.snapshot_id for snapshot in table.snapshots()]
    client = asking(catalog, Settings(max_plan_page=1))
    first = client.post(f"{TABLE}/plan", json={"start-snapshot-id": ids[0], "end-snapshot-id": ids[3]}).json()
    token = {"plan-task": first["plan-tasks"][0]}
    table.maintenance.expire_snapshots(snapshot_ids=[ids[0]])
    assert client.post(f"{TABLE}/tasks", json=token).status_code == 200  # the first snapshot of the range is kept
    table.refresh().maintenance.expire_snapshots(snapshot_ids=[ids[1]])
    refused(client.post(f"{TABLE}/tasks", json=token), 404, "NoSuchPlanTaskException")
    refused(client.get(f"{TABLE}/plan/{first['plan-id']}"), 404, "NoSuchPlanIdException")


def test_a_plan_goes_on_in_another_process_and_past_commits(catalog: Catalog, table: Table) -> None:
    settings = Settings(max_plan_page=3)
    wanted = [task.file.file_path for task in table.scan().plan_files()]
    first = asking(catalog, settings).post(f"{TABLE}/plan", json={}).json()
    table.append(pa.Table.from_pylist([{"id": 99}], SCHEMA))
    table.update_schema().add_column("more", pa.int32()).commit()
    other = asking(catalog, settings)
    rest = other.post(f"{TABLE}/tasks", json={"plan-task": first["plan-tasks"][0]}).json()
    assert paths(_tasks(first)) + paths(_tasks(rest)) == wanted
    place = f"{TABLE}/plan/{first['plan-id']}"
    assert other.get(place).json() == first
    assert other.delete(place).status_code == 204
    refused(other.get(f"{TABLE}/plan/none"), 404, "NoSuchPlanIdException")
    refused(other.delete(f"{TABLE}/plan/none"), 404, "NoSuchPlanIdException")


def test_an_answer_reads_no_manifest_of_those_before_it(catalog: Catalog, table: Table) -> None:
    settings = Settings(max_plan_page=2)
    wanted = [task.file.file_path for task in table.scan().plan_files()]
    manifests = [row for row in table.inspect.manifests().to_pylist() if row["content"] == 0]
    assert len(manifests) == len(wanted) == 5
    client = asking(catalog, settings)
    page = client.post(f"{TABLE}/plan", json={}).json()
    found = paths(_tasks(page))
    while waiting := page.get("plan-tasks"):
        for manifest in manifests[: len(found)]:
            Path(manifest["path"].removeprefix("file://")).unlink(missing_ok=True)
        clear_caches()
        answer = client.post(f"{TABLE}/tasks", json={"plan-task": waiting[0]})
        assert answer.status_code == 200, answer.text
        page = answer.json()
        found += paths(_tasks(page))
    assert found == wanted


def test_a_plan_is_of_one_table_and_of_whoever_asked(catalog: Catalog, table: Table, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("alice 0123456789abcdef0123\nbob zyxwvutsrqponmlkjihg\n")
    vendor = StaticCredentials({table.metadata.location: {"s3.secret-access-key": "hush"}})
    settings = Settings(authenticator=StaticTokens.from_file(file), vendor=vendor, max_plan_page=2)
    client = asking(catalog, settings)
    alice, bob = ({"Authorization": f"Bearer {each.split()[1]}"} for each in file.read_text().splitlines())
    delegation = {"X-Iceberg-Access-Delegation": "vended-credentials"}
    first = client.post(f"{TABLE}/plan", json={}, headers=alice | delegation).json()
    assert first["storage-credentials"][0]["config"] == {"s3.secret-access-key": "hush"}
    token = {"plan-task": first["plan-tasks"][0]}
    assert client.post(f"{TABLE}/tasks", json=token, headers=alice).status_code == 200
    refused(client.post(f"{TABLE}/tasks", json=token, headers=bob), 404, "NoSuchPlanTaskException")
    refused(client.get(f"{TABLE}/plan/{first['plan-id']}", headers=bob), 404, "NoSuchPlanIdException")
    catalog.create_table("db.u", SCHEMA)
    other = client.post("/v1/namespaces/db/tables/u/tasks", json=token, headers=alice)
    refused(other, 404, "NoSuchPlanTaskException")
    assert client.post("/v1/namespaces/db/tables/u/plan", json={}, headers=alice).json()["file-scan-tasks"] == []


def _token(content: bytes) -> str:
    return urlsafe_b64encode(compress(content)).decode().rstrip("=")


@pytest.mark.parametrize(
    "token",
    [
        "",
        "x",
        "ÿ",
        "A" * 100_000,
        _token(b"{}"),
        _token(b"[" * 1000),
        _token(json.dumps({"table": "", "who": "", "schema_id": 9, "first": -1, "request": {}}).encode()),
    ],
)
def test_a_plan_task_that_was_made_up_is_no_plan_task(catalog: Catalog, table: Table, token: str) -> None:
    refused(asking(catalog).post(f"{TABLE}/tasks", json={"plan-task": token}), 404, "NoSuchPlanTaskException")


@pytest.mark.slow
def test_a_plan_task_that_inflates_to_500_megabytes_is_no_plan_task(catalog: Catalog, table: Table) -> None:
    token = _token(b" " * 500_000_000)
    refused(asking(catalog).post(f"{TABLE}/tasks", json={"plan-task": token}), 404, "NoSuchPlanTaskException")


@pytest.mark.parametrize(
    "given",
    [
        1,
        "x",
        [],
        {},
        {"type": []},
        {"type": "no-such"},
        {"type": "not"},
        {"type": "and", "left": True},
        {"type": "is-null"},
        {"type": "is-null", "term": "none"},
        {"type": "is-null", "term": {"type": "transform", "transform": "bucket[4]", "term": "id"}},
        {"type": "eq", "term": "id"},
        {"type": "eq", "term": "id", "value": [1]},
        {"type": "eq", "term": "id", "value": "x"},
        {"type": "eq", "term": "raw", "value": "xy"},
        {"type": "in", "term": "id", "values": 1},
        {"type": "in", "term": "id", "values": [None]},
        {"type": "starts-with", "term": "id", "value": "x"},
        {"type": "eq", "left": {"type": "reference", "id": 1}, "right": {"type": "reference", "id": 1}},
        {"type": "is-null", "child": {"type": "reference", "id": 99}},
    ],
)
def test_a_filter_that_cannot_be_is_refused(catalog: Catalog, table: Table, given: Any) -> None:
    client = LocalClient(app(catalog))
    answer = client.post(f"{TABLE}/plan", json={"filter": given})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["code"] == 400


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"type": "not-in", "term": "id", "values": list(range(1_000_000, 1_150_000))}, "1,048,576 bytes"),
        ({"type": "in", "term": "name", "values": ["x" * 2**20]}, "1,048,576 bytes"),
    ],
)
def test_a_filter_that_is_too_long_is_refused(catalog: Catalog, table: Table, given: Any, said: str) -> None:
    answer = LocalClient(app(catalog)).post(f"{TABLE}/plan", json={"filter": given})
    refused(answer, 400, "IllegalArgumentException")
    assert said in answer.json()["error"]["message"]


@pytest.mark.slow
def test_a_filter_of_too_many_parts_is_refused(catalog: Catalog, table: Table) -> None:
    def joined(count: int) -> Any:
        if count == 1:
            return {"type": "is-null", "term": "id"}
        return {"type": "or", "left": joined(count // 2), "right": joined(count - count // 2)}

    client = LocalClient(app(catalog))
    answer = client.post(f"{TABLE}/plan", json={"filter": joined(5_001)})
    refused(answer, 400, "IllegalArgumentException")
    assert "10,000" in answer.json()["error"]["message"]
    assert client.post(f"{TABLE}/plan", json={"filter": joined(5_000)}).status_code == 200


@pytest.mark.slow
def test_an_answer_has_as_many_files_as_it_has_room_for(
    catalog: Catalog, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "_MAX_ANSWER", 20_000)
    client, short = asking(catalog), {"type": "not-eq", "term": "id", "value": 7}
    longer = {"type": "not-in", "term": "id", "values": list(range(1_000, 2_000))}
    longest = {"type": "not-in", "term": "id", "values": list(range(10_000, 20_000))}
    for given, most in ((short, 5), (longer, 3), (longest, 1)):
        page = client.post(f"{TABLE}/plan", json={"filter": given}).json()
        assert len(page["file-scan-tasks"]) == most
        assert {len(each["residual-filter"].get("values", [7])) for each in page["file-scan-tasks"]} <= {
            1,
            1_000,
            10_000,
        }
        assert paths(planned(client, {"filter": given})) == [task.file.file_path for task in table.scan().plan_files()]
    asked = {"stats-fields": ["id", "day", "name", "raw"] * 2}
    monkeypatch.setattr(plans, "_MAX_ANSWER", 1_300)
    assert len(client.post(f"{TABLE}/plan", json=asked).json()["file-scan-tasks"]) == 2


def test_a_plan_of_the_longest_filter_goes_on(catalog: Catalog, table: Table) -> None:
    client = LocalClient(app(catalog, Settings(max_plan_page=2)))
    given = {"type": "not-in", "term": "name", "values": [f"x{number}" * 20 for number in range(8_500)]}
    given["values"] += ["y" * (2**20 - 30 - len(json.dumps(given, separators=(",", ":"))))]  # type: ignore[operator]
    assert len(planned(client, {"filter": given})) == 4  # all but that of nulls
