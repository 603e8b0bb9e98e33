"""Pages about the catalog, a namespace and a view."""

from __future__ import annotations

from functools import partial

from icefield_rest_server import Answer, PageRequest, Refused

from icefield_explorer import background
from icefield_explorer.rendering import page
from icefield_explorer.table_pages import MOST_COLUMNS
from icefield_explorer.visits import WAIT, loaded

_MOST = 200
"""Names in a page."""

_MOST_DIALECTS = 20


def catalog(request: PageRequest) -> Answer:
    """The page of the catalog: its top namespaces, and the tables of all namespaces that a search finds."""
    access, wanted = request.access, _wanted(request)
    found = access.namespaces((), most=_MOST + 1, containing=wanted)
    tables = None
    if wanted:  # the tables of all namespaces: many requests of some catalogs
        search = partial(access.find_tables, wanted, most=_MOST)
        tables = background.LOADS.get((access, "find"), wanted, search, WAIT, keep=False)
    return page(
        request,
        "catalog.html",
        refresh=bool(wanted) and tables is None,
        title=access.catalog_name,
        namespaces=found[:_MOST],
        more=len(found) > _MOST,
        tables=tables,
        wanted=wanted,
    )


def namespace(request: PageRequest) -> Answer:
    """The page of a namespace: namespaces below it, tables, views and properties."""
    access, name = request.access, request.name(1, "namespace")
    properties = None
    if access.allows("loadNamespaceMetadata", name):
        properties = sorted(access.namespace_properties(name).items())
    wanted, after, after_view = _wanted(request), request.query.get("after", ""), request.query.get("after-view", "")
    inner = access.namespaces(name, most=_MOST + 1, containing=wanted) if access.allows("listNamespaces", name) else []
    tables = []
    if access.allows("listTables", name) or not access.allows("listNamespaces", name):  # refused without either
        tables = access.tables(name, most=_MOST + 1, containing=wanted, after=after)
    views = []
    if access.allows("listViews", name):
        views = access.views(name, most=_MOST + 1, containing=wanted, after=after_view)
    return page(
        request,
        "namespace.html",
        name=name,
        properties=properties,
        namespaces=inner[:_MOST],
        more_namespaces=len(inner) > _MOST,
        tables=tables[:_MOST],
        next_table=tables[_MOST - 1][-1] if len(tables) > _MOST else None,
        views=views[:_MOST],
        next_view=views[_MOST - 1][-1] if len(views) > _MOST else None,
        wanted=wanted,
        after=after,
        after_view=after_view,
    )


def view(request: PageRequest) -> Answer:
    """The page of a view: its queries, its columns and its versions."""
    name = request.name(1, "view")
    if len(name) < 2:
        raise Refused(404, "NotFoundException", "a view has a namespace")
    found = loaded(request, name, request.access.view)
    versions = sorted(found.versions, key=lambda each: -each.timestamp_ms)
    return page(
        request,
        "view.html",
        name=name,
        view=found,
        fields=found.schema().fields[:MOST_COLUMNS],
        count=len(found.schema().fields),
        versions=versions[:_MOST],
        current=found.current_version(),
        queries=sorted(found.current_version().sql.items()),
        most=_MOST_DIALECTS,
    )


def _wanted(request: PageRequest) -> str:
    return request.query.get("find", "")[:200]
