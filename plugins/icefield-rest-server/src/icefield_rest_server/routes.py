"""The endpoints: the protocol's path templates, their handlers, and the abilities that the catalog needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from icefield.abc import CatalogAbility, CatalogBackend, MultiTableCatalog, ViewCatalog
from icefield.errors import InvalidArgument

from icefield_rest_server import namespaces, plans, reports, signing, tables, views
from icefield_rest_server.answers import Answer
from icefield_rest_server.calls import Call
from icefield_rest_server.state import State

_PLANNING: Final = frozenset({"planTableScan", "fetchPlanningResult", "cancelPlanning", "fetchScanTasks"})
_SIGNING: Final = "signRequest"
_CHANGE_NOTHING: Final = _PLANNING | {"reportMetrics", _SIGNING}
_HOLD_METADATA: Final = frozenset({"createTable", "updateTable", "commitTransaction", "createView", "replaceView"})
_COMMITS: Final = frozenset({"updateTable", "commitTransaction", "replaceView"})

Handler = Callable[[State, Call], Answer]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One endpoint: its method and template, the operation's name in the description, and its handler."""

    method: str
    template: str
    operation: str
    handler: Handler
    needs: CatalogAbility | type[CatalogBackend] = CatalogBackend

    def is_served_by(self, backend: CatalogBackend) -> bool:
        """Whether a catalog has the ability, or is of the class, that the endpoint needs."""
        return (
            self.needs in backend.abilities
            if isinstance(self.needs, CatalogAbility)
            else isinstance(backend, self.needs)
        )

    @property
    def changes(self) -> bool:
        """Whether the endpoint changes something, so that an idempotency key has an effect."""
        return self.method in ("POST", "DELETE") and self.operation not in _CHANGE_NOTHING

    @property
    def holds_metadata(self) -> bool:
        """Whether a body holds metadata of tables and views, which may be large."""
        return self.operation in _HOLD_METADATA

    @property
    def commits(self) -> bool:
        """Whether clients interpret a failure of the server as a commit with an unknown outcome."""
        return self.operation in _COMMITS


_NAMESPACE = "/v1/{prefix}/namespaces/{namespace}"
_TABLE = _NAMESPACE + "/tables/{table}"
_VIEW = _NAMESPACE + "/views/{view}"
_VIEWS, _RENAME, _REGISTER, _SEVERAL = (
    ViewCatalog,
    CatalogAbility.RENAME,
    CatalogAbility.REGISTRATION,
    MultiTableCatalog,
)

