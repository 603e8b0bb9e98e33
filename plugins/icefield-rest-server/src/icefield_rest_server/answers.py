"""Answers, and the error model of the protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from icefield.errors import (
    AccessDenied,
    CommitFailed,
    CommitStateUnknown,
    FileMissing,
    IcefieldError,
    InvalidArgument,
    InvalidMetadata,
    LocationRefused,
    MissingPlugin,
    NamespaceExists,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchSnapshot,
    NoSuchTable,
    NoSuchView,
    NotSupportedByCatalog,
    StorageError,
    TableExists,
    UnsafeCommit,
    UnsupportedFeature,
    ViewExists,
    printable,
)

_STATUS: tuple[tuple[type[IcefieldError], int, str], ...] = (
    (NoSuchNamespace, 404, "NoSuchNamespaceException"),
    (NoSuchTable, 404, "NoSuchTableException"),
    (NoSuchView, 404, "NoSuchViewException"),
    (NoSuchSnapshot, 404, "NoSuchSnapshotException"),
    (NamespaceExists, 409, "AlreadyExistsException"),
    (TableExists, 409, "AlreadyExistsException"),
    (ViewExists, 409, "AlreadyExistsException"),
    (NamespaceNotEmpty, 409, "NamespaceNotEmptyException"),
    (CommitStateUnknown, 500, "CommitStateUnknownException"),
    (CommitFailed, 409, "CommitFailedException"),
    (NotSupportedByCatalog, 406, "UnsupportedOperationException"),
    (UnsafeCommit, 406, "UnsupportedOperationException"),
    (UnsupportedFeature, 400, "UnsupportedOperationException"),
    (InvalidArgument, 400, "IllegalArgumentException"),
    (LocationRefused, 400, "BadRequestException"),
    (MissingPlugin, 400, "BadRequestException"),
    (AccessDenied, 500, "ServiceFailureException"),
    (FileMissing, 500, "ServiceFailureException"),
    (InvalidMetadata, 500, "ServiceFailureException"),
    (StorageError, 503, "ServiceUnavailableException"),
)


class Refused(Exception):
    """A rejected request, answered with an error of the protocol's model instead of the catalog's answer."""

    def __init__(self, status: int, kind: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.kind, self.message, self.headers = status, kind, message, dict(headers or {})


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request: ``body`` is JSON text, an object to be encoded as JSON, or None."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        """The body as it is sent."""
        if self.body is None:
            return b""
        return self.body if isinstance(self.body, bytes) else msgspec.json.encode(self.body)


def no_content() -> Answer:
    """The answer without a body."""
    return Answer(204)


def error_answer(error: BaseException, message: str | None = None, *, nothing_done: bool = False) -> Answer:
    """Return an error in the protocol's form, with the error's own message or ``message``.

    An exception other than ``IcefieldError`` reveals only its type. ``nothing_done``: nothing was changed. A status of
    500 then becomes 400, except for ``CommitStateUnknown``: clients assume that error at every status from 500 on.
    """
    if isinstance(error, Refused):
        return _error(error.status, error.kind, error.message, error.headers)
    if isinstance(error, IcefieldError):
        found = ((status, name) for kind, status, name in _STATUS if isinstance(error, kind))
        status, name = next(found, (500, "ServiceFailureException"))
        if nothing_done and status == 500 and not isinstance(error, CommitStateUnknown):
            status, name = 400, "BadRequestException"
        return _error(status, name, message or error.message)
    return _error(500, "InternalServerError", f"the server failed: {type(error).__name__}; see its log")


def _error(status: int, kind: str, message: str, headers: Mapping[str, str] | None = None) -> Answer:
    return Answer(status, {"error": {"message": printable(message), "type": kind, "code": status}}, headers or {})
