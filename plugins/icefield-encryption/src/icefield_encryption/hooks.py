"""The providers of this plugin."""

from collections.abc import Sequence

from icefield import Provider, hookimpl

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
