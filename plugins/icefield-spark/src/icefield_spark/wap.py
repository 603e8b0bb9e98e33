"""Write, audit, publish: where a session reads and writes a table, by ``spark.wap.branch`` and ``spark.wap.id``.

As in Iceberg's Java runtime, both apply only to tables with ``write.wap.enabled``, and only where no branch or version
is named. Reads follow the branch once it exists, and the first write creates it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icefield import Table
from icefield.errors import InvalidArgument
from icefield.metadata import MAIN_BRANCH
from pyspark.sql import SparkSession

BRANCH: Final = "spark.wap.branch"
ID: Final = "spark.wap.id"
_ENABLED: Final = "write.wap.enabled"
_SUMMARY: Final = "wap.id"


def branch_read(session: SparkSession, table: Table) -> str | None:
    """The branch that the session reads in place of ``main``; None for ``main``."""
    branch = _settings(session, table)[0]
    return branch if branch in table.refs() else None


def branch_written(session: SparkSession, table: Table) -> str | None:
    """The branch that the session writes in place of ``main``, created if it is missing; None for ``main``."""
    branch = _settings(session, table)[0]
    if branch is not None and branch not in table.refs():
        with table.manage_snapshots() as update:
            update.create_branch(None, branch)
    return branch


def staged_as(session: SparkSession, table: Table) -> str | None:
    """The id under which a write is only staged; None if the write is published."""
    return _settings(session, table)[1]


def staged_strings(session: SparkSession, table: Table) -> dict[str, str]:
    """The summary property by which the kernel stages a change; empty if the change is published."""
    number = staged_as(session, table)
    return {} if number is None else {_SUMMARY: number}


def place_of_write(
    session: SparkSession, table: Table, branch: str | None, summary: Mapping[str, str] | None
) -> tuple[str | None, Mapping[str, str] | None]:
    """The branch of a write and the strings for its summary, as the session has them."""
    if branch != MAIN_BRANCH:
        return branch, summary
    staged = staged_strings(session, table)
    if staged:
        return branch, {**staged, **(summary or {})}
    return branch_written(session, table) or branch, summary


def _settings(session: SparkSession, table: Table) -> tuple[str | None, str | None]:
    if table.properties.get(_ENABLED, "false").lower() != "true":
        return None, None
    branch, number = session.conf.get(BRANCH, None), session.conf.get(ID, None)
    if branch and number:
        raise InvalidArgument(f"{BRANCH} and {ID} are both set, and a write can only follow one: unset the other")
    return branch or None, number or None
