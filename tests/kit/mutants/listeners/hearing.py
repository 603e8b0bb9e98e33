"""Listeners that are broken on purpose, each in one way that a careless author may choose."""

from __future__ import annotations

import logging
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from icefield import hookimpl
from icefield.abc import CommitMade, Event, OperationEvent, OperationFailed, OperationFinished
from icefield.toolkit import reset_after_fork

from mutants import Mutant, of


class QueuedListener:
    """A right listener: a daemon thread takes the events from a queue, and keeps the last hundred of them."""

    forks = True

    def __init__(self) -> None:
        self._begin()
        if self.forks:
            reset_after_fork(self._begin)

    def _begin(self) -> None:
        self.arrived = 0
        self.last: deque[Any] = deque(maxlen=100)
        self._queue: queue.Queue[Any] = queue.Queue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        QueuedListener.__init__(self)

    @hookimpl
    def icefield_events(self, event: Event, properties: Mapping[str, str]) -> None:
        self.take(event, properties)

    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        """Take an event."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, daemon=True)
                self._thread.start()
        self._queue.put((event, properties.get("token")))

    def _work(self) -> None:
        while True:
            self.deliver(self._queue.get()[0])
            self._queue.task_done()

    def deliver(self, event: Any) -> None:
        """Deliver an event, in the listener's thread."""
        if isinstance(event, CommitMade):
            self.arrived += 1
        self.last.append(type(event).__name__)

    def delivered(self) -> int:
        """The number of commits that have arrived."""
        self._queue.join()
        return self.arrived


class ReadsTable(QueuedListener):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        super().take(event, {"token": ".".join(event.table)})


class NeedsSnapshot(QueuedListener):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        if isinstance(event, CommitMade):
            assert event.snapshot_id is not None, "no snapshot"
        super().take(event, properties)


class NeedsCatalog(QueuedListener):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        if isinstance(event, OperationEvent):
            self.name = event.catalog.upper()  # type: ignore[union-attr]
        super().take(event, properties)


class DividesByTotal(QueuedListener):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        if hasattr(event, "total"):
            self.percent = 100 * event.done / event.total
        super().take(event, properties)


class WritesAscii(QueuedListener):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        if isinstance(event, OperationEvent):
            self.line = ".".join(event.name).encode("ascii")
        super().take(event, properties)


class ExitsOnFailure(QueuedListener):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        if isinstance(event, OperationFailed):
            sys.exit("an operation failed")
        super().take(event, properties)


class RaisesErrorAgain(QueuedListener):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        super().take(event, properties)
        if isinstance(event, OperationFailed) and isinstance(event.error, Exception):
            raise event.error


class RaisesForUnknown(QueuedListener):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        if not type(event).__module__.startswith("icefield.abc"):
            raise TypeError(f"no event: {event!r}")
        super().take(event, properties)


class KnowsOperations(QueuedListener):
    known = ("load-", "plan-", "commit", "create-", "register-", "rename-", "drop-", "update-", "expire-", "rewrite-")

    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        if isinstance(event, OperationEvent) and not event.operation.startswith(self.known):
            raise KeyError(event.operation)
        super().take(event, properties)


class ParsesIds(QueuedListener):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        if isinstance(event, OperationEvent) and len(event.name) not in (1, 2):
            raise ValueError("a name has a namespace and a table")
        super().take(event, properties)


class ChangesSummary(QueuedListener):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        if isinstance(event, CommitMade):
            event.summary.pop("operation", None)  # type: ignore[attr-defined]
        super().take(event, properties)


class ChangesUpdates(QueuedListener):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        if isinstance(event, OperationFinished):
            event.updates["seen"] = "1"  # type: ignore[index]
        super().take(event, properties)


class SetsField(QueuedListener):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        object.__setattr__(event, "seconds" if hasattr(event, "seconds") else type(event).__slots__[0], 0.125)
        super().take(event, properties)


class ChangesProperties(QueuedListener):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        properties.setdefault("batch", "1")  # type: ignore[attr-defined]
        super().take(event, properties)


class NeedsProperty(QueuedListener):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        super().take(event, {"token": properties["url"]})


class Sleeps(QueuedListener):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        super().take(event, properties)
        time.sleep(0.03)


class WaitsForDelivery(QueuedListener):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        super().take(event, properties)
        self._queue.join()

    def deliver(self, event: Any) -> None:
        time.sleep(0.03)
        super().deliver(event)


class RaisesWhenUnreachable(QueuedListener):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        if properties.get("url", "").endswith(":9"):
            raise ConnectionRefusedError("no connection")
        super().take(event, properties)


class RepeatsWhenUnreachable(QueuedListener):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        if properties.get("url", "").endswith(":9"):
            time.sleep(0.05)
        super().take(event, properties)


