"""Calls of the metastore: connections of this process, other servers when one is down, errors in the user's words."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from itertools import repeat
from typing import Any

from icefield.errors import StorageError
from icefield.toolkit import reset_after_fork

from icefield_hive.connection import AnswerTooLong, ConnectionLost, MetastoreConnection, MetastoreRefusal
from icefield_hive.messages import SET_UGI, Method
from icefield_hive.settings import HiveSettings, settings_of

_log = logging.getLogger(__name__)

_TRIES = 3
_MOST_IDLE = 8


class Metastore:
    """The metastore that a catalog's properties name. Pickled as its properties; any thread may use it."""

    def __init__(self, catalog: str, properties: Mapping[str, str]) -> None:
        self.catalog = catalog
        self._properties = dict(properties)
        self.settings: HiveSettings = settings_of(catalog, properties)
        self._first = 0
        self._begin()
        reset_after_fork(self._begin)

    def _begin(self) -> None:
        """Start without connections, also in a forked process, which must not use the connections of its parent."""
        self._idle: list[MetastoreConnection] = []
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        # Connections are not pickled: another process makes its own.
        return type(self), (self.catalog, self._properties)

    def __repr__(self) -> str:
        return f"Metastore({self.catalog!r})"

    def call(self, method: Method, *values: Any) -> Any:
        """Call and wait for the answer. If its reply is lost, a repeatable call is repeated.

        Raises ``MetastoreRefusal`` for an exception of the metastore, and ``ConnectionLost``.
        """
        for tries_left in reversed(range(_TRIES)):
            connection = self._take()
            try:
                answer = connection.call(method, values)
            except ConnectionLost as lost:
                if not method.repeatable or not lost.in_time or not tries_left:
                    raise
                _log.info("%s: asked again", lost)
                continue
            except MetastoreRefusal:
                self._give_back(connection)
                raise
            self._give_back(connection)
            return answer
        raise AssertionError("unreachable")

    def ask(self, method: Method, *values: Any) -> Any:
        """As ``call``, but raises ``StorageError`` for a lost connection and for an undeclared exception."""
        return self.translated(lambda: self.call(method, *values), repeatable=method.repeatable)

    def names(self, method: Method, *values: Any) -> Iterable[str]:
        """Like ``ask``, for a list of names. If the list is too long to be read, yields empty strings without end."""

        def asked() -> Iterable[str]:
            try:
                found: list[str] = self.call(method, *values)
            except AnswerTooLong:
                return repeat("")
            return found

        names: Iterable[str] = self.translated(asked, repeatable=method.repeatable)
        return names

    def translated(self, work: Callable[[], Any], *, repeatable: bool = True) -> Any:
        """Run ``work``. Raises ``StorageError`` if the metastore cannot be reached, or if it fails."""
        try:
            return work()
        except ConnectionLost as lost:
            hint = "" if repeatable or not lost.sent else "; whether it happened is not known"
            raise StorageError(
                f"catalog '{self.catalog}' lost its Hive Metastore: {lost}{hint}", retryable=repeatable or not lost.sent
            ) from lost
        except MetastoreRefusal as refused:
            if refused.kind in ("Meta", "Failure"):
                raise StorageError(
                    f"the Hive Metastore of catalog '{self.catalog}' failed: {refused.said}"
                ) from refused
            raise

    def close(self) -> None:
        """Close every idle connection."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> MetastoreConnection:
        with self._lock:
            while self._idle:
                connection = self._idle.pop()
                if connection.is_alive:
                    return connection
                connection.close()
        return self._connect()

    def _give_back(self, connection: MetastoreConnection) -> None:
        with self._lock:
            if len(self._idle) < _MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def _connect(self) -> MetastoreConnection:
        """Connect to the server that answered last, or to the next server that answers."""
        servers = self.settings.servers
        reasons = []
        for offset in range(len(servers)):
            number = (self._first + offset) % len(servers)
            host, port = servers[number]
            try:
                connection = MetastoreConnection(host, port, self.settings.connect_seconds, self.settings.seconds)
                if self.settings.groups is not None:
                    connection.call(SET_UGI, (self.settings.user, list(self.settings.groups)))
            except ConnectionLost as lost:
                reasons.append(str(lost))
                continue
            self._first = number
            return connection
        raise ConnectionLost("; ".join(reasons), sent=False)
