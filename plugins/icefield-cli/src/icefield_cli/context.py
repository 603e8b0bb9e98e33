"""What every command uses: the catalog that was asked for, and the form of the output."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from icefield import Catalog, Table, load_catalog
from icefield.errors import InvalidArgument

from icefield_cli import output


class Context:
    """The shared options of one call."""

    def __init__(self, given: argparse.Namespace) -> None:
        self._name: str | None = given.catalog
        self._properties = dict(pair(text) for text in given.property)
        self.json = given.output == "json"

    @cached_property
    def catalog(self) -> Catalog:
        """The catalog, opened when a command first needs it."""
        return load_catalog(self._name, **self._properties)

    def table(self, identifier: str) -> Table:
        """A table of the catalog."""
        return self.catalog.load_table(identifier)

    def rows(self, rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> None:
        """Print rows: aligned text with a heading, or JSON, an object a row."""
        output.print_rows(rows, columns, json=self.json)

    def record(self, record: Mapping[str, Any]) -> None:
        """Print one thing: a line a key, or a JSON object."""
        output.print_record(record, json=self.json)

    def say(self, message: str, **data: Any) -> None:
        """Print what was done: a sentence, or a JSON object."""
        output.print_record({"message": message, **data}, json=True) if self.json else print(message)


def pair(text: str) -> tuple[str, str]:
    """Split ``KEY=VALUE``. Raises ``InvalidArgument``."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise InvalidArgument(f"'{text}' is no KEY=VALUE")
    return key, value
