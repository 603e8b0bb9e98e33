"""Names that no table has, and the nearest name in the same namespace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from icefield import Catalog, Table
from icefield.abc import ViewCatalog
from icefield.errors import IcefieldError, NoSuchTable
from pyspark.errors import PySparkException

_MOST_NAMES = 1000
# Spark's error conditions, and the parameter of each that holds the name.
_NOT_FOUND = {"TABLE_OR_VIEW_NOT_FOUND": "relationName", "REQUIRES_SINGLE_PART_NAMESPACE": "identifier"}
METADATA_TABLES = frozenset(
    {
        "all_data_files", "all_delete_files", "all_entries", "all_files", "all_manifests", "data_files",
        "delete_files", "entries", "files", "history", "manifests", "metadata_log_entries", "partitions",
        "position_deletes", "refs", "snapshots",
    }
)  # fmt: skip
_QUOTED = re.compile(r"`((?:[^`]|``)*)`")


def loaded(catalog: Catalog, identifier: str | tuple[str, ...]) -> Table:
    """A table. Raises ``NoSuchTable``, which names the nearest one there is."""
    try:
        return catalog.load_table(identifier)
    except NoSuchTable as error:
        name = tuple(identifier.split(".")) if isinstance(identifier, str) else identifier
        raise NoSuchTable(f"{error}{did_you_mean(catalog, name)}", table=name) from None


def no_table(catalog: Catalog, name: tuple[str, ...], shown: str | None = None) -> NoSuchTable:
    """The error for a name that no table of a catalog has. ``shown``: the name of the catalog, if not its own."""
    text = f"no table {'.'.join(name)} in catalog '{shown or catalog.name}'"
    kept = isinstance(catalog.backend, ViewCatalog) and len(name) > 1
    if kept and catalog.view_exists(name):
        return NoSuchTable(f"{text}: it is a view, which has no rows of its own and no versions", table=name)
    return NoSuchTable(f"{text}{did_you_mean(catalog, name)}", table=name)


def did_you_mean(catalog: Catalog, name: tuple[str, ...]) -> str:
    """The end of an error for a name that no table has: the nearest name; empty if no name is near or can be listed.

    At most 1,000 names of the namespace are looked at.
    """
    try:
        names = {each[-1].lower(): each for each in _listed(catalog, name[:-1])}
    except IcefieldError:
        return ""
    near = get_close_matches(name[-1].lower(), names, 1)
    return f"; did you mean {'.'.join(names[near[0]])}?" if near else ""


def missing_in(
    catalog: Catalog, failure: PySparkException, namespace: tuple[str, ...] | None, attached: str | None
) -> NoSuchTable | None:
    """The error for a name that Spark has not found, in a namespace of the catalog; None for other failures.

    ``namespace``: the namespace of an unqualified name; None if another catalog is the current one. ``attached``: the
    name that the session has for the catalog.
    """
    condition = failure.getCondition() if hasattr(failure, "getCondition") else failure.getErrorClass()  # Spark 3.5
    shown = (failure.getMessageParameters() or {}).get(_NOT_FOUND.get(condition or "", "")) or ""
    parts = tuple(part.replace("``", "`") for part in _QUOTED.findall(shown))
    if len(parts) > 2 and parts[0] in (catalog.name, attached):
        parts = parts[1:]
    elif namespace is None:
        return None
    name = (*(namespace or ()), *parts) if len(parts) == 1 else parts
    if len(name) > 2 and _has_table(catalog, name[:-1]):
        return no_table_about(name)
    return no_table(catalog, name) if len(name) > 1 and _has_namespace(catalog, name[:-1]) else None


def no_table_about(name: tuple[str, ...]) -> NoSuchTable:
    """The error for a name that begins with a table's name and does not end with the name of a metadata table."""
    shown, last = ".".join(name[:-1]), name[-1]
    if last.lower() == "changes":
        advice = f"CALL system.create_changelog_view(table => '{shown}') makes a view of what changed"
    else:
        advice = f"there are {', '.join(sorted(METADATA_TABLES))}, branch_…, tag_…, snapshot_id_… and at_timestamp_…"
    return NoSuchTable(f"table {shown} has no table '{last}' about it: {advice}", table=name)


def _has_table(catalog: Catalog, name: tuple[str, ...]) -> bool:
    try:
        return catalog.table_exists(name)
    except IcefieldError:
        return False


def _has_namespace(catalog: Catalog, namespace: tuple[str, ...]) -> bool:
    try:
        return catalog.namespace_exists(namespace)
    except IcefieldError:
        return False


def _listed(catalog: Catalog, namespace: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    token, pages, left = None, 0, _MOST_NAMES
    while namespace and left > 0 and pages < _MOST_NAMES:
        page = catalog.backend.list_tables(namespace, token=token)
        yield from page.items[:left]
        left -= len(page.items)
        pages += 1
        token = page.next_token
        if token is None:
            return
