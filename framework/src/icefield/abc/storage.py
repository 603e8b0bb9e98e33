"""What a catalog's backend is handed to reach files: one view over all file systems.

``icefield.FileIO`` is the class that fulfils it. A backend and its strategies call nothing else of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from icefield.abc.commit import CommitStrategy
    from icefield.abc.file_system import FileSystem


class Storage(Protocol):
    """Files by location, past the configuration's location maps and allow-lists."""

    properties: dict[str, str]
    """The properties of the catalog."""

    def resolve(self, location: str) -> str:
        """The location to open: mapped, completed and allowed. Raises ``LocationRefused``."""

    def file_system(self, location: str) -> FileSystem:
        """The file system that serves a location; it is called with resolved locations."""

    def storage(self, location: str | None = None) -> FileSystem:
        """The file system that serves a location, called with locations as metadata has them: it resolves each."""

    def commit_strategy(self, name: str, table: tuple[str, ...], location: str) -> CommitStrategy:
        """The named strategy for a table at a location, over ``storage`` of it.

        Raises ``UnsafeCommit`` where the storage cannot honour it.
        """

    def read(self, location: str, *, limit: int | None = None) -> bytes:
        """Read a whole file. Raises ``InvalidFile`` when it has more than ``limit`` bytes."""

    def read_metadata(self, location: str) -> bytes:
        """Read a metadata file. Raises ``InvalidMetadata`` for one that is too large to be one, unread."""
