"""Write a page about a table, or about all tables of the catalog: plots, and advice on maintenance."""

from __future__ import annotations

from importlib import import_module

import click
from icefield import IcefieldError
from icefield.errors import InvalidArgument, UnsupportedFeature

from icefield_cli.context import Context
from icefield_cli.options import command


@command("report", __doc__)
@click.argument("table", metavar="[TABLE]", required=False)
@click.option("-o", "--to", "path", required=True, metavar="FILE", help="The HTML file that is written.")
def run(context: Context, table: str | None, path: str) -> None:
    """Run the command."""
    try:
        reports = import_module("icefield_report")
    except ModuleNotFoundError as error:
        raise UnsupportedFeature('reports need the extra report; pip install "icefield[report]"') from error
    try:
        with context.progress("reading"):
            if table is None:
                reports.write_catalog_report(context.catalog, path)
            else:
                reports.write_report(context.table(table), path)
    except IcefieldError:
        raise
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be written: {error.strerror or error}") from error
    context.say(f"wrote {path}", path=path)
