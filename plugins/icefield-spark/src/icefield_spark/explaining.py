"""The plan for reading a table: the snapshot, the filter, the files, and the road of each file with the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from icefield.errors import InvalidArgument
from icefield.scan import TableScan
from pyspark.sql import DataFrame

from icefield_spark.chunks import VersionScan
from icefield_spark.planned import Planned
from icefield_spark.roads.choosing import Chosen, Road

_SHOWN = 20


@dataclass(frozen=True)
class Explanation:
    """How a frame is read; ``str`` describes it for people."""

    table: str
    snapshot_id: int | None
    row_filter: str
    columns: tuple[str, ...]
    files: tuple[Chosen, ...]
    others: tuple[Explanation, ...] = ()
    """The further tables that a frame reads, each time that it reads them."""

    @property
    def size(self) -> int:
        """The bytes of the files that may be read."""
        return sum(file.size for file in self.files)

    def __str__(self) -> str:
        lines = [
            f"table     {self.table}",
            f"snapshot  {'none' if self.snapshot_id is None else self.snapshot_id}",
            f"filter    {self.row_filter}",
            f"columns   {', '.join(self.columns)}",
            f"files     {len(self.files)}, of {self.size} bytes",
        ]
        roads: dict[tuple[Road, str], list[Chosen]] = {}
        for file in self.files:
            roads.setdefault((file.road, file.reason), []).append(file)
        for (road, reason), files in sorted(roads.items(), key=lambda each: -len(each[1])):
            why = "by Spark's own Parquet reader" if road is Road.SPARK else f"in Arrow: {reason}"
            lines.append(f"  {len(files)} files, {sum(file.size for file in files)} bytes, {why}")
            lines += [f"    {file.location}" for file in files[:_SHOWN]]
            lines += [f"    and {len(files) - _SHOWN} more"] if len(files) > _SHOWN else []
        return "\n".join([*lines, *map(str, self.others)])

    __repr__ = __str__

    def count_by_road(self) -> dict[str, int]:
        """How many files take each road."""
        return dict(Counter(str(file.road) for file in self.files))


_EXPLAINED: WeakKeyDictionary[DataFrame, Explanation] = WeakKeyDictionary()


def explanation(scan: VersionScan, planned: Planned, columns: Sequence[str]) -> Explanation:
    """How a planned scan reads a table."""
    snapshot = scan.snapshot if isinstance(scan, TableScan) else next(reversed(scan.snapshots), None)
    return Explanation(
        ".".join(scan.identifier),
        None if snapshot is None else snapshot.snapshot_id,
        str(scan.row_filter),
        tuple(columns),
        tuple(planned.roads.chosen),
    )


def explained(scan: TableScan, planned: Planned) -> None:
    """Remember how a planned frame reads its table, while the frame exists."""
    _EXPLAINED[planned.frame] = explanation(scan, planned, planned.frame.columns)


def explanation_of(frame: DataFrame, scans: Sequence[Explanation]) -> Explanation:
    """How a frame reads its tables. ``scans``: the scans of a catalog's tables in its plan.

    Raises ``InvalidArgument`` for a frame that reads no such table.
    """
    found = _EXPLAINED.get(frame)
    if found is None and not scans:
        raise InvalidArgument(
            "this data frame reads no table of a catalog that is attached: explain a frame that ice.table, ice.sql or "
            "spark.sql gave, or the table by its name"
        )
    return found or replace(scans[0], others=tuple(scans[1:]))
