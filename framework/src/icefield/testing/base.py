"""What every suite of the kit shares: a check that fails ends in its troubleshooting line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import pytest

TROUBLESHOOTING: Final = "If this fails"
"""How the line begins, in the docstring of a check, that tells what to look at."""

# The checks are in no test module, so pytest must be told to show the values in their assertions.
pytest.register_assert_rewrite(
    *(
        f"icefield.testing.{name}"
        for name in ("behaviour", "catalog", "commit_strategy", "file_format", "file_system", "formats")
    )
)


class Suite:
    """A suite of checks. What is raised by one whose docstring says "If this fails, ..." carries that as a note."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, check in list(vars(cls).items()):
            if name.startswith("test_") and inspect.isfunction(check) and TROUBLESHOOTING in (check.__doc__ or ""):
                setattr(cls, name, _telling(check))


def _telling(check: Callable[..., Any]) -> Callable[..., Any]:
    note = inspect.cleandoc(check.__doc__ or "")

    @wraps(check)
    def telling(*args: Any, **kwargs: Any) -> None:
        __tracebackhide__ = True
        try:
            check(*args, **kwargs)
        except (Exception, pytest.fail.Exception) as error:
            error.add_note(note)
            raise

    return telling
