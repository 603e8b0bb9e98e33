"""The context of every command: the chosen catalog, and the form of the output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, is_dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import icefield
from icefield.errors import InvalidArgument
from icefield.toolkit import lazy
from icefield_progress import ProgressBar, is_interactive

from icefield_cli import output
from icefield_cli.hookspecs import WrongUsage
from icefield_cli.listening import Listener
from icefield_cli.people import size

if TYPE_CHECKING:
    import pyarrow as pa
    from icefield import Catalog, Schema, Table

_MOST_SHOWN = 5

OUTPUTS: Final = ("text", "json", "jsonl", "csv", "parquet")
"""The forms of the output."""

FILES: Final = frozenset({"csv", "parquet"})
"""The forms for rows of tables alone."""

_INDENT: Final = {"text": None, "json": 2, "jsonl": None}

Row = Mapping[str, Any]


def _ignore(rows: int) -> None:
    pass


class Context:
    """The shared options of one call, as its arguments give them, and the catalog and tables that they open."""

    def __init__(self) -> None:
        self.catalog_name: str | None = None
        self.catalog_properties: dict[str, Any] = {}
        self.form = "text"
        self.pager = True
        self.listener = Listener()

    @property
    def json(self) -> bool:
        """Whether it prints JSON."""
        return self.form.startswith("json")

    def all_properties(self) -> dict[str, str]:
        """The properties of the catalog, with those of its configuration. Raises errors of a wrong configuration."""
        name = self.catalog_name or icefield.default_catalog_name()
        return icefield.catalog_properties(name, self.catalog_properties)

    @lazy
    def catalog(self) -> Catalog:
        """The catalog, opened when a command first needs it."""
        plugins = icefield.Plugins.configured(self.all_properties(), [self.listener])
        return icefield.load_catalog(self.catalog_name, plugins=plugins, **self.catalog_properties)

    def table(self, identifier: str) -> Table:
        """Return a table of the catalog; or, read-only and without a catalog, the table of a metadata file."""
        if "/" in identifier and ".metadata.json" in identifier:
            return icefield.open_table(identifier, self.catalog_properties)
        return self.catalog.load_table(identifier)

    def rows(
        self,
        rows: Iterable[Mapping[str, Any]],
        columns: Sequence[str],
        people: Callable[[Row], Row] | None = None,
        *,
        data: bool = False,
    ) -> None:
        """Print rows as they come: aligned ``columns`` with a heading, or one JSON object per row with all its values.

        ``people``: converts a row for JSON to a row with these columns. ``data``: the rows are rows of a table.
        """
        shown = rows if self.json or people is None else map(people, rows)
        output.print_rows(shown, columns, json=self.json, data=data, pager=self.pager)

    def batches(
        self, batches: pa.RecordBatchReader, schema: Schema | None = None, *, count: Callable[[int], None] = _ignore
    ) -> None:
        """Print rows of Arrow as they come, in any form. For commands whose record says ``prints_rows``.

        ``schema`` tells UUIDs from other bytes. ``count`` is called with the number of rows of each printed batch.
        """
        if self.form in FILES:
            if self.form == "parquet" and sys.stdout.isatty():
                raise WrongUsage("Parquet is not for a terminal; send the output to a file")
            write_rows = import_module("icefield_cli.arrow_files").write_rows
            write_rows(batches, schema, self.form, sys.stdout.buffer.write, count)
            return
        rows = import_module("icefield_cli.rows").rows_of(_counted(batches, count), schema)
        self.rows(rows, batches.schema.names, data=True)

    def record(self, record: Mapping[str, Any], people: Mapping[str, Any] | None = None) -> None:
        """Print one record: one line per key, or a JSON object.

        ``people``: values to show to people instead, by key.
        """
        shown = record if self.json or people is None else {**record, **people}
        output.print_record(shown, json=self.json, indent=_INDENT[self.form])

    def line(self, text: str, hanging: int = 0) -> None:
        """Print a line of text. ``hanging``: how far it is indented where a terminal needs more than one line."""
        output.print_line(text, hanging)

    def hint(self, text: str) -> None:
        """Print a message that is not part of the output to the standard error."""
        print(output.clean(text), file=sys.stderr)

    def say(self, message: str, **data: Any) -> None:
        """Print a message about finished work: a sentence, or a JSON object."""
        if self.json:
            output.print_record({"message": message, **data}, json=True, indent=_INDENT[self.form])
        else:
            output.print_line(message)

    def confirm(self, question: str) -> None:
        """Ask at a terminal whether to go on. Raises ``InvalidArgument`` after a no, and where nobody can answer."""
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise InvalidArgument(f"{question} Nobody can be asked here; --yes answers yes")
        print(f"{output.clean(question)} [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise InvalidArgument("nothing was deleted")

    @contextmanager
    def changing(self, operation: str, *, dry_run: bool = False) -> Iterator[None]:
        """Show the progress of a change of a table, and let an interrupt report the commits already made."""
        with self.progress(operation):
            if not dry_run:
                self.listener.begin(operation)
            yield

    def result(self, title: str, operation: str, result: Any, **totals: int) -> None:
        """Print the result of maintenance: a title and all fields that are not zero, or a JSON object on one line.

        ``result`` is a dataclass; ``totals`` are figures computed from its fields.
        """
        names = [field.name for field in fields(result) if not field.name.startswith("_") and field.repr]
        found = {**totals, **{name: getattr(result, name) for name in names}}
        if self.json:
            self.rows([{"operation": operation, **{name: _open(value) for name, value in found.items()}}], ())
            return
        self.line(title)
        shown = {name.replace("_", " "): value for name, value in found.items() if value and name != "dry_run"}
        width = max(map(len, shown), default=0)
        for name, value in shown.items():
            self.line(f"  {name.ljust(width)}  {_for_people(name, value)}", width + 4)

    def progress(self, what: str, *, prints: bool = False) -> ProgressBar:
        """Show the progress of work on the standard error, if it is a terminal: of the events that the work tells.

        ``prints``: whether the work prints its output as it goes on, so that a terminal needs no other sign of
        progress.
        """
        return ProgressBar(what, shown=is_interactive() and not (prints and sys.stdout.isatty()))


def _counted(batches: Iterable[pa.RecordBatch], count: Callable[[int], None]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        count(batch.num_rows)


def _open(value: Any) -> Any:
    """A value with the fields of dataclasses in it."""
    if isinstance(value, tuple):
        return [_open(item) for item in value]
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def _for_people(name: str, value: Any) -> str:
    """A value as a string: sizes with units, numbers with separators, and the first few of many values."""
    if isinstance(value, int) and not name.endswith(" id"):
        return size(value) or "" if name.endswith("bytes") else f"{value:,}"
    if not isinstance(value, tuple):
        return str(value)
    if value and is_dataclass(value[0]):
        return f"{len(value):,}"
    more = f" and {len(value) - _MOST_SHOWN:,} more" if len(value) > _MOST_SHOWN else ""
    return ", ".join(map(str, value[:_MOST_SHOWN])) + more
