"""The explorer's pages by their paths, and errors as pages."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from icefield.errors import IcefieldError, InvalidArgument, NoSuchNamespace, NoSuchSnapshot, NoSuchTable, NoSuchView
from icefield_maintenance.tend import Policy
from icefield_rest_server import Answer, PageRequest, Refused

from icefield_explorer import (
    branch_page,
    catalog_pages,
    change_pages,
    file_pages,
    health_page,
    maintenance_page,
    plan_page,
    row_page,
    table_pages,
)
from icefield_explorer.rendering import page, style_sheet

_log = logging.getLogger(__name__)

_PAGES: Final[Mapping[str, Callable[[PageRequest], Answer]]] = MappingProxyType(
    {
        "namespace": catalog_pages.namespace,
        "view": catalog_pages.view,
        "table": table_pages.overview,
        "schema": table_pages.schema,
        "snapshots": change_pages.snapshots,
        "diff": change_pages.diff,
        "branches": branch_page.branches,
        "files": file_pages.files,
        "health": health_page.health,
        "plan": plan_page.plan,
        "rows": row_page.rows,
    }
)
_NOT_FOUND: Final = (NoSuchNamespace, NoSuchSnapshot, NoSuchTable, NoSuchView)


def show(request: PageRequest, policy: Policy | None = None) -> Answer:
    """Answer a request of a page; errors are pages, too. No page changes anything.

    ``policy`` is the one by which the tables are maintained; by default the file that the catalog's property
    ``tend.policy`` names.
    """
    headers: Mapping[str, str] = {}
    try:
        return _shown(request, policy)
    except Refused as error:
        status, message, headers = error.status, error.message, error.headers
    except _NOT_FOUND as error:
        status, message = 404, error.message
    except InvalidArgument as error:
        status, message = 400, error.message
    except IcefieldError as error:
        status, message = 503 if error.retryable else 500, error.message
    except Exception as error:
        _log.exception("the page %s failed", "/".join(request.parts))
        status, message = 500, f"the page failed: {type(error).__name__}; see the log of the server"
    shown = page(request, "error.html", status, code=status, message=message)
    return replace(shown, headers={**shown.headers, **headers})


def _shown(request: PageRequest, policy: Policy | None) -> Answer:
    if not request.parts:
        return catalog_pages.catalog(request)
    name, *levels = request.parts
    if name == "maintenance" and levels:
        return maintenance_page.maintenance(request, policy)
    if found := _PAGES.get(name):
        if levels:
            return found(request)
    elif not levels and (sheet := style_sheet(name)):
        return sheet
    raise Refused(404, "NotFoundException", "there is no such page")
