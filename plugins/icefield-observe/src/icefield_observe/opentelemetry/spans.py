"""The spans of operations."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextvars import Token
from dataclasses import dataclass
from typing import Final, Protocol

from icefield.abc import (
    CommitConflict,
    CommitMade,
    Event,
    OperationFailed,
    OperationFinished,
    OperationProgress,
    OperationStarted,
    ScanPlanned,
)
from opentelemetry import context, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer

from icefield_observe.opentelemetry import attributes as attributes_of
from icefield_observe.opentelemetry.attributes import Value
from icefield_observe.opentelemetry.instruments import Instruments

_MOST_OPEN: Final = 10_000
"""Operations whose end may be outstanding. More mean that ends were lost; the oldest spans are then ended."""

_LONGEST_MESSAGE: Final = 1_000

_PLAN: Final = "plan-scan"
"""The operation of a generator: the program does other things before it ends, so it is nobody's context."""


class Sender(Protocol):
    """Sends spans and metrics."""

    def flush(self) -> None:
        """Send what waits."""


@dataclass(frozen=True, slots=True)
class _OpenSpan:
    """An operation that has not ended."""

    span: Span
    operation: str
    name: tuple[str, ...]
    thread: int
    token: Token[context.Context] | None


class OperationSpans:
    """Makes spans and metrics of events. ``sender`` sends them, if the program's providers do not."""

    def __init__(self, tracer: Tracer, instruments: Instruments, sender: Sender | None = None) -> None:
        self._tracer, self._instruments, self._sender = tracer, instruments, sender
        self._open: dict[str, _OpenSpan] = {}
        self._lock = threading.RLock()  # a finalizer may tell an event while the lock is held

    def hear(self, event: Event) -> None:
        """Make a span of an operation, or add to the span of its operation."""
        if isinstance(event, OperationStarted):
            self._start(event)
        elif isinstance(event, OperationFinished | OperationFailed):
            self._end(event)
        elif isinstance(event, CommitMade):
            shared = attributes_of.of_table("commit", event)
            self._instruments.committed(event, shared)
            self._add(event, event.seconds, shared, attributes_of.of_commit(event))
        elif isinstance(event, ScanPlanned):
            shared = attributes_of.of_table(_PLAN, event)
            self._instruments.scanned(event, shared)
            self._add(event, event.seconds, shared, attributes_of.of_scan(event))
        elif isinstance(event, CommitConflict):
            operation = self._current(event.table)
            if operation is not None:
                operation.span.add_event("icefield.commit.conflict", {"icefield.commit.attempt": event.attempt})
        elif isinstance(event, OperationProgress):
            operation = self._current(event.table, event.operation)
            if operation is not None:
                operation.span.set_attribute(f"icefield.progress.{event.step.replace(' ', '_')}", event.done)

    def flush(self) -> None:
        """Send what waits, unless the program's providers do so."""
        if self._sender is not None:
            self._sender.flush()

    def _start(self, event: OperationStarted) -> None:
        given = attributes_of.of_operation(event)
        if event.new_name is not None:
            given["icefield.new_name"] = ".".join(event.new_name)
        span = self._tracer.start_span(_title(event.operation, event.name), kind=SpanKind.CLIENT, attributes=given)
        token = None if event.operation == _PLAN else context.attach(trace.set_span_in_context(span))
        with self._lock:
            self._open[event.id] = _OpenSpan(span, event.operation, event.name, threading.get_ident(), token)
            oldest = self._open.pop(next(iter(self._open))) if len(self._open) > _MOST_OPEN else None
        if oldest is not None:
            oldest.span.end()

    def _end(self, event: OperationFinished | OperationFailed) -> None:
        shared = attributes_of.of_operation(event)
        with self._lock:
            operation = self._open.pop(event.id, None)
        span = operation.span if operation is not None else trace.INVALID_SPAN
        if isinstance(event, OperationFailed):
            shared["error.type"] = _type_name(event.error)
            span.set_attribute("error.type", shared["error.type"])
            span.set_status(Status(StatusCode.ERROR, str(event.error)[:_LONGEST_MESSAGE]))
        if operation is not None and operation.token is not None and trace.get_current_span() is span:
            context.detach(operation.token)
        self._instruments.ended(event.seconds, shared, trace.set_span_in_context(span))
        span.end()

    def _add(
        self, event: CommitMade | ScanPlanned, seconds: float, shared: Mapping[str, Value], own: Mapping[str, Value]
    ) -> None:
        """Add attributes to the span of an event's operation. An event outside an operation gets a span of its own."""
        operation = self._current(event.table, _PLAN if isinstance(event, ScanPlanned) else None)
        if operation is not None:
            operation.span.set_attributes(own)
            return
        now = time.time_ns()
        name = _title(str(shared["db.operation.name"]), event.table)
        given = {**shared, **own}
        started = now - int(seconds * 1e9)
        self._tracer.start_span(name, kind=SpanKind.CLIENT, attributes=given, start_time=started).end(now)

    def _current(self, table: tuple[str, ...], operation: str | None = None) -> _OpenSpan | None:
        """The innermost operation on a table in this thread: of a kind, or any but the planning of a scan."""
        thread = threading.get_ident()
        with self._lock:
            for one in reversed([*self._open.values()]):
                is_kind = one.operation == operation if operation is not None else one.operation != _PLAN
                if is_kind and one.name == table and one.thread == thread:
                    return one
        return None


def _title(operation: str, name: tuple[str, ...]) -> str:
    return f"{operation} {'.'.join(name)}"


def _type_name(error: BaseException) -> str:
    """The name of an error's class, with its module if Python does not have it built in."""
    of = type(error)
    return of.__qualname__ if of.__module__ == "builtins" else f"{of.__module__}.{of.__qualname__}"
