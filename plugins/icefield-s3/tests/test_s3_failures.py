"""What is made of the SDK's errors: which may pass, which are a want of rights, and what is stated."""

from __future__ import annotations

import aiohttp
import pytest
from botocore import exceptions as sdk
from icefield_s3.failures import is_denied, is_missing, is_transient, said_of


def refused(status: int, code: str) -> sdk.ClientError:
    said = {"Error": {"Code": code, "Message": "planted-secret"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return sdk.ClientError(said, "PutObject")


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (503, "SlowDown"),
        (503, "503"),
        (500, "InternalError"),
        (429, "TooManyRequests"),
        (400, "RequestTimeout"),
        (409, "ConditionalRequestConflict"),
        (409, "OperationAborted"),
        (400, "ThrottlingException"),
    ],
)
def test_an_answer_that_may_pass_says_to_try_again(status: int, code: str) -> None:
    assert is_transient(refused(status, code))
    assert "try again later" in said_of(refused(status, code))


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (403, "AccessDenied", "give the credentials the right"),
        (403, "403", "give the credentials the right"),
        (403, "InvalidAccessKeyId", "renew them"),
        (403, "SignatureDoesNotMatch", "renew them"),
        (400, "ExpiredToken", "renew them"),
        (403, "RequestTimeTooSkewed", "clock is wrong"),
        (301, "PermanentRedirect", "set s3.region"),
        (400, "AuthorizationHeaderMalformed", "set s3.region"),
        (501, "NotImplemented", "501 NotImplemented"),
        (400, "EntityTooSmall", "400 EntityTooSmall"),
        (412, "PreconditionFailed", "412"),
    ],
)
def test_an_answer_that_stays_says_what_to_do(status: int, code: str, said: str) -> None:
    error = refused(status, code)
    assert not is_transient(error)
    assert said in said_of(error)
    assert "planted-secret" not in said_of(error)


def test_only_a_want_of_rights_is_denied() -> None:
    assert is_denied(refused(403, "AccessDenied"))
    assert is_denied(refused(403, "AllAccessDisabled"))
    assert not is_denied(refused(403, "InvalidAccessKeyId"))
    assert not is_denied(refused(403, "RequestTimeTooSkewed"))
    assert not is_denied(refused(404, "NoSuchKey"))
    assert not is_denied(sdk.NoCredentialsError())


def test_an_upload_that_is_gone_is_no_missing_file() -> None:
    assert is_missing(refused(404, "NoSuchKey"))
    assert is_missing(refused(404, "404"))
    assert is_missing(refused(404, "NoSuchBucket"))
    assert not is_missing(refused(404, "NoSuchUpload"))


@pytest.mark.parametrize(
    "error",
    [
        sdk.ConnectionClosedError(endpoint_url="e"),
        sdk.EndpointConnectionError(endpoint_url="e"),
        sdk.ConnectTimeoutError(endpoint_url="e"),
        sdk.ReadTimeoutError(endpoint_url="e"),
        sdk.IncompleteReadError(actual_bytes=1, expected_bytes=2),
        aiohttp.ClientPayloadError("cut"),
        ConnectionResetError(),
        TimeoutError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_network_that_fails_may_pass(error: Exception) -> None:
    assert is_transient(error)
    assert "check s3.endpoint" in said_of(error)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (sdk.NoCredentialsError(), "set s3.access-key-id"),
        (sdk.SSLError(endpoint_url="e", error="planted-secret"), "SSLError"),
        (sdk.ProfileNotFound(profile="p"), "the profile"),
        (sdk.ParamValidationError(report="planted-secret"), "the bucket's name"),
        (ValueError("planted-secret"), "s3.endpoint"),
        (KeyError("planted-secret"), "KeyError"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_errors_do_not_pass_and_show_nothing(error: Exception, said: str) -> None:
    assert not is_transient(error)
    assert said in said_of(error)
    assert "planted-secret" not in said_of(error)
