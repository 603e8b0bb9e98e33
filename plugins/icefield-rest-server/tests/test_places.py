"""Where not everybody may do everything, a table or view takes no place of another, nor is one opened by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from icefield import Catalog, load_catalog
from icefield_rest_server import Principal, Settings, StaticTokens, app, places
from local_client import LocalClient
from overlaps import move_past_guards
from rest_bodies import SCHEMA, VIEW_VERSION

ROWS = pa.table({"id": [1, 2, 3]})
TOKENS = {"root": "r" * 20, "bob": "b" * 20}


class Opens:
    """Gives keys to whatever place it is asked for."""

    def credentials(
        self, principal: Principal | None, table: tuple[str, ...], location: str, writes: bool
    ) -> list[tuple[str, dict[str, str]]]:
        return [(location, {"s3.access-key-id": "key"})]


May = Callable[[str, tuple[str, ...]], bool]


class Asking:
    """Requests of somebody to a server, with the prefixes that its answers open."""

    def __init__(self, catalog: Catalog, may: May, **settings: Any) -> None:
        def allows(principal: Principal | None, operation: str, target: tuple[str, ...]) -> bool:
            assert principal is not None
            return principal.name == "root" or may(operation, target)

        tokens = StaticTokens(TOKENS)
        self._client = LocalClient(
            app(catalog, Settings(authenticator=tokens, authorizer=allows, vendor=Opens(), **settings))
        )

    def ask(self, method: str, path: str, body: Any = None, who: str = "bob") -> Any:
        headers = {"Authorization": f"Bearer {TOKENS[who]}", "X-Iceberg-Access-Delegation": "vended-credentials"}
        return self._client.request(method, f"/v1/{path}", json=body, headers=headers)

    def create(self, namespace: str, name: str, **more: Any) -> Any:
        return self.ask("POST", f"namespaces/{namespace}/tables", {"name": name, "schema": SCHEMA, **more})

    def opened(self, path: str, who: str = "bob") -> list[str]:
        answer = self.ask("GET", path, who=who)
        assert answer.status_code == 200, answer.text
        credentials = self.ask("GET", f"{path}/credentials", who=who)
        assert credentials.json()["storage-credentials"] == answer.json().get("storage-credentials", [])
        return [each["prefix"] for each in answer.json().get("storage-credentials", [])]


def refused(answer: Any, status: int = 403) -> str:
    assert answer.status_code == status, answer.text
    return str(answer.json()["error"]["message"])


def move(catalog: Catalog, name: str, location: str) -> None:
    """Give a table a location past the server and the kernel, as other engines do."""
    move_past_guards(catalog, name, location)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    place = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    with load_catalog("served", type="sql", **place) as made:
        for namespace in ("db", "a", ("a", "b"), "theirs"):
            made.create_namespace(namespace)
        for name in ("db.secret", "a.b.secret", "theirs.t"):
            made.create_table(name, ROWS.schema).append(ROWS)
        yield made


@pytest.fixture
def warehouse(catalog: Catalog) -> str:
    return str(catalog.properties["warehouse"])


@pytest.fixture
def mine(catalog: Catalog) -> Asking:
    """Somebody who may do everything with one table of a namespace."""
    return Asking(catalog, lambda operation, target: target in (("db",), ("db", "mine"), ("db", "view")))


FOREIGN = (
    "db/secret",
    "db/secret/data",
    "db/secret/",
    "db",
    "db/",
    "theirs/t",
    "db/../theirs/t",
    "db//secret",
    "db/./x",
)


@pytest.mark.parametrize("place", FOREIGN)
@pytest.mark.parametrize("staged", [True, False])
def test_a_table_is_not_made_in_the_place_of_another(mine: Asking, warehouse: str, place: str, staged: bool) -> None:
    answer = mine.create("db", "mine", location=f"{warehouse}/{place}", **{"stage-create": staged})
    assert "another location" in refused(answer)
    assert mine.ask("HEAD", "namespaces/db/tables/mine").status_code == 404


@pytest.mark.parametrize("place", FOREIGN)
def test_a_table_and_a_view_do_not_move_to_the_place_of_another(
    mine: Asking, catalog: Catalog, warehouse: str, place: str
) -> None:
    assert mine.create("db", "mine").status_code == 200
    catalog.create_view("db.view", ROWS.schema, {"spark": "SELECT 1"})
    change = {"requirements": [], "updates": [{"action": "set-location", "location": f"{warehouse}/{place}"}]}
    several = {"table-changes": [{**change, "identifier": {"namespace": ["db"], "name": "mine"}}]}
    made = {"requirements": [{"type": "assert-create"}], "updates": change["updates"]}
    refused(mine.ask("POST", "namespaces/db/tables/mine", change))
    refused(mine.ask("POST", "namespaces/db/tables/mine", made), 400)  # which is no whole table
    refused(mine.ask("POST", "namespaces/db/views/view", change))
    refused(Asking(catalog, lambda *_: True).ask("POST", "transactions/commit", several))
    assert mine.opened("namespaces/db/tables/mine") == [f"{warehouse}/db/mine"]


@pytest.mark.parametrize("place", FOREIGN)
def test_a_view_is_not_made_in_the_place_of_a_table(mine: Asking, warehouse: str, place: str) -> None:
    body = {"name": "view", "schema": SCHEMA, "view-version": VIEW_VERSION, "properties": {}}
    refused(mine.ask("POST", "namespaces/db/views", {**body, "location": f"{warehouse}/{place}"}))
    assert mine.ask("POST", "namespaces/db/views", body).status_code == 200


@pytest.mark.parametrize("place", ["db/secret", "db/secret/data", "db", "theirs/t", "db/../theirs/t", "db//secret"])
def test_a_table_that_others_put_in_the_place_of_another_is_loaded_and_not_opened(
    mine: Asking, catalog: Catalog, warehouse: str, place: str
) -> None:
    catalog.create_table("db.mine", ROWS.schema).append(ROWS)
    assert mine.opened("namespaces/db/tables/mine") == [f"{warehouse}/db/mine"]
    move(catalog, "db.mine", f"{warehouse}/{place}")
    assert mine.opened("namespaces/db/tables/mine") == []
    change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
    assert mine.ask("POST", "namespaces/db/tables/mine", change).status_code == 200
    same = {"requirements": [], "updates": [{"action": "set-location", "location": f"{warehouse}/{place}"}]}
    assert mine.ask("POST", "namespaces/db/tables/mine", same).status_code == 200


def test_a_place_of_ones_own_is_opened_wherever_it_is_in_that_of_the_namespace(
    mine: Asking, catalog: Catalog, warehouse: str
) -> None:
    place = f"{warehouse}/db/mine-4711"
    assert mine.create("db", "mine", location=place).json()["storage-credentials"][0]["prefix"] == place
    assert mine.opened("namespaces/db/tables/mine") == [place]
    catalog.rename_table("db.mine", "db.view")
    assert mine.opened("namespaces/db/tables/view") == [place]


def test_a_table_gets_a_place_of_its_own_where_a_renamed_one_has_that_of_its_name(
    mine: Asking, catalog: Catalog, warehouse: str
) -> None:
    catalog.create_table("db.mine", ROWS.schema)
    catalog.rename_table("db.mine", "db.moved")
    for staged in (True, False):
        answer = mine.create("db", "mine", **{"stage-create": staged})
        assert answer.status_code == 200, answer.text
        location = answer.json()["metadata"]["location"]
        assert location.startswith(f"{warehouse}/db/mine-")
        assert answer.json()["storage-credentials"][0]["prefix"] == location
    assert mine.opened("namespaces/db/tables/mine") == [location]
    catalog.drop_table("db.mine")
    assert mine.create("db", "mine", location=f"{warehouse}/db/mine-2").status_code == 200
    catalog.drop_table("db.mine")
    catalog.drop_table("db.moved")
    assert mine.create("db", "mine").status_code == 200, "files without a table are nobody's"


def test_a_table_that_was_staged_and_written_to_is_made_in_the_place_of_its_name(mine: Asking, warehouse: str) -> None:
    staged = mine.create("db", "mine", **{"stage-create": True}).json()["metadata"]
    assert staged["location"] == f"{warehouse}/db/mine"
    data = Path(f"{staged['location'].removeprefix('file://')}/data/a.parquet")
    data.write_bytes(b"rows")  # the folder is there, for engines that make none
    updates = [
        {"action": "add-schema", "schema": SCHEMA},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": staged["location"]},
    ]
    change = {"requirements": [{"type": "assert-create"}], "updates": updates}
    answer = mine.ask("POST", "namespaces/db/tables/mine", change)
    assert answer.status_code == 200, answer.text
    assert answer.json()["storage-credentials"][0]["prefix"] == staged["location"]


def test_what_is_in_a_namespace_does_not_open_one_within_it(catalog: Catalog, warehouse: str) -> None:
    above = Asking(catalog, lambda operation, target: target[:1] == ("a",) and target[:2] != ("a", "b"))
    for location in (f"{warehouse}/a/b", f"{warehouse}/a/b/new", f"{warehouse}/a/b/secret", None):
        refused(above.create("a", "x" if location else "b", location=location), 403)
    catalog.create_table("a.c", ROWS.schema)
    assert above.opened("namespaces/a/tables/c") == [f"{warehouse}/a/c"]
    catalog.create_namespace(("a", "c"))
    assert above.opened("namespaces/a/tables/c") == []
    catalog.create_table(("a", "c", "data"), ROWS.schema)
    within = Asking(catalog, lambda operation, target: target[:2] == ("a", "c"))
    assert within.opened("namespaces/a%1Fc/tables/data") == []
    refused(within.create("a%1Fc", "metadata"))


def test_a_namespace_that_is_elsewhere_than_its_name_says_is_not_opened_either(
    catalog: Catalog, warehouse: str
) -> None:
    catalog.create_namespace("far", {"location": f"{warehouse}/db/inside"})
    catalog.create_table("far.t", ROWS.schema).append(ROWS)
    catalog.create_namespace("around", {"location": warehouse})
    mine = Asking(catalog, lambda operation, target: target[:1] in (("db",), ("around",)))
    for namespace, place in (("db", "db/inside"), ("db", "db/inside/t"), ("around", "db"), ("around", "theirs/t")):
        refused(mine.create(namespace, "mine", location=f"{warehouse}/{place}"))
    assert mine.create("db", "mine", location=f"{warehouse}/db/beside").json()["storage-credentials"]


@pytest.mark.parametrize("kind", ["table", "view"])
def test_metadata_of_another_is_not_registered(catalog: Catalog, warehouse: str, kind: str) -> None:
    mine = Asking(catalog, lambda operation, target: target[:1] == ("a",) and target[:2] != ("a", "b"))
    catalog.create_view("db.view", ROWS.schema, {"spark": "SELECT 1"})
    path = "namespaces/a/register" if kind == "table" else "namespaces/a/register-view"
    theirs = {
        "table": catalog.load_table("db.secret").metadata_location,
        "view": catalog.load_view("db.view").metadata_location,
    }[kind]
    refused(mine.ask("POST", path, {"name": "stolen", "metadata-location": theirs}))
    missing = f"{warehouse}/db/secret/metadata/none.metadata.json"
    refused(mine.ask("POST", path, {"name": "stolen", "metadata-location": missing}))
    # A file of one's own that says that it is of another's place.
    copied = Path(f"{warehouse}/a/stolen/metadata/1.metadata.json".removeprefix("file://"))
    copied.parent.mkdir(parents=True)
    copied.write_bytes(Path(theirs.removeprefix("file://")).read_bytes())
    refused(mine.ask("POST", path, {"name": "stolen", "metadata-location": f"file://{copied}"}))
    assert mine.ask("HEAD", f"namespaces/a/{kind}s/stolen").status_code == 404


def test_ones_own_metadata_is_registered_again(catalog: Catalog, warehouse: str) -> None:
    mine = Asking(catalog, lambda operation, target: target[:1] == ("db",))
    for name in ("secret", "renamed"):
        location = mine.ask("POST", "namespaces/db/tables/secret/unregister", {}).json()["metadata-location"]
        answer = mine.ask("POST", "namespaces/db/register", {"name": name, "metadata-location": location})
        assert answer.status_code == 200, answer.text
        assert mine.opened(f"namespaces/db/tables/{name}") == [f"{warehouse}/db/secret"]


def test_folders_that_the_server_was_told_of_may_be_taken_where_no_other_table_is(
    catalog: Catalog, tmp_path: Path
) -> None:
    lake = f"file://{tmp_path}/lake"
    catalog.create_table("theirs.far", ROWS.schema, location=f"{lake}/far")
    mine = Asking(catalog, lambda operation, target: target[:1] == ("db",), owned_folders=(lake,))
    refused(mine.create("db", "mine", location=f"{lake}/far"))
    refused(mine.create("db", "mine", location=f"{lake}/far/data"))
    refused(mine.create("db", "mine", location=lake))
    assert mine.create("db", "mine", location=f"{lake}/mine").json()["storage-credentials"]


def test_where_it_is_not_found_out_in_time_a_place_is_not_ones_own(
    mine: Asking, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "_MOST_SECONDS", -1.0)
    refused(mine.create("db", "mine", location=f"{warehouse}/db/beside"))
    assert mine.create("db", "mine").json()["storage-credentials"]


def test_where_everybody_may_do_everything_a_table_may_be_anywhere(catalog: Catalog, warehouse: str) -> None:
    client = LocalClient(app(catalog, Settings(vendor=Opens())))
    body = {"name": "mine", "schema": SCHEMA, "location": f"{warehouse}/theirs/beside"}
    asking = {"X-Iceberg-Access-Delegation": "vended-credentials"}
    answer = client.post("/v1/namespaces/db/tables", json=body, headers=asking).json()
    assert answer["storage-credentials"][0]["prefix"] == body["location"]
