"""Whatever a client without rights states, by whatever endpoint, it gains nothing and others lose nothing."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from icefield import Catalog, load_catalog
from icefield.metadata import updates_from_json
from icefield_rest_server import Principal, Settings, StaticTokens, app
from local_client import LocalClient
from rest_bodies import SCHEMA, VIEW_VERSION

TOKENS = {"root": "r" * 20, "mallory": "m" * 20}
ROWS = pa.table({"id": [41, 42], "name": ["TOPSECRET-A", "TOPSECRET-B"]})
OWN = frozenset({"mine", "made", "view", "kept"})
"""The names in ``db`` that mallory may use; all else there, and the namespace ``secret``, is others'."""

PLACES: dict[str, str] = {
    "another table": "{w}/db/other",
    "another table, with a slash": "{w}/db/other/",
    "another table's data": "{w}/db/other/data",
    "another table's metadata": "{w}/db/other/metadata",
    "within another table's data": "{w}/db/other/data/x",
    "another table at a place of its own": "{w}/db/apart",
    "within a table at a place of its own": "{w}/db/apart/x",
    "another table's data elsewhere": "{w}/db/elsewhere",
    "within another table's data elsewhere": "{w}/db/elsewhere/x",
    "a view": "{w}/db/theirs",
    "a view at a place of its own": "{w}/db/views/theirs",
    "around a view at a place of its own": "{w}/db/views",
    "the namespace": "{w}/db",
    "the namespace, with a slash": "{w}/db/",
    "another namespace": "{w}/secret",
    "a new folder in another namespace": "{w}/secret/new",
    "a table of another namespace": "{w}/secret/t",
    "its data": "{w}/secret/t/data",
    "its metadata": "{w}/secret/t/metadata",
    "the warehouse": "{w}",
    "around the warehouse": "{up}",
    "beside the warehouse": "{up}/beside",
    "the root of the disk": "file:///",
    "two slashes": "{w}/db//other",
    "two slashes before the namespace": "{w}//db/other",
    "many slashes": "{w}/db///other///data",
    "a dot": "{w}/db/./other",
    "two dots": "{w}/db/mine/../other",
    "two dots, to another namespace": "{w}/db/mine/../../secret/t",
    "two dots at the end": "{w}/db/other/data/..",
    "an escaped dot": "{w}/db/mine/%2e%2e/other",
    "an escaped dot in capitals": "{w}/db/mine/%2E%2E/other",
    "half an escaped dot": "{w}/db/mine/.%2e/other",
    "an escaped slash": "{w}/db%2fother",
    "an escaped slash and dots": "{w}/db/mine/..%2f..%2fsecret%2ft",
    "an escaped backslash": "{w}/db/mine/..%5cother",
    "an escaped zero": "{w}/db/other%00",
    "a backslash": "{w}/db\\other",
    "backslashes and dots": "{w}/db/mine/..\\other",
    "one slash after the scheme": "file:{path}/db/other",
    "no scheme": "{path}/db/other",
    "the scheme in capitals": "FILE://{path}/db/other",
    "a host": "file://localhost{path}/db/other",
    "two slashes without a host": "file:////{path}/db/other",
    "a link of one's own": "{w}/db/mine/link",
    "within a link of one's own": "{w}/db/mine/link/data",
    "a link in the namespace": "{w}/db/link",
    "within a link in the namespace": "{w}/db/link/t",
    "a query": "{w}/db/other?x=/db/mine",
    "a fragment": "{w}/db/other#/db/mine",
    "a blank before": " {w}/db/other",
    "a tab after": "{w}/db/other\t",
    "a line's end after": "{w}/db/other\n",
    "relative": "../other",
    "relative, with a way through": "data/../../other/data",
    "relative, to another namespace": "../../secret/t",
    "an object store": "s3://lake/db/other",
    "another scheme of the object store": "s3a://lake/db/other",
    "memory": "memory://secret/t",
    "an address": "http://127.0.0.1:9/db/other",
    "a device": "file:///dev/shm",
    "the machine's own files": "file:///etc",
}
"""Locations, and folders in which a table would have its files, that are not mallory's to take."""

