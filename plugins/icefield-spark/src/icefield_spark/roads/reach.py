"""Which storage Spark's own readers reach: found out by reading the footer of a file through Spark, and not assumed."""

from __future__ import annotations

import re

from icefield.errors import IcefieldError
from icefield.toolkit import LruCache, split_location
from pyspark.sql import SparkSession

from icefield_spark.jvm import key_of
from icefield_spark.roads.columns import UnfitForSpark

OPTIONS = {
    "__globPaths__": "false",
    "recursiveFileLookup": "true",  # nothing is inferred from the names of folders
    "mergeSchema": "false",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}
"""Options for reading Parquet files, over the session's settings: no file is skipped, no date is rebased."""

_PROBE = "icefield_probe INT"
_TRIES = 3
_ALSO_CALLED = {"s3": "s3a", "s3n": "s3a"}
_PLAIN_PATH = re.compile(r"^(/[^/\0]+)+$")
_SKIPPED_BY_SPARK = re.compile(r"^[_.]|\._COPYING_$")


class Reach:
    """A cache of facts about the storage that one session reaches."""

    def __init__(self) -> None:
        self._schemes: dict[tuple[str, str], str] = {}
        self._failures: dict[tuple[str, str], list[str]] = {}

    def path(self, spark: SparkSession, location: str) -> str:
        """A location as Spark's readers take it. Raises ``UnfitForSpark`` where they do not reach it."""
        scheme, authority, path = _parts(location)
        place = (scheme, authority)
        if place not in self._schemes:
            self._try(spark, place, path)
        return _joined(self._schemes[place], authority, path)

    def _try(self, spark: SparkSession, place: tuple[str, str], path: str) -> None:
        failures = self._failures.setdefault(place, [])
        if len(failures) < _TRIES:  # one file may be missing or damaged
            scheme, authority = place
            for candidate in (scheme, *filter(None, [_ALSO_CALLED.get(scheme)])):
                location = _joined(candidate, authority, path)
                try:
                    # A schema is given: Spark would refuse files for the types of unrequested columns.
                    spark.read.schema(_PROBE).options(**OPTIONS).parquet(location).limit(1).collect()
                except Exception as failure:  # py4j and Spark Connect have errors of their own
                    failures.append(type(failure).__name__)
                    continue
                self._schemes[place] = candidate
                return
        raise UnfitForSpark(
            f"Spark's own readers do not reach {place[0]}://{place[1]} ({', '.join(dict.fromkeys(failures))})"
        )


_REACH: LruCache[str, Reach] = LruCache(100)


def reach_of(spark: SparkSession) -> Reach:
    """The cache of a session's storage. The latest 100 sessions are remembered."""
    return _REACH.get_or_make(key_of(spark), Reach)


def spelt_for_spark(location: str) -> str:
    """A location in the form for Spark's writers, even if they cannot reach it. Raises ``UnfitForSpark``."""
    return _joined(*_parts(location))


def _parts(location: str) -> tuple[str, str, str]:
    """Scheme, authority and path of a location that Spark leaves unchanged. Raises ``UnfitForSpark``."""
    try:
        scheme, authority, path = split_location(
            location if "://" in location else f"file://{location.removeprefix('file:')}"
        )
    except IcefieldError:
        raise UnfitForSpark("Spark does not understand its location") from None
    path = f"/{path.removeprefix('/')}"
    if _SKIPPED_BY_SPARK.search(path.rpartition("/")[2]):
        raise UnfitForSpark("Spark leaves out files of such a name")
    if not _PLAIN_PATH.match(path) or "/./" in path or "/../" in path:
        raise UnfitForSpark("Spark would spell its location otherwise")
    return scheme, authority, path


def _joined(scheme: str, authority: str, path: str) -> str:
    return f"{scheme}://{'' if scheme == 'file' else authority}{path}"
