"""The options of compaction: the choice of data files, and the sizes of new files."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, Final, Literal, Self

from icefield.errors import InvalidArgument
from icefield.expressions import AlwaysTrue, BooleanExpression
from icefield.metadata import LONG_MAX, WRITE_TARGET_FILE_SIZE, TableMetadata, get_int
from icefield.partitioning import PartitionSpec

Strategy = str
"""The name of a strategy that a plugin provides: ``binpack``, ``sort`` and ``zorder`` are of this one."""

JobOrder = Literal["none", "bytes-asc", "bytes-desc", "files-asc", "files-desc"]
JOB_ORDERS: Final = ("none", "bytes-asc", "bytes-desc", "files-asc", "files-desc")

_SMALL: Final = 0.75
_LARGE: Final = 1.8
"""Files below or above these shares of the target size are worth rewriting; as in Iceberg's Java library."""

STREAMED_GROUP_BYTES: Final = 10 << 30
"""The most bytes of a packed group. It streams through bounded memory; the limit bounds the work of a lost race."""

TASK_GROUP_BYTES: Final = 1 << 30
"""The most bytes of a packed group in a task of a cluster, so that all executors get a share."""

SORTED_GROUP_BYTES: Final = 2 << 30
"""The most bytes of a sorted group. Its temporary files take several times the size of its data files."""


@dataclass(frozen=True, slots=True)
class RewriteDataPolicy:
    """The options of a rewrite; None means the table's own value, or a default. Raises ``InvalidArgument``."""

    strategy: Strategy = "binpack"
    sort_order: Any = None
    zorder_columns: tuple[str, ...] = ()
    row_filter: BooleanExpression | None = None
    target_bytes: int | None = None
    min_bytes: int | None = None
    max_bytes: int | None = None
    min_input_files: int = 5
    delete_file_threshold: int | None = None
    delete_ratio_threshold: float = 0.3
    max_group_bytes: int | None = None
    max_rewritten_bytes: int | None = None
    partial_progress: bool = False
    max_commits: int = 10
    max_failed_commits: int | None = None
    max_concurrent_groups: int = 1
    rewrite_job_order: JobOrder = "none"
    rewrite_all: bool = False
    use_starting_sequence_number: bool = True
    output_spec_id: int | None = None

    def __post_init__(self) -> None:
        numbers = {
            "target_file_size_bytes": self.target_bytes,
            "max_file_size_bytes": self.max_bytes,
            "min_input_files": self.min_input_files,
            "delete_file_threshold": self.delete_file_threshold,
            "max_file_group_size_bytes": self.max_group_bytes,
            "max_rewritten_bytes": self.max_rewritten_bytes,
            "max_commits": self.max_commits,
            "max_concurrent_file_group_rewrites": self.max_concurrent_groups,
        }
        for name, value in numbers.items():
            if value is not None and not (isinstance(value, Integral) and 1 <= value <= LONG_MAX):
                raise InvalidArgument(f"{name} is a whole number and must be at least 1, not {value!r:.40}")
        if self.rewrite_job_order not in JOB_ORDERS:
            raise InvalidArgument(
                f"rewrite_job_order is one of {', '.join(JOB_ORDERS)}, not {self.rewrite_job_order!r}"
            )
        if self.max_failed_commits is not None and self.max_failed_commits < 0:
            raise InvalidArgument(f"max_failed_commits must not be negative: {self.max_failed_commits}")
        if self.min_bytes is not None and self.min_bytes < 0:
            raise InvalidArgument(f"min_file_size_bytes must not be negative: {self.min_bytes}")
        if not 0 < self.delete_ratio_threshold <= 1:
            raise InvalidArgument(f"delete_ratio_threshold is above 0, at most 1, not {self.delete_ratio_threshold}")

    @property
    def filter(self) -> BooleanExpression:
        """The row filter. Files that may hold matching rows are candidates."""
        return AlwaysTrue() if self.row_filter is None else self.row_filter

    def sizes(self, metadata: TableMetadata, *, streams: bool, is_shared: bool = False) -> Sizes:
        """The sizes for a table. ``streams``: rows stream; ``is_shared``: groups go to the tasks of a cluster.

        Raises ``InvalidArgument`` where they contradict each other.
        """
        target = self.target_bytes or get_int(metadata.properties, WRITE_TARGET_FILE_SIZE)
        stays = Sizes.around(target)
        least = stays.least if self.min_bytes is None else self.min_bytes
        most = stays.most if self.max_bytes is None else self.max_bytes
        if not least <= target < most:
            raise InvalidArgument(
                f"min_file_size_bytes ({least}) must be at most target_file_size_bytes ({target}), and "
                f"max_file_size_bytes ({most}) greater than it"
            )
        streamed = TASK_GROUP_BYTES if is_shared else STREAMED_GROUP_BYTES
        group = streamed if streams else SORTED_GROUP_BYTES
        return Sizes(target, least, most, self.max_group_bytes or max(group, most))

    def spec(self, metadata: TableMetadata) -> PartitionSpec:
        """The partition spec of the new files. Raises ``InvalidArgument`` for an unknown spec id."""
        if self.output_spec_id is None:
            return metadata.spec()
        found = next((spec for spec in metadata.partition_specs if spec.spec_id == self.output_spec_id), None)
        if found is None:
            known = ", ".join(str(spec.spec_id) for spec in metadata.partition_specs)
            raise InvalidArgument(f"the table has no partition spec {self.output_spec_id!r}; it has {known}")
        return found


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes in bytes: the target of new files, the range within which a file may stay, and the limit of a group."""

    target: int
    least: int
    most: int
    group: int

    @classmethod
    def around(cls, target: int) -> Self:
        """The usual range around a target: from 75 % to 180 % of it."""
        most = max(target + 1, int(_LARGE * target))
        return cls(target, int(_SMALL * target), most, max(STREAMED_GROUP_BYTES, most))

    def is_worth_it(self, total: int, count: int, min_input_files: int, *, is_heavy: bool) -> bool:
        """Whether a group of ``count`` files of ``total`` bytes is rewritten; ``is_heavy``: for one of them alone."""
        if is_heavy or total > self.most:
            return True
        return count > 1 and (count >= min_input_files or total > self.target)

    def output(self, total: int) -> int:
        """The target size for files of ``total`` bytes in all, chosen to leave no small last file."""
        count, rest = divmod(total, self.target)
        if rest > self.least or not count:
            return self.target
        # The rest is spread over the files: each grows by its share, within the largest size.
        return min(-(-total * 21 // (count * 20)), (self.target + self.most) // 2)
