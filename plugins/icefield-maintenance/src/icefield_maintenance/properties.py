"""The table properties of ``icefield tend``."""

# ruff: noqa: E501 -- the table reads best with one property a line
from __future__ import annotations

from typing import Any, Final

from icefield.metadata import Property

from icefield_maintenance.tend.quantities import FileSize, OrphanAge, SnapshotAge, StatisticsAge

MOST_COUNT: Final = 1_000_000
"""The greatest number of files, manifests or snapshots that a goal states."""

LEAST_SHARE: Final = 0.01
"""The least share of deleted rows that a goal states. Below it, each delete would rewrite its data files."""


def _share(value: Any) -> None:
    if not LEAST_SHARE <= value <= 1:
        raise ValueError(f"{value} is not from {LEAST_SHARE} to 1")


def _count(value: Any) -> None:
    if not 1 <= value <= MOST_COUNT:
        raise ValueError(f"{value} is not from 1 to {MOST_COUNT:,}")


# fmt: off
TEND_ENABLED: Final = Property("tend.enabled", bool, True, "Whether `icefield tend` maintains the table.")
TEND_LEASE: Final = Property("tend.lease", str, None, "The process that maintains the table, and the end of its lease in ms since 1970 UTC; set by `icefield tend`.")
TEND_PRESET: Final = Property("tend.preset", str, None, "The preset of the table's goals.", choices=("append-only", "upsert-heavy", "streaming"))
TEND_FILES_PER_SCAN: Final = Property("tend.files-per-scan", int, None, "The most data files of another than the target size in a partition.", check=_count)
TEND_BYTES_PER_FILE: Final = Property("tend.bytes-per-file", str, None, "The target size of data files, such as 256 MiB; by default write.target-file-size-bytes.", check=FileSize.parse)
TEND_DELETED_ROWS: Final = Property("tend.deleted-rows", float, None, "The largest share of a data file's rows that may be deleted.", check=_share)
TEND_DELETE_FILES: Final = Property("tend.delete-files", int, None, "The most position delete files in a partition, and equality delete files in the table.", check=_count)
TEND_MANIFESTS: Final = Property("tend.manifests", int, None, "The most manifests that clustering by partition would take away.", check=_count)
TEND_SNAPSHOT_AGE: Final = Property("tend.snapshot-age", str, None, "The age at which snapshots expire, such as 5d.", check=SnapshotAge.parse)
TEND_SNAPSHOTS: Final = Property("tend.snapshots", int, None, "The most snapshots of main; older ones expire at any age.", check=_count)
TEND_ORPHAN_AGE: Final = Property("tend.orphan-age", str, None, "The age at which orphan files are deleted, and the time from one search to the next.", check=OrphanAge.parse)
TEND_STATISTICS_AGE: Final = Property("tend.statistics-age", str, None, "The largest age of the statistics of a table that has changed since.", check=StatisticsAge.parse)
# fmt: on

PROPERTIES: Final = tuple(each for each in tuple(globals().values()) if isinstance(each, Property))
"""Every property above."""
