"""The state of a table at one version, and the loading of the current version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from icefield.abc import CommitStrategy, Committed, Current, FileAccess, Pointer, Proposal, ScanService
from icefield.errors import FileMissing, InvalidMetadata, NotSupportedByCatalog
from icefield.manifest.cache import FILES, FILES_MAX_BYTES, cache_scope
from icefield.metadata import TableMetadata, decode_metadata, with_metadata_log
from icefield.metadata.file_names import parse_metadata_file_name
from icefield.storage import FileIO

# A metastore may delete the metadata file after its pointer is read and before the file is opened.
_LOAD_TRIES = 5


@dataclass(frozen=True, slots=True)
class TableState:
    """One version of a table: the pointer to its metadata file, and the metadata.

    The catalog's service returned ``properties``, ``access`` and ``planner`` for this table alone: see
    ``icefield.abc.Current``.
    """

    pointer: Pointer
    metadata: TableMetadata
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    access: tuple[FileAccess, ...] = field(default=(), repr=False)
    planner: ScanService | None = field(default=None, repr=False)

    @classmethod
    def at(cls, location: str, metadata: TableMetadata) -> TableState:
        """The version in a metadata file."""
        return cls(Pointer(location), metadata)

    @classmethod
    def after(cls, outcome: Committed, proposal: Proposal, base: TableState | None) -> TableState:
        """The version after a commit."""
        properties = outcome.properties or (base.properties if base is not None else {})
        access = outcome.access or (base.access if base is not None else ())
        planner = outcome.planner or (base.planner if base is not None else None)
        return cls(outcome.pointer, outcome.metadata or proposal.metadata, properties, access, planner)

    @classmethod
    def of(cls, current: Current, metadata: TableMetadata) -> TableState:
        """The current version, from its known metadata."""
        return cls(current.pointer, metadata, current.properties, current.access, current.planner)


@dataclass(frozen=True, slots=True)
class TableHandle:
    """The name, file IO and strategy of a table, to load and commit it.

    ``strategy`` is None for a read-only table that was opened without a catalog.
    """

    name: tuple[str, ...]
    io: FileIO
    strategy: CommitStrategy | None = None

    @property
    def full_name(self) -> str:
        """The dotted name: ``db.events``."""
        return ".".join(self.name)

    def writable(self) -> CommitStrategy:
        """The strategy. Raises ``NotSupportedByCatalog`` for a table that can only be read."""
        if self.strategy is None:
            raise NotSupportedByCatalog(
                f"table '{self.full_name}' was opened from a metadata file, without a catalog, and can only be read; "
                "load it through a catalog to change it",
                table=self.name,
            )
        return self.strategy

    def at(self, state: TableState) -> TableHandle:
        """This handle with the file IO for the files of a version."""
        io = self.io.for_table(state.metadata.location, state.properties, state.access)
        io = io.encrypting(state.metadata)
        return self if io is self.io else replace(self, io=io)

    def logged(self, metadata: TableMetadata, base: TableState) -> TableMetadata:
        """The successor of ``base``, with the metadata file of ``base`` in its log.

        The log has the file's unmapped location, so that readers with and without ``location.map`` find it.
        """
        replaced = self.io.unmapped(base.pointer.location, base.metadata.location)
        return with_metadata_log(metadata, replaced, base.metadata.last_updated_ms)


def current_of(strategy: CommitStrategy) -> Current | None:
    """The result of the strategy's ``load``, as a ``Current``."""
    found = strategy.load()
    return Current(found) if isinstance(found, Pointer) else found


def is_permanent(strategy: CommitStrategy, location: str) -> bool:
    """Whether a metadata location never comes to name another file. A registered file has any name."""
    name = parse_metadata_file_name(location)
    return name is not None and not (name.is_file_system or strategy.reuses_locations)


def _read(io: FileIO, strategy: CommitStrategy, pointer: Pointer) -> bytes:
    """The bytes of a metadata file: fetched once, if no other file takes its place."""
    is_known = pointer.stamp is not None or is_permanent(strategy, pointer.location)
    scope = cache_scope(io) if is_known else None
    if scope is None:
        return io.read_metadata(pointer.location)
    key = scope, io.resolve(pointer.location), pointer.stamp
    found = FILES.get(key) or io.read_metadata(pointer.location)
    if len(found) <= FILES_MAX_BYTES // 2:  # a larger one would leave no room for manifests
        FILES.put(key, found)
    return found


def is_newest(handle: TableHandle, state: TableState | None) -> bool:
    """Whether a version, None for no table, is still the newest one. Raises the errors of ``load_table``."""
    newest = load_table(handle, state)
    return (newest and newest.pointer.location) == (state and state.pointer.location)


def load_table(handle: TableHandle, known: TableState | None = None) -> TableState | None:
    """The current version of a table, or None when there is no table.

    The metadata file is read unless it is certainly that of ``known``: a table that was dropped and created again may
    reuse the location. Raises ``InvalidMetadata`` when the table under that name is another one than ``known`` (its
    uuid differs).
    """
    strategy = handle.writable()
    for tries_left in reversed(range(_LOAD_TRIES)):
        current = current_of(strategy)
        if current is None:
            return None
        pointer, metadata = current.pointer, current.metadata
        if known is not None and pointer.location == known.pointer.location:
            same = pointer.stamp is not None and pointer.stamp == known.pointer.stamp
            if same or is_permanent(strategy, pointer.location):
                again = replace(TableState.of(current, known.metadata), pointer=known.pointer)
                return known if again == known else again
        if metadata is None:
            io = handle.io.for_table(None, current.properties, current.access)
            try:
                metadata = decode_metadata(_read(io, strategy, pointer), pointer.location)
            except FileMissing:
                if not tries_left:
                    raise
                continue
        before = known.metadata.table_uuid if known is not None else None
        # A later commit may add the uuid of a v1 table.
        if before is not None and metadata.table_uuid != before:
            raise InvalidMetadata(
                f"table '{handle.full_name}' is not the table that was loaded: its uuid was {before} and is now "
                f"{metadata.table_uuid} in {pointer.location}; load the table again",
                table=handle.name,
                location=pointer.location,
            )
        return TableState.of(current, metadata)
    raise AssertionError("unreachable")
