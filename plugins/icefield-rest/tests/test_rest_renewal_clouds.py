"""Vended tokens of Google and signatures of Azure that end in the middle of a scan or a commit are renewed."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
import pytest
from azure.storage.blob import AccountSasPermissions, ResourceTypes, generate_account_sas
from http_between import Answered, Asked, Between, Forward
from icefield import Catalog, load_catalog
from icefield.scan import read_tasks
from icefield_rest_server import Settings, app
from icefield_rest_server.tokens import Principal
from rest_served import served
from servers.azure import ACCOUNT, KEY, Azure
from servers.gcs import Gcs

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("id", pa.int64())])
LIFE = 4.0
GRACE = 1.0
"""Seconds after the end in which a credential still opens: a request may be on its way for so long."""


@dataclass(frozen=True)
class Cloud:
    """A store: where it is, the server's own properties, and what its clients are told."""

    url: str
    warehouse: str
    own: dict[str, str]
    told: Callable[[str], dict[str, str]]
    credential: Callable[[str, float], dict[str, str]]
    shown: Callable[[Asked], str]


def token_of_google(name: str, ends: float) -> dict[str, str]:
    return {"gcs.oauth2.token": name, "gcs.oauth2.token-expires-at": str(int(ends * 1_000))}


def signature_of_azure(name: str, ends: float) -> dict[str, str]:
    allowed = AccountSasPermissions(read=True, write=True, list=True, create=True, delete=True)
    until = datetime.fromtimestamp(ends + 60, UTC)
    signature = generate_account_sas(ACCOUNT, KEY, ResourceTypes(object=True, container=True), allowed, until)
    return {"adls.sas-token": f"{signature}&number={name}", "adls.sas-token-expires-at-ms": str(int(ends * 1_000))}


@pytest.fixture(params=["gcs", "adls"])
def cloud(request: pytest.FixtureRequest, tmp_path: Path) -> Cloud:
    store: Gcs | Azure = request.getfixturevalue({"gcs": "gcs", "adls": "azure"}[request.param])
    if isinstance(store, Gcs):
        return Cloud(
            store.url,
            f"gs://{store.bucket}/{tmp_path.name}",
            store.properties,
            lambda url: {"gcs.service.host": url},
            token_of_google,
            lambda asked: asked.headers.get("authorization", "").removeprefix("Bearer "),
        )
    return Cloud(
        store.url,
        f"abfss://{store.container}@{ACCOUNT}.dfs.core.windows.net/{tmp_path.name}",
        store.properties,
        lambda url: {
            "adls.account-name": ACCOUNT,
            "adls.account-host": url.removeprefix("http://"),
            "adls.blob-storage-scheme": "http",
        },
        signature_of_azure,
        lambda asked: parse_qs(urlsplit(asked.path).query).get("number", [""])[0],
    )


class ShortLived:
    """Credentials that end soon, each with a number."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud, self.life = cloud, LIFE
        self.ends: dict[str, float] = {}

    def credentials(
        self, principal: Principal | None, table: tuple[str, ...], location: str, writes: bool
    ) -> list[tuple[str, dict[str, str]]]:
        name = f"number-{len(self.ends)}"
        self.ends[name] = time.time() + self.life
        return [(location, self.cloud.credential(name, self.ends[name]))]


class Store(Between):
    """A store that takes only credentials that have not ended."""

    def __init__(self, cloud: Cloud, vendor: ShortLived) -> None:
        super().__init__(cloud.url)
        self.refused: list[str] = []
        self.used: set[str] = set()

        def behave(asked: Asked, forward: Forward) -> Answered | None:
            name = cloud.shown(asked)
            if time.time() > vendor.ends.get(name, 0) + GRACE:
                self.refused.append(f"{asked.method} {asked.path} by {name!r}")
                return Answered(403)
            self.used.add(name)
            return forward(asked)

        self.behave = behave


@pytest.fixture
def vendor(cloud: Cloud) -> ShortLived:
    return ShortLived(cloud)


@pytest.fixture
def store(cloud: Cloud, vendor: ShortLived) -> Iterator[Store]:
    made = Store(cloud, vendor)
    with made.open():
        yield made


@pytest.fixture
def catalog(cloud: Cloud, store: Store, vendor: ShortLived, tmp_path: Path) -> Iterator[Catalog]:
    """A client of our server, whose tables are in the store."""
    settings = Settings(vendor=vendor, defaults=cloud.told(store.url))
    uri = f"sqlite:///{tmp_path}/catalog.db"
    with load_catalog("served", type="sql", uri=uri, warehouse=cloud.warehouse, **cloud.own) as behind:
        behind.create_namespace("db")
        with served(app(behind, settings)) as address, load_catalog("test", type="rest", uri=address) as made:
            yield made


def test_a_scan_that_is_longer_than_the_life_of_its_credentials_is_read_to_its_end(
    catalog: Catalog, store: Store
) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    for number in range(4):
        table.append(pa.table({"id": [number]}))
    scan = catalog.load_table("db.t").scan()
    found = []
    for task in scan.plan_files():
        time.sleep(LIFE * 0.6)
        found += [row for batch in read_tasks([task], scan.context, workers=1) for row in batch["id"].to_pylist()]
    assert sorted(found) == list(range(4))
    assert store.refused == []
    assert len(store.used) >= 2


def test_a_commit_whose_credentials_end_before_it_is_made_is_made(catalog: Catalog, store: Store) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    with table.transaction() as tx:
        for number in range(2):
            tx.append(pa.table({"id": [number]}))
            time.sleep(LIFE + GRACE)
    assert sorted(catalog.load_table("db.t").scan().to_arrow()["id"].to_pylist()) == [0, 1]
    assert store.refused == []


def test_what_an_executor_was_given_has_ended_and_it_asks_for_more(
    catalog: Catalog, store: Store, vendor: ShortLived
) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    table.append(pa.table({"id": [7]}))
    scan = catalog.load_table("db.t").scan()
    sent = pickle.dumps((list(scan.plan_files()), scan.context))
    before = len(vendor.ends)
    vendor.life = 60
    time.sleep(LIFE + GRACE)
    tasks, context = pickle.loads(sent)
    assert [row for batch in read_tasks(tasks, context) for row in batch["id"].to_pylist()] == [7]
    assert store.refused == []
    assert len(vendor.ends) == before + 1
