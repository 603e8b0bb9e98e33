"""The strategy under the kit, with each fence."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit
from uuid import uuid4

import pyarrow as pa
import pytest
from botocore.retries.standard import ExponentialBackoff
from icefield import LocalFileSystem, load_catalog
from icefield.abc import CommitStrategy, FileSystem
from icefield.errors import StorageError
from icefield_dynamodb import items
from icefield_dynamodb.lease import Lease
from icefield_dynamodb.options import ClientOptions
from icefield_dynamodb.strategy import DynamoDbLockStrategy
from icefield_testing import CommitStrategySuite, LossyProxy, RequestFaults

from .conftest import BareFileSystem


class _OnDisk(CommitStrategySuite):
    system: type[FileSystem]
    time_out_properties: ClassVar = {"dynamodb.request-timeout": "1", "dynamodb.max-retries": "1"}

    @pytest.fixture(autouse=True)
    def reach(self, lock_properties: dict[str, str]) -> None:
        self.properties = lock_properties

    @pytest.fixture
    def file_system(self) -> FileSystem:
        return self.system({})

    @pytest.fixture
    def location(self, tmp_path: Path) -> str:
        return f"file://{tmp_path}/t"

    @pytest.fixture(autouse=True)
    def short_waits(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The SDK asks again up to four times; what it waits in between shows nothing."""
        monkeypatch.setattr(ExponentialBackoff, "delay_amount", lambda self, context: 0.01)

    @pytest.fixture
    def service(self, lock_properties: dict[str, str]) -> Iterator[LossyProxy]:
        with LossyProxy(urlsplit(lock_properties["dynamodb.endpoint"]).port or 0) as proxy:
            yield proxy

    def strategy(self, file_system: FileSystem, location: str) -> CommitStrategy:
        return DynamoDbLockStrategy(("db", "t"), location, file_system, self.properties)

    def strategy_through(self, service: RequestFaults, file_system: FileSystem, location: str) -> CommitStrategy:
        return self._through(service, file_system, location)

    def strategy_in_haste(self, service: RequestFaults, file_system: FileSystem, location: str) -> CommitStrategy:
        return self._through(service, file_system, location, **self.time_out_properties)

    def _through(self, service: RequestFaults, file_system: FileSystem, location: str, **more: str) -> CommitStrategy:
        assert isinstance(service, LossyProxy)
        endpoint = f"http://127.0.0.1:{service.port}"
        properties = {**self.properties, "dynamodb.endpoint": endpoint, **more}
        return DynamoDbLockStrategy(("db", "t"), location, file_system, properties)


class TestFencedByTheStore(_OnDisk):
    system = LocalFileSystem


class TestDecidedByItems(_OnDisk):
    system = BareFileSystem


def test_which_credentials_are_used_is_said_without_them(
    lock_properties: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(properties: dict[str, str]) -> str | None:
        return DynamoDbLockStrategy(("db", "t"), f"file://{tmp_path}/t", LocalFileSystem(), properties).credentials()

    assert said(lock_properties) == "those of the properties, 'test'"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-the-environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "planted-secret")
    own = {name: value for name, value in lock_properties.items() if "access-key" not in name}
    assert said({**own, "lock.table": "others"}) == "'of-the-environment', found by the SDK's chain (env)"


def test_the_sdks_debug_log_shows_no_token_of_a_request(
    lock_properties: dict[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    given = {**lock_properties, "dynamodb.session-token": "planted-token"}
    strategy = DynamoDbLockStrategy(("db", "t"), f"file://{tmp_path}/t", LocalFileSystem(), given)
    assert strategy.load() is None
    assert "planted-token" not in caplog.text
    # The same log of another's client in this process stays as it was.
    logging.getLogger("botocore.auth").debug("of another")
    assert "of another" in caplog.text


def test_a_profile_that_is_not_there_is_an_error_of_icefield(lock_properties: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="nosuch"):
        DynamoDbLockStrategy(
            ("db", "t"),
            f"file://{tmp_path}/t",
            LocalFileSystem(),
            {**lock_properties, "dynamodb.profile-name": "nosuch", "lock.table": "never"},
        )


@pytest.mark.parametrize("given", ["dynamodb.access-key-id", "dynamodb.secret-access-key", "dynamodb.session-token"])
def test_a_part_of_the_credentials_is_refused(given: str, lock_properties: dict[str, str], tmp_path: Path) -> None:
    own = {name: value for name, value in lock_properties.items() if "access-key" not in name}
    with pytest.raises(StorageError, match="Partial credentials") as raised:
        DynamoDbLockStrategy(
            ("db", "t"),
            f"file://{tmp_path}/t",
            LocalFileSystem(),
            {**own, given: "planted-value", "lock.table": "never"},
        )
    assert "planted-value" not in str(raised.value)


def test_the_region_of_the_properties_reaches_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
    options = ClientOptions.of({"dynamodb.region": "eu-central-1"})
    assert items._session(options).get_config_variable("region") == "eu-central-1"


@pytest.mark.parametrize("bare", [False, True])
def test_writers_with_a_map_and_without_one_take_the_same_lock(
    bare: bool, tmp_path: Path, lock_properties: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if bare:
        monkeypatch.setattr(LocalFileSystem, "abilities", BareFileSystem.abilities)
    taken: list[set[str]] = []
    acquire = Lease.acquire

    def noting(lease: Lease, *given: Any) -> bool:
        taken[-1].add(lease.entity)
        return acquire(lease, *given)

    monkeypatch.setattr(Lease, "acquire", noting)
    place = f"file://{tmp_path}/own"
    given = {"type": "directory", "warehouse": place, "commit": "dynamodb-lock", **lock_properties}
    for maps in ({}, {f"location.map.{place}": f"file://{tmp_path}/there"}):
        taken.append(set())
        catalog = load_catalog("test", **{**given, **maps, "lock.table": f"locks-{uuid4().hex}"})
        catalog.create_namespace("db")
        catalog.create_table("db.t", pa.schema([("id", pa.int64())])).append(pa.table({"id": [1]}))
        shutil.rmtree(tmp_path / ("there" if maps else "own"))
    assert taken[0] == taken[1] != set()
