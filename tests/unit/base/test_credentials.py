"""Properties with credentials are recognised, and strings are cleaned of credentials."""

from __future__ import annotations

import pytest
from icefield.base.secrets import credentials_in, holds_credential, without_credentials

SECRETS = [
    "s3.secret-access-key",
    "s3.session-token",
    "client.secret-access-key",
    "dynamodb.session-token",
    "gcs.oauth2.token",
    "adls.account-key",
    "adls.sas-token",
    "adls.sas-token.account.dfs.core.windows.net",
    "adls.connection-string",
    "adls.connection-string.account.dfs.core.windows.net",
    "adls.client-secret",
    "adls.credential",
    "adls.token",
    "hive.metastore.password",
    "hdfs.kerberos.passphrase",
    "some.api_key",
    "private.key",
    "PASSWORD",
]
PLAIN = [
    "type",
    "warehouse",
    "commit",
    "s3.endpoint",
    "s3.region",
    "s3.access-key-id",
    "gcs.oauth2.token-expires-at",
    "gcs.project-id",
    "adls.account-name",
    "adls.client-id",
    "lock.table",
    "file.sync",
    "location.map.s3://bucket",
]


@pytest.mark.parametrize("name", SECRETS)
def test_a_name_of_a_credential_is_known(name: str) -> None:
    assert holds_credential(name)
    assert without_credentials("sent: xyzzy1!", {name: "xyzzy1"}) == "sent: ***!"


@pytest.mark.parametrize("name", PLAIN)
def test_other_names_are_not_taken_for_one(name: str) -> None:
    assert not holds_credential(name)
    assert without_credentials("xyzzy1", {name: "xyzzy1"}) == "xyzzy1"


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("uri", "postgresql+psycopg://user:pass%40word@host:5432/db", "pass%40word"),
        ("uri", "postgresql+psycopg://user:pass%40word@host:5432/db", "pass@word"),
        ("uri", "postgresql://host/db?user=me&password=sesame1", "sesame1"),
        ("adls.connection-string", "AccountName=a;AccountKey=c2VjcmV0==;", "c2VjcmV0=="),
        ("adls.sas-token", "sv=2024&sig=abc%2Bdef", "abc+def"),
        ("warehouse", "https://host/path?sv=2024&sig=abcdef", "abcdef"),
        (
            "gcs.oauth2.token",
            '{"type": "x", "private_key": "-----BEGIN\\nabc", "client_email": "e"}',
            "-----BEGIN\\nabc",
        ),
    ],
)
def test_the_secret_part_of_a_value_is_hidden_alone_as_well(name: str, value: str, secret: str) -> None:
    assert without_credentials(f"failed: {secret}.", {name: value}) == "failed: ***."
    assert secret not in without_credentials(f"failed: {value}", {name: value})


def test_of_two_credentials_the_longer_is_hidden_first() -> None:
    properties = {"a.secret": "abcdef", "b.secret": "abcdefghi"}
    assert credentials_in(properties) == ["abcdefghi", "abcdef"]
    assert without_credentials("abcdefghi", properties) == "***"


@pytest.mark.parametrize("value", ["true", "false", "on", ""])
def test_ordinary_words_are_not_hidden(value: str) -> None:
    assert without_credentials("true, on and off", {"x.token": value}) == "true, on and off"
