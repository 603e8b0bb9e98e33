"""The secrets of the user's stores go to no host that a service of the protocol alone names."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from http_between import Answered, Asked, Between, Forward
from icefield import load_catalog
from icefield.errors import AccessDenied, IcefieldError, LocationRefused
from icefield_rest.places import RefusedAccess, guarded, without_other_places
from icefield_rest.settings import settings_of

SECRET = "secret-of-the-user"
FOREIGN = "secret-of-the-service"
S3 = {
    "s3.access-key-id": "AKUSER",
    "s3.secret-access-key": SECRET,
    "s3.session-token": SECRET,
    "s3.region": "us-east-1",
}
GCS = {"gcs.oauth2.token": SECRET}
ADLS = {"adls.account-name": "mine", "adls.account-key": "a2V5LW9mLXRoZS11c2Vy"}
KEYS = {"s3.access-key-id": "AKSERVED", "s3.secret-access-key": FOREIGN}
QUICK = {"s3.retry.num-retries": "0", "gcs.retry.num-retries": "0", "adls.retry.num-retries": "0"}


class Service(Between):
    """A service with one table, and the host that it has the files asked for at."""

    def __init__(self, location: str) -> None:
        super().__init__("http://127.0.0.1:9")
        self.location = location
        self.said: dict[str, Any] = {}
        self.config: dict[str, str] = {}
        self.credentials: list[dict[str, Any]] = []
        self.reached: list[Asked] = []
        self.behave = self.reply

    def reply(self, asked: Asked, forward: Forward) -> Answered | None:
        if asked.path.startswith("/v1/config"):
            return said(self.said)
        if asked.path.startswith("/v1/"):
            table = {"metadata": metadata(self.location), "metadata-location": f"{self.location}/v1.json"}
            return said({**table, "config": self.config, "storage-credentials": self.credentials})
        self.reached.append(asked)
        return Answered(404)


@pytest.fixture
def store() -> Iterator[Service]:
    with Service("").open() as made:
        assert isinstance(made, Service)
        yield made


@pytest.fixture
def service() -> Iterator[Service]:
    with Service("s3://bucket/t").open() as made:
        assert isinstance(made, Service)
        yield made


def said(body: Any) -> Answered:
    return Answered(200, {"Content-Type": "application/json"}, json.dumps(body).encode())


def metadata(location: str) -> dict[str, Any]:
    field = {"id": 1, "name": "id", "required": False, "type": "long"}
    snapshot = {"snapshot-id": 1, "sequence-number": 1, "timestamp-ms": 1, "schema-id": 0}
    return {
        "format-version": 2,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": location,
        "last-sequence-number": 1,
        "last-updated-ms": 1,
        "last-column-id": 1,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": [field]}],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "current-snapshot-id": 1,
        "snapshots": [{**snapshot, "manifest-list": f"{location}/m.avro", "summary": {"operation": "append"}}],
    }


def reads(service: Service, user: Mapping[str, str]) -> str:
    """What reading the table fails by, since no store has its files."""
    with load_catalog("test", type="rest", uri=service.url, **{**QUICK, **user}) as catalog:
        table = catalog.load_table("db.t")
        with pytest.raises((IcefieldError, FileNotFoundError)) as raised:
            table.scan().to_arrow()
    assert SECRET not in str(raised.value)
    return type(raised.value).__name__


def shown_to(store: Service) -> str:
    return "\n".join(f"{asked.path} {asked.headers}" for asked in store.reached)


MOVES: dict[str, tuple[str, Mapping[str, str], Callable[[str], dict[str, str]]]] = {
    "s3": ("s3://bucket/t", S3, lambda url: {"s3.endpoint": url, "s3.path-style-access": "true"}),
    "s3 in capitals": ("S3://bucket/t", S3, lambda url: {"s3.endpoint": url}),
    "gcs": ("gs://bucket/t", GCS, lambda url: {"gcs.service.host": url}),
    "adls": (
        "abfss://c@mine.dfs.core.windows.net/t",
        ADLS,
        lambda url: {"adls.account-host": url.removeprefix("http://"), "adls.blob-storage-scheme": "http"},
    ),
}


@pytest.mark.parametrize("where", ["defaults", "overrides", "config", "credentials"])
@pytest.mark.parametrize("name", ["s3", "gcs", "adls"])
def test_a_host_that_only_the_service_names_is_sent_nothing_of_the_users(
    service: Service, store: Service, name: str, where: str
) -> None:
    location, user, move = MOVES[name]
    service.location, moved = location, move(store.url)
    if where == "config":
        service.config = moved
    elif where == "credentials":
        service.credentials = [{"prefix": location, "config": moved}]
    else:
        service.said = {where: moved}
    assert reads(service, user) == "AccessDenied"
    assert store.reached == []


def test_a_scheme_in_capitals_leads_nowhere_else(service: Service, store: Service) -> None:
    service.location, user, move = MOVES["s3 in capitals"]
    service.config = move(store.url)
    reads(service, {**user, "s3.endpoint": "http://127.0.0.1:9"})
    assert store.reached == []


@pytest.mark.parametrize("name", ["s3", "gcs", "adls"])
def test_a_host_that_the_user_names_has_the_users_secrets(service: Service, store: Service, name: str) -> None:
    location, user, move = MOVES[name]
    service.location, service.config = location, move(store.url)
    reads(service, {**user, **move(store.url)})
    assert store.reached
    if name != "adls":  # whose account has a scheme as well
        store.reached.clear()
        reads(service, {**user, "rest.trusted-hosts": store.url})
        assert store.reached


@pytest.mark.parametrize("where", ["config", "credentials"])
def test_credentials_that_come_with_an_endpoint_are_used_there_and_no_others(
    service: Service, store: Service, where: str
) -> None:
    given = {"s3.endpoint": store.url, "s3.path-style-access": "true", **KEYS}
    if where == "config":
        service.config = given
    else:
        service.config = {key: value for key, value in given.items() if key not in KEYS}
        service.credentials = [{"prefix": "s3://bucket/t", "config": KEYS}]
    reads(service, S3)
    assert "Credential=AKSERVED/" in shown_to(store)
    assert SECRET not in shown_to(store)
    assert "AKUSER" not in shown_to(store)
    assert "x-amz-security-token" not in shown_to(store)


def test_a_default_of_the_service_does_not_make_the_users_key_its_own(service: Service, store: Service) -> None:
    service.said = {"defaults": KEYS, "overrides": {"s3.endpoint": store.url}}
    assert reads(service, S3) == "AccessDenied"
    assert store.reached == []


@pytest.mark.parametrize("picked", ["google_default", "cloud", "cache", "/etc/hostname"])
def test_a_service_picks_no_secret_of_this_machine(service: Service, store: Service, picked: str) -> None:
    service.location = "gs://bucket/t"
    service.config = {"gcs.service.host": store.url, "gcs.oauth2.token": picked}
    assert reads(service, {}) == "AccessDenied"
    service.location = "s3://bucket/t"
    service.config = {"s3.endpoint": store.url, "s3.profile-name": "default"}
    assert reads(service, {}) == "AccessDenied"
    assert store.reached == []


@pytest.mark.parametrize("said", ["warehouse", "location.credentials-for", "webhdfs.host", "hdfs.host"])
def test_a_service_names_no_gateway_of_hadoop(service: Service, store: Service, said: str) -> None:
    place = store.url.removeprefix("http://")
    service.location = f"webhdfs://{place}/t"
    service.said = {"overrides": {said: f"webhdfs://{place}/" if "host" not in said else place}}
    user = {"webhdfs.token": SECRET, "warehouse": "webhdfs://127.0.0.1:1/"}
    assert reads(service, user) == LocationRefused.__name__
    assert store.reached == []


def test_what_is_renewed_leads_nowhere_else() -> None:
    before = {
        "s3.endpoint": "https://store",
        "s3.access-key-id": "a",
        "s3.session-token": "",
        "s3.secret-access-key": "b",
    }
    renewed = {"s3.endpoint": "https://elsewhere", "s3.access-key-id": "c", "s3.secret-access-key": "d"}
    found = without_other_places(before, renewed)
    assert found == {**before, "s3.access-key-id": "c", "s3.secret-access-key": "d"}
    assert without_other_places({}, {"adls.account-host": "x", "adls.sas-token": "y"}) == {"adls.sas-token": "y"}


def trusts(*hosts: str) -> Callable[[str], bool]:
    return settings_of("test", {"uri": "https://catalog", "rest.trusted-hosts": ",".join(hosts)}).trusts


@pytest.mark.parametrize(
    ("endpoint", "own"),
    [
        ("https://s3.eu-central-1.amazonaws.com", True),
        ("https://s3.dualstack.us-east-1.amazonaws.com/", True),
        ("https://s3.cn-north-1.amazonaws.com.cn", True),
        ("http://s3.eu-central-1.amazonaws.com", False),
        ("https://x.execute-api.us-east-1.amazonaws.com", False),
        ("https://bucket.s3.amazonaws.com", False),
        ("https://s3.amazonaws.com.example.org", False),
        ("https://s3.amazonaws.com@example.org", False),
        ("https://[::1", False),
    ],
)
def test_amazons_own_hosts_are_amazons(endpoint: str, own: bool) -> None:
    found = guarded("test", S3, {"s3.endpoint": endpoint}, trusts())
    assert (not found.refused) is own
    assert found.over({})["s3.endpoint"] == (endpoint if own else "")


def test_a_signature_for_one_host_opens_no_other_with_what_this_machine_has() -> None:
    served = {"adls.account-host": "evil:1/account", "adls.sas-token.good": "sig=x"}
    found = guarded("test", ADLS, served, trusts())
    assert found.refused == {}
    assert found.over(served) == {**served, "adls.account-name": "", "adls.account-key": "", "adls.anon": "true"}
    assert guarded("test", ADLS, served, trusts("https://evil:1")).withheld == {}


def test_an_error_says_what_to_set_and_shows_no_secret() -> None:
    served = {"adls.connection-string": "", "s3.endpoint": "https://minio:9000"}
    found = guarded("lake", S3, served, trusts())
    access = pickle.loads(pickle.dumps(RefusedAccess("s3", found.refused["s3"])))
    with pytest.raises(AccessDenied, match=r"'lake'.*s3\.endpoint=https://minio:9000.*rest\.trusted-hosts"):
        access.properties()
    assert guarded("lake", S3, served, trusts("minio:9000")).refused == {}
