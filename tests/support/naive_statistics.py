"""Statistics of random files, computed row by row: true, and as incomplete as statistics of real files."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from icefield.types import parse_type
from icefield.types.arrow.types import to_arrow_type
from naive_filters import ALL_NAMES, SCHEMA, value_at


@dataclass
class ColumnStatistics:
    """The statistics of one column in one file; None means not stated. Bounds are internal values."""

    values: int | None = None
    nulls: int | None = None
    nans: int | None = None
    lower: Any = None
    upper: Any = None


@dataclass
class File:
    """One file: its rows, and the statistics that it states."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    record_count: int | None = None
    columns: dict[int, ColumnStatistics] = field(default_factory=dict)


class Statistics:
    """Many files as the ``FileStatistics`` that evaluators read. Columns without statistics in any file are None."""

    def __init__(self, files: list[File]) -> None:
        self.files = files
        self.num_files = len(files)
        self.asked: set[int] = set()

    def record_count(self) -> pa.Array:
        return pa.array([file.record_count for file in self.files], pa.int64())

    def _column(self, field_id: int, name: str, kind: pa.DataType) -> pa.Array | None:
        self.asked.add(field_id)
        cells = [getattr(file.columns.get(field_id, ColumnStatistics()), name) for file in self.files]
        return pa.array(cells, kind) if any(cell is not None for cell in cells) else None

    def lower(self, field_id: int) -> pa.Array | None:
        return self._column(field_id, "lower", to_arrow_type(SCHEMA.find_type(field_id)))

    def upper(self, field_id: int) -> pa.Array | None:
        return self._column(field_id, "upper", to_arrow_type(SCHEMA.find_type(field_id)))

    def value_count(self, field_id: int) -> pa.Array | None:
        return self._column(field_id, "values", pa.int64())

    def null_count(self, field_id: int) -> pa.Array | None:
        return self._column(field_id, "nulls", pa.int64())

    def nan_count(self, field_id: int) -> pa.Array | None:
        return self._column(field_id, "nans", pa.int64())


def column_statistics(
    name: str, rows: list[dict[str, Any]], skip_rows_of_null_parents: bool = False
) -> ColumnStatistics:
    """Return complete statistics of a column. Some writers do not count rows in which a struct around it is null."""
    path = tuple(name.split("."))
    if skip_rows_of_null_parents:
        rows = [row for row in rows if len(path) == 1 or value_at(row, path[:-1]) is not None]
    cells = [value_at(row, path) for row in rows]
    nans = [cell for cell in cells if isinstance(cell, float) and math.isnan(cell)]
    usual = [cell for cell in cells if cell is not None and cell == cell]
    floating = ALL_NAMES[name] in ("float", "double")
    return ColumnStatistics(
        values=len(cells),
        nulls=cells.count(None),
        nans=len(nans) if floating else None,
        lower=_zero(min(usual, key=_order), -0.0) if usual else None,
        upper=_zero(max(usual, key=_order), 0.0) if usual else None,
    )


def _order(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def _zero(bound: Any, zero: float) -> Any:
    return zero if isinstance(bound, float) and bound == 0 else bound


@st.composite
def blurred(draw: st.DrawFn, name: str, rows: list[dict[str, Any]]) -> ColumnStatistics:
    """The statistics of a column as some writer may leave them: parts missing, strings truncated, NaN among bounds."""
    found = column_statistics(name, rows, draw(st.booleans()))
    kind = ALL_NAMES[name]
    if isinstance(found.lower, str | bytes) and kind in ("string", "binary"):
        width = draw(st.integers(1, 4))
        found.lower = found.lower[:width]
        found.upper = found.upper if len(found.upper) <= width else _next_after_prefix(found.upper[:width])
    elif isinstance(found.lower, int) and not isinstance(found.lower, bool) and draw(st.booleans()):
        limit = 2**31 if kind in ("int", "date") else 2**63
        found.lower = max(found.lower - draw(st.integers(0, 3)), 0 if kind == "time" else -limit)
        found.upper = min(found.upper + draw(st.integers(0, 3)), 86_399_999_999 if kind == "time" else limit - 1)
    for part in ("values", "nulls", "nans", "lower", "upper"):
        if draw(st.integers(0, 5)) == 0:
            setattr(found, part, None)
    if kind in ("float", "double") and draw(st.integers(0, 5)) == 0:
        setattr(found, draw(st.sampled_from(["lower", "upper"])), math.nan)
    return found


def _next_after_prefix(prefix: Any) -> Any:
    """The smallest strings or bytes above all that start with a prefix; None if there is none."""
    if isinstance(prefix, bytes):
        kept = prefix.rstrip(b"\xff")
        return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
    kept = prefix.rstrip("\U0010ffff")
    return kept[:-1] + chr(0xE000 if ord(kept[-1]) == 0xD7FF else ord(kept[-1]) + 1) if kept else None


@st.composite
def files(draw: st.DrawFn, names: list[str], rows: st.SearchStrategy[list[dict[str, Any]]]) -> list[File]:
    """Random files with incomplete but truthful statistics of some columns."""
    found = []
    for found_rows in draw(st.lists(rows, min_size=1, max_size=5)):
        count = draw(st.sampled_from([len(found_rows)] * 4 + [-1, None]))
        file = File(found_rows, count)
        for name in names:
            if draw(st.integers(0, 9)):
                file.columns[SCHEMA.find_field(name).field_id] = draw(blurred(name, found_rows))
        found.append(file)
    return found


def field_type(name: str) -> Any:
    """The type of a column of ``SCHEMA``."""
    return parse_type(ALL_NAMES[name])
