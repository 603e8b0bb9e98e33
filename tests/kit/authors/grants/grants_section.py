"""A section of a report: the grants for a table."""

from __future__ import annotations

from typing import Any

from authors.grants.grants_authorizer import grants_of
from icefield_report import SectionContext, html_table


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
