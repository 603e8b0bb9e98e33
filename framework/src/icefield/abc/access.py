"""The contract of access: credentials from a catalog's service for the files of one table, and their renewal."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from icefield.errors import UnsupportedFeature


@dataclass(frozen=True, slots=True)
class UnsignedRequest:
    """A request to a store, before it is signed: its URL with the query, its headers, and the region it is signed for.

    ``body`` is given only if the signer needs it: with a request whose body lists the files to delete.
    """

    method: str
    url: str
    region: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = field(default=None, repr=False)


class FileAccess(ABC):
    """Provides credentials or signatures for the files below a prefix, and renews them.

    Safe for use by several threads. It can be pickled, and the copy can ask the service for credentials again. It is
    hashable; two instances with the same credentials are equal. Its ``repr`` shows no secret.
    """

    prefix: str
    """The prefix of the locations that this instance opens; the longest matching prefix wins."""

    @property
    @abstractmethod
    def due(self) -> bool:
        """Whether the next call of ``properties`` sends a request to the service."""

    @abstractmethod
    def properties(self) -> Mapping[str, str]:
        """The properties of the file system, with temporary credentials.

        They are renewed before they expire, once per process for all threads. Raises ``AccessDenied`` and
        ``StorageError`` if they have expired and cannot be renewed.
        """

    def sign(self, request: UnsignedRequest) -> Mapping[str, str]:
        """All headers of a request with the signature of the service. Raises ``AccessDenied``, ``StorageError``."""
        raise UnsupportedFeature(f"the service that opens {self.prefix} signs no requests")
