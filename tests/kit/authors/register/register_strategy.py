"""A commit strategy over a service: the pointer is a value in a register that answers over HTTP.

The property ``register.port`` is the port of the service on this machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPException
from urllib.parse import quote

from icefield.abc import Proposal
from icefield.errors import CommitStateUnknown, NoSuchTable, StorageError
from icefield.toolkit import MetastoreStrategy, OutcomeUnknown

SECONDS = 20.0


class NoAnswer(Exception):
    """A request to the service has an unknown outcome."""


class RegisterStrategy(MetastoreStrategy):
    """Compare-and-set of the pointer, in a service."""

    def read_pointer(self) -> str | None:
        try:
            status, value = self._ask("GET")
        except NoAnswer as error:
            raise StorageError(f"{self._name}: {error}", retryable=True) from error
        if status not in (200, 404):
            raise StorageError(f"{self._name}: the register answers {status}", retryable=status >= 500)
        return value if status == 200 else None

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        condition = {"If-None-Match": "*"} if old is None else {"If-Match": old}
        try:
            status, _ = self._ask("PUT", new, condition)
        except NoAnswer as error:
            raise OutcomeUnknown(f"{self._name}: {error}") from error
        if status >= 500:
            raise OutcomeUnknown(f"{self._name}: the register answers {status}")
        if status not in (204, 412):
            raise StorageError(f"{self._name}: the register answers {status}")
        return status == 204

    def drop(self) -> None:
        try:
            status, _ = self._ask("DELETE")
        except NoAnswer as error:
            raise CommitStateUnknown(f"{self._name}: {error}; look whether the table is there") from error
        if status == 412:
            raise NoSuchTable(f"no table {self._name}", table=self.table)
        if status != 204:
            raise CommitStateUnknown(f"{self._name}: the register answers {status}")

    @property
    def _name(self) -> str:
        return ".".join(self.table)

    def _ask(self, method: str, value: str = "", headers: dict[str, str] | None = None) -> tuple[int, str]:
        return ask(self.properties, method, key_of(self.table), value, headers)


def key_of(name: Sequence[str]) -> str:
    """Return the path under which the register keeps the entry of a name."""
    return "/" + "/".join(quote(part, safe="") for part in name)


def ask(
    properties: Mapping[str, str], method: str, key: str, value: str = "", headers: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """The status and the value of an answer. Each request has a connection of its own, so processes share none."""
    connection = HTTPConnection("127.0.0.1", int(properties["register.port"]), timeout=SECONDS)
    try:
        try:
            connection.connect()
        except OSError as error:
            raise StorageError(f"{key}: no connection to the register: {error}", retryable=True) from error
        connection.request(method, key, value.encode(), dict(headers or {}))
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except (HTTPException, ConnectionError, TimeoutError) as error:
        raise NoAnswer(f"no answer from the register: {error!r}") from error
    finally:
        connection.close()
