"""Tables that overlap, as other engines and older versions create them, bypassing the checks of the kernel."""

from __future__ import annotations

from icefield import Catalog
from icefield.abc import Committed, Pointer, Proposal
from icefield.metadata import updates_from_json
from icefield.metadata.updates.apply import apply_updates


def move_past_guards(catalog: Catalog, name: str, location: str) -> None:
    """Give a table a location, even if another table has it."""
    table = catalog.load_table(name)
    updates = updates_from_json([{"action": "set-location", "location": location}])
    strategy = catalog.backend.strategy(table.name())
    base = strategy.load()
    assert isinstance(base, Pointer)
    moved = apply_updates(table.metadata, updates)
    assert isinstance(strategy.commit(base, Proposal(moved, tuple(updates), (), table.metadata)), Committed)