class KeepsLastBatch(QueuedListener):
    batch = 0

    def deliver(self, event: Any) -> None:
        if isinstance(event, CommitMade):
            self.batch += 1
            if self.batch == 10:
                self.arrived, self.batch = self.arrived + 10, 0


class MergesRepeats(QueuedListener):
    def deliver(self, event: Any) -> None:
        if isinstance(event, CommitMade) and self.last and self.last[-1] == type(event).__name__:
            return
        super().deliver(event)


class DeliversTwice(QueuedListener):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        super().take(event, properties)
        if isinstance(event, CommitMade):
            super().take(event, properties)


class CountsWithoutLock(QueuedListener):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        if isinstance(event, CommitMade):
            before = self.arrived
            time.sleep(0.0005)
            self.arrived = before + 1


class DropsWhileBusy(QueuedListener):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        if isinstance(event, CommitMade) and self._lock.acquire(blocking=False):
            self.arrived += 1
            time.sleep(0.0005)
            self._lock.release()


class SharesOneSlot(QueuedListener):
    slot: Any = None

    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        self.slot = event
        time.sleep(0.0005)
        if self.slot is not event:
            raise RuntimeError("the slot holds another event")
        super().take(event, properties)


class KeepsEvents(QueuedListener):
    def __init__(self) -> None:
        super().__init__()
        self.all: list[Any] = []

    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        self.all.append(event)
        super().take(event, properties)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.all = []


class KeepsErrorsById(KeepsEvents):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        if isinstance(event, OperationFailed):
            self.all.append({event.id: event.error})
        QueuedListener.take(self, event, properties)


class HoldsLock(QueuedListener):
    def __getstate__(self) -> dict[str, Any]:
        return {"lock": self._lock}


class LosesStateWhenPickled(QueuedListener):
    def __setstate__(self, state: dict[str, Any]) -> None:
        self.arrived = 0


class FullAfterFork(QueuedListener):
    forks = False

    def _begin(self) -> None:
        self.arrived = 0
        self.last = deque(maxlen=100)
        self._queue = queue.Queue(1_000)
        self._lock = threading.Lock()
        self._thread = None


class DiesAfterFork(QueuedListener):
    def __init__(self) -> None:
        super().__init__()
        self.process = os.getpid()

    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        if self.process != os.getpid():
            raise RuntimeError("made in another process")
        super().take(event, properties)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.process = os.getpid()


class KeepsProgramAlive(QueuedListener):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work)
                self._thread.start()
        self._queue.put((event, None))

    def _work(self) -> None:
        main = os.getpid()
        while os.getppid() and main == os.getpid():
            try:
                self.deliver(self._queue.get(timeout=0.05)[0])
            except queue.Empty:
                if _IS_CHECKED.is_set():
                    return
            else:
                self._queue.task_done()


_IS_CHECKED = threading.Event()
"""Set when a test is over, so that the threads of mutants do not keep the test run alive."""


class SecretInRepr(QueuedListener):
    token = ""

    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        self.token = properties.get("token", "")
        super().take(event, properties)

    def __repr__(self) -> str:
        return f"SecretInRepr({self.token})"


class SecretInLog(QueuedListener):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        logging.getLogger(__name__).debug("configured by %s", dict(properties))
        super().take(event, properties)


class SecretInOutput(QueuedListener):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        print(f"hearing {event!r} with {dict(properties)}", file=sys.stderr)
        super().take(event, properties)


class SecretInError(QueuedListener):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        if properties.get("url", "").endswith(":9"):
            raise ConnectionError(f"no connection with {dict(properties)}")
        super().take(event, properties)


class ConfiguresLogging(QueuedListener):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        logging.basicConfig(level=logging.WARNING)
        super().take(event, properties)


class SetsTimeOutOfSockets(QueuedListener):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        socket.setdefaulttimeout(30)
        super().take(event, properties)


class HandlesSignals(QueuedListener):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        super().take(event, properties)


class SetsEnvironment(QueuedListener):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        os.environ["MUTANT_TOKEN"] = properties.get("token", "")
        super().take(event, properties)


class FailsOnRealSchemas(QueuedListener):
    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        if isinstance(event, CommitMade) and "added-files-size" in event.summary:
            raise ValueError("an unknown number in the summary")
        super().take(event, properties)


class Asynchronous:
    @hookimpl
    async def icefield_events(self, event: Event) -> None: ...


class Generates:
    @hookimpl
    def icefield_events(self, event: Event) -> Any:
        yield event


class Misspelt:
    @hookimpl
    def icefield_event(self, event: Event) -> None: ...


class Unmarked:
    def icefield_events(self, event: Event) -> None: ...


class OtherArgument:
    @hookimpl
    def icefield_events(self, record: Event) -> None: ...


class OptionalMisspelt:
    @hookimpl(optionalhook=True)
    def icefield_on_event(self, event: Event) -> None: ...


