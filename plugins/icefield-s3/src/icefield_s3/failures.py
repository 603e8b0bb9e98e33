"""Errors of the SDK: their causes and remedies, and which of them allow a retry."""

from __future__ import annotations

from typing import Final

import aiohttp
from botocore import exceptions as sdk
from icefield.errors import IcefieldError

_PASSING: Final = {
    "BandwidthLimitExceeded",
    "ConditionalRequestConflict",
    "OperationAborted",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestTimeout",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
}
_CREDENTIALS: Final = {
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidToken",
    "SignatureDoesNotMatch",
    "TokenRefreshRequired",
}
_MISSING_CREDENTIALS: Final = (sdk.NoCredentialsError, sdk.PartialCredentialsError, sdk.CredentialRetrievalError)
_REGION: Final = {"AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "PermanentRedirect"}
_SETTINGS: Final = (ValueError, sdk.ParamValidationError, sdk.ProfileNotFound, sdk.ConfigParseError)


def status_of(error: BaseException) -> int | None:
    """The HTTP status that an error is about."""
    if not isinstance(error, sdk.ClientError):
        return None
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return int(status) if isinstance(status, int) else None


def code_of(error: BaseException) -> str:
    """The store's own name of an error, as ``SlowDown``."""
    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, sdk.ClientError) else ""


def is_transient(error: Exception) -> bool:
    """Whether trying again may help."""
    if isinstance(error, IcefieldError):
        return error.retryable
    if isinstance(error, sdk.ClientError):
        status = status_of(error) or 0
        return code_of(error) in _PASSING or status in (408, 429) or (status >= 500 and status not in (501, 505))
    if isinstance(error, sdk.SSLError):
        return False
    return isinstance(
        error,
        sdk.HTTPClientError
        | sdk.ConnectionError
        | sdk.IncompleteReadError
        | aiohttp.ClientError
        | ConnectionError
        | TimeoutError
        | InterruptedError,
    )


def is_missing(error: Exception) -> bool:
    """Whether the store says that there is no such object, or no such bucket."""
    return status_of(error) == 404 and code_of(error) in ("404", "NoSuchKey", "NoSuchBucket", "NotFound", "")


def is_denied(error: Exception) -> bool:
    """Whether the store reports a missing permission."""
    return status_of(error) == 403 and code_of(error) not in {*_CREDENTIALS, "RequestTimeTooSkewed"}


def said_of(error: Exception) -> str:
    """Describe an error and its remedy, without the SDK's message, which may repeat parts of the request."""
    status, code = status_of(error), code_of(error)
    if isinstance(error, _MISSING_CREDENTIALS):
        return "no credentials were found; set s3.access-key-id and s3.secret-access-key, or s3.anonymous=true"
    if status == 401 or code in _CREDENTIALS:
        return f"the credentials were refused or have expired ({code or status}); renew them"
    if code == "RequestTimeTooSkewed":
        return "403, this machine's clock is wrong by more than the store allows; set it"
    if code in _REGION or status in (301, 307):
        return f"it answers {status}: the bucket is in another region or at another address; set s3.region"
    if is_denied(error):
        return "403, access denied; give the credentials the right to read and write objects of the bucket"
    if status is not None and is_transient(error):
        return f"it answers {status}, throttled or out of service; try again later, or raise s3.retry.total-timeout-ms"
    if status is not None:
        return f"it answers {status}" if code == str(status) else f"it answers {status} {code}".rstrip()
    if isinstance(error, TimeoutError):
        return "no answer in time; check s3.endpoint and the network, or raise s3.retry.total-timeout-ms"
    if is_transient(error):
        return f"no connection ({type(error).__name__}); check s3.endpoint, s3.proxy-uri and the network"
    if isinstance(error, _SETTINGS):
        return f"it cannot be asked so ({type(error).__name__}); check the bucket's name, s3.endpoint and the profile"
    return type(error).__name__
