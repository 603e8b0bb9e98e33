"""One model of faults for every contract: faults at the request with a chosen number, and a walk over all requests.

A fault strikes the requests to a service (``RequestFaults``) or the calls of a file system (``CallFaults``). ``walk``
lets a check try a fault at the first request, then at the second, and so on, until a request is not reached.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from types import TracebackType
from typing import Final, Self, TypeVar

from icefield_testing.service_faults import LATE_REQUEST, LOSE_REPLY, LOSE_REQUEST, RequestFault, RequestFaults

R = TypeVar("R")

FaultKind = Callable[[int], RequestFault]
"""Takes the number of a request, and makes a fault that strikes there."""

STEPS: Final = 40
"""The largest number of requests at which a walk tries a fault; later requests are not tried."""
_LONGEST_HOLD_SECONDS: Final = 120.0


def lost_request(step: int) -> RequestFault:
    """The request is lost, and the service does not see it."""
    return lambda number: LOSE_REQUEST if number == step else None


def lost_reply(step: int) -> RequestFault:
    """The request is executed, and its reply is lost."""
    return lambda number: LOSE_REPLY if number == step else None


def stays_down(step: int) -> RequestFault:
    """The request is executed and its reply is lost; from then on nothing reaches the service."""
    return lambda number: None if number < step else LOSE_REPLY if number == step else LOSE_REQUEST


def cut_off(step: int) -> RequestFault:
    """The request is lost, and from then on nothing reaches the service."""
    return lambda number: LOSE_REQUEST if number >= step else None


def late_request(step: int) -> RequestFault:
    """The client gives the request up, and the service executes it later, when ``deliver_late`` says so."""
    return lambda number: LATE_REQUEST if number == step else None


KINDS: Final[dict[str, FaultKind]] = {
    "lost request": lost_request,
    "lost reply": lost_reply,
    "stays down": stays_down,
    "cut off": cut_off,
}
"""The faults that every operation must survive, by name."""


class CallFaults(RequestFaults):
    """Treats the calls of a ``FaultyFileSystem`` as requests; ``names`` are the calls that count, by default all."""

    def __init__(self, names: Collection[str] | None = None) -> None:
        super().__init__()
        self._names = names
        self._calls: list[str] = []

    def __call__(self, _number: int, name: str, location: str) -> str | None:
        """The fate of a call, as ``FaultyFileSystem`` asks for it."""
        if self._names is not None and name not in self._names:
            return None
        self._calls.append(f"{name} {location}")
        return self.verdict()

    def arm(self, fault: RequestFault) -> None:
        self._calls.clear()
        super().arm(fault)

    def describe(self, number: int) -> str:
        return f"call {number + 1} ({self._calls[number]})" if number < len(self._calls) else f"call {number + 1}"


class Step:
    """One operation with a fault at one request. A context manager: the fault is armed within the block."""

    def __init__(self, faults: RequestFaults, fault: RequestFault, number: int, name: str) -> None:
        self.number = number
        self.made = 0
        self._faults, self._fault, self._name = faults, fault, name

    def __enter__(self) -> Self:
        self._faults.arm(self._fault)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.made = self._faults.count
        self._faults.disarm()

    @property
    def reached(self) -> bool:
        """Whether the operation made the request with this number."""
        return self.made > self.number

    def __str__(self) -> str:
        return f"{self._name} {self._faults.describe(self.number)} of {self.made}"


def walk(faults: RequestFaults, kind: FaultKind, name: str) -> Iterator[Step]:
    """A step for each request in turn, up to the first step whose request is not reached."""
    for number in range(STEPS):
        step = Step(faults, kind(number), number, name)
        yield step
        if not step.reached:
            return


class Hold:
    """A delay: the request with a number waits while ``meanwhile`` runs, and later requests wait for its end.

    So everything of a held-up client stands still, its heartbeats included, as if the system had paused its process.
    """

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        self._meanwhile = meanwhile
        self._over = threading.Event()
        self._over.set()
        self._exempt = threading.local()
        self.requests = 0
        """The number of requests of the client that is held up, before and after the delay."""

    def let_pass(self, act: Callable[[], R]) -> R:
        """Make requests in this thread that do not wait: those of a rival that uses the same ``RequestFaults``."""
        self._exempt.passes = True
        try:
            return act()
        finally:
            self._exempt.passes = False

    def at(self, step: int) -> RequestFault:
        """The delay at a request."""

        def fault(number: int) -> None:
            self.requests += not self._passes
            if number == step:
                self._over.clear()
                try:
                    self._meanwhile()
                finally:
                    self._over.set()
            elif number > step:
                self.wait()

        return fault

    def wait(self, _number: int = 0) -> None:
        """Wait while the delay lasts; as a fault, it holds up the requests of another connection of the client."""
        if not self._passes:
            self._over.wait(_LONGEST_HOLD_SECONDS)

    @property
    def _passes(self) -> bool:
        return getattr(self._exempt, "passes", False)
