"""The pytest plugin of the kit: a failed check shows the values in its assertion, like the author's own tests.

The option ``--icefield-kit-version`` leaves out checks that are newer than a version of the kit.

This module is outside the package of the kit: pytest loads it for every run, and only a test file imports the kit.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

LEFT_OUT = "left out: new in version"
"""The beginning of the reason for skipping a check that is newer than the chosen version of the kit."""

_OPTION = "--icefield-kit-version"

pytest.register_assert_rewrite("icefield_testing")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that chooses a version of the kit."""
    parser.getgroup("icefield").addoption(
        _OPTION,
        metavar="VERSION",
        help="run the checks that this version of the kit has; leave out checks that are newer",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    """Skip the checks that are newer than the chosen version of the kit, and say so."""
    given: str | None = config.getoption(_OPTION)
    if given is not None:
        _numbers(given, _OPTION)
    for item in items:
        new_in = getattr(getattr(item, "function", None), "new_in", None)
        suite = getattr(item, "cls", None)
        chosen = getattr(suite, "kit_version", None) or given
        if new_in is None or chosen is None:
            continue
        if _numbers(new_in, item.name) > _numbers(chosen, f"kit_version of {getattr(suite, '__name__', item.name)}"):
            item.add_marker(pytest.mark.skip(reason=f"{LEFT_OUT} {new_in} of the kit, and version {chosen} is chosen"))


def _numbers(version: str, where: str) -> tuple[int, ...]:
    """The numbers of a version. Raises ``UsageError`` for a string that is no version."""
    parts = version.split(".")
    if not all(part.isdecimal() for part in parts):
        raise pytest.UsageError(f"{where}: '{version}' is no version of the kit, such as 0.1")
    return tuple(map(int, parts))
