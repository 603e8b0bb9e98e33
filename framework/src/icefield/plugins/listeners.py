"""The listeners of a catalog, and the operations that they are told of."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar, Token
from dataclasses import dataclass, replace
from inspect import iscoroutine
from types import MappingProxyType, TracebackType
from typing import Any, Final, Self
from uuid import uuid4

from icefield.abc.events import Event, OperationFailed, OperationFinished, OperationProgress, OperationStarted
from icefield.base.concurrency import lazy
from icefield.base.progress import PROGRESS
from icefield.base.spelling import was_meant
from icefield.metadata.property_checks import warn_at_caller
from icefield.plugins.log_lines import LOG, log_event
from icefield.plugins.registry import Plugins

PREFIX: Final = "events."
"""Properties ``events.<name of a plugin>.<property>`` of a catalog configure a listener."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class _Listener:
    """The hook of one plugin, with its configuration."""

    plugin: str
    owner: int
    """The id of the plugin, which may listen to several catalogs."""

    call: Callable[[Event], Any]

    def hear(self, event: Event) -> None:
        """Call the hook. Its errors are logged. An event of its own operations is left out."""
        hearing = _HEARING.get()
        if self.owner in hearing:
            return
        token = _HEARING.set(hearing | {self.owner})
        try:
            returned = self.call(event)
            if iscoroutine(returned):
                returned.close()
                raise TypeError("the listener returned a coroutine, and nothing would await it")
        except KeyboardInterrupt:  # the user's
            raise
        except BaseException:
            _LOG.exception("the plugin '%s' failed to hear %s", self.plugin, type(event).__name__)
        finally:
            _HEARING.reset(token)


class Listeners:
    """The listeners of one catalog. False without any, so that a caller can leave out the making of an event."""

    def __init__(self, plugins: Plugins, properties: Mapping[str, str], catalog: str | None) -> None:
        self._plugins, self._properties, self._catalog = plugins, properties, catalog

    def __bool__(self) -> bool:
        return bool(self._hearing)

    def tell(self, event: Event) -> None:
        """Call every listener. The error of a listener is logged and has no other effect."""
        for listener in self._hearing:
            listener.hear(event)

    def operation(
        self,
        operation: str,
        name: tuple[str, ...],
        *,
        new_name: tuple[str, ...] | None = None,
        nested: bool = True,
    ) -> ToldOperation:
        """A context manager that tells the start of an operation, and its end.

        An operation within the same operation of the same name is part of it, and not told. ``nested``: whether other
        operations of this thread become part of it; not for a generator, whose caller does other things meanwhile.
        """
        hearing = self._hearing
        if not hearing:
            return _UNTOLD
        outer = _CURRENT.get()
        if outer is not None and outer.is_same(operation, name, self._catalog):
            return _Part(outer)
        parent = None if outer is None else outer.id
        facts = {
            "operation": operation,
            "name": name,
            "id": str(uuid4()),
            "catalog": self._catalog,
            "parent": parent,
            "new_name": new_name,
        }
        return ToldOperation(hearing, facts, nested)

    def counting(self, items: Iterable[Any], event: OperationProgress) -> Iterator[Any]:
        """Pass items on, and tell ``event`` again with the number of items, or of rows, that the consumer has taken."""
        done = 0
        try:
            self.tell(event)
            for item in items:
                yield item
                done += getattr(item, "num_rows", 1)
                self.tell(replace(event, done=done))
        finally:
            self.tell(replace(event, done=done, total=done))

    @staticmethod
    def changed(before: Mapping[str, str], after: Mapping[str, str]) -> None:
        """State the properties before and after the current operation of this thread."""
        current = _CURRENT.get()
        if current is not None:
            current.changed(before, after)

    def check_names(self) -> None:
        """Warn of properties of the catalog that configure no listener."""
        if not any(key.startswith(PREFIX) for key in self._properties):
            return
        names = [info.name for info, _ in self._plugins.listeners()]
        disabled = [info.name for info in self._plugins.listing() if info.disabled]
        for key in self._properties:
            if key.startswith(PREFIX) and not key.startswith(tuple(f"{PREFIX}{name}." for name in names + disabled)):
                meant = was_meant(key.removeprefix(PREFIX).partition(".")[0], names)
                warn_at_caller(f"the catalog property '{key}' is for no listener of an installed plugin{meant}")

    @property
    def _hearing(self) -> tuple[_Listener, ...]:
        """The listeners of plugins, the log if its level asks for it, and the function of a ``progress`` block."""
        found = (*self._found, _LOGGED) if LOG.isEnabledFor(logging.INFO) else self._found
        return (*found, _Listener("progress", id(call), call)) if callable(call := PROGRESS.get()) else found

    @lazy
    def _found(self) -> tuple[_Listener, ...]:
        return tuple(
            _Listener(info.name, id(hook.plugin), self._with_arguments(hook.function, hook.argnames, info.name))
            for info, hook in self._plugins.listeners()
        )

    def _with_arguments(self, function: Callable[..., Any], names: tuple[str, ...], plugin: str) -> Callable[..., Any]:
        """The hook as a function of the event alone; an implementation may take any of the arguments, in any order."""
        if names == ("event",):
            return function
        prefix = f"{PREFIX}{plugin}."
        own = {key[len(prefix) :]: value for key, value in self._properties.items() if key.startswith(prefix)}
        properties = MappingProxyType(own)

        def call(event: Event) -> Any:
            given = {"event": event, "properties": properties}
            return function(**{name: given[name] for name in names})

        return call


