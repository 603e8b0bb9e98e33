"""Write a page about a table, or about all tables of the catalog: plots, and advice on maintenance."""

from __future__ import annotations

from icefield import IcefieldError
from icefield.errors import InvalidArgument
from icefield_cli import Context

from icefield_report.reports import write_catalog_report, write_report


def run(context: Context, table: str | None, path: str) -> None:
    """Run the command."""
    try:
        with context.progress("reading"):
            if table is None:
                write_catalog_report(context.catalog, path)
            else:
                write_report(context.table(table), path)
    except IcefieldError:
        raise
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be written: {error.strerror or error}") from error
    context.say(f"wrote {path}", path=path)
