"""What the properties mean, which names there are, and that no credential is shown."""

from __future__ import annotations

import asyncio
import logging
import pickle
from pathlib import Path
from typing import ClassVar
from uuid import uuid4

import pyarrow as pa
import pytest
from aiobotocore.session import AioSession
from botocore.loaders import JSONFileLoader
from fsspec.asyn import sync
from icefield import load_catalog
from icefield.abc import FileSystemAbility, PutMode
from icefield.errors import AccessDenied, FileMissing, InvalidArgument, StorageError, UnsafeCommit, UnsupportedFeature
from icefield_s3.s3_file_system import S3FileSystem
from icefield_s3.sessions import config_of, session_of
from icefield_s3.settings import settings_of
from object_stores import ObjectStoreTests, failures, said_by
from servers.process import free_port
from servers.s3 import S3, SECRET

TOKEN = "planted-token-of-s3"
QUICK = {"s3.retry.num-retries": "1", "s3.retry.total-timeout-ms": "3000", "s3.connect-timeout": "1"}
KEYS = {"s3.access-key-id": "test", "s3.secret-access-key": SECRET, "s3.session-token": TOKEN}


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """An environment without any credentials."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    return monkeypatch


class TestS3Store(ObjectStoreTests):
    file_system = S3FileSystem
    schemes = ("s3", "s3a", "s3n")
    sdk = frozenset({"s3fs", "botocore", "aiobotocore"})
    given: ClassVar = {"s3.anonymous": "true"}
    other: ClassVar = {"client.region": "eu-west-1"}

    @pytest.fixture
    def used(self, s3: S3) -> tuple[dict[str, str], str]:
        properties = {**s3.properties, "s3.request-timeout": "19"}
        return properties, f"list(system.list_files('s3://{s3.bucket}/none'))"


def test_a_store_without_the_condition_is_declared_so_and_refused_for_create(s3: S3) -> None:
    declared = {**s3.properties, "s3.conditional-put": "false"}
    without = {FileSystemAbility.LIST, FileSystemAbility.REMOTE}
    assert S3FileSystem(declared).abilities == without
    assert pickle.loads(pickle.dumps(S3FileSystem(declared))).abilities == without
    with pytest.raises(UnsupportedFeature):
        S3FileSystem(declared).put(f"s3://{s3.bucket}/a", b"x", PutMode.CREATE)
    with pytest.raises(UnsafeCommit, match="ATOMIC_CREATE"):
        load_catalog("test", type="directory", warehouse=f"s3://{s3.bucket}/wh", commit="create", **declared)
    with pytest.raises(UnsafeCommit):
        load_catalog("test", type="directory", warehouse=f"s3://{s3.bucket}/wh", **declared)


def test_properties_have_the_names_that_other_clients_give_them() -> None:
    settings = settings_of(
        {
            "s3.endpoint": "s3.example.com/",
            "s3.region": "eu-west-1",
            **KEYS,
            "s3.profile-name": "p",
            "s3.path-style-access": "true",
            "s3.proxy-uri": "http://proxy:3128",
            "s3.connect-timeout": "1.5",
            "s3.request-timeout": "60",
            "s3.role-arn": "arn:aws:iam::1:role/r",
            "s3.role-session-name": "job",
            "s3.sse.type": "kms",
            "s3.sse.key": "arn:aws:kms:key",
            "s3.write.storage-class": "STANDARD_IA",
            "s3.acl": "bucket-owner-full-control",
            "s3.multipart.part-size-bytes": "6000000",
            "s3.delete.batch-size": "5000",
            "client.assume-role.external-id": "x",
        }
    )
    assert (settings.endpoint, settings.region, settings.profile) == ("https://s3.example.com", "eu-west-1", "p")
    assert (settings.access_key, settings.secret_key, settings.token) == ("test", SECRET, TOKEN)
    assert settings.role is not None
    assert (settings.role.arn, settings.role.session) == ("arn:aws:iam::1:role/r", "job")
    assert (settings.role.external_id, settings.role.region) == ("x", "eu-west-1")
    assert (settings.connect_timeout, settings.request_timeout) == (1.5, 60)
    assert settings.written == {
        "ServerSideEncryption": "aws:kms",
        "SSEKMSKeyId": "arn:aws:kms:key",
        "StorageClass": "STANDARD_IA",
        "ACL": "bucket-owner-full-control",
    }
    assert (settings.write_part, settings.batch) == (6_000_000, 1_000)
    config = config_of(settings)
    assert config["s3"]["addressing_style"] == "path"
    assert config["proxies"] == {"http": "http://proxy:3128", "https": "http://proxy:3128"}


def test_properties_of_all_aws_clients_serve_where_there_are_no_others() -> None:
    shared = {"client.access-key-id": "a", "client.secret-access-key": "b", "client.region": "eu-west-1"}
    settings = settings_of({**shared, "client.session-token": "t", "client.assume-role.arn": "r"})
    assert (settings.access_key, settings.secret_key, settings.token, settings.region) == ("a", "b", "t", "eu-west-1")
    assert settings.role is not None
    assert settings_of({**shared, **KEYS, "s3.region": "us-west-2"}).region == "us-west-2"
    assert settings_of({**shared, **KEYS}).access_key == "test"


def test_how_a_bucket_is_addressed_can_be_said() -> None:
    assert config_of(settings_of({}))["s3"]["addressing_style"] == "auto"
    assert config_of(settings_of({"s3.force-virtual-addressing": "true"}))["s3"]["addressing_style"] == "virtual"
    with pytest.raises(InvalidArgument, match="exclude each other"):
        settings_of({"s3.force-virtual-addressing": "true", "s3.path-style-access": "true"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("s3.retry.num-retries", "many"),
        ("s3.retry.total-timeout-ms", "0"),
        ("s3.delete.batch-size", "-1"),
        ("s3.multipart.part-size-bytes", "5242879"),
        ("s3.connect-timeout", "0"),
        ("s3.request-timeout", "soon"),
        ("s3.anonymous", "perhaps"),
        ("s3.conditional-put", "no"),
        ("s3.sse.type", "custom"),
        ("s3.remote-signing-enabled", "true"),
        ("s3.delete-enabled", "false"),
        ("s3.access-key-id", ""),
    ],
)
def test_a_value_that_cannot_be_used_is_named_and_a_credential_is_not_shown(name: str, value: str) -> None:
    with pytest.raises(InvalidArgument, match=name) as refused:
        S3FileSystem({**KEYS, name: value}).fs  # noqa: B018
    assert SECRET not in str(refused.value)
    assert TOKEN not in str(refused.value)


def test_a_key_without_an_encryption_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"s3\.sse\.type"):
        settings_of({"s3.sse.key": "k"})


@pytest.mark.parametrize("location", ["s3://bucket", "s3://bucket/", "s3:///file"])
def test_a_location_without_a_file_is_no_file(location: str) -> None:
    with pytest.raises(FileMissing, match="bucket/path"):
        S3FileSystem({"s3.anonymous": "true"}).stat(location)


def test_no_credential_is_in_an_error_a_log_line_or_a_repr(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    properties = {**KEYS, "s3.endpoint": f"http://127.0.0.1:{free_port()}", **QUICK}
    system = S3FileSystem(properties)
    seen = [repr(system), str(system), repr(settings_of(properties)), repr(system.fs), str(system.fs)]
    failed = failures(system, "s3://bucket/a")
    assert all(error.retryable for error in failed)
    seen.append(said_by(*failed))
    seen.append(str(system.credentials("s3://bucket/a")))
    seen += [record.getMessage() for record in caplog.records]
    assert SECRET not in "".join(seen)
    assert TOKEN not in "".join(seen)


def test_the_sdks_debug_log_shows_no_token_of_a_request_that_is_answered(
    s3: S3, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    system = S3FileSystem({**s3.properties, "s3.session-token": TOKEN})
    location = f"s3://{s3.bucket}/{uuid4().hex}"
    system.put(location, b"x", PutMode.CREATE)
    assert system.open_input(location).read() == b"x"
    assert TOKEN not in caplog.text
    # The same log of another's client in this process stays as it was.
    logging.getLogger("botocore.auth").debug("of another")
    assert "of another" in caplog.text


def test_no_credential_is_in_any_file_of_a_table(s3: S3) -> None:
    warehouse = f"s3://{s3.bucket}/{uuid4().hex}"
    properties = {**s3.properties, "s3.session-token": TOKEN}
    with load_catalog("test", type="directory", warehouse=warehouse, commit="create", **properties) as catalog:
        catalog.create_namespace("db")
        rows = pa.table({"n": [1]})
        catalog.create_table("db.t", rows.schema).append(rows)
        files = [catalog.io.read(info.location) for info in catalog.io.list_files(warehouse)]
        assert len(files) > 4
        assert not any(secret.encode() in file for file in files for secret in (SECRET, TOKEN))
        assert SECRET not in repr(catalog) + repr(catalog.io) + repr(catalog.load_table("db.t"))


def test_a_role_is_assumed_and_its_credentials_are_in_no_log(
    s3: S3, bare: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bare.setenv("AWS_ENDPOINT_URL_STS", s3.url)
    caplog.set_level(logging.DEBUG)
    system = S3FileSystem({**s3.properties, "s3.role-arn": "arn:aws:iam::123456789012:role/reader"})
    location = f"s3://{s3.bucket}/{uuid4().hex}"
    system.put(location, b"x", PutMode.CREATE)
    assert system.open_input(location).read() == b"x"
    assert "role/reader" in str(system.credentials(location))
    client = system.fs
    credentials = sync(client.loop, client.session.get_credentials)
    found = sync(client.loop, credentials.get_frozen_credentials)
    assert found.token
    assert found.access_key != "test"
    assert found.token not in caplog.text
    assert found.secret_key not in caplog.text


def test_the_default_chain_finds_credentials_and_says_which(s3: S3, bare: pytest.MonkeyPatch) -> None:
    properties = {"s3.endpoint": s3.url, "s3.proxy-uri": ""}
    location = f"s3://{s3.bucket}/{uuid4().hex}"
    with pytest.raises(StorageError, match=r"no credentials were found; set s3\.access-key-id") as failed:
        S3FileSystem(properties).stat(location)
    assert not failed.value.retryable
    bare.setenv("AWS_ACCESS_KEY_ID", "test")
    bare.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    system = S3FileSystem({**properties, "s3.region": "us-east-1"})
    system.put(location, b"x", PutMode.CREATE)
    assert system.credentials(location) == "those of env, found by the SDK's default chain"


def test_a_profile_that_is_not_there_is_an_error_of_the_settings(bare: pytest.MonkeyPatch) -> None:
    with pytest.raises(StorageError, match="profile") as failed:
        S3FileSystem({"s3.profile-name": "nobody"}).stat("s3://bucket/a")
    assert not failed.value.retryable


def test_what_the_anonymous_may_not_read_is_denied(s3: S3) -> None:
    location = f"s3://{s3.bucket}/{uuid4().hex}"
    S3FileSystem(s3.properties).put(location, b"x", PutMode.CREATE)
    anonymous = S3FileSystem({"s3.endpoint": s3.url, "s3.anonymous": "true"})
    assert anonymous.credentials(location) == "anonymous, by s3.anonymous"
    with pytest.raises(AccessDenied, match="403"):
        anonymous.open_input(location)


def test_a_bucket_that_is_not_there_is_reported(s3: S3) -> None:
    system = S3FileSystem(s3.properties)
    with pytest.raises(StorageError, match="the bucket is not there"):
        system.put("s3://no-such-bucket/a", b"x", PutMode.CREATE)
    with pytest.raises(StorageError, match="the bucket is not there"):
        list(system.list_files("s3://no-such-bucket/a"))
    with pytest.raises(FileMissing):
        system.open_input("s3://no-such-bucket/a")


def test_what_the_sdk_knows_of_a_service_is_read_once_for_all_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    async def make(session: AioSession) -> None:
        async with session.create_client("s3", region_name="us-east-1"):
            pass

    given = settings_of(KEYS)
    asyncio.run(make(session_of(given)))
    read: list[str] = []
    load = JSONFileLoader.load_file
    monkeypatch.setattr(JSONFileLoader, "load_file", lambda self, path: read.append(path) or load(self, path))
    asyncio.run(make(session_of(given)))
    assert read == []
    asyncio.run(make(AioSession()))
    assert read, "the SDK reads its files elsewhere now"