HARMLESS: dict[str, str] = {
    "a sibling whose name begins with another's": "{w}/db/other2",
    "a sibling whose name is the beginning of another's": "{w}/db/othe",
    "a blank after": "{w}/db/other ",
    "other letters": "{w}/db/Other",
    "a place of one's own": "{w}/db/mine-2",
}
ALL = bool(os.environ.get("ICEFIELD_SOAK"))
"""Each place as each folder; else as one of them."""

FOLDERS = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")
ASKING = {"X-Iceberg-Access-Delegation": "vended-credentials"}


def may(principal: Principal | None, operation: str, target: tuple[str, ...]) -> bool:
    assert principal is not None
    return principal.name == "root" or target in ((), ("db",)) or (target[:1] == ("db",) and target[-1] in OWN)


class Opens:
    """Gives keys to whatever place it is asked for."""

    def credentials(
        self, principal: Principal | None, table: tuple[str, ...], location: str, writes: bool
    ) -> list[tuple[str, dict[str, str]]]:
        return [(location, {"s3.secret-access-key": "hush"})]


@dataclass
class Lake:
    """A catalog of several users, its server, and what the others have."""

    folder: Path
    catalog: Catalog
    client: LocalClient

    @property
    def warehouse(self) -> str:
        return f"file://{self.folder}/warehouse"

    def place(self, written: str) -> str:
        path = f"{self.folder}/warehouse"
        return written.format(w=self.warehouse, path=path, up=f"file://{self.folder}")

    def ask(self, method: str, path: str, body: Any = None, who: str = "mallory") -> Any:
        headers = {"Authorization": f"Bearer {TOKENS[who]}", **ASKING}
        return self.client.request(method, f"/v1/{path}", json=body, headers=headers)

    def others(self) -> dict[Path, bytes]:
        """The files that are not mallory's, in whichever place of their own her tables are."""
        own = re.compile(rf"warehouse/db/(?:{'|'.join(OWN)})(?:-[0-9a-f]{{32}})?/")
        found = (path for path in (self.folder / "warehouse").rglob("*") if path.is_file())
        kept = (path for path in found if not own.match(str(path.relative_to(self.folder))))
        return {path: path.read_bytes() for path in kept}

    def opened(self) -> list[str]:
        """What the keys of the others open, for whoever may do everything."""
        found = []
        for name in ("namespaces/db/tables/other", "namespaces/db/tables/apart", "namespaces/secret/tables/t"):
            given = self.ask("GET", f"{name}/credentials", who="root").json()["storage-credentials"]
            found += [each["prefix"] for each in given]
        return found


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    folder = tmp_path_factory.mktemp("lake")
    place = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}
    place["location.allowed-roots"] = "file:///"  # the policy is judged, without the roots before it
    with load_catalog("served", type="sql", **place) as catalog:
        for namespace in ("db", "secret"):
            catalog.create_namespace(namespace)
        given: dict[str, Any] = {"partition_spec": ["name"]}
        warehouse = f"file://{folder}/warehouse"
        catalog.create_table("db.other", ROWS.schema, **given).append(ROWS)
        catalog.create_table("db.apart", ROWS.schema, location=f"{warehouse}/db/apart", **given).append(ROWS)
        catalog.rename_table("db.apart", "db.renamed")
        catalog.rename_table("db.renamed", "db.apart")
        elsewhere = {"write.data.path": f"{warehouse}/db/elsewhere"}
        catalog.create_table("db.split", ROWS.schema, properties=elsewhere, **given).append(ROWS)
        catalog.create_table("secret.t", ROWS.schema, **given).append(ROWS)
        catalog.create_view("db.theirs", ROWS.schema, {"spark": "SELECT 1"})
        catalog.create_view("db.v", ROWS.schema, {"spark": "SELECT 1"}, location=f"{warehouse}/db/views/theirs")
        for name in ("mine", "kept"):
            catalog.create_table(f"db.{name}", ROWS.schema, **given)
        catalog.create_view("db.view", ROWS.schema, {"spark": "SELECT 1"})
        (folder / "warehouse/db/mine/link").symlink_to(folder / "warehouse/db/other")
        (folder / "warehouse/db/link").symlink_to(folder / "warehouse/secret")
        settings = Settings(authenticator=StaticTokens(TOKENS), authorizer=may, vendor=Opens())
        with LocalClient(app(catalog, settings)) as client:  # one event loop for all requests
            yield Lake(folder, catalog, client)


