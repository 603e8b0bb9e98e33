"""Which account a location belongs to, which credentials go where, and that none is shown."""

from __future__ import annotations

import base64
import logging
from typing import Any, ClassVar

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.identity.aio import ClientSecretCredential, DefaultAzureCredential
from icefield.errors import FileMissing, InvalidArgument, LocationRefused
from icefield_adls.accounts import StaticToken, account_of
from icefield_adls.adls_file_system import AdlsFileSystem
from icefield_adls.locations import BlobLocation, place_of
from icefield_adls.settings import settings_of
from object_stores import ObjectStoreTests, failures, said_by
from servers.azure import Azure
from servers.process import free_port

SECRET = "planted-secret-of-azure"
KEY = base64.b64encode(SECRET.encode()).decode()
SIGNATURE = f"sv=2024-01-01&sig={SECRET}"
HOST = "account.dfs.core.windows.net"
NAMED = {"warehouse": f"abfss://c@{HOST}/wh"}
QUICK = {"adls.retry.num-retries": "1", "adls.retry.total-timeout-ms": "2000", "adls.connect-timeout": "1"}


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONNECTION_STRING", "ACCOUNT_NAME", "ACCOUNT_KEY", "SAS_TOKEN"):
        monkeypatch.delenv(f"AZURE_STORAGE_{name}", raising=False)


class TestAdlsStore(ObjectStoreTests):
    file_system = AdlsFileSystem
    schemes = ("abfs", "abfss", "az", "wasb", "wasbs")
    sdk = frozenset({"adlfs", "azure"})
    given: ClassVar = {"adls.account-name": "account", "adls.account-key": KEY}
    other: ClassVar = {"adls.request-timeout": "9"}

    @pytest.fixture
    def used(self, azure: Azure) -> tuple[dict[str, str], str]:
        properties = {**azure.properties, "adls.request-timeout": "19"}
        return properties, f"list(system.list_files('az://{azure.container}/none'))"


@pytest.mark.parametrize(
    ("location", "place"),
    [
        (f"abfss://c@{HOST}/a/b", BlobLocation(HOST, "c", "a/b")),
        (
            "wasbs://c@Account.blob.core.windows.net/a%20b//?#x",
            BlobLocation("account.blob.core.windows.net", "c", "a%20b//?#x"),
        ),
        ("az://c/a", BlobLocation(None, "c", "a")),
        ("abfs://c", BlobLocation(None, "c", "")),
    ],
)
def test_a_location_is_taken_apart_to_the_letter(location: str, place: BlobLocation) -> None:
    assert place_of(location) == place


@pytest.mark.parametrize("location", ["az://", "az:///a", f"abfss://@{HOST}/a", "abfss://c@/a"])
def test_a_location_without_a_container_is_no_file(location: str) -> None:
    with pytest.raises(FileMissing, match="abfss://container@account"):
        place_of(location)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"adls.account-key": KEY}, AzureNamedKeyCredential),
        ({"adls.auth.shared-key.account.key": KEY}, AzureNamedKeyCredential),
        ({"adls.sas-token": f"?{SIGNATURE}"}, AzureSasCredential),
        ({"adls.credential": SIGNATURE}, AzureSasCredential),
        ({"adls.credential": KEY}, AzureNamedKeyCredential),
        ({f"adls.sas-token.{HOST}": SIGNATURE, "adls.account-key": KEY}, AzureSasCredential),
        ({"adls.sas-token.account.blob.core.windows.net": SIGNATURE}, AzureSasCredential),
        ({"adls.token": SECRET}, StaticToken),
        ({"adls.client-id": "i", "adls.client-secret": SECRET, "adls.tenant-id": "t"}, ClientSecretCredential),
        ({"adls.anon": "true"}, type(None)),
        ({}, DefaultAzureCredential),
        ({"adls.client-id": "of-a-managed-identity"}, DefaultAzureCredential),
    ],
)
def test_credentials_are_what_the_properties_say(given: dict[str, str], kind: type) -> None:
    account = account_of({**NAMED, **given}, HOST)
    assert (account.name, account.url) == ("account", "https://account.blob.core.windows.net")
    assert type(account.credential) is kind
    assert SECRET not in repr(account)


