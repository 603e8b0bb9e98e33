"""The contract of table encryption: the streams of encrypted files, their keys, and how a table keeps these wrapped.

Spec: "Encryption" of the table specification, and the specification of AES GCM streams.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from icefield.abc.file_system import InputFile, OutputStream
    from icefield.abc.key_services import KeyService
    from icefield.metadata import EncryptedKey, TableMetadata


@dataclass(frozen=True, slots=True)
class FileKey:
    """The key of one file, and the prefix of the additional data that authenticates its blocks or modules.

    ``length`` is the number of bytes of the stored file, if its key metadata states it.
    """

    key: bytes = field(repr=False)
    aad_prefix: bytes = field(repr=False)
    length: int | None = None


class TableEncryption(ABC):
    """Encrypts the files of tables. Threads share it; it stays in its process.

    Files need no key service: their key metadata holds their keys, and is stored in encrypted files above them.
    ``key_service`` makes the service of the catalog; only the keys of files that table metadata names need it.
    """

    contract: ClassVar[int] = 1
    """The version of this contract. A plugin states the versions that it fulfils in its ``Provider``."""

    def __init__(self, key_service: Callable[[], KeyService]) -> None:
        self.key_service = key_service

    @abstractmethod
    def new_key(self, length: int) -> FileKey:
        """A random key of ``length`` bytes for a new file."""

    @abstractmethod
    def key_metadata(self, key: FileKey) -> bytes:
        """The key metadata that states a key."""

    @abstractmethod
    def key_of(self, data: bytes, location: str) -> FileKey:
        """The key that key metadata states. Raises ``DecryptionFailed`` for damaged metadata."""

    @abstractmethod
    def stored_size(self, size: int) -> int:
        """The bytes of the encrypted stream of a file of ``size`` bytes."""

    @abstractmethod
    def decrypting(self, source: InputFile, key: FileKey, location: str) -> InputFile:
        """The plain content of an encrypted stream; closing it closes ``source``.

        ``key.length`` is trusted, and the size of ``source`` is not. A read raises ``DecryptionFailed`` for a file that
        is damaged, cut, exchanged or not encrypted.
        """

    @abstractmethod
    def encrypting(self, sink: OutputStream, key: FileKey) -> OutputStream:
        """A stream that encrypts into ``sink``; ``tell`` counts plain bytes."""

    @abstractmethod
    def stored_key(self, metadata: TableMetadata, key_id: str) -> FileKey:
        """The key of a file that the metadata names, by the id of its encryption key.

        The id for a manifest list is the ``key-id`` of its snapshot, for a file of statistics its location. Raises
        ``DecryptionFailed`` for a key that is missing or damaged, and as ``KeyService.unwrap`` does.
        """

    @abstractmethod
    def store_key(self, metadata: TableMetadata, key: FileKey, key_id: str | None = None) -> tuple[EncryptedKey, ...]:
        """The keys to add to a table for a new file that its metadata names; the last one is the file's own.

        ``key_id`` is the id of the file's key; by default it gets a new one. Before it comes a new key-encryption key,
        if the table has none that may still be used.
        """
