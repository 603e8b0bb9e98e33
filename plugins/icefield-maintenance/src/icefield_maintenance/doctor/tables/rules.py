"""The rules for tables, of the specification and of maintenance, each with its section, its advice and its repair."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from icefield_maintenance.doctor.findings import Result


class Repair(Enum):
    """The repairs of a table. None of them invents lost data."""

    REWRITE_METADATA = "write the metadata file anew"
    REMOVE_STATISTICS = "remove the statistics files from the metadata"
    UPGRADE = "upgrade the table to format version 3"
    REWRITE_MANIFESTS = "write the manifests, and the totals of the snapshot, anew"
    CORRECT_ENTRIES = "write anew what manifests say of data files, from the data files"
    REWRITE_PARTITIONS = "write the data files anew, each row into its partition"
    REMOVE_DANGLING_DELETES = "remove the delete files that delete nothing"
    FORGET_MISSING_FILES = "take the missing data files out of the table; their rows are lost already"
    REWRITE_DATA_FILES = "write small and much deleted data files anew"
    CLUSTER_MANIFESTS = "join small manifests"
    EXPIRE_SNAPSHOTS = "expire the snapshots that are older than the table keeps them"


BY_NAME_ONLY: Final = frozenset(
    {Repair.UPGRADE, Repair.REWRITE_PARTITIONS, Repair.FORGET_MISSING_FILES, Repair.EXPIRE_SNAPSHOTS}
)
"""Repairs that must be requested by name: they shut out older readers, or give up rows, deletes or history.

