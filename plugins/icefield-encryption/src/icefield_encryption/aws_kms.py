"""AWS Key Management Service, with the properties of Iceberg's Java client."""

from __future__ import annotations

from typing import Any, Final

from icefield.abc import GeneratedKey, MasterKey
from icefield.errors import AccessDenied, DecryptionFailed, IcefieldError, InvalidArgument, KeyUnavailable, StorageError

from icefield_encryption.remote_key_service import RemoteKeyService, checked_length, sdk_of

with sdk_of("aws"):
    from botocore.config import Config
    from botocore.exceptions import (
        BotoCoreError,
        ClientError,
        NoCredentialsError,
        ParamValidationError,
        PartialCredentialsError,
    )
    from botocore.session import Session

_DENIED: Final = {
    "AccessDenied",
    "AccessDeniedException",
    "DisabledException",
    "ExpiredTokenException",
    "IncompleteSignature",
    "InvalidClientTokenId",
    "InvalidGrantTokenException",
    "InvalidSignatureException",
    "KMSInvalidStateException",
    "MissingAuthenticationTokenException",
    "UnrecognizedClientException",
}
_DAMAGED: Final = {"IncorrectKeyException", "InvalidCiphertextException"}
_PASSES: Final = {
    "DependencyTimeoutException",
    "KMSInternalException",
    "KeyUnavailableException",
    "LimitExceededException",
    "RequestLimitExceeded",
    "Throttling",
    "ThrottlingException",
}
_SERVER_ERROR: Final = 500


class AwsKms(RemoteKeyService):
    """The key service ``aws``. The id of a master key is its id, its ARN, or an alias (``alias/orders``).

    Properties: ``kms.endpoint``, ``kms.encryption-algorithm-spec`` (``SYMMETRIC_DEFAULT``), and those for every AWS
    client: ``client.region``, ``client.access-key-id``, ``client.secret-access-key``, ``client.session-token``,
    ``client.profile-name``. Without credentials, the SDK's own chain supplies them.
    """

    packages = ("boto3", "botocore", "urllib3")

    def wrap(self, key: bytes, key_id: str) -> bytes:
        """Encrypt a key by ``Encrypt``."""
        given = {"KeyId": key_id, "EncryptionAlgorithm": self._algorithm}
        return self._bytes(self.ask(key_id, lambda kms: kms.encrypt(Plaintext=key, **given), key), "CiphertextBlob")

    def unwrap(self, wrapped: bytes, key_id: str) -> bytes:
        """Decrypt a key by ``Decrypt``, which refuses the wrapped keys of other master keys."""
        given = {"KeyId": key_id, "EncryptionAlgorithm": self._algorithm}
        answer = self.ask(key_id, lambda kms: kms.decrypt(CiphertextBlob=wrapped, **given))
        return checked_length(self._bytes(answer, "Plaintext"), "AWS KMS")

    def generate(self, key_id: str, length: int) -> GeneratedKey | None:
        """Make a key by ``GenerateDataKey``; None with an asymmetric algorithm, which makes none."""
        if self._algorithm != "SYMMETRIC_DEFAULT":
            return None
        answer = self.ask(key_id, lambda kms: kms.generate_data_key(KeyId=key_id, NumberOfBytes=length))
        return GeneratedKey(
            checked_length(self._bytes(answer, "Plaintext"), "AWS KMS"), self._bytes(answer, "CiphertextBlob")
        )

    def master_key(self, key_id: str) -> MasterKey:
        """The ARN. The service chooses versions itself and does not name them."""
        answer = self.ask(key_id, lambda kms: kms.describe_key(KeyId=key_id))
        return MasterKey(str(answer.get("KeyMetadata", {}).get("Arn", key_id)))

    @property
    def _algorithm(self) -> str:
        return self.properties.get("kms.encryption-algorithm-spec", "SYMMETRIC_DEFAULT")

    def connect(self) -> Any:
        """Make a client of botocore."""
        get = self.properties.get
        session = Session(profile=get("client.profile-name"))
        if region := get("client.region"):
            session.set_config_variable("region", region)
        names = ("client.access-key-id", "client.secret-access-key")
        identity, secret, token = get(names[0]), get(names[1]), get("client.session-token")
        if identity or secret or token:
            # botocore would ignore one of them alone, and take other credentials from its chain.
            if not (identity and secret):
                raise AccessDenied(f"{' and '.join(names)} are set together, or neither is")
            session.set_credentials(identity, secret, token)
        config = Config(
            connect_timeout=self.connect_seconds,
            read_timeout=self.seconds,
            retries={"mode": "standard", "total_max_attempts": 1},
        )
        return session.create_client("kms", endpoint_url=get("kms.endpoint"), config=config)

    def meaning(self, error: Exception, key_id: str) -> IcefieldError:
        """The meaning of an error by its code."""
        if isinstance(error, ClientError):
            about = error.response.get("Error", {})
            code, said = str(about.get("Code", "")), str(about.get("Message", ""))
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            words = f"AWS KMS refuses a request for the master key '{key_id}': {code}: {said}"
            if code == "NotFoundException":
                return KeyUnavailable(f"AWS KMS has no master key '{key_id}': {said}", key_id=key_id)
            if code in _DENIED:
                return AccessDenied(f"{words}; look at the state of the key, its policy, and the credentials")
            if code in _DAMAGED:
                return DecryptionFailed(f"the master key '{key_id}' of AWS KMS does not open a key: {code}")
            if code in _PASSES or status >= _SERVER_ERROR:
                return self.down(code)
            return InvalidArgument(words)
        if isinstance(error, ParamValidationError):
            return InvalidArgument(
                f"AWS KMS cannot be asked for the master key '{key_id}': no such id, or no such length"
            )
        if isinstance(error, (NoCredentialsError, PartialCredentialsError)):
            return AccessDenied("there are no credentials for AWS KMS: set client.access-key-id, or those of the SDK")
        if isinstance(error, BotoCoreError) and type(error).__name__ in {"NoRegionError", "ProfileNotFound"}:
            return InvalidArgument(f"AWS KMS cannot be used: {error}; set client.region")
        return self.down(type(error).__name__)

    @staticmethod
    def _bytes(answer: Any, name: str) -> bytes:
        found = answer.get(name)
        if not isinstance(found, bytes):
            raise StorageError(f"the answer of AWS KMS holds no {name}; look at kms.endpoint and at proxies before it")
        return found
