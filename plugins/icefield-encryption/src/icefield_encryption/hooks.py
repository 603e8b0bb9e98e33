"""The hooks of this plugin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icefield import Provider, TableService, hookimpl
from icefield_maintenance import HealthRules

if TYPE_CHECKING:
    from icefield_cli import Command

_JAVA = "org.apache.iceberg"


@hookimpl
def icefield_encryptions() -> Sequence[Provider]:
    """Provide the encryption ``standard``."""
    return [Provider("standard", "icefield_encryption.standard:StandardEncryption", contract=(1, 1))]


@hookimpl
def icefield_key_services() -> Sequence[Provider]:
    """Provide the key services ``local``, ``aws``, ``gcp``, ``azure`` and ``vault``; Java's class names count, too."""
    package = "icefield_encryption"
    return [
        Provider("local", f"{package}.local_keystore:LocalKeystore", contract=(1, 1)),
        Provider(("aws", f"{_JAVA}.aws.AwsKeyManagementClient"), f"{package}.aws_kms:AwsKms", contract=(1, 1)),
        Provider(("gcp", f"{_JAVA}.gcp.GcpKeyManagementClient"), f"{package}.google_kms:GoogleKms", contract=(1, 1)),
        Provider(
            ("azure", f"{_JAVA}.azure.keymanagement.AzureKeyManagementClient"),
            f"{package}.azure_key_vault:AzureKeyVault",
            contract=(1, 1),
        ),
        Provider("vault", f"{package}.vault_transit:VaultTransit", contract=(1, 1)),
    ]


@hookimpl
def icefield_table_services() -> Sequence[TableService]:
    """Provide ``table.encryption``."""
    return [TableService("encryption", "icefield_encryption.table_keys:TableKeys")]


@hookimpl(optionalhook=True)
def icefield_commands() -> Sequence[Command]:
    """Provide ``icefield encryption``."""
    from icefield_cli import Argument, Command, Option

    return [
        Command(
            "encryption",
            "Show or change the encryption of a table: status, rotate, encrypt, rewrite.\n\n"
            "rotate makes a new key-encryption key. encrypt turns a plain table into an encrypted one, and rewrite\n"
            "writes all rows anew with new keys; both expire the snapshots before.",
            "icefield_encryption.command:run",
            (
                Argument("action"),
                Argument("table"),
                Option("key_id", "The id of the master key, for encrypt."),
            ),
        )
    ]


@hookimpl(optionalhook=True)
def icefield_health_rules() -> Sequence[HealthRules]:
    """Provide the rules of encrypted tables."""
    return [HealthRules("encryption", "icefield_encryption.health_rules:RULES")]
