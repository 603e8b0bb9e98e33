"""Broken listeners are rejected by the intended check of the kit, and right ones pass."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final

import pytest
from icefield_rest import hooks
from icefield_testing import ListenerSuite
from kit_checks import checks, failures, rejection, words
from mutants import Mutant
from mutants.listeners import MUTANTS
from mutants.listeners.hearing import _IS_CHECKED, QueuedListener
from mutants.listeners.processes import FileListener


class Suite(ListenerSuite):
    """The suite for the listeners of this test."""

    properties: ClassVar[Mapping[str, str]] = {"url": "http://127.0.0.1:80", "token": "t"}
    unreachable: ClassVar[Mapping[str, str] | None] = {"url": "http://127.0.0.1:9"}
    secrets = ("token",)

    end_seconds = 60.0

    def delivered(self, listener: Any) -> int | None:
        return listener.delivered() if isinstance(listener, QueuedListener) else None


class HastySuite(Suite):
    """The suite for the mutants that use up the time."""

    end_seconds = 2.0


_USE_UP: Final = ("did not end within", "are still held", "are held for")


@pytest.fixture(autouse=True)
def same_process() -> Iterator[None]:
    """Undo the changes of the process that mutants make."""
    environment, handler = dict(os.environ), signal.getsignal(signal.SIGTERM)
    yield
    _IS_CHECKED.set()
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    signal.signal(signal.SIGTERM, handler)
    socket.setdefaulttimeout(None)


def given(make: Callable[[], Any]) -> dict[str, Callable[[str], Any]]:
    return {"listener": lambda _: make()}


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_broken_listener_is_rejected_with_words_that_name_the_cause(mutant: Mutant) -> None:
    _IS_CHECKED.clear()
    suite = HastySuite if any(each in mutant.cause for each in _USE_UP) else Suite
    said = words(lambda: rejection(suite, mutant.check, given(mutant.plugin)), mutant.cause)
    assert mutant.cause in said, said


def test_every_check_has_a_mutant() -> None:
    assert {name for name, _ in checks(Suite)} == {mutant.check for mutant in MUTANTS}


@pytest.mark.parametrize("make", [QueuedListener, FileListener, lambda: hooks], ids=["queued", "file", "rest"])
def test_a_right_listener_passes_every_check(make: Callable[[], Any]) -> None:
    assert failures(Suite, given(make)) == []
