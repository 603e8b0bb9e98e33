"""Secrets that the kit plants in properties, and the search for them in everything that a plugin shows."""

from __future__ import annotations

import logging
import pickle
import traceback
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final
from uuid import uuid4

from icefield.toolkit import credentials_in

PLACEHOLDER: Final = "{secret}"
"""The part of a value of ``credentials`` that the kit replaces by a secret."""


class PlantedSecret:
    """A random string that a plugin must not show. ``owner`` describes its property in the error of a failed check."""

    def __init__(self, owner: str = "a property", value: str | None = None) -> None:
        self.value = value or f"planted-{uuid4().hex}"
        self._owner = owner
        self._others: list[str] = []

    def planted(self, properties: Mapping[str, str]) -> dict[str, str]:
        """Properties with the secret in place of ``{secret}``."""
        return {name: value.replace(PLACEHOLDER, self.value) for name, value in properties.items()}

    def search_also(self, properties: Mapping[str, str]) -> None:
        """Search for the real credentials among properties as well."""
        self._others += credentials_in(properties)

    def check_texts(self, place: str, texts: Iterable[str], *, also: bool = True) -> None:
        """Fail if the secret is in a string. With ``also``, fail for the real credentials as well."""
        secrets = [self.value, *(self._others if also else ())]
        shown = any(each in text for text in texts for each in secrets)
        assert not shown, f"the secret of {self._owner} is in {place}"

    def check(self, place: str, shown: object) -> None:
        """Fail if the secret is in ``str``, ``repr`` or the pickle of an object."""
        found = [f"{shown}", f"{shown!r}"]
        with suppress(Exception):
            found.append(pickle.dumps(shown).decode("latin-1"))
        self.check_texts(place, found)

    def check_error(self, place: str, error: BaseException) -> None:
        """Fail if the secret is in an error, its data and notes, or the errors that caused it."""
        for each in _with_causes(error):
            where = f"{type(each).__name__} of {place}"
            self.check_texts(where, ["".join(traceback.format_exception_only(each))])
            self.check(where, each)
            self.check(where, (each.args, getattr(each, "data", None), getattr(each, "__notes__", None)))

    @contextmanager
    def watching_logs(self, place: str) -> Iterator[None]:
        """Fail if the secret is in a log record of any level, or in a warning, from within the block."""
        found: list[tuple[int, str, str]] = []

        class Handler(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                found.append((record.levelno, record.name, f"{self.format(record)} {record.args!r}"))

        handler, root = Handler(), logging.getLogger()
        known = [root, *(each for each in root.manager.loggerDict.values() if isinstance(each, logging.Logger))]
        levels = {each: each.level for each in known if each.level != logging.NOTSET}
        root.addHandler(handler)
        for each in levels:
            each.setLevel(logging.DEBUG)
        try:
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                yield
        finally:
            root.removeHandler(handler)
            for each, level in levels.items():
                each.setLevel(level)
        found += [(logging.WARNING, each.filename, str(each.message)) for each in warned]
        for number, name, text in found:
            # Debug records may hold real credentials: clients of stores log their requests there.
            self.check_texts(f"the log of {place}: a record of {name}", [text], also=number >= logging.INFO)


def _with_causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[Any] = [error]
    while waiting:
        each = waiting.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            yield each
            context = None if each.__suppress_context__ else each.__context__  # as in a traceback
            waiting += [each.__cause__, context, *getattr(each, "exceptions", ())]
