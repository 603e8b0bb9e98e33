"""Somebody who may change one table has the server delete files: their own, and nobody else's."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from icefield import Catalog, Table, load_catalog
from icefield.metadata import updates_from_json
from icefield_rest_server import Settings, app, owned, tables
from local_client import LocalClient
from overlaps import move_past_guards

SCHEMA = pa.schema([("id", pa.int64())])
ROWS = pa.table({"id": [1, 2, 3]}, SCHEMA)


def may(who: Any, operation: str, target: tuple[str, ...]) -> bool:
    """The namespace ``db`` is the attacker's, but for one table in it."""
    return target[:1] in ((), ("db",)) and target != ("db", "other")


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    place = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    place["location.allowed-roots"] = f"file://{tmp_path}"
    place["location.owned-only"] = "false"  # the server's own guard is judged, without the kernel's behind it
    with load_catalog("served", type="sql", **place) as made:
        for namespace in ("db", "theirs"):
            made.create_namespace(namespace)
        for name in ("theirs.t", "db.other", "db.mine"):
            made.create_table(name, SCHEMA).append(ROWS)
        made.create_view("db.v", SCHEMA, {"spark": "SELECT 1"})
        yield made


@pytest.fixture
def client(catalog: Catalog) -> LocalClient:
    return LocalClient(app(catalog, Settings(authorizer=may)))


def commit(client: LocalClient, *updates: dict[str, Any], status: int = 200) -> None:
    body = {"requirements": [], "updates": list(updates)}
    answer = client.post("/v1/namespaces/db/tables/mine", json=body)
    assert answer.status_code == status, answer.text


def state(catalog: Catalog, client: LocalClient, update: dict[str, Any]) -> None:
    """Have the attacker's table state what the server takes from no client: past it, as other engines may."""
    commit(client, update, status=403)
    catalog.commit_table("db.mine", updates_from_json([update]), ())


def files_of(catalog: Catalog, name: str) -> set[Path]:
    return set(folder_of(catalog.load_table(name)).rglob("*.*"))


def folder_of(table: Table) -> Path:
    return Path(table.location().removeprefix("file://"))


Attack = Callable[[Catalog, LocalClient], None]


def manifests(victim: str) -> Attack:
    """The attacker's manifests name the victim's data, as a writer's own hands can write them."""

    def attack(catalog: Catalog, client: LocalClient) -> None:
        data = [f"file://{path}" for path in files_of(catalog, victim) if path.suffix == ".parquet"]
        catalog.load_table("db.mine").add_files(data)

    return attack


def location(victim: str, below: str = "") -> Attack:
    """The table says that the place of another is its own."""

    def attack(catalog: Catalog, client: LocalClient) -> None:
        manifests(victim)(catalog, client)
        move(catalog, "db.mine", catalog.load_table(victim).location() + below)

    return attack


def move(catalog: Catalog, name: str, place: str) -> None:
    """Give a table a location that the server takes from no client: past it and the kernel, as other engines may."""
    move_past_guards(catalog, name, place)


def namespace_place(catalog: Catalog, client: LocalClient) -> None:
    location("db.other")(catalog, client)
    move(catalog, "db.mine", catalog.load_table("db.other").location().rpartition("/")[0])


def warehouse(catalog: Catalog, client: LocalClient) -> None:
    location("theirs.t")(catalog, client)
    move(catalog, "db.mine", catalog.properties["warehouse"])


def path_property(victim: str, name: str, below: str) -> Attack:
    def attack(catalog: Catalog, client: LocalClient) -> None:
        manifests(victim)(catalog, client)
        path = catalog.load_table(victim).location() + below
        state(catalog, client, {"action": "set-properties", "updates": {name: path}})

    return attack


def statistics(victim: str) -> Attack:
    def attack(catalog: Catalog, client: LocalClient) -> None:
        table = catalog.load_table("db.mine")
        for path in files_of(catalog, victim):
            entry = {
                "snapshot-id": table.current_snapshot().snapshot_id,  # type: ignore[union-attr]
                "statistics-path": f"file://{path}",
                "file-size-in-bytes": 1,
                "file-footer-size-in-bytes": 1,
                "blob-metadata": [],
            }
            update = {"action": "set-statistics", "snapshot-id": entry["snapshot-id"], "statistics": entry}
            state(catalog, client, update)

    return attack


