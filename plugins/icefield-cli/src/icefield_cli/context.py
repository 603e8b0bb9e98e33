"""What every command uses: the catalog that was asked for, and the form of the output."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import cached_property
from typing import Any

from icefield import Catalog, Plugins, Table, catalog_properties, default_catalog_name, load_catalog, open_table

from icefield_cli import output
from icefield_cli.listening import Listener
from icefield_cli.progress import Progress

_PREFER = "plugins.prefer."
_MOST_SHOWN = 5


class Context:
    """The shared options of one call."""

    def __init__(self, given: argparse.Namespace) -> None:
        self._name: str | None = given.catalog or given.before_catalog
        self._properties = dict([*given.before_property, *given.property])
        self.listener = Listener()
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
        found = catalog_properties(self._name or default_catalog_name(), self._properties)
        return load_catalog(self._name, plugins=self._plugins(found), **self._properties)

    def table(self, identifier: str) -> Table:
        """A table of the catalog; or, read-only and without a catalog, the one of a metadata file."""
        if "/" in identifier and ".metadata.json" in identifier:
            return open_table(identifier, self._properties)
        return self.catalog.load_table(identifier)

    def _plugins(self, properties: Mapping[str, str]) -> Plugins:
        """Those that are installed, with the preferences of a catalog, and what listens for this command."""
        preferences = {key[len(_PREFER) :]: value for key, value in properties.items() if key.startswith(_PREFER)}
        return Plugins.installed(preferences, [self.listener])

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

    @contextmanager
    def changing(self, operation: str, *, dry_run: bool = False) -> Iterator[None]:
        """Show how far a change of a table has come, and let an interrupt say what of it was committed."""
        with self.progress(operation) as progress:
            if not dry_run:
                self.listener.begin(operation, progress)
            self.listener.progress = progress
            yield

    def result(self, title: str, operation: str, result: Any) -> None:
        """Print what upkeep did: a title and what is not zero, or a JSON object on one line."""
        names = [field.name for field in fields(result) if not field.name.startswith("_") and field.repr]
        found = {name: getattr(result, name) for name in names}
        if self.json:
            self.rows([{"operation": operation, **found}], ("operation", *found))
            return
        self.line(title)
        shown = {name.replace("_", " "): value for name, value in found.items() if value and name != "dry_run"}
        width = max(map(len, shown), default=0)
        for name, value in shown.items():
            text = f"{value:,}" if isinstance(value, int) and not name.endswith(" id") else _several(value)
            self.line(f"  {name.ljust(width)}  {text}")

    def progress(self, what: str, *, prints: bool = False) -> Progress:
        """Show on the standard error, when it is a terminal, that something goes on.

        ``prints``: whether the work prints while it goes on, so that a terminal shows well enough that it does.
        """
        return Progress(what, shown=sys.stderr.isatty() and not (prints and sys.stdout.isatty()))


def _several(value: Any) -> str:
    """A value as text; of many the first few, and how many there are."""
    if not isinstance(value, tuple):
        return str(value)
    more = f" and {len(value) - _MOST_SHOWN:,} more" if len(value) > _MOST_SHOWN else ""
    return ", ".join(map(str, value[:_MOST_SHOWN])) + more


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
