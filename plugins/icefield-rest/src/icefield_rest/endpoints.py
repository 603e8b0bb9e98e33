"""The endpoints of a service: its own list, or a default set if it lists none."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

_NAMESPACE: Final = "/v1/{prefix}/namespaces/{namespace}"
_TABLE: Final = _NAMESPACE + "/tables/{table}"
_VIEW: Final = _NAMESPACE + "/views/{view}"


class Endpoint(StrEnum):
    """A method and a path, as the service spells them in its configuration."""

    LIST_NAMESPACES = "GET /v1/{prefix}/namespaces"
    CREATE_NAMESPACE = "POST /v1/{prefix}/namespaces"
    LOAD_NAMESPACE = f"GET {_NAMESPACE}"
    NAMESPACE_EXISTS = f"HEAD {_NAMESPACE}"
    DROP_NAMESPACE = f"DELETE {_NAMESPACE}"
    UPDATE_NAMESPACE = f"POST {_NAMESPACE}/properties"
    LIST_TABLES = f"GET {_NAMESPACE}/tables"
    CREATE_TABLE = f"POST {_NAMESPACE}/tables"
    REGISTER_TABLE = f"POST {_NAMESPACE}/register"
    LOAD_TABLE = f"GET {_TABLE}"
    TABLE_EXISTS = f"HEAD {_TABLE}"
    COMMIT_TABLE = f"POST {_TABLE}"
    DROP_TABLE = f"DELETE {_TABLE}"
    RENAME_TABLE = "POST /v1/{prefix}/tables/rename"
    CREDENTIALS = f"GET {_TABLE}/credentials"
    SIGN = f"POST {_TABLE}/sign"
    REPORT_METRICS = f"POST {_TABLE}/metrics"
    PLAN = f"POST {_TABLE}/plan"
    FETCH_PLAN = f"GET {_TABLE}/plan/{{plan-id}}"
    CANCEL_PLAN = f"DELETE {_TABLE}/plan/{{plan-id}}"
    FETCH_TASKS = f"POST {_TABLE}/tasks"
    COMMIT_TRANSACTION = "POST /v1/{prefix}/transactions/commit"
    LIST_VIEWS = f"GET {_NAMESPACE}/views"
    CREATE_VIEW = f"POST {_NAMESPACE}/views"
    LOAD_VIEW = f"GET {_VIEW}"
    VIEW_EXISTS = f"HEAD {_VIEW}"
    REPLACE_VIEW = f"POST {_VIEW}"
    DROP_VIEW = f"DELETE {_VIEW}"
    RENAME_VIEW = "POST /v1/{prefix}/views/rename"


DEFAULT: Final = frozenset(
    {
        Endpoint.LIST_NAMESPACES,
        Endpoint.CREATE_NAMESPACE,
        Endpoint.LOAD_NAMESPACE,
        Endpoint.DROP_NAMESPACE,
        Endpoint.UPDATE_NAMESPACE,
        Endpoint.LIST_TABLES,
        Endpoint.CREATE_TABLE,
        Endpoint.REGISTER_TABLE,
        Endpoint.LOAD_TABLE,
        Endpoint.COMMIT_TABLE,
        Endpoint.DROP_TABLE,
        Endpoint.RENAME_TABLE,
        Endpoint.REPORT_METRICS,
        Endpoint.COMMIT_TRANSACTION,
    }
)
"""The endpoints of a service that lists none."""

VIEWS: Final = frozenset(endpoint for endpoint in Endpoint if "view" in endpoint)


def offered(listed: list[str] | None, *, views: bool = False) -> frozenset[Endpoint]:
    """Return the known endpoints among the listed ones; the default set, plus ``VIEWS`` if ``views``, for None."""
    if listed is None:
        return DEFAULT | VIEWS if views else DEFAULT
    known = {endpoint.value: endpoint for endpoint in Endpoint}
    return frozenset(known[name] for name in listed if name in known)
