"""The base of every suite of the kit: a failing check ends in its troubleshooting line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar, Final

import pytest
from icefield import Plugins

from icefield_testing.watchdog import watched

TROUBLESHOOTING: Final = "If this fails"
"""The beginning of the troubleshooting line in the docstring of a check."""


class Suite:
    """A suite of checks. The error of a failing check carries the check's "If this fails, ..." docstring as a note.

    A check that hangs fails with the stacks of all threads.
    """

    check_seconds: ClassVar[float] = 240.0
    """The time limit of a check, after which it counts as hanging."""

    def plugins(self) -> Plugins:
        """The plugins, including the plugin under test; by default all installed plugins."""
        return Plugins.installed()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, check in list(vars(cls).items()):
            if name.startswith("test_") and inspect.isfunction(check) and TROUBLESHOOTING in (check.__doc__ or ""):
                setattr(cls, name, _telling(check))


def _telling(check: Callable[..., Any]) -> Callable[..., Any]:
    note = inspect.cleandoc(check.__doc__ or "")

    @wraps(check)
    def telling(suite: Suite, *args: Any, **kwargs: Any) -> None:
        __tracebackhide__ = True
        try:
            with watched(suite.check_seconds, check.__name__):
                check(suite, *args, **kwargs)
        except (Exception, pytest.fail.Exception) as error:
            error.add_note(note)
            raise

    return telling
