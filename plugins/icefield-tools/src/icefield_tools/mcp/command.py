"""Serve tables by the Model Context Protocol, on the standard streams of this process."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from icefield.errors import MissingPlugin
from icefield_cli import Context

from icefield_tools.mcp.limits import AnswerLimits
from icefield_tools.mcp.served import ServedCatalogs


def run(context: Context, max_rows: int | None, max_bytes: int | None) -> None:
    """Run the command."""
    if find_spec("mcp") is None:
        raise MissingPlugin('icefield mcp needs the package mcp: pip install "icefield[mcp]"')
    catalogs = ServedCatalogs(context.catalog_name, context.catalog_properties)
    limits = AnswerLimits(max_rows or AnswerLimits.rows, max_bytes or AnswerLimits.size)
    import_module("icefield_tools.mcp.server").server(catalogs, limits).run("stdio")
