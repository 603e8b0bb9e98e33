"""The names of the data source's options: which there are, how they may be spelt, and which are refused and why.

Spark gives names in lower case. Beyond that, ``-`` and ``_`` do not count either: ``snapshot-id``, ``snapshot_id`` and
``snapshotId`` are one option. An unknown name is refused, since the option would have no effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from icefield.errors import InvalidArgument
from icefield.toolkit import was_meant

CATALOG = "catalog."
SUMMARY = "snapshot-property."

_EITHER = ("path", "catalog", "branch")
READ_ONLY = ("where", "snapshot-id", "ref", "tag", "as-of-timestamp", "split-size", "lookback", "file-open-cost")
WRITE_ONLY = (
    "overwrite-where",
    "partition-overwrite-mode",
    "merge-schema",
    "isolation-level",
    "write-format",
    "target-file-size-bytes",
    "compression-codec",
    "compression-level",
)
STREAM_FROM = ("stream-from", "stream-from-snapshot-id", "stream-from-timestamp")
STREAM_READ = (
    *STREAM_FROM,
    "max-files",
    "max-rows",
    "streaming-skip-overwrite-snapshots",
    "streaming-skip-delete-snapshots",
    "stream-changes",
)
STREAM_WRITE = ("upsert", "upsert-columns", "small-task-bytes", "checkpoint-location", "query-name")
KNOWN = (*_EITHER, *READ_ONLY, *WRITE_ONLY, *STREAM_READ, *STREAM_WRITE)

# Names of the same options in Spark, Delta Lake and Iceberg's Java runtime.
_ALSO_CALLED = {
    "replace-where": "overwrite-where",
    "overwrite-mode": "partition-overwrite-mode",
    "timestamp-as-of": "as-of-timestamp",
    "compression": "compression-codec",
    "streaming-max-files-per-micro-batch": "max-files",
    "streaming-max-rows-per-micro-batch": "max-rows",
    "max-files-per-trigger": "max-files",
    "skip-overwrite-snapshots": "streaming-skip-overwrite-snapshots",
    "skip-delete-snapshots": "streaming-skip-delete-snapshots",
    "read-change-feed": "stream-changes",
    "starting-timestamp": "stream-from-timestamp",
}
_OF_PARQUET = "readers and writers always work in Arrow; leave it out"
_INCREMENTAL = "read what was added with Table.incremental_append_scan, and changes with incremental_changelog_scan"
_REFUSED = {
    "overwrite-schema": "a write does not replace a table's columns: add some with mergeSchema, change others with "
    "Table.update_schema(), or create the table anew",
    "version-as-of": "name the version by snapshot-id, branch, tag or as-of-timestamp",
    "distribution-mode": "a data source written in Python cannot ask Spark to move rows: write with ice.append or "
    "ice.overwrite, which do as write.distribution-mode says, or repartition the data frame",
    "fanout-enabled": "every partition has its own buffer, within one bound of memory; leave it out",
    "check-nullability": "nulls in required columns are always refused; leave it out",
    "check-ordering": "columns go by name, in any order; leave it out",
    "max-records-per-file": "the size of files is set by target-file-size-bytes",
    "delete-format": "the data source writes no delete files; leave it out",
    "vectorization-enabled": _OF_PARQUET,
    "batch-size": _OF_PARQUET,
    "start-snapshot-id": _INCREMENTAL,
    "end-snapshot-id": _INCREMENTAL,
    "start-timestamp": _INCREMENTAL,
    "end-timestamp": _INCREMENTAL,
    "partition-by": "the table's partition spec says how rows are partitioned",
    "infer-schema": "the table has a schema; leave it out",
}
_STREAMS = {
    **dict.fromkeys(STREAM_READ, "spark.readStream"),
    **dict.fromkeys(STREAM_WRITE, "df.writeStream"),
}
_OF_SPARKS_CATALOG = ("owner", "provider", "location")
"""Options that Spark adds for tables of its own catalog, and never otherwise."""


def spark_catalog_refused() -> InvalidArgument:
    """The error for a table that was created in Spark's own catalog."""
    return InvalidArgument(
        "CREATE TABLE … USING icefield makes a table of Spark's own catalog, which knows nothing of the Iceberg table "
        "and does not hand its options on. Create the table with ice.create_table(…) or ice.sql('CREATE TABLE …'), "
        "where ice is icefield_spark.attach(spark, catalog), or with the catalog itself; to use it in SQL of Spark, "
        "CREATE TEMPORARY VIEW … USING icefield OPTIONS (path 'namespace.table', …)"
    )


def canonical(options: Mapping[str, str]) -> dict[str, str]:
    """Options under the names of ``KNOWN``. Raises ``InvalidArgument`` for an unknown or repeated option."""
    found: dict[str, str] = {}
    given: dict[str, str] = {}
    if any(name.lower() in _OF_SPARKS_CATALOG for name in options):
        raise spark_catalog_refused()
    for name, value in options.items():
        known = _known(name.lower())
        if known in found:
            raise InvalidArgument(f"the options '{given[known]}' and '{name}' are one; give it once", option=known)
        found[known], given[known] = value, name
    return found


def refuse_options(options: Mapping[str, str], names: Iterable[str], why: str) -> None:
    """Raise ``InvalidArgument`` if one of the named options is given, since it would have no effect."""
    found = next((name for name in names if options.get(name)), None)
    if found is not None:
        raise InvalidArgument(f"the option '{found}' {why}; leave it out", option=found)


def refuse_streaming(options: Mapping[str, str]) -> None:
    """Raise ``InvalidArgument`` for an option of streams in a batch read or write."""
    for name, where in _STREAMS.items():
        refuse_options(options, (name,), f"is for {where}")


def _known(name: str) -> str:
    if name.startswith((CATALOG, SUMMARY)):
        return name
    same = _SPELLINGS.get(_bare(name))
    if same is None:
        names = [*KNOWN, *_ALSO_CALLED]
        meant = was_meant(name, names) or was_meant(_bare(name), _SPELLINGS)
        raise InvalidArgument(
            f"the data source has no option '{name}'{meant or '; it has ' + ', '.join(KNOWN)}", option=name
        )
    why = _REFUSED.get(same)
    if why is not None:
        raise InvalidArgument(f"the option '{same}' is not supported: {why}", option=same)
    return same


def _bare(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


_SPELLINGS = {
    **{_bare(name): name for name in (*KNOWN, *_REFUSED)},
    **{_bare(other): name for other, name in _ALSO_CALLED.items()},
}
