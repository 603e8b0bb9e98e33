"""A watch over the hosts and files that this process uses."""

from __future__ import annotations

import os
import sys
from typing import Any


class Watch:
    """Hears of each resolved name, each connection and each opened file, and stops forbidden ones.

    It uses the audit events of Python, which its sockets raise for every library. An audit hook cannot be removed, so a
    watch needs a process of its own.
    """

    def __init__(self, allowed: set[tuple[str, int]], folder: str) -> None:
        self._allowed, self._folder = allowed, os.path.realpath(folder)
        self._names: tuple[str, ...] = ()
        self.violations: list[str] = []
        self.names: list[str] = []
        """The names that were to be resolved, and might be."""

    def begin(self) -> None:
        """Watch all events from now on."""
        sys.addaudithook(self._hear)

    def forget(self, names: tuple[str, ...]) -> None:
        """Forget the resolved names, and allow other names to be resolved."""
        self._names = names
        self.names.clear()

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "socket.connect":
            address = arguments[1]
            if isinstance(address, tuple) and address[:2] not in self._allowed:
                self._refuse(f"connection to {address}")
        elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.sendto"):
            name = arguments[0]
            name = name.decode() if isinstance(name, bytes) else name
            if name in self._names:
                self.names.append(name)
                raise OSError("nobody is there")
            if name not in {host for host, _ in self._allowed}:
                self._refuse(f"{event} of {name!r}")
        elif event == "open" and isinstance(arguments[0], str) and self._folder in os.path.realpath(arguments[0]):
            self._refuse(f"open of {arguments[0]}")

    def _refuse(self, what: str) -> None:
        self.violations.append(what)
        raise OSError(f"this may not be: {what}")
