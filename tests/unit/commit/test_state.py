"""The state of a table after a commit, and the loading of its current version."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from icefield.abc import CommitStrategy, Committed, Current, Pointer, Proposal, PutMode
from icefield.commit import TableHandle, TableState, load_table
from icefield.errors import FileMissing, InvalidMetadata
from icefield.metadata import apply_updates
from icefield.metadata.updates.table import SetProperties
from tables import handle_of, new_table, state_of, strategy_of

ACCESS: Any = (object(),)
PLANNER: Any = object()


class _Service(CommitStrategy):
    """A strategy of a service that returns what a test gives it."""

    def __init__(self, inner: CommitStrategy, *found: Any, reuses_locations: bool = True) -> None:
        super().__init__(inner.table, inner.location, inner.file_system)
        self.found, self.loads = list(found), 0
        self.reuses_locations = reuses_locations  # type: ignore[misc]

    def load(self) -> Any:
        self.loads += 1
        return self.found.pop(0) if len(self.found) > 1 else self.found[0]

    def commit(self, base: Any, proposal: Any) -> Any:
        raise AssertionError

    def drop(self) -> None:
        raise AssertionError


def served(*found: Any, **options: Any) -> tuple[TableHandle, TableState]:
    """A handle whose service returns these results, and the state of the table."""
    table = new_table()
    given = [each(state_of(table)) if callable(each) else each for each in found]
    return replace(handle_of(table), strategy=_Service(strategy_of(table), *given, **options)), state_of(table)


def test_a_state_after_a_commit_has_what_the_service_returned() -> None:
    base = replace(state_of(new_table()), properties={"a": "base"}, access=ACCESS, planner=PLANNER)
    changed = apply_updates(base.metadata, [SetProperties({"a": "1"})])
    pointer, proposal = Pointer("memory://next"), Proposal(changed)
    kept = TableState.after(Committed(pointer), proposal, base)
    assert kept == TableState(pointer, changed, {"a": "base"}, ACCESS, PLANNER)
    access: Any = (object(),)
    planner: Any = object()
    found = TableState.after(Committed(pointer, base.metadata, {"a": "new"}, access, planner), proposal, base)
    assert found == TableState(pointer, base.metadata, {"a": "new"}, access, planner)
    assert TableState.after(Committed(pointer), proposal, None) == TableState(pointer, changed)


def test_a_service_that_returns_metadata_spares_the_reading_of_the_file() -> None:
    handle, base = served(lambda base: Current(Pointer("memory://none"), base.metadata, {"a": "1"}, ACCESS, PLANNER))
    assert load_table(handle) == TableState(Pointer("memory://none"), base.metadata, {"a": "1"}, ACCESS, PLANNER)


def test_an_unchanged_version_has_the_properties_that_the_service_returns_now() -> None:
    handle, base = served(lambda base: Current(Pointer(base.pointer.location, 77, ("old",)), None, {"token": "2"}))
    base = replace(base, pointer=replace(base.pointer, stamp=("old",)))
    found = load_table(handle, base)
    assert found == replace(base, properties={"token": "2"})
    assert found.metadata is base.metadata


@pytest.mark.parametrize(
    ("reuses_locations", "name", "known", "now", "reads"),
    [
        (True, "v1", ("old",), ("new",), True),
        (True, "v1", ("old",), None, True),
        (True, "v1", None, None, True),
        (True, "v1", ("old",), ("old",), False),
        (True, "00001-a", ("old",), ("new",), True),
        (False, "00001-a", ("old",), ("new",), False),
        (False, "00001-a", None, None, False),
        (False, "v1", None, None, True),
        (False, "any", None, None, True),
    ],
)
def test_a_file_that_may_be_another_at_the_same_location_is_read_again(
    reuses_locations: bool, name: str, known: Any, now: Any, reads: bool
) -> None:
    table = new_table()
    location = f"{table.location()}/metadata/{name}.metadata.json"
    table.io.put(location, table.io.read_metadata(table.metadata_location), PutMode.OVERWRITE)
    service = _Service(strategy_of(table), Pointer(location, stamp=now), reuses_locations=reuses_locations)
    state = replace(state_of(table), pointer=Pointer(location, stamp=known))
    found = load_table(replace(handle_of(table), strategy=service), state)
    assert found is not None
    assert (found.metadata is not state.metadata) == reads


def test_a_table_without_a_uuid_is_the_same_table_when_a_later_commit_adds_one() -> None:
    handle, base = served(lambda base: Current(Pointer("memory://next"), base.metadata))
    before = replace(base.metadata, table_uuid=None, format_version=1)
    found = load_table(handle, TableState.at("memory://old", before))
    assert found is not None
    assert found.metadata.table_uuid == base.metadata.table_uuid
    other = replace(base.metadata, table_uuid="0b1c3f4e-0000-4000-8000-000000000000")
    with pytest.raises(InvalidMetadata, match="its uuid was 0b1c3f4e"):
        load_table(handle, TableState.at("memory://old", other))


def test_a_metadata_file_is_looked_for_five_times() -> None:
    handle, _ = served(Pointer("memory://nowhere/v1.metadata.json"))
    with pytest.raises(FileMissing):
        load_table(handle)
    assert handle.strategy is not None
    assert handle.strategy.loads == 5  # type: ignore[attr-defined]
    gone, _ = served(Pointer("memory://nowhere/v1.metadata.json"), None)
    assert load_table(gone) is None
