"""The suite that a listener must pass: a plugin with the hook ``icefield_events``.

An author subclasses it and gives the plugin, a module or an object, and the properties of a catalog that configure it::

    class TestMyListener(ListenerSuite):
        properties = {"url": "http://127.0.0.1:9", "token": "t"}
        secrets = ("token",)

        @pytest.fixture
        def listener(self):
            return my_package.hooks
"""

from __future__ import annotations

import gc
import multiprocessing
import pickle
import statistics
import time
import warnings
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from types import ModuleType
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from icefield import Plugins, load_catalog
from icefield.abc import OperationFailed

from icefield_testing.listeners import Hearing, later_events, sample_events, state_of_the_process
from icefield_testing.listeners.processes import ProcessChecks
from icefield_testing.planted_secrets import PlantedSecret
from icefield_testing.processes import ended, needs_fork

THREADS = 8
_EACH = 50
_IN_TURN = 25
_FORKED = 3_000


class ListenerSuite(ProcessChecks):
    """Checks of a plugin that implements ``icefield_events``."""

    def test_the_plugin_is_a_listener(self, listener: Any) -> None:
        """If this fails, Icefield never calls the hook: look at its name, its arguments, its mark and ``async``."""
        info = Plugins([listener]).listing()[0]
        assert info.error is None, info.error
        assert info.listens, f"{info.name} has no function icefield_events"

    def test_every_event_is_heard(self, listener: Any) -> None:
        """If this fails, the listener reads a field that other events lack, or that is None in some."""
        with Hearing(listener, self.properties) as hearing:
            hearing.hear(sample_events())

    def test_events_of_later_versions_are_ignored(self, listener: Any) -> None:
        """If this fails, the listener expects only the events and operations of this version; others will come."""
        with Hearing(listener, self.properties) as hearing:
            hearing.hear(later_events())

    def test_an_event_stays_as_it_is(self, listener: Any) -> None:
        """If this fails, the listener changes a mapping of the event, which the next listener receives."""
        with Hearing(listener, self.properties) as hearing:
            for event, same in zip(sample_events(), sample_events(), strict=True):
                hearing.hear([event])
                if not isinstance(event, OperationFailed):  # errors do not compare
                    assert event == same, f"the listener has changed {type(same).__name__}: {same!r}"

    def test_a_catalog_without_properties_is_heard(self, listener: Any) -> None:
        """If this fails, the listener needs a property. It hears every catalog, and not every catalog sets it."""
        with Hearing(listener, {}) as hearing:
            hearing.hear(sample_events())

    def test_an_operation_does_not_wait(self, listener: Any) -> None:
        """If this fails, the listener does its work in the thread of the operation: pass it to another thread."""
        with Hearing(listener, self.properties) as hearing:
            hearing.hear(sample_events())  # connects, and imports what it needs
            self._check_times(hearing)

    def test_a_destination_that_cannot_be_reached_fails_nothing(self, listener: Any) -> None:
        """If this fails, the listener lets an error of its destination out, or waits for it."""
        if self.unreachable is None:
            pytest.skip("the listener has no destination (`unreachable`)")
        with Hearing(listener, self.unreachable) as hearing:
            hearing.hear(sample_events())
            self._check_times(hearing)

    def test_events_in_turn_are_delivered_once_each(self, listener: Any) -> None:
        """If this fails, the listener keeps the last events for a later batch, merges some, or repeats some."""
        with Hearing(listener, self.properties) as hearing:
            before = self.count(listener)
            hearing.hear(self.counted_event() for _ in range(_IN_TURN))
            self._check_count(listener, before, _IN_TURN)

    def test_events_of_threads_are_delivered_once_each(self, listener: Any) -> None:
        """If this fails, two threads use something at once that needs a lock, or an event is dropped meanwhile."""

        def work(_: int) -> None:
            hearing.hear(self.counted_event() for _ in range(_EACH))

        with Hearing(listener, self.properties) as hearing:
            before = self.delivered(listener)
            with ThreadPoolExecutor(THREADS) as pool:
                list(pool.map(work, range(THREADS)))
            if before is not None:
                self._check_count(listener, before, THREADS * _EACH)

    def test_events_are_not_kept(self, listener: Any) -> None:
        """If this fails, the listener's memory grows with each event, and with the rows in each error's traceback."""
        with Hearing(listener, self.properties) as hearing:
            errors = self._heard_failures(hearing)
            self.delivered(listener)
            held = self._held(errors)
        assert held <= self.kept_events, f"{held:,} of {len(errors):,} events are still held after their delivery"

    def test_a_dead_destination_fills_neither_memory_nor_log(self, listener: Any) -> None:
        """If this fails, the listener keeps each event for a destination that does not answer, or warns of each event:
        give its queue a bound, drop the events above it, and warn once until the destination answers again."""
        if self.unreachable is None:
            pytest.skip("the listener has no destination (`unreachable`)")
        with Hearing(listener, self.unreachable) as hearing:
            errors = self._heard_failures(hearing)
            held = self._held(errors)
            shown = hearing.warnings
        assert held <= self.kept_events, f"{held:,} of {len(errors):,} events are held for a dead destination"
        assert shown <= len(errors) / 10, f"{shown:,} warnings of {len(errors):,} events that could not be delivered"

    def test_a_pickled_listener_hears(self, listener: Any) -> None:
        """If this fails, look at ``__getstate__``: tasks in other processes carry the plugins of their catalog."""
        Plugins([listener]).listing()
        with Hearing(listener, self.properties) as hearing:
            hearing.hear(sample_events())
        copy = pickle.loads(pickle.dumps(Plugins([listener])))
        assert copy.listing()[0].error is None, copy.listing()[0].error
        if not isinstance(listener, ModuleType):
            with Hearing(pickle.loads(pickle.dumps(listener)), self.properties) as hearing:
                hearing.hear(sample_events())

    def test_a_forked_process_is_heard(self, listener: Any) -> None:
        """If this fails, the listener's thread is not there after a fork, and its queue fills: begin anew there."""

        def hear() -> None:
            with Hearing(listener, self.properties) as inner:
                inner.hear(self.counted_event() for _ in range(_FORKED))

        with Hearing(listener, self.properties) as hearing:
            hearing.hear(sample_events())
        status = ended(hear, self.end_seconds)
        assert status == 0, f"a process that was forked, and that heard {_FORKED:,} events, ended with {status}"

    def test_a_process_ends_after_it_has_heard(self, listener: Any) -> None:
        """If this fails, the listener's thread is no daemon, so that every program waits for it at its end."""
        needs_fork()

        def hear() -> None:
            with Hearing(listener, self.properties) as hearing:
                hearing.hear(self.counted_event() for _ in range(10))

        process = multiprocessing.get_context("fork").Process(target=hear)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the other threads only wait
            process.start()
        process.join(self.end_seconds)
        lasts = process.is_alive()
        if lasts:
            process.kill()
            process.join()
        assert not lasts, f"a process that has heard 10 events did not end within {self.end_seconds:g} s"

    def test_secrets_show_nowhere(self, listener: Any) -> None:
        """If this fails, the listener shows a credential in its ``repr``, its output, a log record or an error."""
        secrets = {name: PlantedSecret(f"the property '{name}'") for name in self.secrets}
        planted = {name: secret.value for name, secret in secrets.items()}
        for properties in (self.properties, self.unreachable or {}):
            hearing = Hearing(listener, {**properties, **planted})
            with hearing:
                for event in sample_events():
                    try:
                        hearing.hear([event])
                    except AssertionError:  # another check says so; its text is in the log
                        break
                self.delivered(listener)
            for secret in secrets.values():
                secret.check_texts("the repr", [f"{listener!r}"])
                secret.check_texts("the output or log", [hearing.printed])

    def test_the_process_stays_as_it_is(self, listener: Any) -> None:
        """If this fails, the listener configures what belongs to the program, such as logging or signals."""
        with Hearing(listener, self.properties, prints=False) as hearing:
            before = state_of_the_process()
            hearing.hear(sample_events())
            self.delivered(listener)
            changed = [what for what, value in state_of_the_process().items() if value != before[what]]
        assert not changed, f"the listener has changed {' and '.join(changed)}"

    def test_a_catalog_is_heard_without_errors(self, listener: Any) -> None:
        """If this fails, a real catalog's events meet an error; a direct call of the hook shows it, too."""
        plugins = Plugins.installed()
        names = [info.name for info, hook in plugins.listeners() if hook.plugin is listener]
        if not names:
            plugins = Plugins.installed(extra=[listener])
            names = [plugins.listing()[-1].name]
        [name] = names
        given = {f"events.{name}.{key}": value for key, value in self.properties.items()}
        with (
            Hearing(listener, self.properties) as hearing,
            load_catalog(
                "kit", type="directory", warehouse=f"memory://listener/{uuid4().hex}", plugins=plugins, **given
            ) as catalog,
        ):
            catalog.create_namespace("db", {"owner": "kit"})
            rows = pa.table({"id": [1, 2]})
            table = catalog.create_table("db.t", rows.schema, properties={"kit": "1"})
            table.append(rows)
            assert table.scan(row_filter="id > 1").count() == 1
            catalog.drop_table("db.t")
            catalog.drop_namespace("db")
            hearing.check("of a catalog")

    def _check_times(self, hearing: Hearing) -> None:
        """Fail if the median of the times of events, each the best of three, is above ``longest_seconds``."""
        times = []
        for triple in islice(zip(*(sample_events() for _ in range(3)), strict=True), 0, None, 4):
            taken = []
            for event in triple:
                began = time.perf_counter()
                hearing.hear([event])
                taken.append(time.perf_counter() - began)
                if taken[-1] <= self.longest_seconds:
                    break
            times.append(min(taken))
        slow = sum(each > self.longest_seconds for each in times)
        median = statistics.median(times)
        assert median <= self.longest_seconds, (
            f"{slow} of {len(times)} events take more than {1000 * self.longest_seconds:g} ms, "
            f"in the median {1000 * median:.0f} ms"
        )

    def _heard_failures(self, hearing: Hearing) -> list[weakref.ref[BaseException]]:
        """Let the listener hear more failures than it may keep; return references to their errors."""
        errors: list[weakref.ref[BaseException]] = []

        def failures() -> Iterator[OperationFailed]:
            for _ in range(self.kept_events + 500):
                error = _Raised()
                errors.append(weakref.ref(error))
                yield OperationFailed("commit", ("db", "t"), str(uuid4()), error=error)

        hearing.hear(failures())
        return errors

    def _held(self, errors: list[weakref.ref[BaseException]]) -> int:
        """The number of errors that are still held after a time for their delivery."""
        deadline = time.monotonic() + self.end_seconds
        while (held := _alive(errors)) > self.kept_events and time.monotonic() < deadline:
            time.sleep(0.05)
        return held

    def _check_count(self, listener: Any, before: int, expected: int) -> None:
        came = self.count(listener) - before
        assert came >= expected, f"{expected - came} of {expected} events are lost"
        assert came == expected, f"{came} events arrived for {expected}: some come more than once"


class _Raised(Exception):
    """An error of an operation, to which weak references are possible."""


def _alive(errors: list[weakref.ref[BaseException]]) -> int:
    gc.collect()
    return sum(each() is not None for each in errors)