def created(location: str, properties: dict[str, str]) -> list[dict[str, Any]]:
    """The updates that create a table."""
    return [
        {"action": "assign-uuid", "uuid": "11111111-1111-4111-8111-111111111111"},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": SCHEMA},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": location},
        *([{"action": "set-properties", "updates": properties}] if properties else []),
    ]


Ask = Callable[[Lake, str, dict[str, str]], Any]
CREATE = {"requirements": [{"type": "assert-create"}]}


def named(name: str) -> dict[str, Any]:
    return {"identifier": {"namespace": ["db"], "name": name}}


def create(lake: Lake, location: str, properties: dict[str, str]) -> Any:
    body = {"name": "made", "schema": SCHEMA, "location": location, "properties": properties}
    return lake.ask("POST", "namespaces/db/tables", body)


def stage(lake: Lake, location: str, properties: dict[str, str]) -> Any:
    body = {"name": "made", "schema": SCHEMA, "location": location, "properties": properties, "stage-create": True}
    return lake.ask("POST", "namespaces/db/tables", body)


def create_by_commit(lake: Lake, location: str, properties: dict[str, str]) -> Any:
    return lake.ask("POST", "namespaces/db/tables/made", {**CREATE, "updates": created(location, properties)})


def create_by_transaction(lake: Lake, location: str, properties: dict[str, str]) -> Any:
    change = {**CREATE, **named("made"), "updates": created(location, properties)}
    return lake.ask("POST", "transactions/commit", {"table-changes": [change]})


def changes(lake: Lake, name: str, location: str, properties: dict[str, str]) -> dict[str, Any]:
    own = lake.catalog.load_table(f"db.{name}").location() if name == "kept" else ""
    updates: list[dict[str, Any]] = []
    if location != own:
        updates.append({"action": "set-location", "location": location})
    if properties:
        updates.append({"action": "set-properties", "updates": properties})
    return {"requirements": [], "updates": updates}


def commit(lake: Lake, location: str, properties: dict[str, str]) -> Any:
    return lake.ask("POST", "namespaces/db/tables/kept", changes(lake, "kept", location, properties))


def transaction(lake: Lake, location: str, properties: dict[str, str]) -> Any:
    change = {**named("kept"), **changes(lake, "kept", location, properties)}
    return lake.ask("POST", "transactions/commit", {"table-changes": [change]})


def register(lake: Lake, location: str, properties: dict[str, str]) -> Any:
    """A metadata file of mallory's own, as her credentials let her write one."""
    mine = lake.catalog.load_table("db.mine")
    document = json.loads(Path(mine.metadata_location.removeprefix("file://")).read_text())
    document |= {"location": location, "properties": properties}
    folder = lake.folder / "warehouse/db/made/files"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "00000-a.metadata.json").write_text(json.dumps(document))
    body = {"name": "made", "metadata-location": f"file://{folder}/00000-a.metadata.json"}
    return lake.ask("POST", "namespaces/db/register", body)


def create_view(lake: Lake, location: str, properties: dict[str, str]) -> Any:
    body = {"name": "made", "schema": SCHEMA, "view-version": VIEW_VERSION, "properties": properties}
    return lake.ask("POST", "namespaces/db/views", {**body, "location": location})


