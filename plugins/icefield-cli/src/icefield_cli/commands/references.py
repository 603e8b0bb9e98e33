"""The snapshot that the options of a branch or tag choose, and the check that a branch or tag exists."""

from __future__ import annotations

from icefield import Table
from icefield.errors import NoSuchSnapshot


def check_there(table: Table, name: str, kind: str) -> None:
    """Raise ``NoSuchSnapshot`` unless the table has a ref of this name and kind: ``branch`` or ``tag``."""
    found = table.metadata.ref(name)
    if found is not None and found.type != kind:
        raise NoSuchSnapshot(f"'{name}' of {'.'.join(table.name())} is a {found.type}, not a {kind}")
    if found is None:
        known = sorted(each for each, ref in table.metadata.refs.items() if ref.type == kind)
        raise NoSuchSnapshot(f"{'.'.join(table.name())} has no {kind} '{name}'; it has {', '.join(known) or 'none'}")


def target_of(table: Table, snapshot: int | None, source: str | None) -> int | None:
    """The snapshot's id; None where neither option was given. Raises ``NoSuchSnapshot``."""
    if source is None:
        return snapshot
    found = table.metadata.ref(source)
    if found is None:
        known = ", ".join(sorted(table.metadata.refs)) or "none"
        raise NoSuchSnapshot(f"{'.'.join(table.name())} has no branch or tag '{source}'; it has {known}")
    return found.snapshot_id


def target_or_current(table: Table, snapshot: int | None, source: str | None) -> int:
    """The chosen snapshot's id, or the current snapshot's if neither option was given. Raises ``NoSuchSnapshot``."""
    found = target_of(table, snapshot, source)
    if found is None:
        current = table.current_snapshot()
        if current is None:
            raise NoSuchSnapshot(f"{'.'.join(table.name())} has no snapshot yet; give --snapshot or --from")
        return current.snapshot_id
    return found
