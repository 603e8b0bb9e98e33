"""What is raised by a check of the kit ends in its troubleshooting line."""

from __future__ import annotations

import inspect

import pytest
from icefield_testing import (
    CatalogSuite,
    CommitStrategySuite,
    FileFormatSuite,
    FileSystemSuite,
    Suite,
    TableBehaviourSuite,
)
from kit_checks import checks

SUITES = (CatalogSuite, CommitStrategySuite, FileFormatSuite, FileSystemSuite, TableBehaviourSuite)


class Mine(Suite):
    def test_something(self, number: int) -> None:
        """It is so.

        If this fails, look at the number.
        """
        assert number == 1

    def test_that_something_fails(self) -> None:
        """If this fails, nothing fails."""
        with pytest.raises(KeyError):
            pass

    def test_without_a_line(self) -> None:
        raise KeyError("x")


def test_a_failure_ends_in_the_line() -> None:
    with pytest.raises(AssertionError) as caught:
        Mine().test_something(2)
    assert caught.value.__notes__[-1].endswith("If this fails, look at the number.")
    with pytest.raises(pytest.fail.Exception) as missing:
        Mine().test_that_something_fails()
    assert missing.value.__notes__ == ["If this fails, nothing fails."]
    assert "If this fails" in str(missing.exconly())


def test_what_does_not_fail_or_has_no_line_is_left_alone() -> None:
    Mine().test_something(1)
    with pytest.raises(KeyError) as caught:
        Mine().test_without_a_line()
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.__name__)
def test_every_check_of_the_kit_has_its_line(suite: type[Suite]) -> None:
    found = dict(checks(suite))
    assert len(found) > 10
    for name, check in found.items():
        last = inspect.cleandoc(check.__doc__ or "").split("\n\n")[-1]
        assert last.startswith("If this fails, "), name
        assert last.endswith("."), name


def test_the_behaviour_of_tables_has_eighty_checks_and_more() -> None:
    assert len([*checks(TableBehaviourSuite)]) >= 80
