"""The base of every suite of the kit: the error of a failed check ends with the check's troubleshooting line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar, Final, TypeVar

import pytest
from icefield import Plugins

from icefield_testing.watchdog import watched

TROUBLESHOOTING: Final = "If this fails"
"""The beginning of the line in the docstring of a check that states the place to look at."""

Check = TypeVar("Check", bound=Callable[..., Any])


def new_in(version: str) -> Callable[[Check], Check]:
    """Mark a check as new in a version of the kit: ``@new_in("0.2")``. An author can adopt the check later."""

    def mark(check: Check) -> Check:
        check.new_in = version  # type: ignore[attr-defined]
        return check

    return mark


class Suite:
    """A suite of checks.

    If the docstring of a check says "If this fails, ...", its errors carry the docstring as a note.

    A check that does not end fails, with the stacks of all threads.
    """

    check_seconds: ClassVar[float] = 240.0
    """How long a check may take before it is taken to hang."""

    kit_version: ClassVar[str | None] = None
    """Run the checks of this version of the kit: ``"0.1"`` leaves out newer checks. None runs all checks.

    For suites with None, the option ``--icefield-kit-version`` of pytest gives the version.
    """

    def plugins(self) -> Plugins:
        """The plugins, including the plugin under test; by default the installed ones."""
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
