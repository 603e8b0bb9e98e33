"""What the properties mean, which names there are, and that no credential is shown."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import traceback
from datetime import datetime
from pathlib import Path
from typing import ClassVar

import pytest
from icefield.errors import FileMissing, InvalidArgument, StorageError
from icefield_gcs.gcs_file_system import GcsFileSystem
from icefield_gcs.settings import settings_of
from object_stores import ObjectStoreTests, failures, said_by
from servers.gcs import Gcs
from servers.process import free_port

SECRET = "planted-secret-of-gcs"
QUICK = {"gcs.retry.num-retries": "1", "gcs.retry.total-timeout-ms": "2000", "gcs.connect-timeout": "1"}


class TestGcsStore(ObjectStoreTests):
    file_system = GcsFileSystem
    schemes = ("gs", "gcs")
    sdk = frozenset({"gcsfs", "google"})
    given: ClassVar = {"gcs.no-auth": "true"}
    other: ClassVar = {"gcs.project-id": "let-go"}

    @pytest.fixture
    def used(self, gcs: Gcs) -> tuple[dict[str, str], str]:
        properties = {**gcs.properties, "gcs.request-timeout": "19"}
        return properties, f"list(system.list_files('gs://{gcs.bucket}/none'))"


def test_an_access_token_is_used_as_it_is_until_it_expires() -> None:
    token = settings_of({"gcs.oauth2.token": SECRET, "gcs.oauth2.token-expires-at": "1700000000000"}).token
    assert token.token == SECRET
    assert token.expiry == datetime(2023, 11, 14, 22, 13, 20)
    assert token.expired
    assert not settings_of({"gcs.oauth2.token": SECRET}).token.expired


def test_other_forms_of_a_token_are_left_to_gcsfs(tmp_path: Path) -> None:
    file = tmp_path / "key.json"
    file.write_text("{}")
    assert settings_of({"gcs.oauth2.token": str(file)}).token == str(file)
    assert settings_of({"gcs.oauth2.token": "google_default"}).token == "google_default"
    assert settings_of({"gcs.oauth2.token": '{"type": "service_account"}'}).token == {"type": "service_account"}
    assert settings_of({"gcs.no-auth": "true", "gcs.oauth2.token": SECRET}).token == "anon"
    assert settings_of({}).token is None


def test_properties_have_the_names_that_other_clients_give_them() -> None:
    settings = settings_of(
        {
            "gcs.project-id": "p",
            "gcs.access": "read_only",
            "gcs.service.host": "storage.example.com/",
            "gcs.user-project": "payer",
            "gcs.default-bucket-location": "EU",
            "gcs.session-kwargs": '{"trust_env": true}',
            "gcs.channel.write.chunk-size-bytes": "1000000",
            "gcs.channel.read.chunk-size-bytes": "2000000",
            "gcs.delete.batch-size": "5000",
        }
    )
    assert (settings.project, settings.access, settings.endpoint) == ("p", "read_only", "https://storage.example.com")
    assert (settings.user_project, settings.location, settings.session) == ("payer", "EU", {"trust_env": True})
    assert settings.write_part == 3 * 256 * 1024  # what a part of an upload must be a multiple of
    assert (settings.read_part, settings.batch) == (2_000_000, 100)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gcs.access", "everything"),
        ("gcs.retry.num-retries", "many"),
        ("gcs.retry.total-timeout-ms", "0"),
        ("gcs.delete.batch-size", "-1"),
        ("gcs.channel.write.chunk-size-bytes", "10"),
        ("gcs.session-kwargs", "[1]"),
        ("gcs.encryption-key", SECRET),
        ("gcs.decryption-key", SECRET),
        ("gcs.impersonate.service-account", "me@here"),
        ("gcs.oauth2.token", f"{{{SECRET}"),
        ("gcs.oauth2.token-expires-at", "tomorrow"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_and_a_credential_is_not_shown(name: str, value: str) -> None:
    with pytest.raises(InvalidArgument, match=name) as refused:
        settings_of({"gcs.oauth2.token": "t", name: value})
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("location", ["gs://bucket", "gs://bucket/", "gs:///file"])
def test_a_location_without_a_file_is_no_file(location: str) -> None:
    with pytest.raises(FileMissing, match="bucket/path"):
        GcsFileSystem({"gcs.no-auth": "true"}).stat(location)


def test_no_credential_is_in_an_error_a_log_line_or_a_repr(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    properties = {"gcs.oauth2.token": SECRET, "gcs.service.host": f"http://127.0.0.1:{free_port()}", **QUICK}
    system = GcsFileSystem(properties)
    seen = [repr(system), str(system), repr(settings_of(properties)), repr(system.fs), str(system.fs)]
    failed = failures(system, "gs://bucket/a")
    assert all(error.retryable for error in failed)
    seen.append(said_by(*failed))
    seen += [record.getMessage() for record in caplog.records]
    assert SECRET not in "".join(seen)


def test_an_expired_token_says_so_and_is_not_tried_again() -> None:
    properties = {"gcs.oauth2.token": SECRET, "gcs.oauth2.token-expires-at": "1700000000000", **QUICK}
    with pytest.raises(StorageError, match=r"gcs\.oauth2\.token") as failed:
        GcsFileSystem({**properties, "gcs.service.host": f"http://127.0.0.1:{free_port()}"}).stat("gs://bucket/a")
    assert not failed.value.retryable
    assert SECRET not in "".join(traceback.format_exception(failed.value))


@pytest.mark.slow
def test_the_users_environment_is_left_alone() -> None:
    name = "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"
    code = (
        "import os; from icefield_gcs.gcs_file_system import GcsFileSystem as F;"
        "F({'gcs.no-auth': 'true'}).fs; print(os.environ.get('" + name + "'))"
    )
    for value in (None, "false"):
        environment = {key: text for key, text in os.environ.items() if key != name}
        environment |= {} if value is None else {name: value}
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
        assert said.stdout.strip() == str(value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"gcs.no-auth": "true"}, "anonymous, by gcs.no-auth"),
        ({"gcs.oauth2.token": "anon"}, "by gcs.oauth2.token=anon"),
        ({"gcs.oauth2.token": SECRET}, "the access token of gcs.oauth2.token"),
        (
            {"gcs.oauth2.token": f'{{"client_email": "me@project", "private_key": "{SECRET}"}}'},
            "those of me@project in gcs.oauth2.token",
        ),
    ],
)
def test_which_credentials_are_used_is_said_without_them(given: dict[str, str], said: str) -> None:
    assert GcsFileSystem(given).credentials("gs://bucket/a") == said


def test_credentials_of_a_file_are_stated_by_the_property(tmp_path: Path) -> None:
    (tmp_path / "key.json").write_text(f'{{"private_key": "{SECRET}"}}')
    said = GcsFileSystem({"gcs.oauth2.token": str(tmp_path / "key.json")}).credentials("gs://bucket/a")
    assert said == "those of the file that gcs.oauth2.token names"
