"""Plans whose files are taken in several parts."""

from __future__ import annotations

from contextlib import closing

from icefield.manifest import clear_caches
from planned_tables import PlannedTable


def test_a_plan_of_which_some_rows_are_taken_reads_the_manifests_of_those() -> None:
    table = PlannedTable()
    for part in range(12):
        table.add([table.file(f"{part}-{i}") for i in range(10)])
    table.commit()
    opened: list[str] = table.io.opened  # type: ignore[attr-defined]
    whole = list(table.scan().plan_manifests())
    assert [(part.place, len(part)) for part in table.scan().plan_manifests(rows=25)] == [
        (part.place, len(part)) for part in whole
    ]
    for first in (0, 4):
        clear_caches()
        opened.clear()
        with closing(table.scan().plan_manifests(first=first, rows=25)) as parts:  # type: ignore[type-var]
            assert [next(parts).place for _ in range(3)] == [first, first + 1, first + 2]
        assert len(opened) == 4  # the list, and three manifests
