"""What every metastore shares: write a new metadata file, then swap the pointer from the old location to the new.

A catalog plugin over a database or a service subclasses ``MetastoreStrategy`` and brings three small steps. See
"Metastore Tables" of the table specification.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

from icefield.abc import CommitStrategy, Committed, Conflict, Pointer
from icefield.errors import CommitStateUnknown, IcefieldError
from icefield.locations import LocationProvider, new_metadata_file_name, parse_metadata_file_name
from icefield.metadata import TableMetadata, decode_metadata, encode_metadata
from icefield.publishing import delete_quietly, read_whole


class OutcomeUnknown(Exception):
    """Raised by ``swap_pointer`` when the reply was lost: the swap may or may not have happened."""


class MetastoreStrategy(CommitStrategy):
    """Check-and-put of a pointer; the storage needs neither rename nor locks.

    Metadata files are named ``<V>-<uuid>.metadata.json`` (``.gz.metadata.json`` when compressed).
    """

    reuses_locations = False

    @abstractmethod
    def read_pointer(self) -> str | None:
        """The location that the table's pointer holds, or None when there is no table."""

    @abstractmethod
    def swap_pointer(self, old: str | None, new: str) -> bool:
        """Set the pointer to ``new`` if it is ``old``, in one atomic step; ``None`` creates it if there is none.

        False when it is something else. Raises ``OutcomeUnknown`` when the reply was lost; any other error means
        that nothing changed.
        """

    @abstractmethod
    def drop(self) -> None: ...

    def load(self) -> Pointer | None:
        location = self.read_pointer()
        return None if location is None else Pointer(location, _version(location))

    def commit(self, base: Pointer | None, metadata: TableMetadata) -> Committed | Conflict:
        version = 0 if base is None else (_version(base.location) or 0) + 1
        compress = metadata.properties.get("write.metadata.compression-codec", "none").lower() == "gzip"
        name = new_metadata_file_name(version, compress=compress)
        location = LocationProvider.from_metadata(metadata).metadata_location(name)
        self._write(location, encode_metadata(metadata, compress=compress))
        try:
            swapped = self.swap_pointer(None if base is None else base.location, location)
        except OutcomeUnknown as lost:
            return self._settle(base, location, version, lost)
        except Exception:  # not an interrupt: it may strike after the swap, and then the pointer names this file
            delete_quietly(self.file_system, location)
            raise
        if not swapped:
            delete_quietly(self.file_system, location)
            return Conflict()
        self._delete_old(base, metadata)
        return Committed(Pointer(location, version))

    def _write(self, location: str, data: bytes) -> None:
        with self.file_system.open_output(location) as sink:
            sink.write(data)

    def _settle(self, base: Pointer | None, ours: str, version: int, lost: Exception) -> Committed | Conflict:
        """Find out by looking: whether the pointer, or the log of what came after, names our file."""
        try:
            chain = self._chain()
        except IcefieldError:
            chain = []
        if ours in chain:
            return Committed(Pointer(ours, version))
        # Only what came right after the base proves that our swap is impossible: with an unmoved pointer it may still
        # happen, and from a log that no longer reaches back to the base it may have been dropped.
        followed = base is not None and base.location in chain[:-1]
        if not followed and not (base is None and chain):
            raise CommitStateUnknown(
                f"the reply to committing {'.'.join(self.table)} was lost and the catalog does not tell yet whether it "
                f"happened; no file was deleted, {ours} among them: load the table again and look for the change",
                table=self.table,
                location=ours,
            ) from lost
        delete_quietly(self.file_system, ours)
        return Conflict()

    def _chain(self) -> list[str]:
        """The locations of the versions that the current one knows of, oldest first, and its own."""
        current = self.read_pointer()
        if current is None:
            return []
        metadata = decode_metadata(read_whole(self.file_system, current), current)
        return [*(entry.metadata_file for entry in metadata.metadata_log), current]

    def _log(self, location: str) -> set[str]:
        metadata = decode_metadata(read_whole(self.file_system, location), location)
        return {entry.metadata_file for entry in metadata.metadata_log}

    def _delete_old(self, base: Pointer | None, metadata: TableMetadata) -> None:
        """Delete the metadata files that fell out of the log, where the table asks for it. Best effort."""
        if metadata.properties.get("write.metadata.delete-after-commit.enabled", "false").lower() != "true":
            return
        for location in self._fallen_out(base, metadata):
            delete_quietly(self.file_system, location)

    def _fallen_out(self, base: Pointer | None, metadata: TableMetadata) -> Iterator[str]:
        if base is None:
            return
        try:
            before = self._log(base.location)
        except IcefieldError:
            return
        yield from before - {entry.metadata_file for entry in metadata.metadata_log} - {base.location}


def _version(location: str) -> int | None:
    parsed = parse_metadata_file_name(location.rpartition("/")[2])
    return None if parsed is None else parsed[0]