def other_spelling(catalog: Catalog, client: LocalClient) -> None:
    """The victim's place and files, with dots in between, or by a link."""
    folder = folder_of(catalog.load_table("db.mine"))
    victim = folder_of(catalog.load_table("db.other"))
    (folder / "link").symlink_to(victim)
    data = next(victim.rglob("*.parquet"))
    spelt = f"{folder}/link/{data.relative_to(victim)}"
    catalog.load_table("db.mine").add_files([f"file://{spelt}"])
    path = f"file://{folder}/link/data"
    state(catalog, client, {"action": "set-properties", "updates": {"write.data.path": path}})


ATTACKS: dict[str, Attack] = {
    "manifests, of another namespace": manifests("theirs.t"),
    "manifests, of the same namespace": manifests("db.other"),
    "location, of another namespace": location("theirs.t"),
    "location, of the same namespace": location("db.other"),
    "location, a folder of another table": location("db.other", "/data"),
    "location, the namespace": namespace_place,
    "location, the warehouse": warehouse,
    "data path": path_property("theirs.t", "write.data.path", "/data"),
    "data path, in the same namespace": path_property("db.other", "write.data.path", "/data"),
    "former name of the data path": path_property("db.other", "write.folder-storage.path", "/data"),
    "metadata path": path_property("db.other", "write.metadata.path", "/metadata"),
    "statistics": statistics("theirs.t"),
    "statistics, in the same namespace": statistics("db.other"),
    "another spelling": other_spelling,
}


def victims(catalog: Catalog) -> set[Path]:
    view = Path(catalog.backend.table_location(("db", "v")).removeprefix("file://"))
    return files_of(catalog, "theirs.t") | files_of(catalog, "db.other") | set(view.rglob("*.*"))


@pytest.mark.parametrize("name", ATTACKS)
def test_a_table_that_is_dropped_with_its_files_takes_no_others(
    catalog: Catalog, client: LocalClient, name: str
) -> None:
    there = victims(catalog)
    data = {path for path in files_of(catalog, "db.mine") if path.suffix == ".parquet"}
    ATTACKS[name](catalog, client)
    answer = client.delete("/v1/namespaces/db/tables/mine", params={"purgeRequested": "true"})
    assert answer.status_code == 204, answer.text
    assert there - victims(catalog) == set()
    for victim in ("theirs.t", "db.other"):
        assert catalog.load_table(victim).scan().to_arrow().num_rows == 3
    if not name.startswith("location"):
        assert not any(path.exists() for path in data), "its own data goes"


