"""The user's interface to catalogs: namespaces and tables by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from icefield.abc import (
    CaseInsensitiveCatalog,
    CatalogBackend,
    NewTable,
    Pointer,
    ServedCatalog,
    TableName,
)
from icefield.base.notebooks import html_of
from icefield.base.secrets import without_credentials, without_userinfo
from icefield.catalog import deferred
from icefield.catalog.changes import ChangesOfCatalog
from icefield.catalog.identifiers import PropertiesUpdateSummary, namespace_name, namespace_strings, table_name
from icefield.catalog.listings import ListingsOfCatalog
from icefield.catalog.table import Table
from icefield.catalog.telling import told
from icefield.catalog.views import ViewsOfCatalog
from icefield.commit import TableHandle, TableState
from icefield.errors import (
    FileMissing,
    IcefieldError,
    InvalidArgument,
    LocationInUse,
    LocationRefused,
    MissingPlugin,
    NamespaceExists,
    NoSuchNamespace,
    NoSuchTable,
    NotSupportedByCatalog,
    StorageError,
    TableExists,
)
from icefield.metadata import TableMetadata, decode_metadata, get_int
from icefield.metadata.properties import (
    ENCRYPTION_KEY_ID,
    FORMAT_VERSION,
    check_key,
    check_properties,
    property_strings,
)
from icefield.metadata.validation import check_names_differ
from icefield.partitioning import PartitionSpec, SortOrder
from icefield.partitioning.parse import partition_spec_of, sort_order_of
from icefield.schema import Schema
from icefield.storage import FileIO, given_location
from icefield.storage.neighbours import check_location, forget_name, free_location, refuse_twins, warn_of_twins
from icefield.toolkit.from_catalogs import checked_properties
from icefield.toolkit.versioned_strategy import says_dropped

if TYPE_CHECKING:
    from icefield.catalog.transaction import CatalogTransaction
    from icefield.transaction import Rows, Transaction

Identifier = str | Iterable[str]
"""A name as a string, ``"db.events"``, or as its levels, ``("db", "events")``."""

Location = str | PathLike[str]
_ANYWHERE = "memory://chosen-by-the-service"
_DEFAULT = "table-default."
_OVERRIDE = "table-override."


class Catalog(ChangesOfCatalog, ListingsOfCatalog, ViewsOfCatalog):
    """A catalog, as returned by ``load_catalog``.

    Tables and namespaces are named by strings (``"db.events"``) or levels (``("db", "events")``). Changes are atomic.
    """

    def __init__(self, backend: CatalogBackend) -> None:
        if not isinstance(backend.io, FileIO):
            raise InvalidArgument(
                f"the backend of catalog '{backend.name}' has {type(backend.io).__name__} for its io; "
                "keep the FileIO that it was built with"
            )
        self._backend = backend
        self._io = backend.io

    @property
    def backend(self) -> CatalogBackend:
        """The plugin's backend, which stores the names and provides the commit strategy of each table."""
        return self._backend

    @property
    def name(self) -> str:
        """The name under which it is configured."""
        return self._backend.name

    @property
    def properties(self) -> Mapping[str, str]:
        """Its properties, which may hold credentials."""
        return self._backend.properties

    @property
    def io(self) -> FileIO:
        """The file IO of its tables."""
        return self._io

    _repr_html_ = html_of

    def __repr__(self) -> str:  # properties may hold credentials
        given = {key: value for key in ("type", "warehouse") if (value := self.properties.get(key))}
        parts = (f", {key}={without_credentials(value, self.properties)!r}" for key, value in given.items())
        return without_userinfo(f"Catalog({self.name!r}{''.join(parts)})")

    def close(self) -> None:
        """Release connections."""
        self._backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- namespaces -----------------------------------------------------------------------------------------------

    @told("create-namespace", namespace_name)
    def create_namespace(self, namespace: Identifier, properties: Mapping[str, Any] | None = None) -> None:
        """Create a namespace. Raises ``NamespaceExists``."""
        name = self._namespace(namespace)
        strings = namespace_strings(name, properties)
        self._backend.create_namespace(name, strings)
        self.io.listeners.changed({}, strings)

    def create_namespace_if_not_exists(
        self, namespace: Identifier, properties: Mapping[str, Any] | None = None
    ) -> None:
        """Create a namespace, unless there is one of that name."""
        with suppress(NamespaceExists):
            self.create_namespace(namespace, properties)

    @told("drop-namespace", namespace_name)
    def drop_namespace(self, namespace: Identifier) -> None:
        """Drop an empty namespace. Raises ``NoSuchNamespace``, ``NamespaceNotEmpty``."""
        self._backend.drop_namespace(self._namespace(namespace))

    def namespace_exists(self, namespace: Identifier) -> bool:
        """Whether there is a namespace of that name."""
        name = self._namespace(namespace)
        if isinstance(self._backend, ServedCatalog):
            return self._backend.namespace_exists(name)
        try:
            self._backend.namespace_properties(name)
        except NoSuchNamespace:
            return False
        return True

    def kept_name(self, name: tuple[str, ...]) -> tuple[str, ...]:
        """The name of a namespace, table or view as the catalog keeps it.

        All spellings of one table have the same kept name, so that a rule for one spelling holds for all.
        """
        return self._backend.kept_name(name) if isinstance(self._backend, CaseInsensitiveCatalog) else name

    def load_namespace_properties(self, namespace: Identifier) -> dict[str, str]:
        """The properties of a namespace. Raises ``NoSuchNamespace``."""
        name = self._namespace(namespace)
        return checked_properties(name, self._backend.namespace_properties(name))

    @told("update-namespace", namespace_name)
    def update_namespace_properties(
        self, namespace: Identifier, removals: Iterable[str] | None = None, updates: Mapping[str, Any] | None = None
    ) -> PropertiesUpdateSummary:
        """Remove and set properties in one step. Raises ``NoSuchNamespace``, ``InvalidArgument`` for a key in both."""
        name = self._namespace(namespace)
        for key in (keys := tuple(removals or ())):
            check_key(key)
        gone, strings = frozenset(keys), namespace_strings(name, updates)
        if both := gone & strings.keys():
            raise InvalidArgument(f"namespace property '{min(both)}' cannot be both set and removed")
        before = self._backend.namespace_properties(name)
        self._backend.update_namespace_properties(name, strings, gone)
        after = {key: value for key, value in {**before, **strings}.items() if key not in gone}
        self.io.listeners.changed(before, after)
        return PropertiesUpdateSummary(
            removed=sorted(gone & before.keys()), updated=sorted(strings), missing=sorted(gone - before.keys())
        )

    # -- tables ---------------------------------------------------------------------------------------------------

    def load_table(self, identifier: Identifier) -> Table:
        """A table at its current version. Raises ``NoSuchTable``."""
        return Table(*self._loaded(table_name(identifier)))

    def __getitem__(self, identifier: Identifier) -> Table:
        """A table at its current version: ``catalog["db.events"]``. Raises ``NoSuchTable``."""
        return self.load_table(identifier)

    def __contains__(self, identifier: Identifier) -> bool:
        """Whether there is a table of that name."""
        return self.table_exists(identifier)

    def transaction(self) -> CatalogTransaction:
        """A transaction over several tables: ``with catalog.transaction() as tx: tx.table("db.a").append(rows)``.

        All changes become visible in one step, if the catalog supports it: ``sql`` does, and ``rest`` if its service
        does.
        """
        return deferred.CatalogTransaction(self._backend, self._loaded)

    def table_exists(self, identifier: Identifier) -> bool:
        """Whether there is a table of that name."""
        name = table_name(identifier)
        try:
            if isinstance(self._backend, ServedCatalog):
                return self._backend.table_exists(name)
            return self._backend.strategy(name).load() is not None
        except NotSupportedByCatalog:  # a view, or a table of another kind
            return False

    @told("create-table")
    def create_table(
        self,
        identifier: Identifier,
        schema: Schema | pa.Schema | Rows,
        location: Location | None = None,
        partition_spec: PartitionSpec | Any = None,
        sort_order: SortOrder | Any = None,
        properties: Mapping[str, Any] | None = None,
    ) -> Table:
        """Create a table. If two writers create the same name, one of them fails.

        ``schema`` may be a frame, or any other rows: the table gets their columns and no row; see ``create_table_as``.
        Nanoseconds become microseconds below format version 3. Column ids are given afresh. ``partition_spec``: a
        ``PartitionSpec``, or a list such as ``[("ts", "day"), "bucket[16](id)", "region"]``; ``sort_order``: a
        ``SortOrder``, or a list such as ``["id", "ts desc nulls last"]``. The property ``format-version`` selects the
        format version, 2 by default. The default ``location`` follows from the name; if files exist there, such as the
        files of a renamed table, a location next to it is used. The ``location`` of another table of this catalog is
        refused (``LocationInUse``), and the former location of another table gives a ``LocationWarning``. Raises
        ``TableExists``, ``NoSuchNamespace``, ``InvalidArgument``, ``InvalidSchema``.
        """
        if isinstance(self._backend, ServedCatalog):
            name, given = table_name(identifier), (schema, location, partition_spec, sort_order, properties)
            served = Table(*self._create_served(self._backend, name, *given))
            self.io.listeners.changed({}, served.properties)
            return served
        staged = identifier, schema, location, partition_spec, sort_order, properties
        try:
            return self.create_table_transaction(*staged).commit_transaction()
        except LocationInUse:
            if location is not None:
                raise
        # Another writer has created a table at the default location meanwhile.
        return self.create_table_transaction(*staged).commit_transaction()

    def create_table_if_not_exists(
        self,
        identifier: Identifier,
        schema: Schema | pa.Schema | Rows,
        location: Location | None = None,
        partition_spec: PartitionSpec | Any = None,
        sort_order: SortOrder | Any = None,
        properties: Mapping[str, Any] | None = None,
    ) -> Table:
        """Create a table, or load the existing one, without comparing schemas."""
        try:
            return self.create_table(identifier, schema, location, partition_spec, sort_order, properties)
        except TableExists:
            return self.load_table(identifier)

    @told("create-table")
    def create_table_as(
        self,
        identifier: Identifier,
        df: Rows,
        location: Location | None = None,
        partition_spec: PartitionSpec | Any = None,
        sort_order: SortOrder | Any = None,
        properties: Mapping[str, Any] | None = None,
    ) -> Table:
        """Create a table with the columns and the rows of a frame, in one commit; see ``create_table``.

        Raises ``InvalidArgument`` for rows with nanoseconds that a table of format version 2 would lose.
        """
        columns, rows = deferred.with_columns_known(df)
        with self.create_table_transaction(
            identifier, columns, location, partition_spec, sort_order, properties
        ) as transaction:
            transaction.append(rows)
            return transaction.commit_transaction()

    def create_table_transaction(
        self,
        identifier: Identifier,
        schema: Schema | pa.Schema | Rows,
        location: Location | None = None,
        partition_spec: PartitionSpec | Any = None,
        sort_order: SortOrder | Any = None,
        properties: Mapping[str, Any] | None = None,
    ) -> Transaction[Table]:
        """A transaction that creates a table, and applies all other staged changes, when it commits."""
        name = table_name(identifier)
        if isinstance(self._backend, ServedCatalog):
            given = schema, location, partition_spec, sort_order, properties
            served, state = self._create_served(self._backend, name, *given, staged=True)
            return deferred.Transaction(
                served, None, created=state.metadata, finish=lambda state: Table(served.at(state), state)
            )
        place = self._backend.table_location(name)  # raises if the namespace does not exist
        if location is not None:
            place = given_location(location)
        strategy = self._backend.strategy(name, place)
        self._check_absent(name, strategy)
        if location is not None:
            check_location(self.io, strategy, place)
        elif (free := free_location(self.io, strategy, place)) != place:
            strategy = self._backend.strategy(name, place := free)
        metadata, _ = self._first_metadata(schema, place, partition_spec, sort_order, properties)
        handle = TableHandle(name, self.io.relative_to(metadata.location), strategy)
        return deferred.Transaction(handle, None, created=metadata, finish=lambda state: Table(handle, state))

    def replace_table_transaction(
        self,
        identifier: Identifier,
        schema: Schema | pa.Schema | Rows,
        location: Location | None = None,
        partition_spec: PartitionSpec | Any = None,
        sort_order: SortOrder | Any = None,
        properties: Mapping[str, Any] | None = None,
    ) -> Transaction[Table]:
        """A transaction that replaces a table's columns and removes its rows, with all other staged changes.

        The table keeps its identity, its older snapshots, its branches and its properties; ``properties`` are added. A
        column keeps its id if the table had a column of the same full name. Raises ``NoSuchTable``, and
        ``LocationInUse`` for the location of another table.
        """
        transaction = self.load_table(identifier).transaction()
        columns = deferred.columns_of(schema, transaction.shape.format_version)
        spec, order = partition_spec_of(partition_spec, columns), sort_order_of(sort_order, columns)
        given = self._table_properties(properties)
        deferred.ReplaceTable(transaction.stage, transaction.shape, columns, spec, order, location, given).commit()
        return transaction

    @told("register-table")
    def register_table(self, identifier: Identifier, metadata_location: Location) -> Table:
        """Add a table from its existing metadata file.

        Raises ``TableExists`` and ``InvalidMetadata``. Raises ``InvalidSchema`` if a column has the name of a partition
        field, because other engines would refuse the table; ``open_table`` reads it. Gives a ``LocationWarning`` if the
        catalog has the table under another name, or another table in its folder.
        """
        name, location = table_name(identifier), given_location(metadata_location)
        try:  # check that the metadata is readable before it is registered
            found = metadata_at(self.io, location)
        except (LocationRefused, MissingPlugin, StorageError):
            if not isinstance(self._backend, ServedCatalog):  # only the service may be able to open the file
                raise
        else:
            check_names_differ(found)
            if not isinstance(self._backend, ServedCatalog):
                warn_of_twins(self.io, self._backend.strategy(name), found, location)
        self._backend.register_table(name, location)
        return self.load_table(name)

    @told("rename-table")
    def rename_table(self, from_identifier: Identifier, to_identifier: Identifier) -> Table:
        """Rename a table; its files stay where they are.

        Raises ``NoSuchTable``, ``TableExists``, ``NoSuchNamespace``, and ``NotSupportedByCatalog`` if the name is the
        path.
        """
        target = table_name(to_identifier)
        self._backend.rename_table(table_name(from_identifier), target)
        return self.load_table(target)

    @told("drop-table")
    def drop_table(self, identifier: Identifier, purge: bool = False, *, io: FileIO | None = None) -> None:
        """Drop a table; with ``purge``, delete its files too, by ``io`` or the table's own. Raises ``NoSuchTable``.

        Purging keeps data files when the table's property ``gc.enabled`` is false: other tables may share them. It
        keeps files outside of the table's own folders, and logs how many, unless ``location.owned-only`` is false. It
        raises ``InvalidArgument`` if the catalog has the table under a second name; then nothing is done.
        """
        if purge and isinstance(self._backend, ServedCatalog):
            self._backend.purge_table(table_name(identifier))
            return
        table = self.load_table(identifier) if purge else None
        strategy = self._backend.strategy(table_name(identifier))
        if table is not None:
            refuse_twins(table.io, strategy, table.metadata, table.metadata_location, "purging")
        pointer = None
        if table is None and not isinstance(self._backend, ServedCatalog):
            with suppress(IcefieldError):  # an unreadable table can be dropped
                pointer = strategy.load()
        strategy.drop()
        if isinstance(pointer, Pointer):
            forget_name(self.io, strategy, pointer.location)
        if table is not None:
            deferred.delete_files_of(io or table.io, table.metadata, table.metadata_location, strategy)

    def purge_table(self, identifier: Identifier) -> None:
        """Drop a table and delete its files."""
        self.drop_table(identifier, purge=True)

    def free_location(self, identifier: Identifier) -> str:
        """The location for a new table or view of a name: see ``create_table``. Raises ``NoSuchNamespace``."""
        name = table_name(identifier)
        default = self._backend.table_location(name)
        if isinstance(self._backend, ServedCatalog):
            return default
        return free_location(self.io, self._backend.strategy(name, default), default)

    def _create_served(
        self,
        backend: ServedCatalog,
        name: TableName,
        schema: Schema | pa.Schema | Rows,
        location: Location | None,
        *given: Any,
        staged: bool = False,
    ) -> tuple[TableHandle, TableState]:
        """Have a service create or stage a table. The request is checked before it is sent."""
        place = _ANYWHERE if location is None else given_location(location)
        metadata, properties = self._first_metadata(schema, place, *given)
        new = NewTable(deferred.creation_updates(metadata), properties, None if location is None else metadata.location)
        made = backend.create_table(name, new, staged=staged)
        assert made.metadata is not None, "a service that creates tables gives their metadata"
        state = TableState.of(made, made.metadata)
        return TableHandle(name, self.io, backend.strategy(name, made.metadata.location)).at(state), state

    def _first_metadata(
        self,
        schema: Schema | pa.Schema | Rows,
        location: str,
        partition_spec: PartitionSpec | Any,
        sort_order: SortOrder | Any,
        properties: Mapping[str, Any] | None,
    ) -> tuple[TableMetadata, dict[str, str]]:
        """The metadata of a new table, from the user's arguments, and its properties."""
        given = self._table_properties(properties)
        columns = deferred.columns_of(schema, get_int(given, FORMAT_VERSION))
        spec, order = partition_spec_of(partition_spec, columns), sort_order_of(sort_order, columns)
        return deferred.new_table_metadata(columns, spec, order, location.rstrip("/"), given), given

    def _table_properties(self, given: Mapping[str, Any] | None) -> dict[str, str]:
        """The properties of a new table: the given ones, and those that the catalog's properties state. Checked."""

        def with_prefix(prefix: str) -> dict[str, str]:
            return {key[len(prefix) :]: value for key, value in self.properties.items() if key.startswith(prefix)}

        properties = {**with_prefix(_DEFAULT), **property_strings(given or {}), **with_prefix(_OVERRIDE)}
        known = self.io.plugins.table_properties
        known.check(check_properties(properties))
        known.warn_of_names(properties)
        # An encrypted table needs format version 3.
        return {FORMAT_VERSION.name: "3", **properties} if ENCRYPTION_KEY_ID.name in properties else properties


def metadata_at(io: FileIO, location: str) -> TableMetadata:
    """The metadata in a file that the user named."""
    try:
        data = io.read_metadata(location)
    except FileMissing as error:
        if location.endswith((".json", ".gz")):
            raise
        advice = f"name the table's metadata file, such as {location.rstrip('/')}/metadata/v1.metadata.json"
        raise FileMissing(f"{error}; {advice}", location=location) from error
    if says_dropped(data):
        raise NoSuchTable(f"{location} marks that the table was dropped; its last version is the one before")
    return decode_metadata(data, location)
