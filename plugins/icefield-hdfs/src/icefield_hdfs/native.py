"""HDFS by its own protocol, through hdfs-native."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any, Final, TypeVar

from hdfs_native import Client as Connection
from hdfs_native import FileStatus, WriteOptions
from icefield.errors import InvalidArgument
from icefield.toolkit import Backoff, reset_after_fork

from icefield_hdfs.client import HdfsFailure, Reader, Status, Writer
from icefield_hdfs.forking import READS
from icefield_hdfs.time_limits import CallTimeout, within

T = TypeVar("T")

_PIECE: Final = 128 * 1024 * 1024  # of a read or a write, so that a time-out is not one of size
_LOOKS: Final = 9
_LOOK_AGAIN: Final = Backoff(0.01, 2.0, jitter=0)
_SECTOR: Final = 512  # every size of blocks is a multiple
_REMOTE = re.compile(r'(?:Fatal)?RPCError\("([\w.$]+)", "((?:[^"\\]|\\[^nt])*)')
_OWN = re.compile(r'\w+\("([^"]*)"\)')
_KIND = re.compile(r"(\w+)\(")
# Errors of a name node that is busy, starting or failing over: a retry can help.
_PASSING: Final = {
    "StandbyException",
    "RetriableException",
    "SafeModeException",
    "ObserverRetryOnActiveException",
    "NotReplicatedYetException",
    "ServerTooBusyException",
    "DataTransferError",
    "OperationFailed",
}
_CREDENTIALS: Final = {"SASLError", "GSSAPIError", "NoSASLMechanism", "SaslException", "InvalidToken"}


@dataclass(frozen=True)
class HdfsSettings:
    """The address and credentials of a name node; hashable, since equal settings share one client."""

    url: str
    config: tuple[tuple[str, str], ...] = ()
    config_dir: str | None = None
    user: str | None = None
    principal: str | None = field(default=None, repr=False)
    keytab: str | None = field(default=None, repr=False)
    ticket: str | None = field(default=None, repr=False)
    timeout: int = 120


# A client has threads of its own, which a fork does not carry over: the child connects anew. The parent's clients stay
# referenced here, since closing one in the child would wait for threads that do not exist. The clients of a process
# are in the order of their last use.
_CLIENTS: dict[tuple[int, HdfsSettings], NativeClient] = {}
_MOST_CLIENTS: Final = 16  # a location may name any name node
_LOCK = Lock()
_ACTING: dict[int, str | None] = {}


def _unlock() -> None:
    global _LOCK
    _LOCK = Lock()


reset_after_fork(_unlock)


def client_of(settings: HdfsSettings) -> NativeClient:
    """The client of this process for these settings, which is kept unless many others are used after it."""
    with _LOCK:
        here = os.getpid()
        found = _CLIENTS.pop((here, settings), None) or NativeClient(settings)
        _CLIENTS[here, settings] = found
        own = [key for key in _CLIENTS if key[0] == here]
        dropped = [_CLIENTS.pop(key) for key in own[:-_MOST_CLIENTS]]
    del dropped  # outside the lock: the last reference to a client ends its threads
    return found


def _forget(settings: HdfsSettings, client: NativeClient) -> None:
    """Drop a client, so that the next one connects anew: the connection of this client may be dead."""
    with _LOCK:
        if _CLIENTS.get((os.getpid(), settings)) is client:
            del _CLIENTS[os.getpid(), settings]


class NativeClient:
    """Steps by remote procedure calls to the name node, blocks from and to the data nodes."""

    def __init__(self, settings: HdfsSettings) -> None:
        _act_as(settings.user)
        self._settings = settings
        self._process = os.getpid()
        with _translated(settings.url):
            self._connection = Connection(
                settings.url,
                dict(settings.config),
                settings.config_dir,
                kerberos_principal=settings.principal,
                kerberos_keytab=settings.keytab,
                kerberos_cache=settings.ticket,
            )

    def open(self, path: str) -> Reader:
        for wait in (*_LOOK_AGAIN.waits(_LOOKS), None):
            inner = self.call(path, lambda: self._connection.read(path))
            # The size does not include a last block that is written but not yet reported; the size is then a multiple
            # of whole blocks.
            if len(inner) % _SECTOR or len(inner) >= self.status(path).size:
                return _NativeReader(self, path, inner)
            if wait is not None:
                time.sleep(wait)
        raise HdfsFailure("no data node has reported the last block of the file", passing=True)

    def create(self, path: str) -> Writer:
        # No other writer uses the name: an existing file comes from a request that was sent twice.
        options = WriteOptions(create_parent=True, overwrite=True)
        # The inner client is used, since the outer client closes a file with its last reference, and thereby completes
        # it.
        return _NativeWriter(self, path, self.call(path, lambda: self._connection.inner.create(path, options)))

    def status(self, path: str) -> Status:
        return _status(self.call(path, lambda: self._connection.get_file_info(path)))

    def children(self, path: str) -> Iterator[Status]:
        found = self._connection.list_status(path, False)
        while (entry := self.call(path, lambda: next(found, None))) is not None:
            yield _status(entry)

    def delete(self, path: str) -> None:
        self.call(path, lambda: self._connection.delete(path, False))

    def make_folder(self, path: str) -> None:
        self.call(path, lambda: self._connection.mkdirs(path, create_parent=True))

    def rename(self, source: str, target: str) -> None:
        self.call(source, lambda: self._connection.rename(source, target, False))

    def replace(self, source: str, target: str) -> None:
        self.call(source, lambda: self._connection.rename(source, target, True))

    def call(self, path: str, action: Callable[[], T]) -> T:
        """Call hdfs-native within the time-out, and translate its errors."""
        if os.getpid() != self._process:
            raise HdfsFailure("the file was opened by the process that this one is a fork of", passing=False)
        try:
            with _translated(path):
                return within(self._settings.timeout, action)
        except CallTimeout as error:
            _forget(self._settings, self)
            said = f"no answer for {self._settings.timeout} s; check the cluster and the network, or set hdfs.timeout"
            raise HdfsFailure(said, passing=True) from error


class _NativeReader:
    def __init__(self, client: NativeClient, path: str, inner: Any) -> None:
        self._client, self._path, self._inner = client, path, inner
        self.size = len(inner)

    def read_range(self, start: int, end: int) -> bytes:
        parts = [self._piece(at, min(at + _PIECE, end)) for at in range(start, end, _PIECE)]
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _piece(self, start: int, end: int) -> bytes:
        with READS.one():
            data: bytes = self._client.call(self._path, lambda: self._inner.read_range(start, end - start))
        if len(data) != end - start:
            raise HdfsFailure("fewer bytes came than were asked for", passing=True)
        return data


class _NativeWriter:
    def __init__(self, client: NativeClient, path: str, inner: Any) -> None:
        self._client, self._path, self._inner = client, path, inner

    def write(self, data: bytes | bytearray) -> None:
        for at in range(0, len(data), _PIECE):
            piece = data if len(data) <= _PIECE else data[at : at + _PIECE]
            self._client.call(self._path, partial(self._inner.write, piece))

    def close(self) -> None:
        self._client.call(self._path, self._inner.close)

    def give_up(self) -> None:
        self._inner = None  # it renews the lease as long as it lives


def _status(found: FileStatus) -> Status:
    return Status(found.path, found.isdir, found.length, found.modification_time)


def _act_as(user: str | None) -> None:
    """Set the user of plain authentication.

    hdfs-native takes it from the environment: one user for the whole process.
    """
    acting = _ACTING.setdefault(os.getpid(), user or os.environ.get("HADOOP_USER_NAME"))
    if user is None:
        return
    if user != acting:
        raise InvalidArgument(
            f"hdfs.user is '{user}', but this process uses HDFS as {acting or 'its own user'} already: a process has "
            "one user; start another, or leave hdfs.user out"
        )
    os.environ["HADOOP_USER_NAME"] = user


@contextmanager
def _translated(path: str) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, FileExistsError):
        raise
    except IsADirectoryError as error:
        raise FileNotFoundError(path) from error
    except OSError as error:
        said = f"no answer from the name node or a data node ({error}); check the address and the network"
        raise HdfsFailure(said, passing=True) from error
    except RuntimeError as error:  # also raised for operations that hdfs-native does not support
        raise failure_of(str(error)) from error


def failure_of(string: str) -> HdfsFailure:
    """The failure that hdfs-native's message states, without the stack of the server."""
    remote = _REMOTE.search(string)
    kind = _KIND.match(string)
    name = remote[1].rpartition(".")[2] if remote else kind[1] if kind else "HdfsError"
    if name == "AccessControlException":
        return HdfsFailure("permission denied; give the user the right to use it", passing=False, denied=True)
    if name in _CREDENTIALS:
        said = f"the credentials were refused ({name}); renew the ticket or the token"
        return HdfsFailure(said, passing=False, denied=True)
    own = _OWN.fullmatch(string)
    detail = remote[2] if remote else own[1] if own else string.partition("\n")[0]
    return HdfsFailure(f"{name}: {detail[:200]}" if remote else detail[:200], passing=name in _PASSING)


def config_of(properties: Mapping[str, str], prefix: str = "hadoop.") -> dict[str, str]:
    """Return the settings of Hadoop: the properties that begin with ``hadoop.``, without this prefix."""
    return {name[len(prefix) :]: value for name, value in properties.items() if name.startswith(prefix)}
