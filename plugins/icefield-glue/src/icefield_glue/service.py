"""Requests to Glue, and the meaning of each failure of a request."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from botocore.config import Config
from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
)
from botocore.exceptions import ConnectionError as NotConnected
from botocore.parsers import ResponseParserError
from botocore.session import Session
from icefield.errors import AccessDenied, IcefieldError, InvalidArgument, InvalidMetadata, StorageError
from icefield.toolkit import Backoff, without_debug_log

from icefield_glue.options import GlueClientOptions, GlueOptions

Record = dict[str, Any]

CHANGED: Final = "ConcurrentModificationException"
NOT_FOUND: Final = "EntityNotFoundException"
TAKEN: Final = "AlreadyExistsException"

_THROTTLED: Final = {
    "RequestLimitExceeded",
    "Throttling",
    "ThrottlingException",
    "ThrottledException",
    "TooManyRequestsException",
}
_DENIED: Final = {
    "AccessDeniedException",
    "ExpiredTokenException",
    "IncompleteSignature",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "MissingAuthenticationTokenException",
    "UnrecognizedClientException",
}
_INVALID: Final = {"InvalidInputException", "ValidationException", "ResourceNumberLimitExceededException"}
_TIMED_OUT: Final = "OperationTimeoutException"
_SERVER_ERROR: Final = 500
_WAITS: Final = Backoff(0.05, 5.0)
_POOL: Final = 64
"""The number of connections that threads share; further ones are closed after their request."""
_PAGE: Final = 100


class GlueRefusal(Exception):
    """Glue refused a request, and changed nothing. Carries the ``code`` of the error, and the words of Glue."""

    def __init__(self, code: str, said: str) -> None:
        super().__init__(f"{code}: {said}")
        self.code = code
        self.said = said


class GlueReplyLost(Exception):
    """The reply to a request was lost, so that its outcome is unknown."""


class GlueService:
    """The Data Catalog of one account. Threads and forked processes may use it; pickling it copies its settings."""

    def __init__(self, catalog: str, options: GlueOptions) -> None:
        self.catalog = catalog
        self.options = options

    @property
    def credentials(self) -> str:
        """The source of the client's credentials, without secrets. Raises ``StorageError``."""
        with without_debug_log("botocore"):
            return _client(self.options.client, os.getpid())[1]

    def change(self, operation: str, **given: Any) -> None:
        """Make a change. It is sent again only if Glue certainly did not make it.

        Raises ``GlueRefusal``, ``GlueReplyLost``, and ``StorageError`` if no request was made.
        """
        for wait in (*_WAITS.waits(self.options.retries), None):
            try:
                self._send(operation, given)
                return
            except _NotDone as error:
                if wait is None:
                    raise self._down(error) from error
                time.sleep(wait)

    def read(self, operation: str, **given: Any) -> Record:
        """The answer to a request that changes nothing. Raises ``GlueRefusal`` and ``StorageError``."""
        for wait in (*_WAITS.waits(self.options.retries), None):
            try:
                return self._send(operation, given)
            except (_NotDone, GlueReplyLost) as error:
                if wait is None:
                    raise self._down(error) from error
                time.sleep(wait)
        raise AssertionError("unreachable")

    def table(self, database: str, name: str) -> Record | None:
        """The record of a table of any kind; None if there is none. Raises ``StorageError``."""
        return self._found("Table", "get_table", DatabaseName=database, Name=name)

    def database(self, name: str) -> Record | None:
        """The record of a database; None if there is none. Raises ``StorageError``."""
        return self._found("Database", "get_database", Name=name)

    def tables(self, database: str, size: int = _PAGE) -> Iterator[Record]:
        """The records of all tables of a database. Raises ``GlueRefusal`` and ``StorageError``."""
        return self._listed("TableList", "get_tables", DatabaseName=database, MaxResults=size)

    def databases(self) -> Iterator[Record]:
        """The records of all databases. Raises ``StorageError``."""
        try:
            yield from self._listed("DatabaseList", "get_databases", MaxResults=_PAGE)
        except GlueRefusal as refused:
            raise self.meaning(refused) from refused

    def meaning(self, refused: GlueRefusal) -> IcefieldError:
        """The error for a refusal that has no meaning of its own to the caller."""
        said = f"Glue refuses a request of catalog '{self.catalog}': {refused}"
        if refused.code in _DENIED:
            return AccessDenied(f"{said}; look at the permissions and the credentials of the catalog")
        if refused.code in _INVALID:
            return InvalidArgument(said)
        return StorageError(said, retryable=refused.code == CHANGED)

    def lost(self, change: str, lost: GlueReplyLost) -> StorageError:
        """The error for a change with an unknown outcome that is no commit."""
        return StorageError(
            f"Glue did not answer when catalog '{self.catalog}' asked to {change} ({lost}); it may have happened: look "
            "before repeating it"
        )

    def _found(self, key: str, operation: str, **given: Any) -> Record | None:
        try:
            found = self.read(operation, **given).get(key)
        except GlueRefusal as refused:
            if refused.code == NOT_FOUND:
                return None
            raise self.meaning(refused) from refused
        return self._record(found, operation)

    def _listed(self, key: str, operation: str, **given: Any) -> Iterator[Record]:
        token: str | None = None
        while True:
            answer = self.read(operation, **given, **({} if token is None else {"NextToken": token}))
            found = answer.get(key)
            if not isinstance(found, list):
                raise self._odd(operation)
            yield from (self._record(each, operation) for each in found)
            before, token = token, answer.get("NextToken")
            if not token:
                return
            if token == before:
                raise self._odd(operation)

    def _record(self, found: Any, operation: str) -> Record:
        if not isinstance(found, dict) or not isinstance(found.get("Name"), str):
            raise self._odd(operation)
        return found

    def _odd(self, operation: str) -> InvalidMetadata:
        return InvalidMetadata(
            f"the answer to '{operation}' of catalog '{self.catalog}' is none of Glue's; look at glue.endpoint and at "
            "proxies before it"
        )

    def _down(self, error: Exception) -> StorageError:
        return StorageError(
            f"Glue does not serve catalog '{self.catalog}' ({error}); look at glue.endpoint and glue.region, and try "
            "again",
            retryable=True,
        )

    def _send(self, operation: str, given: Record) -> Record:
        if self.options.catalog_id:
            given = {"CatalogId": self.options.catalog_id, **given}
        with without_debug_log("botocore"):
            client = _client(self.options.client, os.getpid())[0]
            return self._sent(client, operation, given)

    def _sent(self, client: Any, operation: str, given: Record) -> Record:
        try:
            answer: Record = getattr(client, operation)(**given)
            return answer
        except ClientError as error:
            raise _outcome(error) from error
        except (EndpointConnectionError, ConnectTimeoutError) as error:
            raise _NotDone(type(error).__name__) from error
        except (HTTPClientError, NotConnected, IncompleteReadError, ResponseParserError) as error:
            raise GlueReplyLost(type(error).__name__) from error
        except ParamValidationError as error:
            raise GlueRefusal("InvalidInputException", " ".join(str(error).split())) from None
        except (NoCredentialsError, PartialCredentialsError) as error:
            raise AccessDenied(f"catalog '{self.catalog}' has no credentials for Glue: {error}") from error
        except BotoCoreError as error:
            raise StorageError(f"catalog '{self.catalog}' cannot use Glue: {error}") from error
        except Exception as error:  # the SDK cannot read the answer: the request may have succeeded
            raise GlueReplyLost(f"an answer of an odd shape: {type(error).__name__}") from error


