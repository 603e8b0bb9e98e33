"""Grants from a file and from other plugins: an authorizer of the REST server, and a section of a report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from authors.house.hookspecs import Grant
from icefield import Plugins
from icefield.errors import InvalidArgument
from icefield_report import SectionContext, html_table
from icefield_rest_server import Authorizer, Principal


def grants_of(properties: Mapping[str, str], plugins: Plugins) -> list[Grant]:
    """All grants: a line of the file is a client, an operation and a name, such as ``alice loadTable db.t``."""
    if "grants.file" not in properties:
        raise InvalidArgument("the authorizer grants needs the property grants.file")
    words = [line.split() for line in Path(properties["grants.file"]).read_text("utf-8").splitlines()]
    given = [Grant(client, operation, tuple(name[0].split(".")) if name else ()) for client, operation, *name in words]
    return given + [grant for _, grant in plugins.records("icefield_grants", Grant)]


def authorizer(properties: Mapping[str, str]) -> Authorizer:
    """Allow the operations that a grant covers."""
    grants = grants_of(properties, Plugins.installed())

    def allows(principal: Principal | None, operation: str, name: tuple[str, ...]) -> bool:
        client = None if principal is None else principal.name
        return any(grant.client == client and grant.covers(operation, name) for grant in grants)

    return allows


def section(context: SectionContext) -> Any:
    """The clients that may use the table; text where there are none, and nothing without a file of grants."""
    io = context.table.io
    if "grants.file" not in io.properties:
        return None
    name = context.table.name()
    rows = [
        (grant.client, grant.operation)
        for grant in grants_of(io.properties, io.plugins)
        if name[: len(grant.name)] == grant.name
    ]
    return (
        html_table(("Client", "Operation"), rows, "Grants") if rows else "No client of the server may use this table."
    )