def replace_view(lake: Lake, location: str, properties: dict[str, str]) -> Any:
    updates: list[dict[str, Any]] = []
    if not location.endswith("/db/made"):
        updates.append({"action": "set-location", "location": location})
    if properties:
        updates.append({"action": "set-properties", "updates": properties})
    return lake.ask("POST", "namespaces/db/views/view", {"requirements": [], "updates": updates})


ENDPOINTS: dict[str, Ask] = {
    "create": create,
    "staged create": stage,
    "commit that creates": create_by_commit,
    "transaction that creates": create_by_transaction,
    "commit": commit,
    "transaction": transaction,
    "register": register,
    "create view": create_view,
    "replace view": replace_view,
}


def refused(lake: Lake, ask: Ask, location: str, properties: dict[str, str]) -> None:
    """Have a request refused, with nothing written and nothing made."""
    answer = ask(lake, location, properties)
    if lake.catalog.table_exists("db.made"):
        lake.catalog.drop_table("db.made")
    assert answer.status_code in (400, 403), f"{answer.status_code} {location!r} {properties} {answer.text[:300]}"
    assert "hush" not in answer.text
    assert "TOPSECRET" not in answer.text


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_no_place_of_others_is_taken_by_a_location_or_a_folder(lake: Lake, endpoint: str) -> None:
    ask, files, opened = ENDPOINTS[endpoint], lake.others(), lake.opened()
    assert opened == [f"{lake.warehouse}/{name}" for name in ("db/other", "db/apart", "secret/t")]
    own = f"{lake.warehouse}/db/{'kept' if endpoint in ('commit', 'transaction') else 'made'}"
    folders = FOLDERS if "view" not in endpoint else ("write.metadata.path",)
    for number, (name, written) in enumerate(PLACES.items()):
        place = lake.place(written)
        if name != "relative" or "view" not in endpoint:
            refused(lake, ask, place, {})
        for key in folders if ALL else [folders[number % len(folders)]]:
            refused(lake, ask, own, {key: place})
    assert not lake.catalog.table_exists("db.made")
    assert not lake.catalog.view_exists("db.made")
    assert lake.others() == files
    assert lake.opened() == opened


@pytest.mark.parametrize("name", HARMLESS)
def test_a_place_that_only_looks_like_anothers_may_be_taken(lake: Lake, name: str) -> None:
    files, opened = lake.others(), lake.opened()
    place = lake.place(HARMLESS[name])
    answer = create(lake, place, {"write.data.path": f"{place}/rows"})
    assert answer.status_code == 200, answer.text
    assert [each["prefix"] for each in answer.json()["storage-credentials"]] == [place]
    lake.catalog.drop_table("db.made")
    assert {path for path in lake.others() if path not in files} <= set(Path(place.removeprefix("file://")).rglob("*"))
    assert lake.opened() == opened


def snapshot(manifest_list: str, **more: Any) -> dict[str, Any]:
    summary = {"operation": "append"}
    now = int(time.time() * 1000)
    found = {"snapshot-id": 777, "sequence-number": 1, "timestamp-ms": now, "summary": summary, "schema-id": 0}
    return {**found, "manifest-list": manifest_list, **more}


