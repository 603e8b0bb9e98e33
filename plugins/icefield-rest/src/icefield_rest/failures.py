"""The protocol's error model, and its conversion to errors of Icefield."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from icefield.errors import AccessDenied, IcefieldError, InvalidArgument, NotSupportedByCatalog, StorageError
from icefield.toolkit import HIDDEN, decodable

_DECLINES = frozenset({"UnsupportedOperation", "IllegalArgument", "BadRequest", "Validation"})
_MOST_SHOWN = 500
_MOST_LOOKED_AT = 65_536


@decodable
class ErrorModel(msgspec.Struct):
    """The payload of an error; ``type`` is the name of Java's exception."""

    message: str | None = None
    type: str | None = None
    code: int | str | None = None

    def with_hidden(self, secrets: Sequence[str]) -> ErrorModel:
        """Redact secrets: a service, or a proxy, may repeat the headers of a request."""
        return ErrorModel(_hidden(self.message, secrets), _hidden(self.type, secrets), self.code)


@decodable
class _ErrorBody(msgspec.Struct):
    error: ErrorModel


_decoder = msgspec.json.Decoder(_ErrorBody)


class ServiceRefusal(Exception):
    """The service answered a request by an error, and did nothing.

    ``modelled`` says that the answer was in the protocol's form; the answer of a proxy has another form.
    """

    def __init__(self, status: int, model: ErrorModel, *, modelled: bool) -> None:
        super().__init__(f"{status} {model.type}")
        self.status, self.model, self.modelled = status, model, modelled

    def with_hidden(self, secrets: Sequence[str]) -> ServiceRefusal:
        """Redact secrets."""
        return ServiceRefusal(self.status, self.model.with_hidden(secrets), modelled=self.modelled)

    @property
    def kind(self) -> str:
        """The type of the error model, without Java's ending: ``NoSuchTable``."""
        return (self.model.type or "").removesuffix("Exception")

    @property
    def declines(self) -> bool:
        """Whether the service says, with any status, that it does not support the operation.

        For example, Nessie answers an upgrade of the format version with 500 and the type ``UnsupportedOperation``.
        """
        return self.modelled and self.kind in _DECLINES

    @property
    def said(self) -> str:
        """The message of the service, with the status."""
        return shortened(self.model.message or self.model.type or "nothing") + f" (status {self.status})"


class Uncertain(Exception):
    """A request was sent and its outcome is unknown: the reply was lost, or states that it is unknown.

    ``then`` is the answer to a retry, which says nothing about the first attempt. ``declined`` is the answer of a
    service that declines every attempt at the operation: then no attempt is still under way.
    """

    def __init__(self, said: str, then: ServiceRefusal | None = None, declined: ServiceRefusal | None = None) -> None:
        super().__init__(said)
        self.then, self.declined = then, declined

    @property
    def conflicts(self) -> bool:
        """Whether a retry met a conflict: with a change of another client, or with the first attempt."""
        return self.then is not None and self.then.modelled and self.then.status == 409


def shortened(string: str) -> str:
    """Return the beginning of a foreign string, in one line."""
    line = " ".join(string.split())
    return line if len(line) <= _MOST_SHOWN else line[:_MOST_SHOWN] + "..."


def _hidden(string: str | None, secrets: Sequence[str]) -> str | None:
    for secret in secrets if string else ():
        string = (string or "").replace(secret, HIDDEN)
    return string


def error_model(status: int, body: bytes) -> ServiceRefusal:
    """Decode the error of an answer, in the protocol's form or any other."""
    try:
        return ServiceRefusal(status, _decoder.decode(body).error, modelled=True)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        # This is longer than the text in messages, since a secret that is cut off at the end could not be redacted.
        string = body[:_MOST_LOOKED_AT].decode(errors="replace")
        return ServiceRefusal(status, ErrorModel(string, "", status), modelled=False)


def error_of(refused: ServiceRefusal, what: str) -> IcefieldError:
    """Return the exception for a rejected request without a special meaning to the caller."""
    status, said = refused.status, f"{what}: the service says: {refused.said}"
    if status == 403:
        return AccessDenied(f"{said}; the credentials of the catalog are wrong, or give no right to this")
    if status in (401, 419):
        return AccessDenied(f"{said}; it does not know who you are: look at the credentials of the catalog")
    if status in (405, 406, 501) or refused.kind == "UnsupportedOperation":
        return NotSupportedByCatalog(said)
    if status == 404 and not refused.modelled:
        return StorageError(
            f"{what}: the answer is not of the REST protocol (status 404); look at 'uri', 'prefix' and 'warehouse'"
        )
    if (400 <= status < 500 and status != 429) or refused.declines:
        return InvalidArgument(said)
    return StorageError(said, retryable=status in (429, 503))
