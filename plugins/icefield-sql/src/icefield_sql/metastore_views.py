"""Views in a metastore: write a new metadata file, then swap the pointer from the old location to the new."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from icefield.abc import CurrentView, TableName, ViewProposal
from icefield.errors import FileMissing, IcefieldError, StorageError
from icefield.metadata import decode_view_metadata, encode_view_metadata
from icefield.toolkit import (
    OutcomeUnknown,
    checked_pointer,
    delete_quietly,
    next_location,
    unknown_commit,
    writes_gzip,
)

if TYPE_CHECKING:
    from icefield import FileIO

_log = logging.getLogger(__name__)

# A metastore may drop and replace a view between reading the pointer and opening the file.
_LOAD_TRIES = 5


class MetastoreViews(ABC):
    """Views by pointers; a backend's class brings the two steps and keeps the names.

    Metadata files are named ``<V>-<uuid>.metadata.json`` below ``metadata`` of the view's location.
    """

    def __init__(self, io: FileIO) -> None:
        self.io = io

    @abstractmethod
    def read_pointer(self, view: TableName) -> str | None:
        """The location that the view's pointer holds, or None when there is no view of that name."""

    @abstractmethod
    def swap_pointer(self, view: TableName, old: str | None, new: str) -> bool:
        """Set the pointer to ``new`` if it is ``old``, in one atomic step; ``None`` creates it if there is none.

        Returns False if the pointer has another value. Raises ``OutcomeUnknown`` if the reply was lost; any other error
        means that nothing changed.
        """

    def load(self, view: TableName) -> CurrentView | None:
        """A view at its current version; None if there is no view of that name. Raises ``InvalidMetadata``."""
        for tries_left in reversed(range(_LOAD_TRIES)):
            location = checked_pointer(view, self.read_pointer(view))
            if location is None:
                return None
            try:
                return CurrentView(location, decode_view_metadata(self.io.read_metadata(location), location))
            except FileMissing:
                if not tries_left:
                    raise
        raise AssertionError("unreachable")

    def commit(self, view: TableName, base: CurrentView | None, proposal: ViewProposal) -> CurrentView | None:
        """See ``ViewCatalog.commit_view``."""
        metadata = proposal.metadata
        system = self.io.storage(metadata.location)
        location, _ = next_location(None if base is None else base.location, metadata)
        with system.open_output(location) as sink:
            sink.write(encode_view_metadata(metadata, compress=writes_gzip(metadata.properties)))
        try:
            swapped = self.swap_pointer(view, None if base is None else base.location, location)
        except OutcomeUnknown as lost:
            swapped = self.__settled(view, location, lost)
        except Exception as error:  # not an interrupt: it may strike after the swap, and then nothing may be deleted
            if not self.__happened(view, base, location, error):
                delete_quietly(system, location)
                raise
            swapped = True
        if not swapped:
            delete_quietly(system, location)
            return None
        return CurrentView(location, metadata)

    def __happened(self, view: TableName, base: CurrentView | None, ours: str, error: Exception) -> bool:
        """Whether a swap happened although it ended in an error, which should mean that nothing changed."""
        try:
            current = self.read_pointer(view)
        except Exception:
            raise unknown_commit("view", view, ours) from error
        if current == ours:
            _log.warning("view '%s' is committed, though the swap ended in %s", ".".join(view), type(error).__name__)
            return True
        is_answer = isinstance(error, IcefieldError) and not isinstance(error, StorageError)
        if not is_answer and current != (None if base is None else base.location):  # ours may be before it
            raise unknown_commit("view", view, ours) from error
        return False

    def __settled(self, view: TableName, ours: str, lost: Exception) -> bool:
        """Determine the outcome of a lost reply: only our own location proves one, since the swap may still happen."""
        try:
            if self.read_pointer(view) == ours:
                return True
        except Exception as error:
            _log.warning("view '%s' cannot be looked at: %s", ".".join(view), type(error).__name__)
        raise unknown_commit("view", view, ours) from lost