def forged(files: dict[str, str]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Updates that name a file of another table."""
    head = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 777}
    own = {"action": "add-snapshot", "snapshot": snapshot(files["own list"])}
    for what in ("list", "manifest", "metadata", "data"):
        yield f"{what} as a list", [{"action": "add-snapshot", "snapshot": snapshot(files[what])}, head]
        statistics = {
            "snapshot-id": 777,
            "statistics-path": files[what],
            "file-size-in-bytes": 1,
            "file-footer-size-in-bytes": 1,
            "blob-metadata": [],
        }
        yield f"{what} as statistics", [own, {"action": "set-statistics", "snapshot-id": 777, "statistics": statistics}]
        parts = {"snapshot-id": 777, "statistics-path": files[what], "file-size-in-bytes": 1}
        yield (
            f"{what} as statistics of partitions",
            [own, {"action": "set-partition-statistics", "partition-statistics": parts}],
        )


SPELLINGS: dict[str, Callable[[str], str]] = {
    "plain": lambda given: given,
    "one slash": lambda given: given.replace("file://", "file:"),
    "no scheme": lambda given: given.removeprefix("file://"),
    "two slashes": lambda given: given.replace("/metadata/", "//metadata//"),
    "dots": lambda given: given.replace("/warehouse/", "/warehouse/db/mine/../../"),
    "a link": lambda given: given.replace("/warehouse/secret/", "/warehouse/db/link/"),
    "capitals": lambda given: given.replace("file://", "FILE://"),
}


@pytest.mark.slow
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_file_of_another_table_is_not_named_and_not_read(lake: Lake, spelling: str) -> None:
    spelt, files, opened = SPELLINGS[spelling], lake.others(), lake.opened()
    theirs = lake.catalog.load_table("secret.t")
    current = theirs.current_snapshot()
    assert current is not None
    folder = lake.folder / "warehouse/secret/t"
    named_files = {
        "own list": f"{lake.warehouse}/db/kept/metadata/snap-1.avro",
        "list": spelt(str(current.manifest_list)),
        "manifest": spelt(f"file://{next(folder.rglob('*-m0.avro'))}"),
        "metadata": spelt(theirs.metadata_location),
        "data": spelt(f"file://{next(folder.rglob('*.parquet'))}"),
    }
    for name, updates in forged(named_files):
        body = {"requirements": [], "updates": updates}
        answer = lake.ask("POST", "namespaces/db/tables/kept", body)
        assert answer.status_code in (400, 403), f"{name}: {answer.text[:300]}"
        answer = lake.ask("POST", "transactions/commit", {"table-changes": [named("kept") | body]})
        assert answer.status_code in (400, 403), f"{name}: {answer.text[:300]}"
        body = {**CREATE, "updates": [*created(f"{lake.warehouse}/db/made", {}), *updates]}
        answer = lake.ask("POST", "namespaces/db/tables/made", body)
        assert answer.status_code in (400, 403), f"{name}: {answer.text[:300]}"
        # Past the server, as who may write to the table's files can: it is not read for a client either.
        lake.catalog.create_table("db.made", ROWS.schema)
        try:
            lake.catalog.commit_table("db.made", updates_from_json(updates), ())
            for what in ({"stats-fields": ["id", "name"]}, {"snapshot-id": 777, "stats-fields": ["id"]}):
                answer = lake.ask("POST", "namespaces/db/tables/made/plan", what)
                assert "TOPSECRET" not in answer.text
                assert "secret/t" not in answer.text.partition('"file-scan-tasks"')[2]
        finally:
            lake.catalog.drop_table("db.made")
    assert lake.others() == files
    assert lake.opened() == opened


def test_a_manifest_list_of_ones_own_that_names_anothers_manifests_shows_nothing(lake: Lake) -> None:
    theirs = lake.catalog.load_table("secret.t")
    mine = lake.catalog.create_table("db.made", ROWS.schema, partition_spec=["name"])
    current = theirs.current_snapshot()
    assert current is not None
    assert current.manifest_list is not None
    copied = Path(mine.location().removeprefix("file://")) / "metadata/snap-copied.avro"
    copied.write_bytes(Path(current.manifest_list.removeprefix("file://")).read_bytes())
    head = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 777}
    updates = [{"action": "add-snapshot", "snapshot": snapshot(f"file://{copied}")}, head]
    try:
        answer = lake.ask("POST", "namespaces/db/tables/made", {"requirements": [], "updates": updates})
        assert answer.status_code == 200, "the list is a file of the table's own"
        assert lake.ask("POST", "namespaces/secret/tables/t/plan", {}, who="root").status_code == 200  # and now cached
        for body in ({"stats-fields": ["id"]}, {"snapshot-id": 777}, {"filter": {"type": "not-null", "term": "id"}}):
            answer = lake.ask("POST", "namespaces/db/tables/made/plan", body)
            assert answer.status_code == 400, answer.text
            assert "TOPSECRET" not in answer.text
    finally:
        lake.catalog.drop_table("db.made")


@pytest.mark.parametrize("claim", ["write.data.path", "write.metadata.path", "write.object-storage.path"])
@pytest.mark.parametrize("place", ["db", "db/other", "db/apart-1", "db/apart-1/data", "secret", ""])
def test_a_folder_that_a_table_states_past_the_server_takes_nothing_from_others(
    tmp_path: Path, claim: str, place: str
) -> None:
    warehouse = f"file://{tmp_path}/warehouse"
    with load_catalog("served", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=warehouse) as catalog:
        for namespace in ("db", "secret"):
            catalog.create_namespace(namespace)
        catalog.create_table("db.other", ROWS.schema).append(ROWS)
        catalog.create_table("db.apart", ROWS.schema, location=f"{warehouse}/db/apart-1").append(ROWS)
        catalog.create_table("db.mine", ROWS.schema)
        stated = {claim: f"{warehouse}/{place}".rstrip("/"), "write.object-storage.enabled": "true"}
        update = {"action": "set-properties", "updates": stated}
        catalog.commit_table("db.mine", updates_from_json([update]), ())
        settings = Settings(authenticator=StaticTokens(TOKENS), authorizer=may, vendor=Opens())
        lake = Lake(tmp_path, catalog, LocalClient(app(catalog, settings)))
        for name, folder in (("other", "other"), ("apart", "apart-1")):
            path = f"namespaces/db/tables/{name}"
            given = lake.ask("GET", f"{path}/credentials", who="root").json()["storage-credentials"]
            assert [each["prefix"] for each in given] == [f"{warehouse}/db/{folder}"]
            assert lake.ask("DELETE", f"{path}?purgeRequested=true", who="root").status_code == 204
            assert not list((tmp_path / "warehouse/db" / folder).rglob("*.parquet"))


@pytest.mark.parametrize("by", ["commit that creates", "transaction that creates"])
@pytest.mark.parametrize("denied", [("db",), ("db", "made")])
def test_who_may_not_create_a_table_does_not_by_a_commit(tmp_path: Path, by: str, denied: tuple[str, ...]) -> None:
    def allows(principal: Principal | None, operation: str, target: tuple[str, ...]) -> bool:
        return operation != "createTable" or target != denied

    warehouse = f"file://{tmp_path}/warehouse"
    with load_catalog("served", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=warehouse) as catalog:
        catalog.create_namespace("db")
        settings = Settings(authenticator=StaticTokens(TOKENS), authorizer=allows)
        lake = Lake(tmp_path, catalog, LocalClient(app(catalog, settings)))
        assert ENDPOINTS[by](lake, f"{warehouse}/db/made", {}).status_code == 403
        assert not catalog.table_exists("db.made")
        assert not os.path.exists(f"{tmp_path}/warehouse/db/made")


def test_a_table_is_not_renamed_into_a_namespace_without_the_right_to(lake: Lake) -> None:
    asked: list[tuple[str, ...]] = []

    def allows(principal: Principal | None, operation: str, target: tuple[str, ...]) -> bool:
        asked.append(target)
        return target != ("secret",)

    settings = Settings(authenticator=StaticTokens(TOKENS), authorizer=allows)
    other = Lake(lake.folder, lake.catalog, LocalClient(app(lake.catalog, settings)))
    names = {"source": {"namespace": ["db"], "name": "mine"}, "destination": {"namespace": ["secret"], "name": "mine"}}
    assert other.ask("POST", "tables/rename", names).status_code == 403
    assert ("secret",) in asked
    assert lake.catalog.table_exists("db.mine")
