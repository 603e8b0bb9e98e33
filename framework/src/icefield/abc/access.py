"""The contract of access: what a catalog's service hands out to open the files of one table, and renews."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from icefield.errors import UnsupportedFeature


@dataclass(frozen=True, slots=True)
class UnsignedRequest:
    """A request to a store, before it is signed: its URL with the query, its headers, and the region it is signed for.

    ``body`` is only given where a signer has to see it: with a request that deletes what the body lists.
    """

    method: str
    url: str
    region: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = field(default=None, repr=False)


class FileAccess(ABC):
    """Opens the files below a prefix, for as long as they are used.

    Serves several threads at once. Is pickled, with what it takes to ask the service again, and hashable: equal where
    it leads to the same credentials. Its ``repr`` shows no secret.
    """

    prefix: str
    """Locations that begin with it are opened by this; the longest that fits counts."""

    @property
    @abstractmethod
    def due(self) -> bool:
        """Whether ``properties`` would ask the service."""

    @abstractmethod
    def properties(self) -> Mapping[str, str]:
        """What the file system is given, with credentials that are good for a while.

        They are renewed before they end, once in a process however many ask. Raises ``AccessDenied`` and
        ``StorageError`` where they have ended and no others are to be had.
        """

    def sign(self, request: UnsignedRequest) -> Mapping[str, str]:
        """All headers of a request with the signature of the service. Raises ``AccessDenied``, ``StorageError``."""
        raise UnsupportedFeature(f"the service that opens {self.prefix} signs no requests")