def test_a_connection_string_is_taken_for_its_own_account() -> None:
    text = f"DefaultEndpointsProtocol=https;AccountName=account;AccountKey={KEY}"
    assert account_of({"adls.connection-string": text}, HOST).connection_string == text
    assert account_of({"adls.connection-string": text}, None).name == "account"
    with pytest.raises(LocationRefused, match=r"adls\.sas-token\.other") as refused:
        account_of({"adls.connection-string": text}, "other.dfs.core.windows.net")
    assert KEY not in str(refused.value)


def test_the_account_of_a_location_without_one_is_that_of_the_properties() -> None:
    assert account_of({"adls.account-name": "mine", "adls.account-key": KEY}, None).name == "mine"
    java = {"adls.auth.shared-key.account.name": "mine", "adls.auth.shared-key.account.key": KEY}
    assert account_of(java, None).name == "mine"
    with pytest.raises(LocationRefused, match="those of account 'mine'"):
        account_of({**NAMED, **java}, HOST)
    assert account_of({f"adls.sas-token.{HOST}": SIGNATURE}, None).name == "account"
    with pytest.raises(InvalidArgument, match=r"adls\.account-name"):
        account_of({"adls.account-key": KEY}, None)


@pytest.mark.parametrize("given", [{"adls.account-key": KEY}, {"adls.sas-token": SIGNATURE}])
def test_the_key_of_one_account_is_not_used_for_another(given: dict[str, str]) -> None:
    with pytest.raises(LocationRefused, match="those of account 'mine'"):
        account_of({**NAMED, "adls.account-name": "mine", **given}, HOST)
    with pytest.raises(LocationRefused, match="which the configuration does not name"):
        account_of({"adls.account-name": "mine", **given}, HOST)


@pytest.mark.parametrize(
    "given",
    [
        {"adls.account-name": "account", "adls.account-key": KEY},
        {f"adls.sas-token.{HOST}": SIGNATURE},
        {f"adls.sas-token.{HOST}:443": SIGNATURE},
        {"adls.account-host": f"{HOST}:443", "adls.account-name": "account", "adls.account-key": KEY},
        {"warehouse": f"abfss://c@{HOST}:443/wh", "adls.account-key": KEY},
        {"location.credentials-for": f"abfss://c@{HOST}:443", "adls.account-name": "account", "adls.account-key": KEY},
    ],
)
@pytest.mark.parametrize("host", [HOST, f"{HOST}:443", "account.blob.core.windows.net:443"])
def test_the_port_at_which_azure_answers_anyhow_makes_no_other_host(given: dict[str, str], host: str) -> None:
    found = account_of(given, host)
    assert found.credential is not None
    assert found.url.removesuffix(":443") in (f"https://{HOST}", "https://account.blob.core.windows.net")


@pytest.mark.parametrize(
    "given",
    [{"adls.account-key": KEY}, {"adls.sas-token": SIGNATURE}, {"adls.token": SECRET}, {}, {"adls.account-name": "x"}],
)
@pytest.mark.parametrize(
    "host",
    [
        "account.evil.example",
        "127.0.0.1:80",
        "core.windows.net.evil.example",
        "evil.example:443#.core.windows.net",
        "evil.core.windows.net",
        "core.windows.net",
        ".dfs.core.windows.net",
        "a.b.dfs.core.windows.net",
        "account.dfs.core.windows.net.",
        "account.dfs.core.windows.net:8443",
        "account.dfsxcore.windows.net",
        "account.blob.storage.azure.net",
        "evil.fabric.microsoft.com",
        "evilonelake.dfs.fabric.microsoft.com",
    ],
)
def test_nothing_goes_to_a_host_that_a_table_names(given: dict[str, str], host: str) -> None:
    for more in ({}, {"adls.anon": "true"}):
        with pytest.raises(LocationRefused, match="no host of Azure"):
            account_of({**given, **more}, host)


