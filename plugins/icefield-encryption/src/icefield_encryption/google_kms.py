"""Google Cloud Key Management Service."""

from __future__ import annotations

import re
from typing import Any, Final

from icefield.abc import MasterKey
from icefield.errors import AccessDenied, DecryptionFailed, IcefieldError, InvalidArgument, KeyUnavailable

from icefield_encryption.remote_key_service import RemoteKeyService, checked_length, sdk_of

with sdk_of("gcp"):
    import google_crc32c
    from google.api_core import exceptions
    from google.auth import default
    from google.auth.credentials import AnonymousCredentials
    from google.auth.exceptions import GoogleAuthError
    from google.cloud.kms_v1 import KeyManagementServiceClient
    from google.cloud.kms_v1.services.key_management_service.transports import KeyManagementServiceRestTransport
    from google.oauth2.credentials import Credentials
    from google.oauth2.service_account import Credentials as ServiceAccount

ENDPOINT: Final = "encryption.google.endpoint"
TOKEN: Final = "gcs.oauth2.token"
KEY_FILE: Final = "encryption.google.credentials-file"

_SCOPE: Final = "https://www.googleapis.com/auth/cloudkms"
_KEY: Final = re.compile(r"projects/[\w.:-]+/locations/[\w-]+/keyRings/[\w-]{1,63}/cryptoKeys/[\w-]{1,63}", re.ASCII)
_PASSES: Final = (
    exceptions.ServerError,
    exceptions.TooManyRequests,
    exceptions.RetryError,
)


class GoogleKms(RemoteKeyService):
    """The key service ``gcp``. The id of a master key is ``projects/…/locations/…/keyRings/…/cryptoKeys/…``.

    Properties: ``encryption.google.endpoint``, and ``gcs.oauth2.token``, a token, or
    ``encryption.google.credentials-file``, the JSON file of a service account. Without them, the credentials are those
    that Google's libraries find by themselves. Requests and answers carry checksums, as Google's guide to data
    integrity asks; a request is repeated if one of them is wrong.
    """

    packages = ("google", "requests", "urllib3")

    def wrap(self, key: bytes, key_id: str) -> bytes:
        """Encrypt a key with the primary version."""
        given = {"name": _checked(key_id), "plaintext": key, "plaintext_crc32c": google_crc32c.value(key)}

        def request(kms: Any) -> bytes:
            answer = kms.encrypt(request=given, retry=None, timeout=self.seconds)
            if not answer.verified_plaintext_crc32c:
                raise exceptions.DataLoss("the service did not verify a request")  # type: ignore[no-untyped-call]
            return _verified(answer.ciphertext, answer.ciphertext_crc32c)

        return bytes(self.ask(key_id, request, key))

    def unwrap(self, wrapped: bytes, key_id: str) -> bytes:
        """Decrypt a key; the service knows the version that wrapped it."""
        given = {"name": _checked(key_id), "ciphertext": wrapped, "ciphertext_crc32c": google_crc32c.value(wrapped)}

        def request(kms: Any) -> bytes:
            answer = kms.decrypt(request=given, retry=None, timeout=self.seconds)
            return _verified(answer.plaintext, answer.plaintext_crc32c)

        return checked_length(self.ask(key_id, request), "Google Cloud KMS")

    def master_key(self, key_id: str) -> MasterKey:
        """The name of the key, and the number of its primary version."""
        given = {"name": _checked(key_id)}
        answer = self.ask(key_id, lambda kms: kms.get_crypto_key(request=given, retry=None, timeout=self.seconds))
        return MasterKey(key_id, answer.primary.name.rpartition("/")[2] or None)

    def connect(self) -> Any:
        """Make a client that speaks REST: the library for gRPC does not survive a fork."""
        host = self.properties.get(ENDPOINT, "cloudkms.googleapis.com")
        transport = KeyManagementServiceRestTransport(credentials=self._credentials(), host=host)
        return KeyManagementServiceClient(transport=transport)

    def _credentials(self) -> Any:
        if token := self.properties.get(TOKEN):
            return Credentials(token)  # type: ignore[no-untyped-call]
        if path := self.properties.get(KEY_FILE):
            try:
                return ServiceAccount.from_service_account_file(path, scopes=[_SCOPE])  # type: ignore[no-untyped-call]
            except (OSError, ValueError):  # the message might show a part of the file
                raise AccessDenied(f"{KEY_FILE}: '{path}' is no key of a service account, or cannot be read") from None
        if self.properties.get("gcs.no-auth", "false").lower() == "true":
            return AnonymousCredentials()  # type: ignore[no-untyped-call]
        return default(scopes=[_SCOPE])[0]

    def meaning(self, error: Exception, key_id: str) -> IcefieldError:
        """The meaning of an error by its class."""
        said = getattr(error, "message", None) or type(error).__name__
        words = f"Google Cloud KMS refuses a request for the master key '{key_id}': {said}"
        if isinstance(error, exceptions.NotFound):
            return KeyUnavailable(f"Google Cloud KMS has no master key '{key_id}': {said}", key_id=key_id)
        if isinstance(error, (exceptions.Forbidden, exceptions.Unauthorized, GoogleAuthError)):
            return AccessDenied(f"{words}; look at the roles and the credentials")
        if isinstance(error, exceptions.BadRequest) and "crc32c" in str(said):
            return self.down("the checksum of a request is wrong")
        if isinstance(error, exceptions.BadRequest) and _status(error) == "FAILED_PRECONDITION":
            return AccessDenied(f"{words}; the version of the key is disabled or destroyed")
        if isinstance(error, _PASSES) or not isinstance(error, exceptions.ClientError):
            return self.down(str(said) if isinstance(error, exceptions.GoogleAPICallError) else type(error).__name__)
        if isinstance(error, exceptions.BadRequest) and "ecrypt" in str(said):
            return DecryptionFailed(f"the master key '{key_id}' of Google Cloud KMS does not open a key: {said}")
        return InvalidArgument(words)


def _verified(data: bytes, checksum: int) -> bytes:
    """The data of an answer. Raises ``DataLoss``, after which the request is repeated, for another checksum."""
    if google_crc32c.value(data) != checksum:
        raise exceptions.DataLoss("the checksum of an answer is wrong")  # type: ignore[no-untyped-call]
    return bytes(data)


def _status(error: exceptions.GoogleAPICallError) -> str:
    """The status of an answer: the library makes one class of all answers with the number 400."""
    try:
        return str(error.response.json()["error"]["status"])
    except (AttributeError, ValueError, LookupError, TypeError):
        return ""


def _checked(key_id: str) -> str:
    """The id is a part of an address, and may come from a table: it names a key and nothing else."""
    if not _KEY.fullmatch(key_id):
        raise KeyUnavailable(
            f"'{key_id}' is no master key of Google Cloud KMS: its id is projects/<project>/locations/<location>/"
            "keyRings/<ring>/cryptoKeys/<key>",
            key_id=key_id,
        )
    return key_id
