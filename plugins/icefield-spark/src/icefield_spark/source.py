"""What the options of a data source name: a catalog, a table, a version, a way to write."""

# See docs/decisions/0019.

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from icefield import Catalog, Schema, Table, load_catalog, open_table
from icefield.errors import InvalidArgument
from icefield.expressions import as_expression, bind
from icefield.metadata import MAIN_BRANCH
from icefield.scan import TableScan
from icefield.toolkit import credentials_in

_CATALOG = "catalog."
_SUMMARY = "snapshot-property."
_VERSIONS = ("snapshot-id", "ref", "as-of-timestamp")
# What Spark's setting spark.redaction.regex says unless it is set: options of these names are hidden in plans.
_HIDDEN_BY_SPARK = re.compile(r"secret|password|token|access\.?key")


@dataclass(frozen=True, slots=True, repr=False)
class Source:
    """The options of a query, their names in lower case. Picklable."""

    options: dict[str, str]

    def __post_init__(self) -> None:
        for name, value in self.options.items():
            if name.startswith(_CATALOG) and not _HIDDEN_BY_SPARK.search(name):
                _check_shown(name, name[len(_CATALOG) :], value)

    @property
    def branch(self) -> str:
        """The branch to write to."""
        return self.options.get("branch", MAIN_BRANCH)

    @property
    def snapshot_properties(self) -> dict[str, str]:
        """Strings for the summary of the snapshot that a write makes."""
        return self._below(_SUMMARY)

    @contextmanager
    def catalog(self) -> Iterator[Catalog]:
        """The catalog, open."""
        properties: dict[str, Any] = dict(self._below(_CATALOG))
        with load_catalog(self.options.get("catalog"), **properties) as catalog:
            yield catalog

    def load(self, catalog: Catalog) -> Table:
        """The table at its current version."""
        identifier = self.options.get("path")
        if not identifier:
            raise InvalidArgument('name the table: spark.read.format("icefield").load("namespace.table")')
        return catalog.load_table(identifier)

    def table(self, version: str | None = None) -> Table:
        """The table to read, at the version of a metadata file or at the current one."""
        with self.catalog() as catalog:
            if version is None:
                return self.load(catalog)
            return open_table(version, catalog.properties, plugins=catalog.io.plugins)

    def scan(self, table: Table, select: Callable[[Schema], tuple[Any, ...]] | None = None) -> TableScan:
        """The scan that the options ask for; ``select`` picks its columns. Its filter is known to fit the table."""
        named = [name for name in _VERSIONS if self.options.get(name)]
        if len(named) > 1:
            raise InvalidArgument(f"give one of {' and '.join(named)}")
        scan = table.scan(snapshot_id=self._number("snapshot-id"), ref=self.options.get("ref") or None)
        instant = self._number("as-of-timestamp")
        if instant is not None:
            scan = scan.as_of(instant)
        where = self.options.get("where")
        if where:
            scan = scan.filter(where)
            bind(scan.schema, as_expression(where))
        return scan if select is None else scan.select(*select(scan.schema))

    def __repr__(self) -> str:  # options may hold credentials
        return f"icefield {self.options.get('path')}"

    def _below(self, prefix: str) -> dict[str, str]:
        return {key[len(prefix) :]: value for key, value in self.options.items() if key.startswith(prefix)}

    def _number(self, name: str) -> int | None:
        string = self.options.get(name)
        if not string:
            return None
        try:
            return int(string)
        except ValueError as error:
            raise InvalidArgument(f"the option '{name}' is a number, not '{string}'") from error


def _check_shown(option: str, name: str, value: str) -> None:
    """Refuse an option that holds a credential and that Spark writes into plans and its event log as it is."""
    if credentials_in({name: value}):
        variable = f"ICEFIELD_CATALOG__<NAME>__{name.upper().replace('.', '__').replace('-', '_')}"
        raise InvalidArgument(
            f"the option '{option}' holds a credential, and Spark would show it in plans and in its event log; give it "
            f"to the driver's environment as {variable} or in icefield.toml, and name the catalog by 'catalog'"
        )
