"""Catalogs over a service that misread a lost request or reply, or that make a change in several requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from dictionary_catalog import DictionaryStrategy, DictionaryViews
from icefield.abc import Committed, Conflict, NamespaceName, Page, Pointer, Proposal, TableName
from icefield.errors import (
    CommitStateUnknown,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchTable,
    NoSuchView,
    StorageError,
    TableExists,
    ViewExists,
)
from icefield.toolkit import OutcomeUnknown
from serviced_dictionary import CALLS, OverAService, ServiceStrategy, ServiceViews, asked

from mutants import Mutant, of

R = TypeVar("R")

LOST = "test_a_lost_reply_about_a_name_is_not_taken_for_anothers_doing"
LATE = "test_a_commit_that_arrives_late_is_not_called_a_failure"
READ = "test_a_read_without_a_reply_is_no_answer"


class AsksAgainAfterALostReply(OverAService):
    def ask(self, call: Callable[[], R]) -> R:
        try:
            return CALLS.wrap(call)()
        except ConnectionResetError:
            return asked(call)


class TakesALostReplyForSuccess(OverAService):
    def ask(self, call: Callable[[], R]) -> R:
        try:
            return CALLS.wrap(call)()
        except ConnectionResetError:
            return None  # type: ignore[return-value]


class LetsItsClientsErrorsThrough(OverAService):
    def ask(self, call: Callable[[], R]) -> R:
        return CALLS.wrap(call)()


class RenamesInTwoSteps(OverAService):
    def rename_table(self, source: TableName, target: TableName) -> None:
        self.check(target[:-1])
        if source not in self.store.pointers:
            raise NoSuchTable("no such table", table=source)
        if target in self.store.pointers:
            raise TableExists("there is one", table=target)
        self.ask(lambda: self.store.pointers.update({target: self.store.pointers[source]}))
        self.ask(lambda: self.store.pointers.pop(source) and None)


class RenamesViewsInTwoSteps(OverAService):
    def rename_view(self, source: TableName, target: TableName) -> None:
        self.check(target[:-1])
        if source not in self.store.views:
            raise NoSuchView("no such view", view=source)
        if target in self.store.views:
            raise ViewExists("there is one", view=target)
        self.ask(lambda: self.store.views.update({target: self.store.views[source]}))
        self.ask(lambda: self.store.views.pop(source) and None)


class CreatesNamespacesInTwoSteps(OverAService):
    def create_namespace(self, namespace: NamespaceName, properties: Mapping[str, str]) -> None:
        super().create_namespace(namespace, {})
        if properties:
            super().update_namespace_properties(namespace, properties, frozenset())


class SetsThenRemoves(OverAService):
    def update_namespace_properties(
        self, namespace: NamespaceName, updates: Mapping[str, str], removals: frozenset[str]
    ) -> None:
        super().update_namespace_properties(namespace, updates, frozenset())
        if removals:
            super().update_namespace_properties(namespace, {}, removals)


class EmptiesThenDropsNamespaces(OverAService):
    """Removes the properties in one request, and the namespace in the next."""

    def drop_namespace(self, namespace: NamespaceName) -> None:
        old = self.direct.namespace_properties(namespace)
        if any(name[:-1] == namespace for name in (*self.store.pointers, *self.store.views, *self.store.namespaces)):
            raise NamespaceNotEmpty("not empty", namespace=namespace)
        super().update_namespace_properties(namespace, {}, frozenset(old))
        super().drop_namespace(namespace)


class _DropsAndFails(ServiceStrategy):
    def drop(self) -> None:
        try:
            CALLS.wrap(lambda: DictionaryStrategy.drop(self))()
        except ConnectionResetError as error:
            raise StorageError("the table was not dropped") from error


class SaysThatADropFailed(OverAService):
    strategy_class = _DropsAndFails


class _DropsInVain(ServiceStrategy):
    def drop(self) -> None:
        try:
            CALLS.wrap(lambda: DictionaryStrategy.drop(self))()
        except ConnectionResetError:
            return


class SaysThatATableIsDropped(OverAService):
    strategy_class = _DropsInVain


class _FailsToCreate(ServiceStrategy):
    def commit(self, base: Pointer | None, proposal: Proposal) -> Committed | Conflict:
        try:
            return super().commit(base, proposal)
        except CommitStateUnknown as error:
            raise StorageError("the table was not created") from error


class SaysThatACreationFailed(OverAService):
    strategy_class = _FailsToCreate


class _BelievesWhatItReadsBack(ServiceStrategy):
    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        try:
            return super().swap_pointer(old, new, proposal)
        except OutcomeUnknown as lost:
            if self.read_pointer() == new:
                return True
            raise StorageError("the table was not changed", retryable=True) from lost


class CallsALateCommitAFailure(OverAService):
    strategy_class = _BelievesWhatItReadsBack


class _BelievesItsViews(ServiceViews):
    def swap_pointer(self, view: TableName, old: str | None, new: str) -> bool:
        try:
            return super().swap_pointer(view, old, new)
        except OutcomeUnknown as lost:
            if self.read_pointer(view) == new:
                return True
            raise StorageError("the view was not changed", retryable=True) from lost


class CallsALateViewAFailure(OverAService):
    @property
    def views(self) -> DictionaryViews:
        return _BelievesItsViews(self.io, self.store)


class _FailingViews(ServiceViews):
    def swap_pointer(self, view: TableName, old: str | None, new: str) -> bool:
        try:
            return super().swap_pointer(view, old, new)
        except OutcomeUnknown:
            return False


class SaysThatAnotherChangedTheView(OverAService):
    @property
    def views(self) -> DictionaryViews:
        return _FailingViews(self.io, self.store)


class TakesALostReadForNothing(OverAService):
    def namespace_properties(self, namespace: NamespaceName) -> dict[str, str]:
        try:
            return super().namespace_properties(namespace)
        except StorageError as error:
            raise NoSuchNamespace("there is no such namespace", namespace=namespace) from error


class ListsNothingWithoutAReply(OverAService):
    def list_tables(
        self, namespace: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[TableName]:
        try:
            return super().list_tables(namespace, token=token, size=size)
        except StorageError:
            return Page(())


class _LoadsNothing(ServiceStrategy):
    def read_pointer(self) -> str | None:
        try:
            return super().read_pointer()
        except StorageError:
            return None


class TakesALostReadForNoTable(OverAService):
    strategy_class = _LoadsNothing


class _LoadsNoView(ServiceViews):
    def read_pointer(self, view: TableName) -> str | None:
        try:
            return super().read_pointer(view)
        except StorageError:
            return None


class TakesALostReadForNoView(OverAService):
    @property
    def views(self) -> DictionaryViews:
        return _LoadsNoView(self.io, self.store)


class LetsErrorsOfReadsThrough(OverAService):
    def read(self, call: Callable[[], R]) -> R:
        return CALLS.wrap(call)()


MUTANTS: list[Mutant] = of(
    {
        AsksAgainAfterALostReply: (LOST, "says NamespaceExists, and nobody else was there"),
        TakesALostReplyForSuccess: (LOST, "is said to be done and is not"),
        LetsItsClientsErrorsThrough: (LOST, "lets an error of the client through"),
        RenamesInTwoSteps: (LOST, "'rename' with a lost reply at request 1 of 1 is half done"),
        RenamesViewsInTwoSteps: (LOST, "'rename view' with a lost reply at request 1 of 1 is half done"),
        CreatesNamespacesInTwoSteps: (LOST, "'create' with a lost reply at request 1 of 1 is half done"),
        SetsThenRemoves: (LOST, "'update' with a lost reply at request 1 of 1 is half done"),
        EmptiesThenDropsNamespaces: (LOST, "'drop' with a lost reply at request 1 of 1 is half done"),
        SaysThatADropFailed: (LOST, "is made, and called a failure"),
        SaysThatATableIsDropped: (LOST, "'drop table' with a lost request 1 of 1 is said to be done"),
        SaysThatACreationFailed: (LOST, "is made, and called a failure"),
        SaysThatAnotherChangedTheView: (LOST, "the change of a view says that another came first"),
        CallsALateCommitAFailure: (LATE, "'create table' with a late request 1 of 3 is made, and called a failure"),
        CallsALateViewAFailure: (LATE, "'create view' with a late request 1 of 3 leaves a pointer to a file that"),
        TakesALostReadForNothing: (READ, "namespace_properties takes a lost reply for NoSuchNamespace"),
        ListsNothingWithoutAReply: (READ, "list_tables answers () and not (('a', 't'),) after a lost reply"),
        TakesALostReadForNoTable: (READ, "load of the strategy answers None"),
        TakesALostReadForNoView: (READ, "load_view answers None"),
        LetsErrorsOfReadsThrough: (READ, "lets an error of the client through"),
    }
)