@pytest.mark.parametrize(
    "given",
    [
        {"adls.account-key": KEY},
        {"adls.sas-token": SIGNATURE},
        {"adls.token": SECRET},
        {},
        {"adls.account-name": "x12"},
    ],
)
@pytest.mark.parametrize("host", ["evil.dfs.core.windows.net", "account.dfs.core.chinacloudapi.cn"])
def test_no_credential_goes_to_an_account_that_the_configuration_does_not_name(
    given: dict[str, str], host: str
) -> None:
    with pytest.raises(LocationRefused, match=r"location\.credentials-for"):
        account_of({**NAMED, **given}, host)
    assert account_of({**given, "adls.anon": "true"}, host).credential is None


@pytest.mark.parametrize(
    "authority",
    [
        "c@evil:443#.core.windows.net",
        "c@evil?.core.windows.net",
        "c@evil%2f.core.windows.net",
        "c@evil\\.core.windows.net",
        "c@evil .core.windows.net",
        "c@evil\t.core.windows.net",
        "c@evil\u3002.core.windows.net",
        "c@evil@account.dfs.core.windows.net",
        "c@evil:443:80",
        "c@[::1]evil",
        "c#@evil.example",
        "c?x@evil.example",
        "..@account.dfs.core.windows.net",
        "c:p@account.dfs.core.windows.net",
    ],
)
def test_an_authority_that_could_be_taken_apart_in_two_ways_is_refused(authority: str) -> None:
    system = AdlsFileSystem({**NAMED, "adls.token": SECRET, **QUICK})
    for action in (system.open_input, system.stat, system.credentials, lambda where: list(system.list_files(where))):
        with pytest.raises(LocationRefused):
            action(f"abfss://{authority}/x")


@pytest.mark.parametrize(
    "host",
    [
        "account.dfs.core.windows.net",
        "account-secondary.blob.core.windows.net",
        "account.dfs.core.usgovcloudapi.net",
        "account.blob.core.chinacloudapi.cn",
        "account.dfs.core.cloudapi.de",
        "account.z12.dfs.storage.azure.net",
        "onelake.dfs.fabric.microsoft.com",
        "westus-onelake.blob.fabric.microsoft.com",
        "0123456789abcdef0123456789abcdef.z01.dfs.fabric.microsoft.com",
    ],
)
def test_the_hosts_of_every_cloud_are_reached_when_the_configuration_names_them(host: str) -> None:
    place = f"abfss://c@{host}/wh"
    for named in (
        {"warehouse": place},
        {"location.allowed-roots": f"s3://b/x, {place}"},
        {"location.credentials-for": place},
        {"location.map.hdfs://nn/wh": place},
    ):
        account = account_of({**named, "adls.token": SECRET}, host)
        assert account.url == f"https://{host.replace('.dfs.', '.blob.')}"
        assert type(account.credential) is StaticToken


def test_two_accounts_each_get_their_own_credentials() -> None:
    given = {
        f"adls.sas-token.{HOST}": SIGNATURE,
        "adls.sas-token.other": f"{SIGNATURE}2",
        "adls.token": SECRET,
    }
    assert account_of(given, HOST).credential.signature == SIGNATURE
    assert account_of(given, "other.dfs.core.windows.net").credential.signature == f"{SIGNATURE}2"
    with pytest.raises(LocationRefused):
        account_of(given, "other.dfs.core.chinacloudapi.cn")


