"""Who hears what happens to a table: the catalogs of this process that have loaded it. Light: hooks import it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final
from weakref import WeakValueDictionary

from icefield.abc import CommitMade, Event, ScanPlanned


class Hearer(ABC):
    """Hears of the scans and commits of the tables that it follows."""

    @abstractmethod
    def hear(self, event: ScanPlanned | CommitMade) -> None:
        """Take an event in, at once."""


class Hearers:
    """Hearers by catalog and table, each as long as somebody holds it."""

    def __init__(self) -> None:
        self._by_table: WeakValueDictionary[tuple[str, str], Hearer] = WeakValueDictionary()

    def follow(self, catalog: str, table_uuid: str, hearer: Hearer) -> None:
        """Let it hear of a table."""
        self._by_table[catalog, table_uuid] = hearer

    def heard(self, event: Event) -> None:
        """Pass on an event of a snapshot, where somebody follows its table."""
        if not isinstance(event, ScanPlanned | CommitMade) or event.catalog is None or event.table_uuid is None:
            return
        hearer = self._by_table.get((event.catalog, event.table_uuid))
        if hearer is not None and event.snapshot_id is not None and event.snapshot_id >= 0:
            hearer.hear(event)


HEARERS: Final = Hearers()
