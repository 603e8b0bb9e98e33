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


def test_manifests_of_a_plan_share_columns_that_are_the_same_for_all_files() -> None:
    table = PlannedTable()
    for part in range(3):
        table.add([table.file(f"{part}-{i}") for i in range(2)])
    table.commit()
    clear_caches()
    plan = table.scan().plan_arrow()
    assert plan.num_rows == 6
    for name in ("spec_id", "delete_files"):
        assert len({chunk.buffers()[1].address for chunk in plan[name].chunks}) == 1, name
