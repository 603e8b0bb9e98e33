"""Splitting of files for parallel reading, and combination of small pieces.

A piece begins at a split offset of the writer (``split_offsets``). The pieces always cover the whole file, so that
every row is read exactly once, even with wrong offsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from icefield.errors import InvalidArgument
from icefield.scan.tasks import FileScanTask


def split_ranges(size: int, offsets: Sequence[int] | None, target: int) -> list[tuple[int, int]]:
    """The ranges (start, length) for reading a file of ``size`` bytes, each of about ``target`` bytes.

    Invalid offsets (not ascending, negative, beyond the end) are ignored, and the file is split by size. Raises
    ``InvalidArgument`` for a target below one byte.
    """
    if target < 1:
        raise InvalidArgument(f"a split cannot have {target} bytes")
    if size <= target:
        return [(0, size)]
    starts = _starts(size, offsets)
    if starts is None:
        return [(start, min(target, size - start)) for start in range(0, size, target)]
    ranges, begin = [], 0
    for start, end in zip(starts, [*starts[1:], size], strict=True):
        if end - begin > target and start > begin:
            ranges.append((begin, start - begin))
            begin = start
    ranges.append((begin, size - begin))
    return ranges


def _starts(size: int, offsets: Sequence[int] | None) -> list[int] | None:
    if not offsets or offsets[0] < 0 or offsets[-1] >= size:
        return None
    if any(left >= right for left, right in pairwise(offsets)):
        return None
    # The first piece begins at 0, so that no rows are before it.
    return [0, *offsets[1:]]


def split_task(task: FileScanTask, target: int) -> Iterator[FileScanTask]:
    """The task in pieces of about ``target`` bytes; the task itself if it is small or covers only a part of a file."""
    file = task.file
    ranges = split_ranges(file.file_size_in_bytes, file.split_offsets, target) if task.is_whole_file else []
    if len(ranges) < 2:
        yield task
        return
    for start, length in ranges:
        yield task.part(start, length)


def combine_tasks(
    tasks: Iterable[FileScanTask], target: int, *, lookback: int = 10, open_file_cost: int = 4 * 1024 * 1024
) -> Iterator[tuple[FileScanTask, ...]]:
    """Combine tasks to groups of about ``target`` bytes; each file counts as at least ``open_file_cost`` bytes.

    Up to ``lookback`` groups are open at a time; if none has room, the fullest is returned. Raises ``InvalidArgument``
    for a ``target`` or ``lookback`` below 1, or a negative cost.
    """
    if target < 1 or lookback < 1 or open_file_cost < 0:
        raise InvalidArgument("split size and lookback must be positive, and the cost of opening a file not negative")
    bins: list[list[FileScanTask]] = []
    weights: list[int] = []
    for task in tasks:
        deletes = task.delete_files
        sizes = (
            file.file_size_in_bytes if file.content_size_in_bytes is None else file.content_size_in_bytes
            for file in deletes
        )
        weight = max(task.length + sum(sizes), (1 + len(deletes)) * open_file_cost)
        fitting = next((at for at, held in enumerate(weights) if held + weight <= target), len(bins))
        if fitting < len(bins):
            bins[fitting].append(task)
            weights[fitting] += weight
            continue
        if len(bins) == lookback:
            fullest = max(range(lookback), key=weights.__getitem__)
            del weights[fullest]
            yield tuple(bins.pop(fullest))
        bins.append([task])
        weights.append(weight)
    yield from map(tuple, bins)
