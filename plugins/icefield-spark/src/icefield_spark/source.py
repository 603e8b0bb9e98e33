"""The options of a data source, as a catalog, a table, a version and a way to write."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from icefield import Catalog, Schema, Table, load_catalog, open_table
from icefield.abc import ServedCatalog
from icefield.errors import InvalidArgument
from icefield.expressions import as_expression, bind
from icefield.metadata import MAIN_BRANCH
from icefield.scan import SnapshotRange, TableScan
from icefield.toolkit import credentials_in, is_true, whole_number
from icefield.writing import WriteContext

from icefield_spark.options import CATALOG, SUMMARY, canonical, spark_catalog_refused

S = TypeVar("S", bound=Any)
_VERSIONS = ("snapshot-id", "ref", "branch", "tag", "as-of-timestamp")
_ONLY_READS = ("where", "snapshot-id", "ref", "tag", "as-of-timestamp")
_SPLITS = {"split-size": "split-size", "lookback": "split-lookback", "file-open-cost": "split-file-open-cost"}
"""The options by which tasks are cut, with the names that a scan has for them."""

# The default of Spark's setting spark.redaction.regex: Spark redacts options of these names in plans.
_HIDDEN_BY_SPARK = re.compile(r"secret|password|token|access\.?key")


@dataclass(frozen=True, slots=True, repr=False)
class QuerySource:
    """The options of a query, under the names of ``options.KNOWN``. Picklable.

    Raises ``InvalidArgument`` for unknown options, and for credentials that Spark would show.
    """

    options: dict[str, str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", canonical(self.options))
        for name, value in self.options.items():
            if name.startswith(CATALOG) and not _HIDDEN_BY_SPARK.search(name):
                _check_shown(name, name[len(CATALOG) :], value)

    # -- where --------------------------------------------------------------------------------------------------------

    @contextmanager
    def catalog(self) -> Iterator[Catalog]:
        """The catalog, open."""
        properties: dict[str, Any] = dict(self._below(CATALOG))
        with load_catalog(self.options.get("catalog"), **properties) as catalog:
            yield catalog

    def load(self, catalog: Catalog) -> Table:
        """The table at its current version."""
        return catalog.load_table(self.options["path"])

    def table(self, version: str | None = None) -> Table:
        """The table to read, at the version of a metadata file or at the current one."""
        if not self.options.get("path"):
            # Spark passes no options at all for a table of its own catalog.
            if not self.options:
                raise spark_catalog_refused()
            raise InvalidArgument('name the table: spark.read.format("icefield").load("namespace.table")')
        with self.catalog() as catalog:
            if version is not None and not isinstance(catalog.backend, ServedCatalog):
                return open_table(version, catalog.properties, plugins=catalog.io.plugins)
            found = self.load(catalog)  # a service also supplies the properties that open the table's files
            return found if version in (None, found.metadata_location) else found.at_metadata_file(version)

    # -- reading ------------------------------------------------------------------------------------------------------

    def scan(self, table: Table, select: Callable[[Schema], tuple[Any, ...]] | None = None) -> TableScan:
        """The scan that the options ask for; ``select`` picks its columns. Its filter is known to fit the table."""
        named = [name for name in _VERSIONS if self.options.get(name)]
        if len(named) > 1:
            raise InvalidArgument(f"give one of {' and '.join(named)}")
        ref = next((self.options[name] for name in ("ref", "branch", "tag") if self.options.get(name)), None)
        self._check_kind(table)
        scan = table.scan(snapshot_id=self.number("snapshot-id"), ref=ref, options=self.splits)
        instant = self.options.get("as-of-timestamp")
        if instant:
            scan = scan.as_of(int(instant) if instant.lstrip("-").isdigit() else instant)
        scan = self.filtered(scan)
        return scan if select is None else scan.select(*select(scan.schema))

    def shown(self, table: Table) -> Schema:
        """The columns that a read without a schema of its own has."""
        if is_true(self.options, "stream-changes"):
            return table.incremental_changelog_scan(ref=self.options.get("branch")).projection
        return self.scan(table).projection

    def filtered(self, scan: S) -> S:
        """A scan of the rows that the option ``where`` asks for. Raises ``InvalidExpression`` where it does not fit."""
        where = self.options.get("where")
        if not where:
            return scan
        found: S = scan.filter(where)
        bind(found.schema, as_expression(where))
        return found

    @property
    def splits(self) -> dict[str, str]:
        """The scan's options for splitting and combining tasks."""
        return {ours: self.options[name] for name, ours in _SPLITS.items() if name in self.options}

    def number(self, name: str) -> int | None:
        """An integer option, such as a snapshot id; None if it is not given."""
        string = self.options.get(name)
        if not string:
            return None
        try:
            return int(string)
        except ValueError as error:
            raise InvalidArgument(f"the option '{name}' is a number, not '{string}'") from error

    def instant(self, name: str) -> int | None:
        """An option that is a time, in milliseconds or in ISO form, as milliseconds since 1970 UTC."""
        string = self.options.get(name)
        if not string:
            return None
        given = SnapshotRange(from_timestamp=int(string) if string.lstrip("-").isdigit() else string).from_timestamp
        assert isinstance(given, int), "a range holds milliseconds"
        return given

    def _check_kind(self, table: Table) -> None:
        refs = table.refs()
        for kind in ("branch", "tag"):
            name = self.options.get(kind)
            if name and name in refs and refs[name].type != kind:
                raise InvalidArgument(f"'{name}' is no {kind} but a {refs[name].type}", ref=name)

    # -- writing ------------------------------------------------------------------------------------------------------

    @property
    def branch(self) -> str:
        """The branch to write to."""
        return self.options.get("branch", MAIN_BRANCH)

    @property
    def snapshot_properties(self) -> dict[str, str]:
        """Strings for the summary of the snapshot that a write makes."""
        return self._below(SUMMARY)

    @property
    def merges_schema(self) -> bool:
        """Whether columns that the table lacks are added to it."""
        return is_true(self.options, "merge-schema")

    @property
    def replaces_partitions(self) -> bool | None:
        """Whether an overwrite replaces the partitions of its rows; None if the session decides."""
        mode = self.options.get("partition-overwrite-mode")
        if mode is None:
            return False if self.options.get("overwrite-where") else None
        if mode.lower() not in ("static", "dynamic"):
            raise InvalidArgument(f"the option 'partition-overwrite-mode' is static or dynamic, not '{mode}'")
        if mode.lower() == "dynamic" and self.options.get("overwrite-where"):
            raise InvalidArgument("give overwrite-where, or partition-overwrite-mode dynamic, and not both")
        return mode.lower() == "dynamic"

    def check_writable(self, overwrite: bool) -> None:
        """Raise ``InvalidArgument`` for options that would be without effect on a write, or be misread."""
        reads = [name for name in _ONLY_READS if self.options.get(name)]
        if reads:
            meant = {"where": " (overwrite-where is what mode overwrite replaces)", "ref": " (branch is what to write)"}
            raise InvalidArgument(f"the option '{reads[0]}' is for reading{meant.get(reads[0], '')}; leave it out")
        if self.options.get("overwrite-where") and not overwrite:
            raise InvalidArgument("the option 'overwrite-where' needs mode overwrite; with append nothing is replaced")

    def adjusted(self, context: WriteContext) -> WriteContext:
        """A write's context with the options applied."""
        found = dict(context.properties)
        chosen = self.options.get("write-format", context.file_format).lower()
        for option, name in (("compression-codec", "codec"), ("compression-level", "level")):
            if option in self.options:
                found[f"write.{chosen}.compression-{name}"] = self.options[option]
        size = whole_number(self.options, "target-file-size-bytes", context.target_file_bytes, 1)
        return replace(context, file_format=chosen, properties=found, target_file_bytes=size)

    def __repr__(self) -> str:  # options may hold credentials
        return f"icefield {self.options.get('path')}"

    def _below(self, prefix: str) -> dict[str, str]:
        return {key[len(prefix) :]: value for key, value in self.options.items() if key.startswith(prefix)}


def _check_shown(option: str, name: str, value: str) -> None:
    """Refuse an option that holds a credential, and that Spark would write unchanged into plans and its event log."""
    if credentials_in({name: value}):
        variable = f"ICEFIELD_CATALOG__<NAME>__{name.upper().replace('.', '__').replace('-', '_')}"
        raise InvalidArgument(
            f"the option '{option}' holds a credential, and Spark would show it in plans and in its event log; give it "
            f"to the driver's environment as {variable} or in icefield.toml, and name the catalog by 'catalog'"
        )
