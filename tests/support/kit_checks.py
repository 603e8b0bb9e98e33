"""Runs the checks of a suite of the kit one by one, without pytest's own loop, to see which of them reject a fake."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

import pytest


def failures(suite: type, fixtures: Mapping[str, Callable[[str], Any]], *, at_most: int | None = None) -> list[str]:
    """The names of the checks that fail, at most so many.

    ``fixtures`` makes each fixture afresh for each check, given the check's name.
    """
    return list(rejections(suite, fixtures, at_most=at_most))


def rejections(
    suite: type, fixtures: Mapping[str, Callable[[str], Any]], *, at_most: int | None = None
) -> dict[str, str]:
    """Return the checks that fail, at most so many, each with its error and the notes on it."""
    found: dict[str, str] = {}
    for name, check in checks(suite):
        for given in _parameters(check):
            wanted = [each for each in inspect.signature(check).parameters if each != "self"]
            for fixture in wanted:
                if fixture in fixtures:
                    given[fixture] = fixtures[fixture](name)
            try:
                getattr(suite(), name)(**{each: given[each] for each in wanted if each in given})
            except pytest.skip.Exception:
                continue
            except (Exception, pytest.fail.Exception) as error:
                found[name] = "\n".join([str(error), *getattr(error, "__notes__", [])])
                break
        if at_most is not None and len(found) >= at_most:
            break
    return found


def checks(suite: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The checks of a suite, by name."""
    for name, check in inspect.getmembers(suite, inspect.isfunction):
        if name.startswith("test_"):
            yield name, check


def _parameters(check: Callable[..., Any]) -> Iterator[dict[str, Any]]:
    """Yield the arguments that ``parametrize`` gives the check, in all combinations."""
    axes = []
    for mark in getattr(check, "pytestmark", []):
        if mark.name == "parametrize":
            stated = mark.args[0]
            names = [each.strip() for each in stated.split(",")] if isinstance(stated, str) else [*stated]
            rows = [row if len(names) > 1 else (row,) for row in mark.args[1]]
            axes.append([dict(zip(names, row, strict=True)) for row in rows])
    for combination in product(*axes):
        yield {name: value for part in combination for name, value in part.items()}


def rejection(suite: type, name: str, fixtures: Mapping[str, Callable[[str], Any]]) -> str:
    """Return the error of a failed check and its notes; empty if the check passes or is skipped."""
    for given in _parameters(getattr(suite, name)):
        wanted = [each for each in inspect.signature(getattr(suite, name)).parameters if each != "self"]
        given |= {fixture: fixtures[fixture](name) for fixture in wanted if fixture in fixtures}
        try:
            getattr(suite(), name)(**{each: given[each] for each in wanted if each in given})
        except pytest.skip.Exception:
            continue
        except (Exception, pytest.fail.Exception) as error:
            return "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])])
    return ""


def words(run: Callable[[], str], cause: str) -> str:
    """The words of a rejection that should name a cause. A race is won by luck at times: up to three runs are made."""
    said = ""
    for _ in range(3):
        said = " ".join(run().split())
        if cause in said:
            break
    return said
