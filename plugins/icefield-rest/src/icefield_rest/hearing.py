"""Listeners to the events of tables that this process has loaded. A light module, as the hooks import it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final
from weakref import WeakValueDictionary

from icefield.abc import CommitMade, Event, ScanPlanned


class TableListener(ABC):
    """A listener to scans and commits of the tables that it follows."""

    @abstractmethod
    def hear(self, event: ScanPlanned | CommitMade) -> None:
        """Accept an event without waiting."""


class TableListeners:
    """Weak references to listeners by catalog and table."""

    def __init__(self) -> None:
        self._by_table: WeakValueDictionary[tuple[str, str], TableListener] = WeakValueDictionary()

    def follow(self, catalog: str, table_uuid: str, hearer: TableListener) -> None:
        """Register a listener for a table."""
        self._by_table[catalog, table_uuid] = hearer

    def heard(self, event: Event) -> None:
        """Pass an event with a snapshot to the listener of its table, if there is one."""
        if not isinstance(event, ScanPlanned | CommitMade) or event.catalog is None or event.table_uuid is None:
            return
        hearer = self._by_table.get((event.catalog, event.table_uuid))
        if hearer is not None and event.snapshot_id is not None and event.snapshot_id >= 0:
            hearer.hear(event)


HEARERS: Final = TableListeners()