``REWRITE_PARTITIONS`` gives up deletes: the deletes of the right partition do not apply to a file in a wrong partition,
nor to the rewritten file. Readers see the same rows before and after.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A rule: its name, its section in the specification, the advice for a breach, and the gravity of a breach.

    It has a repair, or ``no_repair`` says why there is none.
    """

    name: str
    section: str
    advice: str
    result: Result = Result.FAILED
    repair: Repair | None = None
    no_repair: str = ""


_META, _SNAPSHOTS, _MANIFESTS, _LISTS = "Table Metadata", "Snapshots", "Manifests", "Manifest Lists"
_DELETES, _LINEAGE, _SCAN = "Delete Formats", "Row Lineage", "Scan Planning"
_OLDER = "register the version of the table before the change that broke it"
_AGAIN = "write the manifests anew: `table.maintenance.rewrite_manifests()`"
_FILES_AGAIN = "write these files anew: `table.maintenance.rewrite_data_files(rewrite_all=True)`"
_RESTORE = "restore the file from a copy; or give its rows up, and overwrite its partition"
_RESTORE_OR_ROLL_BACK = "restore the file from a copy, or roll back"
_MAINTENANCE = "Maintenance"
_FIXED_SPEC = "partition specs cannot be changed once they are made"
_FIXED_LOG = "no change of a table takes single entries out of its logs"
_FIXED_SNAPSHOT = "snapshots cannot be changed once they are made; one that is no head goes when it expires"
_LOST = "what the file held is lost with it"
_OF_THE_WRITER = "only the writer of a file knows what it is; a repair takes counts and bounds from the rows alone"
_DELETE_ENTRIES_STAY = "what manifests say of delete files is not written anew"
_MEANT = "which column was meant is not known"

LAST_COLUMN_ID: Final = Rule(
    "last-column-id", _META, "commit any change: the number is raised with it", repair=Repair.REWRITE_METADATA
)
LAST_PARTITION_ID: Final = Rule(
    "last-partition-id", _META, "commit any change: the number is raised with it", repair=Repair.REWRITE_METADATA
)
LATER_DEFAULTS: Final = Rule(
    "defaults-below-v3",
    "Default values",
    "upgrade the table to format version 3, or drop the defaults",
    repair=Repair.UPGRADE,
)
LATER_TYPES: Final = Rule(
    "types-below-v3", "Schemas", "upgrade the table to format version 3, or drop the columns", repair=Repair.UPGRADE
)
PARTITION_NAMES: Final = Rule(
    "partition-names",
    "Partitioning",
    "rename the partition field: Java refuses a table with such a name",
    no_repair=_FIXED_SPEC,
)
PARTITION_SOURCES: Final = Rule(
    "partition-sources",
    "Partitioning",
    "take the field out of the spec: `table.update_spec()`; nothing can be written with it",
    no_repair=_MEANT,
)
ORDER_SOURCES: Final = Rule(
    "sort-order-sources",
    "Sorting",
    "set another sort order: `table.update_sort_order()`; nothing can be sorted by this one",
    no_repair=_MEANT,
)
STATISTICS_OF_NOTHING: Final = Rule(
    "statistics-snapshots",
    _META,
    "remove the entries: they are of no use",
    Result.WARNING,
    repair=Repair.REMOVE_STATISTICS,
)
STATISTICS_FILES: Final = Rule(
    "statistics-files", _META, "remove the entry, and compute the statistics again", repair=Repair.REMOVE_STATISTICS
)
LOGGED_SNAPSHOTS: Final = Rule(
    "snapshot-log",
    _META,
    "time travel to a time of that entry fails; nothing else rests on it",
    Result.WARNING,
    no_repair=_FIXED_LOG,
)
LOGGED_METADATA: Final = Rule(
    "metadata-log", _META, "nothing rests on it but a rollback by registering", Result.WARNING, no_repair=_FIXED_LOG
)
SNAPSHOT_NUMBERS: Final = Rule("snapshot-sequence-numbers", _SNAPSHOTS, _OLDER, no_repair=_FIXED_SNAPSHOT)
SNAPSHOT_SCHEMAS: Final = Rule(
    "snapshot-schemas", _SNAPSHOTS, "time travel to it takes the current schema", no_repair=_FIXED_SNAPSHOT
)
SNAPSHOT_OPERATIONS: Final = Rule(
    "snapshot-operations",
    _SNAPSHOTS,
    "some engines do not open the table; others take the snapshot for an overwrite",
    no_repair=_FIXED_SNAPSHOT,
)
SNAPSHOT_TOTALS: Final = Rule(
    "snapshot-totals",
    _SNAPSHOTS,
    "engines that take counts from summaries are wrong by it",
    Result.WARNING,
    repair=Repair.REWRITE_MANIFESTS,
)
NEXT_ROW_ID: Final = Rule(
    "next-row-id",
    _LINEAGE,
    _OLDER + ": the next commit would give row ids twice",
    no_repair="no change of a table raises the number, and row ids that were given twice stay so",
)

MANIFEST_LISTS: Final = Rule(
    "manifest-lists", _LISTS, "restore the file from a copy, or roll back and expire", no_repair=_LOST
)
MANIFEST_FILES: Final = Rule(
    "manifest-files", _MANIFESTS, "restore the file from a copy, or roll back and expire", no_repair=_LOST
)
MANIFEST_LENGTHS: Final = Rule("manifest-lengths", _LISTS, _AGAIN, repair=Repair.REWRITE_MANIFESTS)
MANIFEST_COUNTS: Final = Rule("manifest-counts", _LISTS, _AGAIN, repair=Repair.REWRITE_MANIFESTS)
MANIFEST_NUMBERS: Final = Rule("manifest-sequence-numbers", _LISTS, _AGAIN, repair=Repair.REWRITE_MANIFESTS)
MANIFEST_PARTITIONS: Final = Rule("manifest-partitions", _LISTS, _AGAIN, repair=Repair.REWRITE_MANIFESTS)

ENTRY_NUMBERS: Final = Rule(
    "entry-sequence-numbers",
    "Sequence Numbers",
    _OLDER,
    no_repair="which deletes apply to the file is lost with its number",
)
LISTED_TWICE: Final = Rule(
    "listed-twice",
    _SNAPSHOTS,
    _OLDER + ": the rows of the file are read twice",
    no_repair="taking one entry away changes the rows that readers see; which was meant is not known",
)
SORT_ORDERS: Final = Rule("sort-orders", "Sorting", _FILES_AGAIN, repair=Repair.CORRECT_ENTRIES)
EQUALITY_IDS: Final = Rule(
    "equality-ids",
    _DELETES,
    _OLDER + ": no reader can tell what the file deletes",
    no_repair="what the file deletes is lost with the ids",
)
VECTOR_VERSION: Final = Rule(
    "vectors-below-v3", _DELETES, "upgrade the table to format version 3", repair=Repair.UPGRADE
)
VECTOR_FIELDS: Final = Rule("vector-fields", _DELETES, _OLDER, no_repair=_LOST)
VECTORS_TWICE: Final = Rule(
    "vectors-twice",
    _DELETES,
    _OLDER + ": readers apply one of the two",
    no_repair="which of the two was meant is not known",
)
DANGLING: Final = Rule(
    "dangling-deletes",
    _SCAN,
    "`table.maintenance.remove_dangling_deletes()` takes them out of the table",
    Result.WARNING,
    repair=Repair.REMOVE_DANGLING_DELETES,
)
DELETE_PARTITIONS: Final = Rule(
    "delete-partitions",
    _SCAN,
    _OLDER + ": readers do not apply the delete file, and rows that were deleted are there again",
    no_repair=_DELETE_ENTRIES_STAY,
)
ROW_IDS_MISSING: Final = Rule(
    "row-ids-missing", _LINEAGE, _AGAIN + ": it gives the rows ids", repair=Repair.REWRITE_MANIFESTS
)
ROW_IDS_TWICE: Final = Rule(
    "row-ids-twice", _LINEAGE, _OLDER, no_repair="other ids would make other rows of them, for those that keep ids"
)
BOUNDS_CROSSED: Final = Rule("bounds-crossed", _MANIFESTS, _FILES_AGAIN, repair=Repair.CORRECT_ENTRIES)
COUNTS_IMPOSSIBLE: Final = Rule("counts-impossible", _MANIFESTS, _FILES_AGAIN, repair=Repair.CORRECT_ENTRIES)
SPLIT_OFFSETS: Final = Rule("split-offsets", _MANIFESTS, _FILES_AGAIN, no_repair=_OF_THE_WRITER)
COLUMN_SIZES: Final = Rule("column-sizes", _MANIFESTS, _FILES_AGAIN, Result.WARNING, no_repair=_OF_THE_WRITER)

FILES_MISSING: Final = Rule("files-missing", _SNAPSHOTS, _RESTORE, repair=Repair.FORGET_MISSING_FILES)
FILE_SIZES: Final = Rule(
    "file-sizes",
    _MANIFESTS,
    "see whether the file was written over; restore it from a copy",
    no_repair="whether the size is wrong or the file was written over is not known",
)
VECTORS_DAMAGED: Final = Rule("vectors-damaged", _DELETES, _RESTORE_OR_ROLL_BACK, no_repair=_LOST)
DELETES_DAMAGED: Final = Rule("deletes-damaged", _DELETES, _RESTORE_OR_ROLL_BACK, no_repair=_LOST)
DELETE_POSITIONS: Final = Rule(
    "delete-positions",
    _DELETES,
    "see whether the data file was written over; readers pass over such a position",
    Result.WARNING,
    no_repair="which row was meant is not known",
)
DELETE_REFERENCES: Final = Rule(
    "delete-references",
    _DELETES,
    _OLDER + ": rows of one data file are deleted in another, or not at all",
    no_repair="which of the two data files was meant is not known",
)
DELETE_METRICS: Final = Rule(
    "delete-metrics",
    _MANIFESTS,
    _OLDER + ": readers choose delete files by their bounds and counts, and pass over one that applies",
    no_repair=_DELETE_ENTRIES_STAY,
)
FILES_DAMAGED: Final = Rule("files-damaged", _SNAPSHOTS, _RESTORE, no_repair=_LOST)
RECORD_COUNTS: Final = Rule("record-counts", _MANIFESTS, _FILES_AGAIN, repair=Repair.CORRECT_ENTRIES)
BOUNDS: Final = Rule(
    "bounds", _MANIFESTS, _FILES_AGAIN + ": filters skip rows that match", repair=Repair.CORRECT_ENTRIES
)
NULL_COUNTS: Final = Rule(
    "null-counts", _MANIFESTS, _FILES_AGAIN + ": filters skip rows that match", repair=Repair.CORRECT_ENTRIES
)
NAN_COUNTS: Final = Rule(
    "nan-counts", _MANIFESTS, _FILES_AGAIN + ": filters skip rows that match", repair=Repair.CORRECT_ENTRIES
)
REQUIRED_COLUMNS: Final = Rule(
    "required-columns",
    "Schemas",
    "make the column optional, or overwrite these rows",
    no_repair="what the rows should have is not known",
)
SORTED: Final = Rule("sorted-rows", "Sorting", _FILES_AGAIN, repair=Repair.CORRECT_ENTRIES)
PARTITION_VALUES: Final = Rule(
    "partition-values",
    "Partitioning",
    _FILES_AGAIN + ": filters skip rows that match",
    repair=Repair.REWRITE_PARTITIONS,
)

SMALL_FILES: Final = Rule(
    "small-files",
    _MAINTENANCE,
    "`table.maintenance.rewrite_data_files()` joins them",
    Result.WARNING,
    repair=Repair.REWRITE_DATA_FILES,
)
DELETE_DEBT: Final = Rule(
    "delete-debt",
    _MAINTENANCE,
    "`table.maintenance.rewrite_data_files(delete_file_threshold=1)` applies the deletes",
    Result.WARNING,
    repair=Repair.REWRITE_DATA_FILES,
)
SMALL_MANIFESTS: Final = Rule(
    "small-manifests",
    _MAINTENANCE,
    "`table.maintenance.rewrite_manifests()` joins them",
    Result.WARNING,
    repair=Repair.CLUSTER_MANIFESTS,
)
OLD_SNAPSHOTS: Final = Rule(
    "old-snapshots",
    _MAINTENANCE,
    "`table.maintenance.expire_snapshots()` frees what they hold",
    Result.WARNING,
    repair=Repair.EXPIRE_SNAPSHOTS,
)
UNFINISHED_EXPIRY: Final = Rule(
    "unfinished-expiry",
    _MAINTENANCE,
    "`table.maintenance.expire_snapshots()` deletes what an expiry before it left",
    Result.WARNING,
    repair=Repair.EXPIRE_SNAPSHOTS,
)
