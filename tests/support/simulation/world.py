"""The world of simulated processes: it decides which process runs next, which requests are lost or late, and who dies.

A process is a greenlet that runs real code. Each request to a store is a point where others may run: before the
request arrives and before its reply does. One seed gives one course of events.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from random import Random
from threading import get_ident
from typing import Any, TypeVar

from greenlet import getcurrent, greenlet
from icefield.base.concurrency import lazy
from icefield.errors import IcefieldError

Answer = TypeVar("Answer")


class Crash(BaseException):
    """The process is dead: its further actions have no effect."""


@dataclass(frozen=True)
class Odds:
    """The number of faults of each kind in a thousand requests."""

    lost_request: int = 8
    lost_reply: int = 12
    late: int = 8
    crash_before: int = 4
    crash_after: int = 6

    @lazy
    def verdicts(self) -> tuple[str, ...]:
        """The faults in a thousand requests: each fault is listed as often as it occurs."""
        return (
            *("lost request",) * self.lost_request,
            *("crash before",) * self.crash_before,
            *("crash after",) * self.crash_after,
            *("lost reply",) * self.lost_reply,
            *("late",) * self.late,
        )


class World:
    """Turns, faults and the clock of one course of events."""

    def __init__(self, seed: int, odds: Odds) -> None:
        self.random = Random(seed)
        self._verdicts = odds.verdicts
        self.now = 0.0
        self.trace: list[str] = []
        self.pointers: dict[str, str] = {}
        """Of a metastore."""
        self.items: dict[str, dict[str, str]] = {}
        """Of a table of items."""
        self.quiet = False
        """Whether a check looks at the stores: its requests then take no time, and have no faults."""
        self._hub = getcurrent()
        self._thread = get_ident()
        self._running: list[greenlet] = []
        self._names: dict[greenlet, str] = {}
        self._dead: set[greenlet] = set()
        self._late: list[Callable[[], Any]] = []
        self._failures: list[BaseException] = []

    def start(self, name: str, process: Callable[[], None]) -> None:
        """Let a process run from now on."""

        def run() -> None:
            try:
                process()
            except Crash:
                pass
            except BaseException as error:
                self._failures.append(error)

        made = greenlet(run, self._hub)
        self._running.append(made)
        self._names[made] = name

    def run(self) -> None:
        """Run all processes to their ends. Raises the first unexpected error of a process; then the others die."""
        with _no_collection():
            try:
                self._take_turns()
            finally:
                self._end_the_others()
        for request in self._late:
            self._arrive(request)
        self._late.clear()

    def _take_turns(self) -> None:
        while self._running:
            self.now += 0.01
            if self._late and self.random.random() < 0.05:
                self._arrive(self._late.pop(self.random.randrange(len(self._late))))
            chosen = self._running[int(self.random.random() * len(self._running))]
            chosen.switch()
            if chosen.dead:
                self._running.remove(chosen)
            if self._failures:
                raise self._failures[0]

    def _end_the_others(self) -> None:
        """End processes that still run: a suspended process is never freed, nor are the objects that it holds."""
        self._dead.update(self._running)
        for process in self._running:
            with suppress(Crash):  # raised by a process that has not begun
                process.throw(Crash)
        self._running.clear()

    def request(
        self,
        what: str,
        effect: Callable[[], Answer],
        lost: Callable[[str], BaseException],
        *,
        changes: bool = True,
        may_be_late: bool = True,
    ) -> Answer:
        """One request of the running process to a store; ``lost`` makes the error of a connection that broke."""
        me = self._current()
        if self.quiet or me not in self._names:  # the hub, or a thread of a process
            return effect()
        self._alive(me)
        self._hub.switch()
        verdict = self._verdict(changes, may_be_late)
        self.trace.append(f"{self._names[me]}: {what}{f' [{verdict}]' if verdict else ''}")
        if verdict == "crash before":
            self._die(me)
        if verdict in ("lost request", "late"):
            if verdict == "late":
                self._late.append(effect)
            raise lost(what)
        result = effect()
        if verdict == "lost reply":
            raise lost(what)
        if verdict == "crash after":
            self._die(me)
        if changes:
            self._hub.switch()
        return result

    def pause(self, seconds: float) -> None:
        """Let the running process sleep."""
        me = self._current()
        if me is self._hub:
            self.now += seconds
            return
        self._alive(me)
        until = self.now + seconds
        while self.now < until:
            if len(self._running) == 1:
                self.now = until
            self._hub.switch()

    @property
    def who(self) -> str:
        """The name of the running process; empty outside of all processes."""
        return self._names.get(self._current(), "")

    @property
    def somebody_died(self) -> bool:
        """Whether a process died before its end."""
        return bool(self._dead)

    def _verdict(self, changes: bool, may_be_late: bool) -> str | None:
        drawn = int(self.random.random() * 1000)
        if drawn >= len(self._verdicts):
            return None
        name = self._verdicts[drawn]
        if not changes and name in ("lost reply", "late"):
            return "lost request"
        return None if name == "late" and not may_be_late else name

    def _current(self) -> greenlet:
        """The running greenlet; the hub in other threads, so that these get no greenlet of their own."""
        return getcurrent() if get_ident() == self._thread else self._hub

    def _alive(self, me: greenlet) -> None:
        if me in self._dead:
            raise Crash

    def _die(self, me: greenlet) -> None:
        self._dead.add(me)
        raise Crash

    def _arrive(self, request: Callable[[], Any]) -> None:
        self.trace.append("a late request arrives")
        try:
            request()
        except IcefieldError:
            self.trace.append("  and is refused")


@contextmanager
def _no_collection() -> Iterator[None]:
    """Disable the garbage collector, in which the interpreter has crashed while it ran inside a greenlet."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
