"""What the server deletes for a client: files that the table owns, and none that its manifests name besides."""

# See docs/decisions/0211.

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from icefield.abc import CatalogAbility
from icefield.errors import IcefieldError, InvalidArgument, NoSuchNamespace, NoSuchTable
from icefield.maintenance import OwnedFiles, folders_of
from icefield.metadata import TableMetadata

from icefield_rest_server.answers import Refused
from icefield_rest_server.state import State

Name = tuple[str, ...]


def owned_files(state: State, name: Name, metadata: TableMetadata) -> OwnedFiles:
    """The files that a table owns. Raises ``Refused`` where that is not found out in time.

    Its folders count below the place of its namespace and the folders of ``Settings.owned_folders``; where everybody
    may do everything, below the warehouse too. What is below a folder of another table is that table's.
    """
    home, settings = _home(state, name), state.settings
    within = [home, *settings.owned_folders]
    warehouse = state.catalog.properties.get("warehouse", "")
    if settings.authorizer is None and "://" in warehouse:
        within.append(warehouse)
    io = state.catalog.io.relative_to(metadata.location)
    stated = _stated(metadata)
    owned = OwnedFiles(io, stated, within)
    near = OwnedFiles(io, stated, [home]).below == owned.below
    end = time.monotonic() + settings.max_seconds / 2
    others: set[str] = set()
    for other in _tables(state, name[:-1], near=near):
        if other != name:
            others.update(_places(state, other))
        if time.monotonic() > end:
            message = "there are too many tables to find out in time which files are this one's own: drop it without"
            raise Refused(503, "ServiceUnavailableException", f"{message} purging; nothing was done")
    return OwnedFiles(io, stated, within, others)


def _home(state: State, name: Name) -> str:
    """The place of a table's namespace."""
    place = state.catalog.backend.table_location((*name[:-1], "x"))
    return place[: place.rindex("/")]


def _stated(metadata: TableMetadata) -> tuple[str, ...]:
    try:
        return folders_of(metadata)
    except InvalidArgument:  # properties that cannot be used
        return (metadata.location,)


def _tables(state: State, namespace: Name, *, near: bool) -> Iterator[Name]:
    """The tables and views whose files may be where those of a namespace's table are: near it, or all there are.

    Near are those of the namespaces above and below, whose places are so, too.
    """
    catalog = state.catalog
    above = [namespace[:depth] for depth in range(1, len(namespace))] if near else []
    for each in above:
        yield from _in(state, each)
    left: list[Name] = [namespace] if near else list(catalog.list_namespaces())
    while left:
        each = left.pop()
        yield from _in(state, each)
        with suppress(NoSuchNamespace):
            if CatalogAbility.NESTED_NAMESPACES in catalog.backend.abilities:
                left += catalog.list_namespaces(each)


def _in(state: State, namespace: Name) -> Iterator[Name]:
    listings: list[Callable[[Name], list[Name]]] = [state.catalog.list_tables]
    if CatalogAbility.VIEWS in state.catalog.backend.abilities:
        listings.append(state.catalog.list_views)
    for listing in listings:
        with suppress(NoSuchNamespace):
            yield from listing(namespace)


def _places(state: State, table: Name) -> tuple[str, ...]:
    """Where the files of another table are; of one that cannot be read, and of a view, where they ought to be."""
    ought = state.catalog.backend.table_location(table)
    try:
        return _stated(state.loaded(table).metadata)
    except NoSuchTable:
        return (ought,)
    except IcefieldError:
        found = state.catalog.backend.strategy(table).load()
        location = "" if found is None else getattr(found, "location", "")
        return (ought, *([location.rpartition("/")[0].rpartition("/")[0]] if location.count("/") > 4 else []))
