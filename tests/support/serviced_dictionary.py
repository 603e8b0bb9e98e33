"""The catalog in dictionaries, as a service: each step is a request, which may be lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from dictionary_catalog import DictionaryStrategy, DictionaryViews, WholeDictionaryBackend
from icefield.abc import CurrentView, NamespaceName, Page, Proposal, TableName, ViewProposal
from icefield.errors import CommitStateUnknown, StorageError
from icefield.toolkit import OutcomeUnknown
from icefield_testing import LossyCalls

R = TypeVar("R")

CALLS = LossyCalls()


def asked(call: Callable[[], R]) -> R:
    """The answer of the service. Raises ``StorageError`` if it is lost."""
    try:
        return CALLS.wrap(call)()
    except ConnectionResetError as error:
        raise StorageError("no reply from the service") from error


class ServiceStrategy(DictionaryStrategy):
    """The pointer of one table."""

    def read_pointer(self) -> str | None:
        return asked(super().read_pointer)

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        try:
            return CALLS.wrap(super().swap_pointer)(old, new, proposal)
        except ConnectionResetError as error:
            raise OutcomeUnknown("no reply from the service") from error

    def drop(self) -> None:
        try:
            CALLS.wrap(super().drop)()
        except ConnectionResetError as error:
            raise CommitStateUnknown("no reply from the service", table=self.table) from error


class ServiceViews(DictionaryViews):
    """The pointers of views."""

    def read_pointer(self, view: TableName) -> str | None:
        return asked(lambda: super(ServiceViews, self).read_pointer(view))

    def swap_pointer(self, view: TableName, old: str | None, new: str) -> bool:
        try:
            return CALLS.wrap(super().swap_pointer)(view, old, new)
        except ConnectionResetError as error:
            raise OutcomeUnknown("no reply from the service") from error


class OverAService(WholeDictionaryBackend):
    """A right catalog over a service."""

    strategy_class = ServiceStrategy

    @property
    def views(self) -> DictionaryViews:
        return ServiceViews(self.io, self.store)

    def ask(self, call: Callable[[], R]) -> R:
        """Ask the service for a change, and return its answer."""
        return asked(call)

    def read(self, call: Callable[[], R]) -> R:
        """Ask the service without a change, and return its answer."""
        return asked(call)

    def create_namespace(self, namespace: NamespaceName, properties: Mapping[str, str]) -> None:
        self.ask(lambda: super(OverAService, self).create_namespace(namespace, properties))

    def drop_namespace(self, namespace: NamespaceName) -> None:
        self.ask(lambda: super(OverAService, self).drop_namespace(namespace))

    def update_namespace_properties(
        self, namespace: NamespaceName, updates: Mapping[str, str], removals: frozenset[str]
    ) -> None:
        self.ask(lambda: WholeDictionaryBackend.update_namespace_properties(self.direct, namespace, updates, removals))

    def rename_table(self, source: TableName, target: TableName) -> None:
        self.ask(lambda: super(OverAService, self).rename_table(source, target))

    def rename_view(self, source: TableName, target: TableName) -> None:
        self.ask(lambda: super(OverAService, self).rename_view(source, target))

    def drop_view(self, view: TableName) -> None:
        self.ask(lambda: super(OverAService, self).drop_view(view))

    def namespace_properties(self, namespace: NamespaceName) -> dict[str, str]:
        return self.read(lambda: self.direct.namespace_properties(namespace))

    def list_namespaces(
        self, parent: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[NamespaceName]:
        return self.read(lambda: self.direct.list_namespaces(parent, token=token, size=size))

    def list_tables(
        self, namespace: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[TableName]:
        return self.read(lambda: self.direct.list_tables(namespace, token=token, size=size))

    def list_views(
        self, namespace: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[TableName]:
        return self.read(lambda: self.direct.list_views(namespace, token=token, size=size))

    def commit_view(self, view: TableName, base: CurrentView | None, proposal: ViewProposal) -> CurrentView | None:
        return self.views.commit(view, base, proposal)

    @property
    def direct(self) -> WholeDictionaryBackend:
        """The catalog within the service."""
        return WholeDictionaryBackend(self.name, self.properties, self.io)
