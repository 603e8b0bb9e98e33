"""The catalog ``rest``, which leaves all decisions to a service."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Self, TypeVar, cast

from icefield.abc import (
    CatalogAbility,
    CommitStrategy,
    Committed,
    Conflict,
    Current,
    CurrentView,
    MultiTableCatalog,
    NamespaceName,
    NewTable,
    Page,
    ServedCatalog,
    TableChange,
    TableName,
    ViewCatalog,
    ViewProposal,
)
from icefield.errors import (
    CommitStateUnknown,
    IcefieldError,
    InvalidArgument,
    NoSuchNamespace,
    NoSuchTable,
)
from icefield.schema import Schema
from icefield.toolkit import checked_names, checked_properties, schema_to_json
from icefield.types import LongType, NestedField

from icefield_rest.endpoints import Endpoint
from icefield_rest.failures import ServiceRefusal, Uncertain, error_of
from icefield_rest.names import page_of
from icefield_rest.namespaces import Namespaces
from icefield_rest.partly_committed import warn_partly_committed
from icefield_rest.presets import with_preset
from icefield_rest.requests import create_body
from icefield_rest.service import Service
from icefield_rest.shown import FORMAT_VERSION
from icefield_rest.strategy import RestStrategy
from icefield_rest.tables import Tables, missing_namespace
from icefield_rest.views import Views

if TYPE_CHECKING:
    from icefield import FileIO

Rest = TypeVar("Rest", bound="RestBackend")


class RestBackend(ServedCatalog):
    """Namespaces and tables of the service that the property ``uri`` names.

    An instance also keeps views, or changes several tables in one step, if the service offers the endpoints for it.
    """

    _service: Service

    def __new__(cls, name: str, properties: Mapping[str, str], io: FileIO) -> Self:
        """Ask the service for its configuration, and choose the class by the endpoints that the service offers."""
        if "commit" in properties:
            raise InvalidArgument(
                f"catalog '{name}' of type 'rest' commits by its service: remove the property 'commit'"
            )
        service = Service(name, with_preset(name, properties), io.plugins)
        made = super().__new__(_offering(cls, service))
        made._service = service
        return made

    def __init__(self, name: str, properties: Mapping[str, str], io: FileIO) -> None:
        super().__init__(name, self._service.properties, io)
        self._namespaces = Namespaces(self._service)
        self._tables = Tables(self._service)

    @property
    def abilities(self) -> frozenset[CatalogAbility]:
        service = self._service
        offered = {
            CatalogAbility.RENAME: Endpoint.RENAME_TABLE,
            CatalogAbility.REGISTRATION: Endpoint.REGISTER_TABLE,
        }
        found = {ability for ability, endpoint in offered.items() if service.has(endpoint)}
        return frozenset({*found, CatalogAbility.NESTED_NAMESPACES})

    # -- namespaces

    def create_namespace(self, namespace: NamespaceName, properties: Mapping[str, str]) -> None:
        self._namespaces.create(namespace, properties)

    def drop_namespace(self, namespace: NamespaceName) -> None:
        self._namespaces.drop(namespace)

    def list_namespaces(
        self, parent: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[NamespaceName]:
        found = self._namespaces.names(parent)
        checked_names(f"the namespaces of catalog '{self.name}'", (name[-1] for name in found))
        return page_of(found, token, size)

    def namespace_properties(self, namespace: NamespaceName) -> dict[str, str]:
        return checked_properties(namespace, self._namespaces.properties(namespace))

    def namespace_exists(self, namespace: NamespaceName) -> bool:
        return self._namespaces.exists(namespace)

    def update_namespace_properties(
        self, namespace: NamespaceName, updates: Mapping[str, str], removals: frozenset[str]
    ) -> None:
        self._namespaces.update(namespace, updates, removals)

    # -- tables

    def list_tables(
        self, namespace: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[TableName]:
        what = f"the tables of {'.'.join(namespace)} in catalog '{self.name}'"
        return self._listed(what, namespace, self._tables.names, token, size)

    def table_exists(self, table: TableName) -> bool:
        return self._tables.exists(table)

    def table_location(self, table: TableName) -> str:
        """Return the default location of a new table: below its namespace's, or from a staged creation."""
        properties = self.namespace_properties(table[:-1])
        if location := properties.get("location"):
            return f"{location.rstrip('/')}/{table[-1]}"
        schema = schema_to_json(Schema(NestedField(1, "id", LongType())))
        staged = self._tables.create(table, {"schema": schema, "stage-create": True})
        assert staged.current.metadata is not None
        return staged.current.metadata.location

    def strategy(self, table: TableName, location: str | None = None) -> CommitStrategy:
        return RestStrategy(table, location or "", self.io.storage(location), self.properties, self._tables)

    def create_table(self, table: TableName, new: NewTable, *, staged: bool = False) -> Current:
        made = self._tables.create(table, create_body(new, staged=staged)).current
        if not staged:
            warn_partly_committed(self.name, table, _left_out(new, made))
        return made

    def register_table(self, table: TableName, metadata_location: str) -> None:
        if not self._namespaces.exists(table[:-1]):  # Java's JDBC catalog would register into nowhere
            name = ".".join(table[:-1])
            raise NoSuchNamespace(f"no namespace {name} in catalog '{self.name}'", namespace=table[:-1])
        self._tables.register(table, metadata_location)

    def rename_table(self, source: TableName, target: TableName) -> None:
        self._tables.rename(source, target)

    def purge_table(self, table: TableName) -> None:
        self._tables.drop(table, purge=True)

    def credentials(self) -> str | None:
        return self._service.connection.authenticator.says()

    def close(self) -> None:
        self._service.close()

    def _listed(
        self,
        what: str,
        namespace: NamespaceName,
        names: Callable[[NamespaceName], list[str]],
        token: str | None,
        size: int | None,
    ) -> Page[TableName]:
        try:
            found = checked_names(what, names(namespace))
        except ServiceRefusal as refused:
            if refused.status == 404:
                raise missing_namespace(namespace, refused) from refused
            raise error_of(refused, f"listing {what}") from refused
        return page_of([(*namespace, name) for name in found], token, size)


