"""The commit of all metastore tables: write a new metadata file, then swap the pointer to its location.

A catalog plugin over a database or a service subclasses ``MetastoreStrategy`` and implements three small steps. See
"Metastore Tables" of the table specification.
"""

from __future__ import annotations

import logging
import time
from abc import abstractmethod
from contextlib import suppress
from typing import Final

from icefield import toolkit
from icefield.abc import CommitStrategy, Committed, Conflict, Pointer, Proposal
from icefield.errors import AccessDenied, CommitStateUnknown, IcefieldError, LocationInUse
from icefield.metadata import TableMetadata, ViewMetadata, decode_metadata, encode_metadata
from icefield.metadata.file_names import (
    metadata_folder,
    new_metadata_file_name,
    parse_metadata_file_name,
    writes_gzip,
)
from icefield.toolkit.from_catalogs import checked_pointer
from icefield.toolkit.publishing import delete_quietly, read_whole
from icefield.toolkit.table_folders import (
    folders_to_note,
    is_of,
    is_registered_twice,
    metadata_files,
    note_folder,
    plain_folder,
)

_log = logging.getLogger(__name__)

_CREATE_TRIES: Final = 6
_RIVALS_MS: Final = 10_000
"""The age up to which the first metadata file of a table may belong to a creation that is still running."""


class OutcomeUnknown(Exception):
    """Raised by ``swap_pointer`` when the reply was lost: the swap may or may not have happened."""


class MetastoreStrategy(CommitStrategy):
    """Check-and-put of a pointer; the storage needs neither rename nor locks.

    Metadata files are named ``<V>-<uuid>.metadata.json`` (``.gz.metadata.json`` when compressed). A subclass brings
    ``read_pointer``, ``swap_pointer`` and ``drop``; any name with a leading underscore is its own.
    """

    reuses_locations = False

    @abstractmethod
    def read_pointer(self) -> str | None:
        """The location that the table's pointer holds, or None when there is no table."""

    @abstractmethod
    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        """Set the pointer to ``new`` if it is ``old``, in one atomic step; ``None`` creates it if there is none.

        ``proposal`` is for a store that keeps more of a table than its pointer; its metadata file is written. Returns
        False if the pointer has another value. Raises ``OutcomeUnknown`` if the reply was lost; any other error means
        that nothing changed.
        """

    @abstractmethod
    def drop(self) -> None: ...

    def load(self) -> Pointer | None:
        location = self.__pointer()
        return None if location is None else Pointer(location, _version(location))

    def stage(self, base: Pointer | None, proposal: Proposal) -> Pointer:
        """Write the metadata file of a proposal, which nothing points to yet: a new name, complete and durable.

        Raises ``LocationInUse`` for a new table where another one is, or is being made at the same time.
        """
        staged = self.__written(base, proposal)
        self.__leave_notes(base, staged, proposal)
        if base is not None:
            return staged
        # The file is written before the search for others: so at least one of two concurrent creators sees the other.
        for wait in toolkit.Backoff(0.01, 0.2).waits(_CREATE_TRIES):  # imported late: it needs asyncio
            try:
                rival = self.__has_rival(proposal.metadata.location, staged.location)
            except BaseException:
                delete_quietly(self.file_system, staged.location)
                raise
            if not rival:
                break
            delete_quietly(self.file_system, staged.location)
            time.sleep(wait)
            staged = self.__written(base, proposal)
        return staged

    def __leave_notes(self, base: Pointer | None, staged: Pointer, proposal: Proposal) -> None:
        """Note the location of the table's metadata in folders that a version starts to use or stops using."""
        known = set() if proposal.base is None else set(folders_to_note(proposal.base))
        folders = [each for each in folders_to_note(proposal.metadata) if each not in known]
        after = staged.location.rpartition("/")[0]
        if base is not None and (before := base.location.rpartition("/")[0]) != after:
            folders = [before, *folders_to_note(proposal.metadata)]
        for folder in folders:
            with suppress(IcefieldError):  # who may not write there cannot leave a note
                note_folder(self.file_system, folder, after, proposal.metadata.table_uuid)

    def __has_rival(self, place: str, ours: str) -> bool:
        """Whether another table may be in creation at a location. Raises ``LocationInUse`` if there is a table."""
        try:
            others = [each for each in metadata_files(self.file_system, place) if each.location != ours]
        except AccessDenied:  # who may write and not list cannot know
            return False
        if not others or self.__pointer() is not None:  # of a table that is there already the swap says so
            return False
        folder = others[0].location.rpartition("/")[0]
        for name, location in self.tables_in(folder):
            if plain_folder(location) == plain_folder(others[0].location):
                raise LocationInUse(
                    f"{place} is the location of {name} already: give {'.'.join(self.table)} another location",
                    location=place,
                    table=self.table,
                )
        now = time.time() * 1000
        return all(_version(each.location) == 0 for each in others) and any(
            each.modified_ms is None or abs(now - each.modified_ms) < _RIVALS_MS for each in others
        )

    def __written(self, base: Pointer | None, proposal: Proposal) -> Pointer:
        metadata = proposal.metadata
        location, version = next_location(None if base is None else base.location, metadata)
        with self.file_system.open_output(location) as sink:
            sink.write(encode_metadata(metadata, compress=writes_gzip(metadata.properties)))
        return Pointer(location, version)

    def commit(self, base: Pointer | None, proposal: Proposal) -> Committed | Conflict:
        staged = self.stage(base, proposal)
        location, version = staged.location, staged.version or 0
        try:
            swapped = self.swap_pointer(None if base is None else base.location, location, proposal)
        except OutcomeUnknown as lost:
            return self.__settled(base, location, version, lost)
        except Exception as error:  # not an interrupt: it may strike after the swap, and then nothing may be deleted
            return self.__after(error, base, location, version)
        if not swapped:
            delete_quietly(self.file_system, location)
            return Conflict()
        self.delete_old(base, proposal)
        return Committed(staged)

    def __after(self, error: Exception, base: Pointer | None, ours: str, version: int) -> Committed:
        """Verify after an error of ``swap_pointer``, which should mean that nothing changed.

        The error may be wrong, for example if a lock cannot be released after the swap. Then neither the commit nor the
        file of the pointer may be lost. Raises ``CommitStateUnknown`` if the check fails, too.
        """
        try:
            moved = self.__pointer() != (None if base is None else base.location)
            chain = self.__chain() if moved else []
        except Exception:
            raise unknown_commit("table", self.table, ours) from error
        happened = ours in chain
        if moved and not happened and not _rules_out(chain, base):
            raise unknown_commit("table", self.table, ours) from error
        if not happened:
            delete_quietly(self.file_system, ours)
            raise error
        _log.warning("'%s' is committed, though the swap ended in %s", ".".join(self.table), type(error).__name__)
        return Committed(Pointer(ours, version))

    def __settled(self, base: Pointer | None, ours: str, version: int, lost: Exception) -> Committed | Conflict:
        """Determine the outcome of a lost reply: whether the pointer, or the log of a later version, names our file."""
        try:
            chain = self.__chain()
        except Exception:
            chain = []
        if ours in chain:
            return Committed(Pointer(ours, version))
        if not _rules_out(chain, base):
            raise unknown_commit("table", self.table, ours) from lost
        delete_quietly(self.file_system, ours)
        return Conflict()

    def __pointer(self) -> str | None:
        return checked_pointer(self.table, self.read_pointer())

    def __chain(self) -> list[str]:
        """The locations of the versions in the log of the current version, oldest first, and its own location."""
        current = self.__pointer()
        return [] if current is None else [*self.__logged(current), current]

    def __logged(self, location: str) -> list[str]:
        """The locations of the versions before a metadata file, from its log."""
        return _log_of(decode_metadata(read_whole(self.file_system, location), location))

    def delete_old(self, base: Pointer | None, proposal: Proposal) -> None:
        """Delete the metadata files that a made commit dropped from the log, if a property of the table requires it.

        Best effort: the commit is done, and no failure here may turn it into a failed commit.
        """
        metadata = proposal.metadata
        wanted = metadata.properties.get("write.metadata.delete-after-commit.enabled", "").lower() == "true"
        if base is None or not wanted or proposal.is_foreign:
            return
        kept = {base.location, *(entry.metadata_file for entry in metadata.metadata_log)}
        try:
            known = proposal.base
            logged = self.__logged(base.location) if known is None else _log_of(known)
            # A log may name any file. The table's own are in the folders of its base and current file, with its uuid.
            current = f"{metadata_folder(metadata.location, metadata.properties)}/"
            own = {plain_folder(base.location), plain_folder(current)}
            old = sorted(each for each in set(logged) - kept if plain_folder(each) in own)
            folders = {each.rpartition("/")[0] for each in old}
            shared = [each for each in folders if is_registered_twice(self.file_system, each, metadata.table_uuid)]
            needed = {location for folder in shared for _, location in self.tables_in(folder)}  # by other names
            for location in old:
                if location not in needed and is_of(self.file_system, location, metadata.table_uuid):
                    delete_quietly(self.file_system, location)
        except Exception as error:
            _log.warning("old metadata files of '%s' were not deleted: %s", ".".join(self.table), type(error).__name__)