ENDPOINTS: Final = (
    Endpoint("GET", "/v1/{prefix}/namespaces", "listNamespaces", namespaces.list_namespaces),
    Endpoint("POST", "/v1/{prefix}/namespaces", "createNamespace", namespaces.create_namespace),
    Endpoint("GET", _NAMESPACE, "loadNamespaceMetadata", namespaces.load_namespace),
    Endpoint("HEAD", _NAMESPACE, "namespaceExists", namespaces.namespace_exists),
    Endpoint("DELETE", _NAMESPACE, "dropNamespace", namespaces.drop_namespace),
    Endpoint("POST", _NAMESPACE + "/properties", "updateProperties", namespaces.update_properties),
    Endpoint("GET", _NAMESPACE + "/tables", "listTables", tables.list_tables),
    Endpoint("POST", _NAMESPACE + "/tables", "createTable", tables.create_table),
    Endpoint("GET", _TABLE, "loadTable", tables.load_table),
    Endpoint("HEAD", _TABLE, "tableExists", tables.table_exists),
    Endpoint("POST", _TABLE, "updateTable", tables.commit_table),
    Endpoint("DELETE", _TABLE, "dropTable", tables.drop_table),
    Endpoint("GET", _TABLE + "/credentials", "loadCredentials", tables.load_credentials),
    Endpoint("POST", _TABLE + "/metrics", "reportMetrics", reports.report_metrics),
    Endpoint("POST", _TABLE + "/sign", _SIGNING, signing.sign_request),
    Endpoint("POST", _TABLE + "/unregister", "unregisterTable", tables.unregister_table),
    Endpoint("POST", _TABLE + "/plan", "planTableScan", plans.plan_table_scan),
    Endpoint("GET", _TABLE + "/plan/{plan-id}", "fetchPlanningResult", plans.fetch_planning_result),
    Endpoint("DELETE", _TABLE + "/plan/{plan-id}", "cancelPlanning", plans.cancel_planning),
    Endpoint("POST", _TABLE + "/tasks", "fetchScanTasks", plans.fetch_scan_tasks),
    Endpoint("POST", _NAMESPACE + "/register", "registerTable", tables.register_table, _REGISTER),
    Endpoint("POST", "/v1/{prefix}/tables/rename", "renameTable", tables.rename_table, _RENAME),
    Endpoint("POST", "/v1/{prefix}/transactions/commit", "commitTransaction", tables.commit_transaction, _SEVERAL),
    Endpoint("GET", _NAMESPACE + "/views", "listViews", views.list_views, _VIEWS),
    Endpoint("POST", _NAMESPACE + "/views", "createView", views.create_view, _VIEWS),
    Endpoint("GET", _VIEW, "loadView", views.load_view, _VIEWS),
    Endpoint("HEAD", _VIEW, "viewExists", views.view_exists, _VIEWS),
    Endpoint("POST", _VIEW, "replaceView", views.replace_view, _VIEWS),
    Endpoint("DELETE", _VIEW, "dropView", views.drop_view, _VIEWS),
    Endpoint("POST", "/v1/{prefix}/views/rename", "renameView", views.rename_view, _VIEWS),
    Endpoint("POST", _NAMESPACE + "/register-view", "registerView", views.register_view, _VIEWS),
)


READING: Final = frozenset(
    {"getConfig", *_CHANGE_NOTHING, *(each.operation for each in ENDPOINTS if each.method in ("GET", "HEAD"))}
)
"""The operations that change nothing."""


def allowed_as(operation: str) -> str:
    """Return the operation that the client needs a right for: the right to plan a scan covers the rest of the plan."""
    if operation == _SIGNING:
        return "loadTable"  # and "updateTable", where the request that is signed writes
    return "planTableScan" if operation in _PLANNING else operation


class Router:
    """The endpoints that a catalog supports, found by the path as it was sent: an escaped slash is no separator."""

    def __init__(self, backend: CatalogBackend, *, signs: bool = False, offers: bool = True) -> None:
        can = tuple(each for each in ENDPOINTS if offers and each.is_served_by(backend))
        self.endpoints = tuple(each for each in can if signs or each.operation != _SIGNING)
        self._by_shape: dict[tuple[int, str], list[tuple[list[str], Endpoint]]] = {}
        for each in self.endpoints:
            shape = [part for part in each.template.split("/")[2:] if part != "{prefix}"]
            self._by_shape.setdefault((len(shape), each.method), []).append((shape, each))

    def find(self, method: str, path: str) -> tuple[Endpoint, dict[str, str]] | None:
        """The endpoint of a path, with the parts that it names; None where there is none."""
        parts = path.split("/")
        if parts[:2] != ["", "v1"]:
            return None
        given = parts[2:]
        for shape, endpoint in self._by_shape.get((len(given), method), ()):
            if all(wanted.startswith("{") or wanted == part for wanted, part in zip(shape, given, strict=True)):
                named = zip(shape, given, strict=True)
                return endpoint, {wanted[1:-1]: plain(part) for wanted, part in named if wanted.startswith("{")}
        return None

    def methods(self, path: str) -> list[str]:
        """The methods that a path has."""
        return [method for method in ("GET", "HEAD", "POST", "DELETE") if self.find(method, path) is not None]


def plain(part: str) -> str:
    """Return a part of a path without its escapes; a plus is a space, as clients in Java write it."""
    try:
        return unquote(part.replace("+", " "), errors="strict")
    except UnicodeDecodeError as error:
        raise InvalidArgument("the path has an escape that is no UTF-8") from error
