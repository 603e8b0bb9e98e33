"""Broken listeners are rejected by the intended check of the kit, and right ones pass."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

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

    end_seconds = 2.0  # the mutants use it up

    def delivered(self, listener: Any) -> int | None:
        return listener.delivered() if isinstance(listener, QueuedListener) else None


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
    said = words(lambda: rejection(Suite, mutant.check, given(mutant.plugin)), mutant.cause)
    assert mutant.cause in said, said


def test_every_check_has_a_mutant() -> None:
    assert {name for name, _ in checks(Suite)} == {mutant.check for mutant in MUTANTS}


@pytest.mark.parametrize("make", [QueuedListener, FileListener, lambda: hooks], ids=["queued", "file", "rest"])
def test_a_right_listener_passes_every_check(make: Callable[[], Any]) -> None:
    patient = type("Suite", (Suite,), {"end_seconds": 60.0})
    assert failures(patient, given(make)) == []
