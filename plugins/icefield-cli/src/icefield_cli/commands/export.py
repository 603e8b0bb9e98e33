"""Write rows of a table to a file, in the form that its name ends with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from icefield.abc import OutputStream
from icefield.errors import InvalidArgument

from icefield_cli.arrow_files import FORMS, write_rows
from icefield_cli.commands.versions import scan_of
from icefield_cli.context import Context
from icefield_cli.scanning import filter_of


def run(
    context: Context,
    table: str,
    file: str,
    where: str | None,
    columns: tuple[str, ...],
    limit: int | None,
    **version: Any,
) -> None:
    """Run the command."""
    form = file.rpartition(".")[2].lower()
    if form not in FORMS:
        raise InvalidArgument(f"the name of a file ends with {', '.join(f'.{each}' for each in FORMS)}, not as {file}")
    if "://" not in file:
        file = Path(file).absolute().as_uri()
    found = context.table(table)
    io = found.io.relative_to(None)
    if io.exists(file):
        raise InvalidArgument(f"{file} exists already; delete it, or give another name")
    scan = scan_of(found, **version, row_filter=filter_of(where), selected_fields=columns or ("*",), limit=limit)
    written = 0
    with context.progress("export"), scan.to_arrow_batch_reader() as reader:

        def count(rows: int) -> None:
            nonlocal written
            written += rows

        sink: OutputStream = io.open_output(file)
        try:
            write_rows(reader, scan.projection, form, sink.write, count)
        except BaseException:
            sink.abort()
            raise
        sink.close()
    context.say(f"wrote {written:,} rows to {file}", rows=written, file=file)
