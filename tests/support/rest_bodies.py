"""Parts of the requests of the REST catalog protocol, as plain JSON."""

from __future__ import annotations

from typing import Any, Final

SCHEMA: Final[dict[str, Any]] = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}],
}
VIEW_VERSION: Final[dict[str, Any]] = {
    "version-id": 1,
    "timestamp-ms": 1,
    "schema-id": 0,
    "summary": {},
    "default-namespace": ["db"],
    "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
}