class _Transactions(RestBackend, MultiTableCatalog):
    """The catalog of a service that commits transactions."""

    def commit_tables(self, changes: Sequence[TableChange]) -> tuple[Committed, ...] | Conflict:
        what = "committing a transaction"
        lost: Uncertain | None = None
        try:
            self._tables.commit_all(changes)
        except Uncertain as uncertain:
            lost = uncertain
        except ServiceRefusal as refused:
            if refused.status == 409:
                return Conflict()
            if refused.status == 404 and refused.kind == "NoSuchTable":
                raise NoSuchTable(f"{what}: {refused.said}") from refused
            raise error_of(refused, what) from refused
        outcomes = [self._after(change, lost) for change in changes]
        if all(isinstance(found, Committed) for found in outcomes):
            return tuple(found for found in outcomes if isinstance(found, Committed))
        if any(isinstance(found, Conflict) for found in outcomes) and lost is not None:
            return Conflict()
        said = f"the reply to {what} was lost ({lost})" if lost is not None else f"{what} was acknowledged"
        raise CommitStateUnknown(
            f"{said}, and the catalog does not show whether it happened; no file was deleted: load the tables again "
            "and look for the changes",
        ) from lost

    def _after(self, change: TableChange, lost: Uncertain | None) -> Committed | Conflict | None:
        """Return the outcome of one table's part of a transaction."""
        strategy = RestStrategy(change.table, "", self.io.storage(), self.properties, self._tables)
        if lost is None:
            try:
                return strategy.made(change.base, change.proposal)
            except IcefieldError:  # the change is made all the same, and is no failure
                return None
        return strategy.outcome_of(change.base, change.proposal)


class _Views(RestBackend, ViewCatalog):
    """The catalog of a service that keeps views."""

    def __init__(self, name: str, properties: Mapping[str, str], io: FileIO) -> None:
        super().__init__(name, properties, io)
        self._views = Views(self._service, self._tables)

    def list_views(
        self, namespace: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[TableName]:
        what = f"the views of {'.'.join(namespace)} in catalog '{self.name}'"
        return self._listed(what, namespace, self._views.names, token, size)

    def load_view(self, view: TableName) -> CurrentView | None:
        return self._views.load(view)

    def commit_view(self, view: TableName, base: CurrentView | None, proposal: ViewProposal) -> CurrentView | None:
        return self._views.commit(view, base, proposal)

    def drop_view(self, view: TableName) -> None:
        self._views.drop(view)

    def rename_view(self, source: TableName, target: TableName) -> None:
        self._views.rename(source, target)


class _TransactionsAndViews(_Transactions, _Views):
    """The catalog of a service that both keeps views and commits transactions."""


def _offering(kind: type[Rest], service: Service) -> type[Rest]:
    """The class for the endpoints of a service: ``RestBackend`` or one of its subclasses; any other class as it is."""
    if kind is not RestBackend:
        return kind
    several, views = (
        service.has(Endpoint.COMMIT_TRANSACTION),
        service.has(Endpoint.LIST_VIEWS) and service.has(Endpoint.LOAD_VIEW),
    )
    found = {
        (True, True): _TransactionsAndViews,
        (True, False): _Transactions,
        (False, True): _Views,
        (False, False): RestBackend,
    }[several, views]
    return cast("type[Rest]", found)


def _left_out(new: NewTable, made: Current) -> list[str]:
    """Describe the properties of a new table that the service did not accept."""
    assert made.metadata is not None
    there = {**made.metadata.properties, FORMAT_VERSION: str(made.metadata.format_version)}
    lost = [name for name, value in new.properties.items() if there.get(name) != value]
    return [
        f"format version {new.properties[name]}" if name == FORMAT_VERSION else f"property '{name}'" for name in lost
    ]