def _rules_out(chain: list[str], base: Pointer | None) -> bool:
    """Whether a chain of versions without ours proves that our swap on a base did not and cannot happen.

    Only a version right after the base proves it. If the pointer has not moved, the swap may still happen. If the log
    no longer reaches back to the base, it may have lost our version.
    """
    return bool(chain) if base is None else base.location in chain[:-1]


def _log_of(metadata: TableMetadata) -> list[str]:
    return [entry.metadata_file for entry in metadata.metadata_log]


def _version(location: str) -> int | None:
    parsed = parse_metadata_file_name(location)
    return None if parsed is None else parsed.version


def next_location(before: str | None, metadata: TableMetadata | ViewMetadata) -> tuple[str, int]:
    """The location of a new metadata file, and its version; ``before`` is the location of the version before it."""
    version = 0 if before is None else (_version(before) or 0) + 1
    name = new_metadata_file_name(version, compress=writes_gzip(metadata.properties))
    return f"{metadata_folder(metadata.location, metadata.properties)}/{name}", version


def unknown_commit(kind: str, name: tuple[str, ...], ours: str) -> CommitStateUnknown:
    """The error for a table or view whose pointer may or may not come to name our metadata file."""
    return CommitStateUnknown(
        f"the reply to committing {kind} {'.'.join(name)} was lost and the catalog does not say yet whether it "
        f"happened; no file was deleted, {ours} among them: load the {kind} again and look for the change",
        location=ours,
        **{kind: name},
    )