def test_the_harness_sees_what_a_server_would_delete_that_asks_nobody(
    catalog: Catalog, client: LocalClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Everything:
        def of(self, locations: Any) -> Any:
            return locations

    monkeypatch.setattr(tables, "owned_files", lambda *_: Everything())
    there = victims(catalog)
    ATTACKS["manifests, of another namespace"](catalog, client)
    client.delete("/v1/namespaces/db/tables/mine", params={"purgeRequested": "true"})
    assert there - victims(catalog)


def test_a_name_that_was_another_tables_does_not_make_its_files_ones_own(catalog: Catalog, client: LocalClient) -> None:
    catalog.rename_table("db.other", "db.moved")
    place = catalog.load_table("db.moved").location()
    there = files_of(catalog, "db.moved")
    catalog.create_table("db.stranger", SCHEMA).add_files(
        [f"file://{path}" for path in there if path.suffix == ".parquet"]
    )
    move(catalog, "db.stranger", place)
    answer = client.delete("/v1/namespaces/db/tables/stranger", params={"purgeRequested": "true"})
    assert answer.status_code == 204
    assert all(path.exists() for path in there)


def test_a_namespace_with_the_name_of_a_table_does_not_own_its_folders(catalog: Catalog, client: LocalClient) -> None:
    catalog.create_namespace(("db", "other"))
    there = files_of(catalog, "db.other")
    catalog.create_table(("db", "other", "data"), SCHEMA).add_files(
        [f"file://{path}" for path in there if path.suffix == ".parquet"]
    )
    answer = client.delete("/v1/namespaces/db%1Fother/tables/data", params={"purgeRequested": "true"})
    assert answer.status_code == 204
    assert all(path.exists() for path in there)


def test_a_log_of_metadata_that_a_client_wrote_costs_no_file(
    catalog: Catalog, client: LocalClient, tmp_path: Path
) -> None:
    mine = catalog.load_table("db.mine")
    document = json.loads(Path(mine.metadata_location.removeprefix("file://")).read_text())
    victim = catalog.load_table("theirs.t")
    document["metadata-log"] = [
        {"timestamp-ms": document["last-updated-ms"], "metadata-file": victim.metadata_location},
        *document["metadata-log"],
    ]
    document["properties"] |= {
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "1",
    }
    Path(mine.metadata_location.removeprefix("file://")).write_text(json.dumps(document))
    for number in range(4):
        commit(client, {"action": "set-properties", "updates": {"x": str(number)}})
    body = {"identifier": {"namespace": ["db"], "name": "mine"}, "requirements": [], "updates": []}
    body["updates"] = [{"action": "set-properties", "updates": {"x": "y"}}]  # type: ignore[list-item]
    assert client.post("/v1/transactions/commit", json={"table-changes": [body]}).status_code == 204
    assert catalog.load_table("theirs.t").scan().to_arrow().num_rows == 3


def test_folders_outside_of_the_namespace_are_owned_where_the_server_was_told_so(
    catalog: Catalog, tmp_path: Path
) -> None:
    for number, folders in enumerate(((), (f"file://{tmp_path}/elsewhere",))):
        name, settings = f"t{number}", Settings(authorizer=may, owned_folders=folders)
        path = f"file://{tmp_path}/elsewhere/{name}"
        table = catalog.create_table(f"db.{name}", SCHEMA, properties={"write.data.path": path})
        table.append(ROWS)
        left = [Path(task.file.file_path.removeprefix("file://")) for task in table.scan().plan_files()]
        client = LocalClient(app(catalog, settings))
        answer = client.delete(f"/v1/namespaces/db/tables/{name}", params={"purgeRequested": "true"})
        assert answer.status_code == 204
        assert [each.exists() for each in left] == [not folders]
        assert not set(folder_of(table).rglob("*.*"))


def test_where_everybody_may_do_everything_the_warehouse_is_owned(catalog: Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("db.t", SCHEMA, location=f"file://{tmp_path}/warehouse/far/t")
    table.append(ROWS)
    outside = catalog.create_table("db.u", SCHEMA, location=f"file://{tmp_path}/outside")
    client = LocalClient(app(catalog))
    for name in ("t", "u"):
        assert client.delete(f"/v1/namespaces/db/tables/{name}?purgeRequested=true").status_code == 204
    assert not set(folder_of(table).rglob("*.*"))
    assert set(folder_of(outside).rglob("*.*"))


def test_a_table_beside_that_cannot_be_read_keeps_what_is_in_its_place(catalog: Catalog, client: LocalClient) -> None:
    other = catalog.load_table("db.other")
    there = {path for path in files_of(catalog, "db.other") if path.suffix == ".parquet"}
    location("db.other")(catalog, client)
    Path(other.metadata_location.removeprefix("file://")).write_text("{")
    answer = client.delete("/v1/namespaces/db/tables/mine", params={"purgeRequested": "true"})
    assert answer.status_code == 204
    assert all(path.exists() for path in there)


def test_too_many_tables_to_look_through_are_a_refusal_before_anything_is_done(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = LocalClient(app(catalog, Settings(max_seconds=60)))
    times = iter(range(0, 10_000, 20))
    # A clock of its own: by the process's the server would be late, too.
    monkeypatch.setattr(owned, "time", SimpleNamespace(monotonic=lambda: float(next(times))))
    answer = client.delete("/v1/namespaces/db/tables/mine", params={"purgeRequested": "true"})
    assert answer.status_code == 503
    assert "nothing was done" in answer.json()["error"]["message"]
    assert catalog.load_table("db.mine").scan().to_arrow().num_rows == 3


def test_a_namespace_whose_place_is_in_anothers_keeps_its_files(catalog: Catalog) -> None:
    """As in Hive, where the place of ``default`` holds all others."""
    catalog.create_namespace("around", {"location": catalog.properties["warehouse"]})
    place = catalog.load_table("theirs.t").location()
    there = files_of(catalog, "theirs.t")
    table = catalog.create_table("around.mine", SCHEMA)
    table.add_files([f"file://{path}" for path in there if path.suffix == ".parquet"])
    move(catalog, "around.mine", place)
    client = LocalClient(app(catalog, Settings(authorizer=lambda who, operation, target: target[:1] == ("around",))))
    answer = client.delete("/v1/namespaces/around/tables/mine", params={"purgeRequested": "true"})
    assert answer.status_code == 204, answer.text
    assert all(path.exists() for path in there)


@pytest.mark.parametrize("is_limited", [True, False])
def test_commits_of_clients_keep_old_metadata_files_where_there_is_an_authorizer(
    catalog: Catalog, client: LocalClient, is_limited: bool
) -> None:
    asked = client if is_limited else LocalClient(app(catalog, Settings()))
    first = Path(catalog.load_table("db.mine").metadata_location.removeprefix("file://"))
    kept = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
    commit(asked, {"action": "set-properties", "updates": kept})
    for number in range(3):
        commit(asked, {"action": "set-properties", "updates": {"x": str(number)}})
    assert first.exists() == is_limited
