"""Counts of accepted and refused inputs of a fuzz test: a test with only one kind of input proves little."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


class Outcomes:
    """The outcomes of the tests of a module, by the name of the test."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = {}

    @contextmanager
    def of(self, test: str, *errors: type[Exception]) -> Iterator[None]:
        """Count the block as accepted, or as refused if it raises one of ``errors``, which is suppressed."""
        counts = self.counts.setdefault(test, Counter())
        try:
            yield
        except errors:
            counts["refused"] += 1
        else:
            counts["accepted"] += 1

    def check(self) -> None:
        """Fail when a test met no input that was accepted, or none that was refused."""
        for test, counts in self.counts.items():
            assert counts["accepted"], f"{test}: all of {counts['refused']} inputs were refused"
            assert counts["refused"], f"{test}: all of {counts['accepted']} inputs were accepted"


def counted_outcomes() -> Any:
    """Return a module's fixture, to be assigned to ``outcomes``, which checks the counts after the last test."""

    def outcomes() -> Iterator[Outcomes]:
        counted = Outcomes()
        yield counted
        counted.check()

    return pytest.fixture(scope="module")(outcomes)