class _NotDone(Exception):
    """A request that Glue certainly did not carry out, and that may be sent again."""


def _outcome(error: ClientError) -> Exception:
    code = str(error.response.get("Error", {}).get("Code", "unknown"))
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code in _THROTTLED:
        return _NotDone(code)
    if status >= _SERVER_ERROR or code == _TIMED_OUT:
        return GlueReplyLost(code)
    return GlueRefusal(code, str(error.response.get("Error", {}).get("Message", "")))


@lru_cache(maxsize=32)
def _client(options: GlueClientOptions, _process: int) -> tuple[Any, str]:
    """A client, and the source of its credentials.

    Creating a client takes 0.2 s of processor time, since botocore reads megabytes of JSON. Threads can share a client,
    but forked processes cannot. The client sends each request once: only ``GlueService`` knows which may be sent again.
    """
    config = Config(
        connect_timeout=options.connect_seconds,
        read_timeout=options.seconds,
        max_pool_connections=_POOL,
        retries={"mode": "standard", "total_max_attempts": 1},
    )
    try:
        session = _session(options, config)
        found = session.get_credentials()
        return session.create_client("glue", endpoint_url=options.endpoint, config=config), _source(options, found)
    except PartialCredentialsError as error:
        raise AccessDenied(f"Glue cannot be used: {error}") from error
    except (BotoCoreError, ValueError) as error:
        raise StorageError(f"Glue cannot be used: {error}; set glue.region or client.region") from error


def _session(options: GlueClientOptions, config: Config) -> Session:
    session = Session(profile=options.profile)
    if options.region is not None:
        session.set_config_variable("region", options.region)  # the region of STS too
    given = {"glue.access-key-id": options.access_key, "glue.secret-access-key": options.secret_key}
    if any((*given.values(), options.token)):
        # botocore would ignore a token without keys, and take other credentials from its chain.
        missing = [name for name, value in given.items() if value is None]
        if missing:
            raise PartialCredentialsError(provider="properties", cred_var=" and ".join(missing))
        session.set_credentials(options.access_key, options.secret_key, options.token)
    if options.role is None:
        return session
    own = session.get_credentials()
    if own is None:
        raise NoCredentialsError
    wanted = {"RoleSessionName": options.role_session or "icefield", "ExternalId": options.external_id}
    fetcher = AssumeRoleCredentialFetcher(
        lambda service, **more: session.create_client(service, **more, config=config),
        own,
        options.role,
        extra_args={name: value for name, value in wanted.items() if value},
    )
    assumed = Session(profile=options.profile)
    if options.region is not None:
        assumed.set_config_variable("region", options.region)
    assumed.register_component("credential_provider", _Known(fetcher))
    return assumed


class _Known:
    """Gives a session the credentials of a role, in place of the chain."""

    def __init__(self, fetcher: AssumeRoleCredentialFetcher) -> None:
        self._credentials = DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")

    def load_credentials(self) -> DeferredRefreshableCredentials:
        """Return the credentials, which STS gives with the first request."""
        return self._credentials


def _source(options: GlueClientOptions, found: Any) -> str:
    if options.role:
        return f"those of the role '{options.role}'"
    if options.access_key:
        return f"those of the properties, '{options.access_key}'"
    if found is None:
        return "none: the SDK's chain found nothing"
    return f"'{found.access_key}', found by the SDK's chain ({found.method})"