_IS_LISTENER = "test_the_plugin_is_a_listener"
_EVERY = "test_every_event_is_heard"
_LATER = "test_events_of_later_versions_are_ignored"
_STAYS = "test_an_event_stays_as_it_is"
_TURN = "test_events_in_turn_are_delivered_once_each"
_THREADS = "test_events_of_threads_are_delivered_once_each"
_KEPT = "test_events_are_not_kept"
_PICKLED = "test_a_pickled_listener_hears"
_FORKED = "test_a_forked_process_is_heard"
_WAITS = "test_an_operation_does_not_wait"
_UNREACHABLE = "test_a_destination_that_cannot_be_reached_fails_nothing"
_SECRETS = "test_secrets_show_nowhere"
_PROCESS = "test_the_process_stays_as_it_is"

MUTANTS: list[Mutant] = of(
    {
        Asynchronous: (_IS_LISTENER, "is a coroutine function, and nothing would await it"),
        Generates: (_IS_LISTENER, "is a generator function, and nothing would run it"),
        Misspelt: (_IS_LISTENER, "'icefield_event' is no hook of Icefield"),
        Unmarked: (_IS_LISTENER, "is not marked with @hookimpl"),
        OtherArgument: (_IS_LISTENER, "Argument(s) {'record'}"),
        OptionalMisspelt: (_IS_LISTENER, "OptionalMisspelt has no function icefield_events"),
        ReadsTable: (_EVERY, "no attribute 'table' at the event OperationStarted"),
        NeedsSnapshot: (_EVERY, "no snapshot"),
        NeedsCatalog: (_EVERY, "'NoneType' object has no attribute 'upper'"),
        DividesByTotal: (_EVERY, "at the event OperationProgress"),
        WritesAscii: (_EVERY, "'ascii' codec can't encode"),
        ExitsOnFailure: (_EVERY, "SystemExit: an operation failed"),
        RaisesErrorAgain: (_EVERY, "CommitStateUnknown: the reply was lost at the event OperationFailed"),
        ChangesProperties: (_EVERY, "'mappingproxy' object has no attribute 'setdefault'"),
        RaisesForUnknown: (_LATER, "TypeError: no event"),
        KnowsOperations: (_LATER, "KeyError: 'paint-table'"),
        ParsesIds: (_LATER, "a name has a namespace and a table"),
        ChangesSummary: (_STAYS, "the listener has changed CommitMade"),
        ChangesUpdates: (_STAYS, "the listener has changed OperationFinished"),
        SetsField: (_STAYS, "the listener has changed ScanPlanned"),
        NeedsProperty: ("test_a_catalog_without_properties_is_heard", "KeyError: 'url'"),
        Sleeps: (_WAITS, "events take more than 10 ms, in the median"),
        WaitsForDelivery: (_WAITS, "events take more than 10 ms, in the median"),
        RaisesWhenUnreachable: (_UNREACHABLE, "ConnectionRefusedError: no connection"),
        RepeatsWhenUnreachable: (_UNREACHABLE, "events take more than 10 ms, in the median"),
        KeepsLastBatch: (_TURN, "5 of 25 events are lost"),
        MergesRepeats: (_TURN, "24 of 25 events are lost"),
        DeliversTwice: (_TURN, "50 events arrived for 25: some come more than once"),
        CountsWithoutLock: (_THREADS, "of 400 events are lost"),
        DropsWhileBusy: (_THREADS, "of 400 events are lost"),
        SharesOneSlot: (_THREADS, "the slot holds another event"),
        KeepsEvents: (_KEPT, "1,500 of 1,500 events are still held after their delivery"),
        KeepsErrorsById: (_KEPT, "1,500 of 1,500 events are still held after their delivery"),
        HoldsLock: (_PICKLED, "cannot pickle '_thread.lock' object"),
        LosesStateWhenPickled: (_PICKLED, "no attribute '_lock'"),
        FullAfterFork: (_FORKED, "another process did not end within 2 s"),
        DiesAfterFork: (_FORKED, "that heard 3,000 events, ended with 1"),
        KeepsProgramAlive: ("test_a_process_ends_after_it_has_heard", "did not end within 2 s"),
        SecretInRepr: (_SECRETS, "the secret of the property 'token' is in the repr"),
        SecretInLog: (_SECRETS, "the secret of the property 'token' is in the output or log"),
        SecretInOutput: (_SECRETS, "the secret of the property 'token' is in the output or log"),
        SecretInError: (_SECRETS, "the secret of the property 'token' is in the output or log"),
        ConfiguresLogging: (_PROCESS, "the listener has changed the handlers of the root logger"),
        SetsTimeOutOfSockets: (_PROCESS, "the listener has changed the default time-out of sockets"),
        HandlesSignals: (_PROCESS, "the listener has changed the handler of SIGTERM"),
        SetsEnvironment: (_PROCESS, "the listener has changed the environment"),
        FailsOnRealSchemas: ("test_a_catalog_is_heard_without_errors", "an unknown number in the summary"),
    }
)
