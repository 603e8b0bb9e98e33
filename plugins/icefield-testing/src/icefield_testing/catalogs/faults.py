"""Checks of lost requests, lost replies and a service that stays down."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Final

import pytest
from icefield.abc import CatalogAbility, CatalogBackend, ServedCatalog, ViewCatalog
from icefield.commit import current_of
from icefield.errors import (
    CommitStateUnknown,
    FileMissing,
    IcefieldError,
    NamespaceExists,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchTable,
    NoSuchView,
    TableExists,
    ViewExists,
)

from icefield_testing.catalogs.attempts import Attempt
from icefield_testing.catalogs.fault_changes import CHANGES
from icefield_testing.catalogs.several_tables import SeveralTablesChecks
from icefield_testing.catalogs.views import ViewChecks
from icefield_testing.fault_model import KINDS, Step, late_request, walk
from icefield_testing.service_faults import LossyProxy, RequestFaults
from icefield_testing.silence import errors_in_silence

_TRIES: Final = 3
TAKEN_OR_GONE: Final = (
    NamespaceExists,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchTable,
    NoSuchView,
    TableExists,
    ViewExists,
)


class FaultChecks(ViewChecks, SeveralTablesChecks):
    """Checks of the reported outcome and of the state after a lost request or reply. They need ``service``."""

    def test_a_lost_reply_about_a_name_is_not_taken_for_anothers_doing(
        self, backend: CatalogBackend, service: RequestFaults | None
    ) -> None:
        """If this fails, a change of a name whose reply was lost is repeated, and finds its own work: a name that is
        taken, or nothing to drop. Say ``StorageError`` where the outcome is not known. An error of a client's library
        must not come through, and a success must be one.
        """
        service = self._needs_service(service)
        through = self.backend_through(service, backend)
        for number, (change, kind) in enumerate(CHANGES.items()):
            if kind.is_for(backend):
                trial = _Trial(self, change, kind(self, backend), f"s{number}", service, through)
                trial.run()
                through = trial.through
        through.close()

    def test_a_commit_that_arrives_late_is_not_called_a_failure(
        self, backend: CatalogBackend, service: RequestFaults | None
    ) -> None:
        """If this fails, the client gave a request of a commit up, read back and found nothing, and called the commit a
        failure; then the service executed the request: raise ``CommitStateUnknown`` while the pointer has not moved,
        since a request without a reply may still arrive."""
        service = self._needs_service(service)
        through = self.backend_through(service, backend)
        for number, (change, kind) in enumerate(CHANGES.items()):
            if not kind.commits or not kind.is_for(backend):
                continue
            attempt = kind(self, backend)
            for step in walk(service, late_request, f"'{change}' with a late"):
                attempt.begin((f"l{number}x{step.number}",))
                through = self._connected(service, backend, through)
                attempt.open(through)
                with step:
                    error = self._raised(attempt.act)
                service.deliver_late()
                self._judge(attempt, error, str(step))
        through.close()

    def test_a_read_without_a_reply_is_no_answer(self, backend: CatalogBackend, service: RequestFaults | None) -> None:
        """If this fails, a read whose reply was lost says that nothing is there, or less than is there: ask again, or
        raise ``StorageError``."""
        service = self._needs_service(service)
        backend.create_namespace(("a",), {"x": "1"})
        self.create_table(backend, ("a", "t"))
        if isinstance(backend, ViewCatalog):
            self._new_view(backend, ("a", "v"))
        through = self.backend_through(service, backend)
        for name, read in _reads(backend).items():
            right = read()
            for step in walk(service, KINDS["lost reply"], f"{name} with a lost reply at"):
                through = self._connected(service, backend, through)
                again = _reads(through)[name]
                try:
                    with step:
                        answer = again()
                except TAKEN_OR_GONE as error:
                    raise AssertionError(f"{name} takes a lost reply for {type(error).__name__}: {error}") from error
                except IcefieldError:
                    continue
                except Exception as error:
                    raise AssertionError(f"{name} lets an error of the client through: {error!r}") from error
                assert answer == right, f"{name} answers {answer!r} and not {right!r} after a lost reply"
        through.close()

    def test_a_service_that_never_answers_is_an_error_in_time(
        self, backend: CatalogBackend, service: RequestFaults | None
    ) -> None:
        """If this fails, the service takes a request and never answers, and the call waits for ever, takes the silence
        for an answer, or lets an error of the client through: set a time-out on each connection and each read."""
        service = self._needs_service(service)
        if not isinstance(service, LossyProxy):
            pytest.skip("the requests go through no network, so no time-out can strike (`service`)")
        if not self.time_out_properties:
            pytest.skip("no short time-out is stated (`time_out_properties`)")
        backend.create_namespace(("a",), {})
        hasty = type(backend)(backend.name, {**backend.properties, **self.time_out_properties}, backend.io)
        through = self._connected(service, hasty, self.backend_through(service, hasty))
        calls: dict[str, Callable[[], object]] = {
            "list_namespaces": lambda: through.list_namespaces(()),
            "create_namespace": lambda: through.create_namespace(("new",), {}),
        }
        for name, error in errors_in_silence(service, calls, self.silence_seconds).items():
            assert error is not None, f"{name} takes the silence of the service for an answer"
            right = isinstance(error, IcefieldError) and not isinstance(error, TAKEN_OR_GONE)
            assert right, f"{name} does not say that the service is silent: {error!r}"
        through.close()

    # -- helpers

    def _needs_service(self, service: RequestFaults | None) -> RequestFaults:
        if service is None:
            pytest.skip("the catalog asks no service (`service`)")
        return service

    def _connected(self, service: RequestFaults, backend: CatalogBackend, through: CatalogBackend) -> CatalogBackend:
        """A backend that has connected through the service. Faults thus count only requests of the change."""
        for _ in range(_TRIES):
            with suppress(IcefieldError):
                through.list_namespaces((), size=1)
                return through
            through.close()
            through = self.backend_through(service, backend)
        through.list_namespaces((), size=1)
        return through

    def _raised(self, act: Callable[[], object]) -> Exception | None:
        try:
            act()
        except Exception as error:
            return error
        return None

    def _judge(self, attempt: Attempt, error: Exception | None, what: str) -> bool:
        """Check the reported outcome of a change against the state, and return whether the change is made."""
        if isinstance(error, AssertionError):
            raise AssertionError(f"{what}: {error}") from error
        if isinstance(error, TAKEN_OR_GONE):
            raise AssertionError(f"{what} says {type(error).__name__}, and nobody else was there: {error}") from error
        if error is not None and not isinstance(error, IcefieldError):
            raise AssertionError(f"{what} lets an error of the client through: {error!r}") from error
        try:
            done = attempt.is_done()
        except FileMissing as missing:
            raise AssertionError(f"{what} leaves a pointer to a file that was deleted: {missing}") from error
        assert done is not None, f"{what} is half done"
        assert done or error is not None, f"{what} is said to be done and is not"
        if attempt.commits and not isinstance(error, CommitStateUnknown):
            assert error is None or not done, f"{what} is made, and called a failure: {error!r}"
        return done


class _Trial:
    """One change, made repeatedly with a fault at each request where it can matter.

    If a request changes nothing, its loss and the loss of its reply are the same to the client. So each request loses
    its reply, and only requests after whose execution the change is made are lost themselves.
    """

    def __init__(
        self,
        checks: FaultChecks,
        change: str,
        attempt: Attempt,
        name: str,
        service: RequestFaults,
        through: CatalogBackend,
    ) -> None:
        self.through = through
        self._checks, self._change, self._attempt = checks, change, attempt
        self._service = service
        self._spaces = ((f"{name}x{number}",) for number in count())

    def run(self) -> None:
        self._attempt.begin(next(self._spaces))
        made: list[bool] = []
        for step in walk(self._service, KINDS["lost reply"], f"'{self._change}' with a lost reply at"):
            made.append(self._is_made(step))
        requests = min(step.made, len(made))
        decisive = 0
        if self._attempt.commits:  # only a commit must report its outcome right while the service is down
            for decisive in reversed(range(requests)):
                if not self._is_made(self._step("stays down", "a service that is down after", decisive)):
                    break
        for number in range(decisive, requests):
            if made[number]:
                self._is_made(self._step("lost request", "a lost", number))

    def _step(self, kind: str, told: str, number: int) -> Step:
        return Step(self._service, KINDS[kind](number), number, f"'{self._change}' with {told}")

    def _is_made(self, step: Step) -> bool:
        """Make the change with a fault, and return whether it is made. The next writer undoes a change that is made."""
        attempt = self._attempt
        self.through = self._checks._connected(self._service, attempt.backend, self.through)
        attempt.open(self.through)
        with step:
            error = self._checks._raised(attempt.act)
        if not step.reached:
            later = "nothing is lost; an earlier fault may have left something behind"
            assert error is None, f"'{self._change}' fails though {later}: {error!r}"
        made = self._checks._judge(attempt, error, str(step))
        if self._checks.locks_expire and step.reached:
            attempt.begin(next(self._spaces))
        elif made:
            left = self._checks._raised(attempt.undo)
            assert left is None, f"after {step}, the next writer fails: {left!r}"
        return made


def _reads(backend: CatalogBackend) -> dict[str, Callable[[], object]]:
    """The reads of a catalog that has the namespace a, the table a.t and perhaps the view a.v."""
    reads: dict[str, Callable[[], object]] = {
        "list_namespaces": lambda: backend.list_namespaces(()).items,
        "namespace_properties": lambda: backend.namespace_properties(("a",)),
        "list_tables": lambda: backend.list_tables(("a",)).items,
        "table_location": lambda: backend.table_location(("a", "new")),
        "load of the strategy": lambda: _location(backend),
    }
    if CatalogAbility.NESTED_NAMESPACES in backend.abilities:
        reads["list_namespaces of a parent"] = lambda: backend.list_namespaces(("a",)).items
    if isinstance(backend, ViewCatalog):
        reads["list_views"] = lambda: backend.list_views(("a",)).items
        reads["load_view"] = lambda: _uuid(backend)
    if isinstance(backend, ServedCatalog):
        reads["table_exists"] = lambda: backend.table_exists(("a", "t"))
        reads["namespace_exists"] = lambda: backend.namespace_exists(("a",))
    return reads


def _location(backend: CatalogBackend) -> str | None:
    current = current_of(backend.strategy(("a", "t")))
    return None if current is None else current.pointer.location


def _uuid(backend: ViewCatalog) -> str | None:
    current = backend.load_view(("a", "v"))
    return None if current is None else str(current.metadata.view_uuid)
