"""The items of a DynamoDB table, changed under conditions, and the meaning of each failure of a request."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, TypeVar

from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    IncompleteReadError,
    PartialCredentialsError,
)
from botocore.exceptions import ConnectionError as NotConnected
from botocore.parsers import ResponseParserError
from botocore.session import Session
from icefield.errors import StorageError
from icefield.toolkit import without_debug_log

from icefield_dynamodb.options import ClientOptions

KEY = "entityId"
_CREATION_SECONDS = 60
_ABSENT = f"attribute_not_exists({KEY})"
_TRANSIENT = {
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ThrottlingException",
    "TransactionConflictException",
}
_SERVER_ERROR = 500

Item = dict[str, str]
Answer = TypeVar("Answer")


class ReplyLost(Exception):
    """The reply to a request was lost, so that its outcome is unknown."""


class ItemTable:
    """A DynamoDB table with the string key ``entityId``; every change is conditional, every read consistent."""

    def __init__(self, client: Any, name: str, credentials: str | None = None) -> None:
        self.name = name
        self.credentials = credentials
        """The source of the client's credentials, without secrets."""
        self._client = client

    @classmethod
    def of(cls, options: ClientOptions, name: str) -> ItemTable:
        """The table of a name, created if it does not exist. Raises ``StorageError``."""
        return _table(options, name, os.getpid())

    def read(self, key: str) -> Item | None:
        """The item of a key, or None. Raises ``StorageError``."""
        try:
            found = self._call("read", lambda: self._client.get_item(**self._key(key), ConsistentRead=True))
        except ReplyLost as lost:
            raise StorageError(
                f"DynamoDB did not answer when table '{self.name}' was read: {lost}; try again", retryable=True
            ) from lost
        item = found.get("Item")
        try:
            return None if item is None else {name: str(next(iter(value.values()))) for name, value in item.items()}
        except (AttributeError, StopIteration) as error:
            raise self._odd("read", "an item whose attributes have no values") from error

    def put(self, item: Item, *, numbers: tuple[str, ...] = (), expected: Mapping[str, str] | None = None) -> bool:
        """Put an item if its key is free, or replace an item with the ``expected`` attributes; False otherwise.

        Raises ``ReplyLost`` if the change may have happened, ``StorageError`` if it has not.
        """
        typed = {name: {"N" if name in numbers else "S": value} for name, value in item.items()}
        condition = {"ConditionExpression": _ABSENT} if expected is None else _matching(expected)
        return self._changes(lambda: self._client.put_item(TableName=self.name, Item=typed, **condition))

    def delete(self, key: str, expected: Mapping[str, str]) -> bool:
        """Delete the item of a key with the ``expected`` attributes; False if there is no such item."""
        return self._changes(lambda: self._client.delete_item(**self._key(key), **_matching(expected)))

    def ensure(self) -> None:
        """Create the table if it does not exist, and wait until it is active."""
        if self._status() is None:
            with suppress(self._client.exceptions.ResourceInUseException):  # another process makes it
                self._call("create", self._create)
        deadline = time.monotonic() + _CREATION_SECONDS
        while self._status() != "ACTIVE":
            if time.monotonic() > deadline:
                raise StorageError(f"the DynamoDB table '{self.name}' does not become active", retryable=True)
            time.sleep(0.2)

    def _status(self) -> str | None:
        try:
            found = self._call("describe", lambda: self._client.describe_table(TableName=self.name))
        except self._client.exceptions.ResourceNotFoundException:
            return None
        except ReplyLost as lost:
            raise StorageError(
                f"DynamoDB cannot be reached for the table '{self.name}': {lost}; look at dynamodb.endpoint and "
                "dynamodb.region",
                retryable=True,
            ) from lost
        table = found.get("Table")
        status = table.get("TableStatus") if isinstance(table, dict) else None
        if not isinstance(status, str):
            raise self._odd("described", "no status of the table")
        return status

    def _odd(self, verb: str, what: str) -> StorageError:
        return StorageError(
            f"the answer when table '{self.name}' was {verb} is none of DynamoDB's: it holds {what}; look at "
            "dynamodb.endpoint and at proxies before it"
        )

    def _create(self) -> Any:
        return self._client.create_table(
            TableName=self.name,
            KeySchema=[{"AttributeName": KEY, "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": KEY, "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )

    def _key(self, key: str) -> dict[str, Any]:
        return {"TableName": self.name, "Key": {KEY: {"S": key}}}

    def _changes(self, request: Callable[[], Any]) -> bool:
        try:
            self._call("change", request)
        except self._client.exceptions.ConditionalCheckFailedException:
            return False
        return True

    def _call(self, verb: str, request: Callable[[], Answer]) -> Answer:
        passed_on = self._client.exceptions
        try:
            with without_debug_log("botocore"):
                return request()
        except (
            passed_on.ConditionalCheckFailedException,
            passed_on.ResourceInUseException,
        ):
            raise
        except ClientError as error:
            if verb == "describe" and isinstance(error, passed_on.ResourceNotFoundException):
                raise
            raise self._meaning(verb, error) from error
        except (HTTPClientError, NotConnected, IncompleteReadError, ResponseParserError) as error:
            raise ReplyLost(type(error).__name__) from error
        except BotoCoreError as error:
            raise StorageError(
                f"DynamoDB cannot be used for the table '{self.name}': {error}; credentials and region come from "
                "dynamodb.access-key-id, dynamodb.secret-access-key and dynamodb.region, or from the SDK's own chain"
            ) from error
        except Exception as error:  # the SDK cannot read the answer: the request may have succeeded
            raise ReplyLost(f"an answer of an odd shape: {type(error).__name__}") from error

    def _meaning(self, verb: str, error: ClientError) -> Exception:
        code = error.response.get("Error", {}).get("Code", "unknown")
        about = error.response.get("ResponseMetadata", {})
        # The error belongs to the SDK's last attempt. An earlier attempt with a lost reply may have succeeded.
        if about.get("HTTPStatusCode", 0) >= _SERVER_ERROR or (verb == "change" and about.get("RetryAttempts", 0)):
            return ReplyLost(code)
        said = error.response.get("Error", {}).get("Message", "")
        return StorageError(
            f"DynamoDB refused to {verb} the table '{self.name}': {code}: {said}", retryable=code in _TRANSIENT
        )


def _matching(expected: Mapping[str, str]) -> dict[str, Any]:
    names = list(expected)
    return {
        "ConditionExpression": " AND ".join(f"#n{at} = :v{at}" for at in range(len(names))),
        "ExpressionAttributeNames": {f"#n{at}": name for at, name in enumerate(names)},
        "ExpressionAttributeValues": {f":v{at}": {"S": expected[name]} for at, name in enumerate(names)},
    }


@lru_cache(maxsize=32)
def _table(options: ClientOptions, name: str, process: int) -> ItemTable:
    client, source = _client(options, process)
    table = ItemTable(client, name, source)
    table.ensure()
    return table


@lru_cache(maxsize=32)
def _client(options: ClientOptions, _process: int) -> tuple[Any, str]:
    """A client for all tables of one service, and the source of its credentials."""
    # Creating a client takes 0.2 s of processor time, since botocore reads megabytes of JSON. Threads can share a
    # client, but forked processes cannot.
    retries = {"mode": "standard", "total_max_attempts": options.retries + 1}
    config = Config(connect_timeout=options.connect_seconds, read_timeout=options.seconds, retries=retries)
    try:
        with without_debug_log("botocore"):
            session = _session(options)
            source = _source(options, session.get_credentials())
            return session.create_client("dynamodb", endpoint_url=options.endpoint, config=config), source
    except BotoCoreError as error:
        raise StorageError(f"DynamoDB cannot be used: {error}; set dynamodb.region or client.region") from error


def _session(options: ClientOptions) -> Session:
    session = Session(profile=options.profile)
    if options.region is not None:
        session.set_config_variable("region", options.region)  # the region of STS too, where a profile assumes a role
    given = {
        "dynamodb.access-key-id": options.access_key,
        "dynamodb.secret-access-key": options.secret_key,
    }
    if any((*given.values(), options.token)):
        # botocore would ignore a token without keys, and take other credentials from its chain.
        missing = [name for name, value in given.items() if value is None]
        if missing:
            raise PartialCredentialsError(provider="properties", cred_var=" and ".join(missing))
        session.set_credentials(options.access_key, options.secret_key, options.token)
    return session


def _source(options: ClientOptions, found: Any) -> str:
    if options.access_key:
        return f"those of the properties, '{options.access_key}'"
    if found is None:
        return "none: the SDK's chain found nothing"
    return f"'{found.access_key}', found by the SDK's chain ({found.method})"
