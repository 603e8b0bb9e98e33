"""Descriptions of the difference between the rows and positions that a reader returns and the written ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from icefield.abc import Split

_SHOWN: Final = 3
"""The most ranges of rows that a message names."""


@dataclass
class Reading:
    """The result of one ``read`` of rows that hold their own number: the numbers, and the positions if requested."""

    split: Split | None = None
    filtered: bool = False
    numbers: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    """The number of rows of each batch."""


def check_rows(readings: Sequence[Reading], rows: int) -> None:
    """Check that all readings together return the rows 0 to ``rows`` - 1 in order, each once."""
    found = np.array([number for reading in readings for number in reading.numbers], np.int64)
    problems = [*_problems(found, rows)]
    if not problems:
        return
    splits = [reading for reading in readings if reading.split is not None]
    if len(splits) > 1:
        problems += _about_splits(splits, rows)
    raise AssertionError("; ".join(problems))


def _problems(found: npt.NDArray[np.int64], rows: int) -> list[str]:
    made_up = np.unique(found[(found < 0) | (found >= rows)])
    counts = np.bincount(found[(found >= 0) & (found < rows)], minlength=rows)
    missing, repeated = np.flatnonzero(counts == 0), np.flatnonzero(counts > 1)
    problems = []
    if len(missing):
        problems.append(f"{len(missing):,} of {rows:,} rows are missing: {spans(missing)}")
    if len(repeated):
        problems.append(f"{len(repeated):,} of {rows:,} rows come more than once: {spans(repeated)}")
    if len(made_up):
        problems.append(f"{len(made_up):,} rows were never written: {spans(made_up)}")
    if not problems and (np.diff(found) < 0).any():
        row = int(found[1:][np.diff(found) < 0][0])
        problems.append(f"rows are not in file order: row {row:,} comes after a later one")
    return problems


def _about_splits(readings: Sequence[Reading], rows: int) -> list[str]:
    """Describe splits that read the same rows, and gaps between splits."""
    owner: npt.NDArray[np.int64] = np.full(rows, -1, np.int64)
    for at, reading in enumerate(readings):
        numbers = np.array([number for number in reading.numbers if 0 <= number < rows], np.int64)
        twice = numbers[owner[numbers] >= 0]
        if len(twice):
            other = readings[int(owner[twice[0]])]
            return [f"splits overlap: {_named(other)} and {_named(reading)} both read row {int(twice[0]):,}"]
        owner[numbers] = at
    missing = np.flatnonzero(owner < 0)
    if not len(missing):
        return []
    after = readings[int(owner[missing[-1] + 1])] if missing[-1] + 1 < rows else None
    where = f", before what {_named(after)} reads" if after is not None else ""
    return [f"no split reads row {int(missing[0]):,}{where}"]


def check_positions(readings: Sequence[Reading]) -> None:
    """Check that the position of each row is its number, in each reading."""
    for reading in readings:
        assert len(reading.positions) == len(reading.numbers), "a batch has another number of positions than of rows"
        numbers, positions = np.array(reading.numbers, np.int64), np.array(reading.positions, np.int64)
        wrong = np.flatnonzero(numbers != positions)
        if len(wrong):
            raise AssertionError(_wrong_position(reading, int(wrong[0])))


def _wrong_position(reading: Reading, at: int) -> str:
    row, position = reading.numbers[at], reading.positions[at]
    place = f" in {_named(reading)}" if reading.split is not None else ""
    starts = np.cumsum([0, *reading.batches])
    hints = []
    if at in starts[1:]:
        hints.append("where a batch begins")
    if row and row % (1 << 16) == 0:
        hints.append("a multiple of 65,536, which 16 bits cannot hold")
    hint = f" ({'; '.join(hints)})" if hints else ""
    if reading.filtered:
        return f"`_pos` of row {row:,} is {position:,} under a filter{place}{hint}: rows that it skips count as well"
    if at == 0 and row and position == 0 and reading.split is not None:
        return f"`_pos` is counted from the start of {_named(reading)} and not of the file: 0 for row {row:,}"
    if position == 0 and row:
        return f"`_pos` begins again at 0 at row {row:,}{place}{hint}"
    return f"`_pos` of row {row:,} is {position:,}{place}{hint}"


def check_matching(found: Sequence[int], wanted: set[int], string: str) -> None:
    """Check that no matching row is missing, and that no row comes twice."""
    lost = np.array(sorted(wanted.difference(found)), np.int64)
    assert not len(lost), (
        f"the filter {string!r} left out rows that match: {spans(lost)}; it is a hint, others may come"
    )
    values, counts = np.unique(np.array(found, np.int64), return_counts=True)
    repeated = values[counts > 1]
    assert not len(repeated), f"under the filter {string!r} rows come more than once: {spans(repeated)}"


def different_value(column: str, got: Sequence[Any], expected: Sequence[Any]) -> str | None:
    """The first value that differs, by its ``repr``; None if all values are equal."""
    for row, (ours, theirs) in enumerate(zip(got, expected, strict=True)):
        if repr(ours) != repr(theirs):
            return f"row {row:,} of '{column}' is {_short(ours)}, not {_short(theirs)}"
    return None


def spans(numbers: npt.NDArray[np.int64]) -> str:
    """Ascending numbers as ranges: ``1 to 3, 7``."""
    breaks = [0, *(np.flatnonzero(np.diff(numbers) > 1) + 1).tolist(), len(numbers)]
    ranges = [(int(numbers[start]), int(numbers[stop - 1])) for start, stop in pairwise(breaks)]
    shown = [f"{first:,} to {last:,}" if first < last else f"{first:,}" for first, last in ranges[:_SHOWN]]
    return ", ".join(shown) + (", ..." if len(ranges) > _SHOWN else "")


def _named(reading: Reading) -> str:
    assert reading.split is not None
    return f"the split of bytes {reading.split.start:,} to {reading.split.start + reading.split.length:,}"


def _short(value: Any) -> str:
    string = repr(value)
    return string if len(string) <= 200 else f"{string[:200]}..."
