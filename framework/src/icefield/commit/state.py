"""The state of a table: which version is current, and how it is loaded."""

from __future__ import annotations

from dataclasses import dataclass

from icefield.abc import CommitStrategy, Pointer
from icefield.errors import FileMissing, InvalidMetadata, NotSupportedByCatalog
from icefield.metadata import TableMetadata, decode_metadata
from icefield.storage import FileIO

# A metastore may delete the metadata file that a pointer names between reading the one and opening the other.
_LOAD_TRIES = 5


@dataclass(frozen=True, slots=True)
class TableState:
    """One version of a table: the pointer to its metadata file, and what the file holds."""

    pointer: Pointer
    metadata: TableMetadata

    @classmethod
    def at(cls, location: str, metadata: TableMetadata) -> TableState:
        """The version that a metadata file holds."""
        return cls(Pointer(location), metadata)


@dataclass(frozen=True, slots=True)
class TableHandle:
    """What is needed to load and commit one table: its name, its file IO and its strategy.

    ``strategy`` is None for a table that was opened without a catalog, which can only be read.
    """

    name: tuple[str, ...]
    io: FileIO
    strategy: CommitStrategy | None = None

    @property
    def text(self) -> str:
        """The name as people write it: ``db.events``."""
        return ".".join(self.name)

    def writable(self) -> CommitStrategy:
        """The strategy. Raises ``NotSupportedByCatalog`` for a table that can only be read."""
        if self.strategy is None:
            raise NotSupportedByCatalog(
                f"table '{self.text}' was opened from a metadata file, without a catalog, and can only be read; "
                "load it through a catalog to change it",
                table=self.name,
            )
        return self.strategy


def load_table(handle: TableHandle, known: TableState | None = None, *, read_again: bool = False) -> TableState | None:
    """The current version of a table, or None when there is no table.

    The metadata file is read only if the pointer has moved on from ``known``. With ``read_again`` it is read unless it
    is certain that it is the same file: that of a table that was dropped and created again may have the same location.
    Raises ``InvalidMetadata`` when the table under that name is another one than ``known`` (its uuid differs).
    """
    strategy = handle.writable()
    for tries_left in reversed(range(_LOAD_TRIES)):
        pointer = strategy.load()
        if pointer is None:
            return None
        if known is not None and pointer.location == known.pointer.location:
            same = pointer.stamp is not None and pointer.stamp == known.pointer.stamp
            if same or not (read_again and strategy.reuses_locations):
                return known
        try:
            metadata = decode_metadata(handle.io.read_metadata(pointer.location), pointer.location)
        except FileMissing:
            if not tries_left:
                raise
            continue
        _same_table(handle, known, metadata, pointer)
        return TableState(pointer, metadata)
    raise AssertionError("unreachable")


def _same_table(handle: TableHandle, known: TableState | None, metadata: TableMetadata, pointer: Pointer) -> None:
    before = known.metadata.table_uuid if known is not None else None
    # A v1 table may be given its uuid by a later commit.
    if before is not None and metadata.table_uuid != before:
        raise InvalidMetadata(
            f"table '{handle.text}' is not the table that was loaded: its uuid was {before} and is now "
            f"{metadata.table_uuid} in {pointer.location}; load the table again",
            table=handle.name,
            location=pointer.location,
        )