def test_other_hosts_are_those_that_the_properties_name() -> None:
    named = {"adls.account-name": "account", "adls.account-key": KEY}
    here = {**named, "adls.account-host": "127.0.0.1:10000/account", "adls.blob-storage-scheme": "http"}
    assert account_of(here, None).url == account_of(here, HOST).url == "http://127.0.0.1:10000/account"
    private = {**named, "adls.blob-storage-authority": ".blob.cloud.example"}
    assert account_of(private, None).url == "https://account.blob.cloud.example"
    assert account_of(private, "account.dfs.cloud.example").url == "https://account.blob.cloud.example"
    government = "account.dfs.core.usgovcloudapi.net"
    named["warehouse"] = f"abfss://c@{government}/wh"
    assert account_of(named, government).url.endswith("blob.core.usgovcloudapi.net")


def test_the_environment_is_looked_at_when_no_property_is_a_credential(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY)
    assert isinstance(account_of({}, None).credential, AzureNamedKeyCredential)
    assert isinstance(account_of({"adls.sas-token": SIGNATURE}, None).credential, AzureSasCredential)
    assert account_of({"adls.anon": "true"}, None).credential is None


@pytest.mark.parametrize(
    ("name", "value"),
    [("adls.retry.num-retries", "many"), ("adls.request-timeout", "0"), ("adls.write.block-size-bytes", "1")],
)
def test_a_value_that_cannot_be_used_is_named(name: str, value: str) -> None:
    with pytest.raises(InvalidArgument, match=name):
        settings_of({name: value})


def test_a_secret_without_a_tenant_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"adls\.tenant-id") as refused:
        account_of({**NAMED, "adls.client-id": "i", "adls.client-secret": SECRET}, HOST)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "given",
    [
        {"adls.account-key": KEY},
        {"adls.account-key": f"{SECRET}-that-is-no-base64"},
        {"adls.sas-token": SIGNATURE},
        {
            "adls.connection-string": f"AccountName=account;AccountKey={KEY};BlobEndpoint=http://127.0.0.1:{{port}}/account"
        },
        {"adls.connection-string": f"{SECRET}=nonsense"},
    ],
)
def test_no_credential_is_in_an_error_a_log_line_or_a_repr(
    given: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    port = str(free_port())
    properties = {name: value.replace("{port}", port) for name, value in given.items()}
    reached = {"adls.account-host": f"127.0.0.1:{port}/account", "adls.blob-storage-scheme": "http"}
    system = AdlsFileSystem({"adls.account-name": "account", **reached, **properties, **QUICK})
    seen: list[Any] = [repr(system), str(system)]
    several = failures(system, "az://c/a", lambda: system.delete_many(["az://c/a", "az://c/b"]))
    seen.append(said_by(*several))
    seen += [record.getMessage() for record in caplog.records]
    assert SECRET not in "".join(seen)
    assert KEY not in "".join(seen)


@pytest.mark.parametrize(
    ("given", "source"),
    [
        ({"adls.account-key": KEY}, "adls.account-key"),
        ({"adls.sas-token": SIGNATURE}, "adls.sas-token"),
        ({"adls.credential": KEY}, "adls.credential"),
        ({f"adls.sas-token.{HOST}": SIGNATURE}, "a shared access signature of its own"),
        ({"adls.token": SECRET}, "adls.token"),
        ({"adls.client-id": "i", "adls.client-secret": SECRET, "adls.tenant-id": "t"}, "adls.client-secret"),
        ({"adls.anon": "true"}, "anonymous, by adls.anon"),
        ({}, "the SDK's default chain"),
    ],
)
def test_which_credentials_are_used_is_said_without_them(given: dict[str, str], source: str) -> None:
    assert (
        AdlsFileSystem({**NAMED, **given}).credentials(f"abfss://c@{HOST}/a") == f"{source}, for the account 'account'"
    )


def test_credentials_of_the_environment_are_stated_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY)
    assert account_of(NAMED, HOST).source == "AZURE_STORAGE_ACCOUNT_KEY of the environment"
