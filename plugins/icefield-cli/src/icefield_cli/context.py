"""What every command uses: the catalog that was asked for, and the form of the output."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from icefield import Catalog, Table, load_catalog, open_table

from icefield_cli import output
from icefield_cli.progress import Progress


class Context:
    """The shared options of one call."""

    def __init__(self, given: argparse.Namespace) -> None:
        self._name: str | None = given.catalog or given.before_catalog
        self._properties = dict([*given.before_property, *given.property])
        self.json = (given.output or given.before_output) == "json"

    @property
    def catalog_name(self) -> str | None:
        """The catalog that was named, if one was."""
        return self._name

    @property
    def catalog_properties(self) -> dict[str, Any]:
        """The properties that were given with the command."""
        return dict(self._properties)

    @cached_property
    def catalog(self) -> Catalog:
        """The catalog, opened when a command first needs it."""
        return load_catalog(self._name, **self._properties)

    def table(self, identifier: str) -> Table:
        """A table of the catalog; or, read-only and without a catalog, the one of a metadata file."""
        if "/" in identifier and ".metadata.json" in identifier:
            return open_table(identifier, self._properties)
        return self.catalog.load_table(identifier)

    def rows(self, rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> None:
        """Print rows as they come: aligned text with a heading, or JSON, an object a row."""
        output.print_rows(rows, columns, json=self.json)

    def record(self, record: Mapping[str, Any]) -> None:
        """Print one thing: a line a key, or a JSON object."""
        output.print_record(record, json=self.json)

    def line(self, text: str) -> None:
        """Print a line of text."""
        print(output.clean(text))

    def say(self, message: str, **data: Any) -> None:
        """Print what was done: a sentence, or a JSON object."""
        if self.json:
            output.print_record({"message": message, **data}, json=True)
        else:
            print(output.clean(message))

    def progress(self, what: str, *, prints: bool = False) -> Progress:
        """Show on the standard error, when it is a terminal, that something goes on.

        ``prints``: whether the work prints while it goes on, so that a terminal shows well enough that it does.
        """
        return Progress(what, shown=sys.stderr.isatty() and not (prints and sys.stdout.isatty()))


def pair(text: str) -> tuple[str, str]:
    """Split ``KEY=VALUE``. Raises argparse's error of wrong usage."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"'{text}' is no KEY=VALUE")
    return key, value


def count(text: str) -> int:
    """A number of rows. Raises argparse's error of wrong usage."""
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of rows")
    return number