class ToldOperation:
    """An operation that listeners are told of. A context manager."""

    __slots__ = ("_began", "_facts", "_listeners", "_nested", "_removals", "_token", "_updates")

    def __init__(self, listeners: tuple[_Listener, ...], facts: Mapping[str, Any], nested: bool) -> None:
        self._listeners, self._facts, self._nested = listeners, facts, nested
        self._updates: dict[str, str] = {}
        self._removals: tuple[str, ...] = ()
        self._token: Token[ToldOperation | None] | None = None
        self._began = 0.0

    @property
    def id(self) -> str:
        """Its UUID."""
        return str(self._facts["id"])

    def is_same(self, operation: str, name: tuple[str, ...], catalog: str | None) -> bool:
        """Whether it is this operation of this name."""
        facts = self._facts
        return (operation, name, catalog) == (facts["operation"], facts["name"], facts["catalog"])

    def changed(self, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        """State the properties before and after the operation, for listeners that are told of its end."""
        if self._listeners and before is not after:
            self._updates = {key: value for key, value in after.items() if before.get(key) != value}
            self._removals = tuple(sorted(before.keys() - after.keys()))

    def __enter__(self) -> Self:
        if self._listeners:
            self._began = time.perf_counter()
            self._tell(OperationStarted(**self._facts))
            if self._nested:
                self._token = _CURRENT.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._listeners:
            return
        if self._token is not None:
            _CURRENT.reset(self._token)
        seconds = time.perf_counter() - self._began
        if error is None or kind is GeneratorExit:  # the consumer of a generator had enough
            changes: dict[str, Any] = {"updates": self._updates, "removals": self._removals}
            self._tell(OperationFinished(**self._facts, seconds=seconds, **changes))
        else:
            self._tell(OperationFailed(**self._facts, seconds=seconds, error=error))

    def _tell(self, event: Event) -> None:
        for listener in self._listeners:
            listener.hear(event)


class _Part(ToldOperation):
    """A part of an operation, which is not told itself."""

    __slots__ = ("_whole",)

    def __init__(self, whole: ToldOperation) -> None:
        super().__init__((), {}, False)
        self._whole = whole

    def changed(self, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        """State the properties before and after the whole operation."""
        self._whole.changed(before, after)


_NOBODY: Final[frozenset[int]] = frozenset()
_HEARING: Final[ContextVar[frozenset[int]]] = ContextVar("icefield_hearing", default=_NOBODY)
"""The listeners that are called now in this thread."""

_CURRENT: Final[ContextVar[ToldOperation | None]] = ContextVar("icefield_operation", default=None)
"""The innermost operation of this thread."""

_LOGGED: Final = _Listener("log", id(log_event), log_event)

_UNTOLD: Final = ToldOperation((), {}, False)
