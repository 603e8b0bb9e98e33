"""The key services pass the kit: a local keystore, and those of AWS, Azure, Google and Vault on loopback."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from ssl import SSLContext
from typing import ClassVar

import pytest
import servers.google_kms
import servers.key_vault
import servers.vault
from icefield.abc import KeyService
from icefield_encryption.aws_kms import AwsKms
from icefield_encryption.azure_key_vault import AzureKeyVault
from icefield_encryption.google_kms import GoogleKms
from icefield_encryption.local_keystore import PATH, LocalKeystore, add_key
from icefield_encryption.remote_key_service import CONNECT_SECONDS, RETRIES, SECONDS
from icefield_encryption.vault_transit import VaultTransit
from icefield_testing import KeyServiceSuite
from servers.google_kms import RING, GoogleKmsDouble
from servers.key_vault import KeyVault
from servers.kms import Kms
from servers.vault import Vault


class TestLocalKeystore(KeyServiceSuite):
    key_ids = ("orders", "others")
    damages = 1_000_000  # every bit

    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        path = tmp_path / "keys.json"
        for name in ("orders", "others"):
            add_key(path, name)
        return path

    @pytest.fixture
    def key_service(self, file: Path) -> KeyService:
        return LocalKeystore({PATH: str(file)})

    @pytest.fixture
    def rotate(self, file: Path) -> Callable[[str], object]:
        return lambda key_id: add_key(file, key_id)


class RemoteSuite(KeyServiceSuite):
    """The suite for a key service on loopback."""

    endpoint: ClassVar[str]
    """The property with the address of the service."""
    scheme: ClassVar[str] = "http"
    damages = 40
    time_out_properties: ClassVar = {CONNECT_SECONDS: "1", SECONDS: "1", RETRIES: "1"}

    def key_service_at(self, port: int, key_service: KeyService, properties: Mapping[str, str]) -> KeyService:
        return self.with_properties(key_service, {**self.address(port), **properties})

    def address(self, port: int) -> dict[str, str]:
        return {self.endpoint: f"{self.scheme}://127.0.0.1:{port}"}


class TestAwsKms(RemoteSuite):
    endpoint = "kms.endpoint"
    unknown_key_ids = ("4e5f9be0-6d5b-4b7c-8b1c-0d7f2a0f7a55", "alias/none")
    credentials: ClassVar = ({"client.access-key-id": "id", "client.secret-access-key": "{secret}"},)

    @pytest.fixture
    def key_service(self, kms: Kms) -> KeyService:
        return AwsKms(kms.properties)

    @pytest.fixture
    def key_id(self) -> str:
        return "alias/orders"

    @pytest.fixture
    def other_key_id(self, kms: Kms) -> str:
        return kms.other_key_id

    @pytest.fixture
    def denied_key_ids(self, kms: Kms) -> Collection[str]:
        return (kms.disabled_key_id,)

    @pytest.fixture
    def service_port(self, kms: Kms) -> int:
        return int(kms.url.rpartition(":")[2])


class TestVault(RemoteSuite):
    endpoint = "encryption.vault.url"
    key_ids = ("orders", "others")
    credentials: ClassVar = ({"encryption.vault.token": "{secret}"},)

    @pytest.fixture
    def key_service(self, vault: Vault) -> KeyService:
        return VaultTransit({**self.address(vault.port), "encryption.vault.token": servers.vault.TOKEN})

    @pytest.fixture
    def denied_key_ids(self) -> Collection[str]:
        return ("forbidden",)

    @pytest.fixture
    def rotate(self, vault: Vault) -> Callable[[str], object]:
        return lambda key_id: vault.keys[key_id].rotate()

    @pytest.fixture
    def service_port(self, vault: Vault) -> int:
        return vault.port


class TestGoogleKms(RemoteSuite):
    endpoint = "encryption.google.endpoint"
    key_ids = (f"{RING}/orders", f"{RING}/others")
    unknown_key_ids = (f"{RING}/none",)
    credentials: ClassVar = ({"gcs.oauth2.token": "{secret}"},)

    @pytest.fixture
    def key_service(self, google_kms: GoogleKmsDouble) -> KeyService:
        return GoogleKms({**self.address(google_kms.port), "gcs.oauth2.token": servers.google_kms.TOKEN})

    @pytest.fixture
    def denied_key_ids(self) -> Collection[str]:
        return f"{RING}/forbidden", f"{RING}/disabled"

    @pytest.fixture
    def rotate(self, google_kms: GoogleKmsDouble) -> Callable[[str], object]:
        return lambda key_id: google_kms.keys[key_id].rotate()

    @pytest.fixture
    def service_port(self, google_kms: GoogleKmsDouble) -> int:
        return google_kms.port


class TestAzureKeyVault(RemoteSuite):
    endpoint = "azure.keyvault.url"
    scheme = "https"
    key_ids = ("orders", "others")
    damages = 12
    credentials: ClassVar = ({"adls.token": "{secret}"},)

    @pytest.fixture
    def key_service(self, key_vault: KeyVault) -> KeyService:
        return AzureKeyVault({**self.address(key_vault.port), "adls.token": servers.key_vault.TOKEN})

    @pytest.fixture
    def denied_key_ids(self) -> Collection[str]:
        return "forbidden", "disabled"

    @pytest.fixture
    def rotate(self, key_vault: KeyVault) -> Callable[[str], object]:
        return lambda key_id: key_vault.keys[key_id].rotate()

    @pytest.fixture
    def service_port(self, key_vault: KeyVault) -> int:
        return key_vault.port

    @pytest.fixture
    def server_tls(self, tls_of_vault: SSLContext) -> SSLContext:
        return tls_of_vault
