"""Checks of changes that are made at the same time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, NamedTuple

import pytest
from icefield.abc import CatalogBackend
from icefield.errors import IcefieldError, StorageError

from icefield_testing.catalogs.faults import FaultChecks
from icefield_testing.catalogs.pair import Pair, Said
from icefield_testing.catalogs.pairs import PAIRS
from icefield_testing.fault_model import STEPS, Hold, Step
from icefield_testing.service_faults import RequestFaults

_WRITERS: Final = 4
_UPDATES: Final = 2
_DELAY: Final = 0.005
"""The seconds between the beginnings of the two changes, so that the second falls into the first."""


class RaceChecks(FaultChecks):
    """Checks of racing changes of namespaces, tables and views."""

    def test_no_update_of_a_namespace_is_lost_or_seen_by_halves(self, backend: CatalogBackend) -> None:
        """If this fails, ``update_namespace_properties`` reads, changes and writes in separate steps, or sets and
        removes in two: make it one transaction, or one conditional write that is tried again."""
        if self.unconditional_namespaces:
            pytest.skip("the store changes a namespace without a condition (`unconditional_namespaces`)")
        backend.create_namespace(("raced",), {"even": "0"})
        acknowledged: set[str] = set()
        done = threading.Event()
        halves: list[str] = []

        def update(writer: int) -> None:
            for number in range(_UPDATES):
                try:
                    backend.update_namespace_properties(("raced",), {f"w{writer}-{number}": "1"}, frozenset())
                except StorageError:  # the store is busy, or the outcome is unknown
                    continue
                acknowledged.add(f"w{writer}-{number}")

        def turn() -> None:
            for number in range(1, 2 * _UPDATES + 1):
                new, old = ("odd", "even") if number % 2 else ("even", "odd")
                backend.update_namespace_properties(("raced",), {new: str(number)}, frozenset({old}))

        def watch() -> None:
            while not done.is_set():
                time.sleep(0.003)
                found = backend.namespace_properties(("raced",))
                if ("odd" in found) == ("even" in found):
                    halves.append(f"odd={found.get('odd')}, even={found.get('even')}")

        with ThreadPoolExecutor(_WRITERS + 2) as pool:
            watching = pool.submit(watch)
            try:
                works = [pool.submit(turn), *(pool.submit(update, writer) for writer in range(_WRITERS))]
                for work in works:
                    work.result()
            finally:
                done.set()
            watching.result()
        lost = sorted(acknowledged - self.properties(backend, ("raced",)).keys())
        assert not lost, f"{len(lost)} of {len(acknowledged)} updates are lost: {', '.join(lost)}"
        assert acknowledged, f"none of {_WRITERS * _UPDATES} updates gets through beside others"
        if not self.namespaces_read_by_rows:
            assert not halves, f"an update that sets one property and removes another is seen by halves: {halves[0]}"

    def test_two_changes_at_once_leave_a_state_that_can_be(
        self, backend: CatalogBackend, service: RequestFaults | None
    ) -> None:
        """If this fails, a change looks first and writes then, so that another fits in between: let the store decide in
        the step that writes, by a condition, a unique key or a transaction."""
        if service is not None:
            pytest.skip("changes that are held up show more: test_a_change_that_is_held_up_harms_no_other")
        for number, (name, kind) in enumerate(PAIRS.items()):
            if self._applies(kind, backend):
                # On a loaded machine the rival may come before the first looks: then it comes later by that time.
                new = partial(self._pair, kind, backend, f"p{number}")
                took = self._at_once(name, new(0), _DELAY)
                self._at_once(name, new(1), _DELAY + took)

    def test_a_change_that_is_held_up_harms_no_other(
        self, backend: CatalogBackend, service: RequestFaults | None
    ) -> None:
        """If this fails, a change looked, was held up before one of its requests, and wrote though another was made
        meanwhile: let the service decide in the request that writes, by a condition, a unique key or a transaction."""
        service = self._needs_service(service)
        through = self.backend_through(service, backend)
        through.list_namespaces((), size=1)  # connects, so that only requests of the change are counted
        single: set[object] = set()  # changes of one request, which cannot be held up in between
        for number, (name, kind) in enumerate(PAIRS.items()):
            if self._applies(kind, backend) and kind.first not in single:
                new = partial(self._pair, kind, backend, f"h{number}")
                if not self._hold_up_each(name, new, through, service):
                    single.add(kind.first)
        through.close()

    def _applies(self, kind: type[Pair], backend: CatalogBackend) -> bool:
        return kind.is_for(backend) and not (kind.needs_conditions and self.unconditional_namespaces)

    def _hold_up_each(
        self, name: str, new: Callable[[int], Pair], through: CatalogBackend, service: RequestFaults
    ) -> bool:
        """Hold the first change up before each request except its first, where the rival would only come earlier.

        If the rival waits for a lock, which one of the last requests releases, the requests before these are left out.
        Returns False if there is no second request.
        """
        number, end = 1, STEPS
        while number < end:
            held = self._held_up(name, new(number), through, service, number)
            if not held.is_reached:
                return number > 1
            if held.rival_waited:
                number, end = max(number, held.requests - 2), held.requests
            elif held.first_is_done:
                end = held.requests
            number += 1
        return True

    def _pair(self, kind: type[Pair], backend: CatalogBackend, name: str, number: int) -> Pair:
        return kind(self, backend, (f"{name}x{number}",))

    def _at_once(self, what: str, pair: Pair, delay: float) -> float:
        """Make both changes in two threads, the rival's later by ``delay``; return the seconds of the first."""
        pair.prepare()
        pair.open(pair.backend)
        ready = threading.Barrier(2)

        def begin(act: Callable[[], None], after: float) -> tuple[Said, float]:
            ready.wait(60)
            time.sleep(after)
            began = time.monotonic()
            return self._raised(act), time.monotonic() - began

        with ThreadPoolExecutor(2) as pool:
            (first, took), (rival, _) = pool.map(begin, (pair.first, pair.rival), (0.0, delay))
        self._judged(what, pair, first, rival)
        return took

    def _held_up(self, name: str, pair: Pair, through: CatalogBackend, service: RequestFaults, number: int) -> _Held:
        """Make the first change, and the rival's change before the request with this number."""
        pair.prepare()
        pair.open(through)
        said: list[Said] = []
        waited: list[bool] = []
        rival = threading.Thread(target=lambda: said.append(hold.let_pass(lambda: self._raised(pair.rival))))

        def meanwhile() -> None:
            rival.start()
            rival.join(self.hold_seconds)
            waited.append(rival.is_alive())

        hold = Hold(meanwhile)
        with Step(service, hold.at(number), number, f"{name}, the first held up before") as step:
            first = self._raised(pair.first)
        if step.reached:
            rival.join()
            self._judged(str(step), pair, first, said[0])
        return _Held(step.reached, hold.requests, any(waited), first is None)

    def _judged(self, what: str, pair: Pair, first: Said, rival: Said) -> None:
        story = f"{what}: the first says {_short(first)}, the other says {_short(rival)}"
        for said in (first, rival):
            assert said is None or isinstance(said, IcefieldError), f"not one of Icefield's errors: {said!r}, {story}"
        try:
            pair.judge(first, rival)
        except AssertionError as error:
            raise AssertionError(f"{error} ({story})") from error


class _Held(NamedTuple):
    """The course of a change that was held up."""

    is_reached: bool
    requests: int
    rival_waited: bool
    first_is_done: bool


def _short(said: Said) -> str:
    return "done" if said is None else type(said).__name__
