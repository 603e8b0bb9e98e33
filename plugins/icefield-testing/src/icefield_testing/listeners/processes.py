"""Checks of a listener in other processes: a forked one, and a fresh one from its first event to its end."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, ClassVar, Final

import pytest
from icefield.abc import Event

from icefield_testing.listeners import fresh
from icefield_testing.listeners.base import ListenerChecks
from icefield_testing.listeners.hearing import Hearing
from icefield_testing.listeners.sample_events import sample_events
from icefield_testing.processes import ended, ran

_COUNTED: Final = 25
_START_SECONDS: Final = 10.0
"""The time that a fresh interpreter has for its start."""


class ProcessChecks(ListenerChecks):
    """Checks of the listener in processes of their own."""

    def test_events_of_a_forked_process_are_delivered(self, listener: Any) -> None:
        """If this fails, the listener ignores the events of a process that was forked after its first event: begin
        anew there, with ``icefield.toolkit.reset_after_fork``."""
        with Hearing(listener, self.properties) as hearing:
            hearing.hear(sample_events())
        before = self.count(listener)
        counted = self._counted_in_a_fork(listener, _COUNTED)
        came = max(counted, self.count(listener) - before)
        assert came >= _COUNTED, f"{_COUNTED - came} of {_COUNTED} events of a forked process are lost"

    def test_the_first_event_changes_nothing_of_the_process(self, listener: Any) -> None:
        """If this fails, the listener configures what belongs to the program, such as logging or signals, when it hears
        its first event."""
        status, said = self._lived(listener, self.properties)
        assert status != fresh.CHANGED, f"the first events have changed {said.splitlines()[-1]}"
        assert status == 0, f"a process that heard its first events ended with {status}: {said}"

    def test_the_end_of_a_process_waits_for_no_destination(self, listener: Any) -> None:
        """If this fails, a function that the listener gave to ``atexit``, or a thread that is no daemon, waits without
        a limit, and no program comes to its end: wait a second or so."""
        status, said = self._lived(listener, self.properties if self.unreachable is None else self.unreachable)
        assert status in (0, fresh.CHANGED), f"a process that heard events ended with {status}: {said}"

    def test_the_end_of_a_process_loses_no_event(self, listener: Any) -> None:
        """If this fails, the last events of a program are lost, since the thread that delivers them ends with it: let
        a function of ``atexit`` wait for them, for a second or so."""
        before = self.count(listener)
        self._counted_in_a_fork(listener, 1)
        if self.count(listener) == before:
            pytest.skip("the events of other processes cannot be counted here (`delivered`)")
        before = self.count(listener)
        status, said = self._lived(listener, self.properties, [self.counted_event() for _ in range(_COUNTED)])
        assert status in (0, fresh.CHANGED), f"a process that heard {_COUNTED} events ended with {status}: {said}"
        lost = _COUNTED - (self.count(listener) - before)
        assert lost <= 0, f"{lost} of {_COUNTED} events are lost at the end of a process"

    # -- helpers

    _lives: ClassVar[dict[bytes, tuple[int, str]]] = {}
    """The results of fresh interpreters, by what they heard, since two checks look at one life."""

    def _counted_in_a_fork(self, listener: Any, number: int) -> int:
        """Let a forked process hear events; return the number that it counts itself."""
        here, there = multiprocessing.Pipe()

        def hear() -> None:
            before = self.count(listener)
            with Hearing(listener, self.properties) as inner:
                inner.hear(self.counted_event() for _ in range(number))
                there.send(self.count(listener) - before)

        with here, there:
            status = ended(hear, self.end_seconds)
            assert status == 0, f"a process that was forked, and that heard {number} events, ended with {status}"
            return int(here.recv())

    def _lived(
        self, listener: Any, properties: Mapping[str, str], events: Sequence[Event] | None = None
    ) -> tuple[int, str]:
        """Run a fresh interpreter in which the listener hears events, by default one of each kind.

        Return its exit status and its errors.
        """
        try:
            sent = listener.__name__ if isinstance(listener, ModuleType) else pickle.dumps(listener)
            request = pickle.dumps((sent, dict(properties), events))
        except Exception as error:
            pytest.skip(f"the listener or its events cannot go to another process: {error}")
        if request not in self._lives:
            self._lives[request] = ran(fresh.__file__, request, _START_SECONDS + self.end_seconds)
        status, said = self._lives[request] if events is None else self._lives.pop(request)
        if status == fresh.NOT_LOADED:
            pytest.skip(f"a fresh interpreter cannot load the listener: {said.splitlines()[-1]}")
        return status, said
