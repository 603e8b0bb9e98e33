"""Files divided for parallel reading, and small pieces put together."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield.errors import InvalidArgument
from icefield.manifest import DataFile, DataFileContent
from icefield.scan import FileScanTask
from icefield.scan.planning.splits import combine_tasks, split_ranges, split_task
from planned_tables import PlannedTable

MIB = 1024 * 1024


def data_file(size: int, offsets: tuple[int, ...] | None = None, name: str = "f") -> DataFile:
    return DataFile(
        file_path=f"memory://x/{name}",
        file_format="parquet",
        record_count=1,
        file_size_in_bytes=size,
        split_offsets=offsets,
    )


@pytest.mark.spec("SCAN-27", "SCAN-29")
@given(st.lists(st.integers(0, 1000), min_size=1, max_size=12, unique=True), st.integers(1, 400))
def test_pieces_begin_at_split_offsets_only_and_cover_the_file_once(offsets: list[int], target: int) -> None:
    offsets.sort()
    size = offsets[-1] + 10
    ranges = split_ranges(size, offsets, target)
    assert ranges[0][0] == 0
    assert [start for start, _ in ranges[1:]] == [start + length for start, length in ranges[:-1]]
    assert sum(length for _, length in ranges) == size
    assert {start for start, _ in ranges[1:]} <= set(offsets)
    # No piece could include the next part between two offsets and stay within the target size.
    ends = [*offsets[1:], size]
    for (start, length), (after, _) in pairwise(ranges):
        following = next(end for end in ends if end > after)
        assert following - start > target
        assert length > 0


@pytest.mark.spec("SCAN-28")
@pytest.mark.parametrize("offsets", [None, (), (4, 1000), (4, 2000), (500, 4), (4, 4, 500), (-5, 500)])
def test_offsets_that_cannot_be_right_are_ignored_and_the_file_divided_by_size(offsets: tuple[int, ...] | None) -> None:
    assert split_ranges(1000, offsets, 300) == [(0, 300), (300, 300), (600, 300), (900, 100)]


@pytest.mark.spec("SCAN-27")
def test_row_groups_are_put_together_up_to_the_target() -> None:
    assert split_ranges(100, (4, 30, 60, 90), 60) == [(0, 60), (60, 40)]
    assert split_ranges(100, (4, 30, 60, 90), 1) == [(0, 30), (30, 30), (60, 30), (90, 10)]
    assert split_ranges(100, (4, 30, 60, 90), 100) == [(0, 100)]
    assert split_ranges(0, None, 5) == [(0, 0)]
    with pytest.raises(InvalidArgument):
        split_ranges(100, None, 0)


def test_a_task_is_divided_unless_it_is_a_part_already() -> None:
    file = data_file(100, (4, 50))
    pieces = list(split_task(FileScanTask(file), 60))
    assert [(task.start, task.length, task.file) for task in pieces] == [(0, 50, file), (50, 50, file)]
    assert list(split_task(pieces[1], 10)) == [pieces[1]]
    whole = FileScanTask(file)
    assert list(split_task(whole, 100)) == [whole]


def combined(sizes: list[int], target: int, **given: int) -> list[list[int]]:
    tasks = [FileScanTask(data_file(size, name=str(i))) for i, size in enumerate(sizes)]
    return [[task.length for task in group] for group in combine_tasks(tasks, target, **given)]


@pytest.mark.spec("SCAN-30")
def test_tasks_are_put_together_up_to_the_target() -> None:
    assert combined([40, 40, 40, 100, 20], 100, open_file_cost=0) == [[40, 40, 20], [40], [100]]
    # The weight of each file is at least the cost of opening it.
    assert combined([1] * 7, 100, open_file_cost=30) == [[1, 1, 1], [1, 1, 1], [1]]
    assert combined([250], 100) == [[250]]


@pytest.mark.spec("SCAN-30")
def test_only_so_many_groups_are_open_and_the_fullest_goes_out_first() -> None:
    assert combined([60, 70, 80, 40], 100, open_file_cost=0, lookback=2) == [[70], [60, 40], [80]]
    assert combined([60, 70, 80, 40], 100, open_file_cost=0, lookback=1) == [[60], [70], [80], [40]]
    for wrong in ({"lookback": 0}, {"open_file_cost": -1}):
        with pytest.raises(InvalidArgument):
            combined([1], 100, **wrong)


@pytest.mark.spec("SCAN-30")
def test_delete_files_weigh_with_their_data_file() -> None:
    delete = DataFile(
        file_path="memory://x/d",
        file_format="parquet",
        record_count=1,
        file_size_in_bytes=50,
        content=DataFileContent.POSITION_DELETES,
    )
    tasks = [FileScanTask(data_file(40), delete_files=(delete,)), FileScanTask(data_file(40))]
    assert len(list(combine_tasks(tasks, 100, open_file_cost=0))) == 2
    assert len(list(combine_tasks(tasks, 130, open_file_cost=0))) == 1
    assert len(list(combine_tasks(tasks, 130, open_file_cost=45))) == 2


@given(st.lists(st.integers(0, 120), max_size=40), st.integers(1, 5), st.integers(0, 50))
@pytest.mark.spec("SCAN-30")
def test_every_task_is_handed_out_once_and_no_group_of_several_is_too_large(
    sizes: list[int], lookback: int, cost: int
) -> None:
    groups = combined(sizes, 100, lookback=lookback, open_file_cost=cost)
    assert sorted(size for group in groups for size in group) == sorted(sizes)
    assert all(len(group) == 1 or sum(max(size, cost) for size in group) <= 100 for group in groups)


@pytest.mark.spec("SCAN-27", "SCAN-30")
def test_a_scan_plans_by_the_table_s_properties_or_its_own_options() -> None:
    table = PlannedTable()
    offsets = (4, 64 * MIB, 128 * MIB, 192 * MIB)
    table.add([table.file("big", file_size_in_bytes=256 * MIB, split_offsets=offsets), table.file("small")])
    table.commit()

    def planned(**options: str) -> list[list[tuple[int, int]]]:
        tasks = table.scan(options=options).plan_tasks()
        return [[(task.start // MIB, task.length // MIB) for task in group] for group in tasks]

    assert planned() == [[(0, 128)], [(128, 128)], [(0, 0)]]
    assert planned(**{"split-size": str(64 * MIB)}) == [[(0, 64)], [(64, 64)], [(128, 64)], [(192, 64)], [(0, 0)]]
    table.properties = {"read.split.target-size": str(300 * MIB), "read.split.open-file-cost": "0"}
    assert planned() == [[(0, 256), (0, 0)]]
    assert planned(**{"split-file-open-cost": str(50 * MIB)}) == [[(0, 256)], [(0, 0)]]
    with pytest.raises(InvalidArgument):
        planned(**{"split-size": "0"})


def test_splits_are_smaller_where_more_groups_are_asked_for_and_the_table_lets_them_be() -> None:
    table = PlannedTable()
    offsets = tuple(at * 8 * MIB + 4 for at in range(32))
    table.add([table.file("big", file_size_in_bytes=256 * MIB, split_offsets=offsets)])
    table.commit()

    def count(at_least: int, **options: str) -> int:
        return len(list(table.scan(options=options).plan_tasks(at_least)))

    assert [count(each) for each in (1, 2, 4, 8, 16, 1000)] == [2, 2, 4, 8, 16, 16]
    assert count(8, **{"split-size": str(64 * MIB)}) == 4
    table.properties = {"read.split.adaptive-size.enabled": "false"}
    assert count(8) == 2
