"""Trying again ends, grows its waits, and never turns a doubtful outcome into a certain one."""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import Iterator

import pytest
from icefield.errors import InvalidArgument
from icefield.toolkit import RetryLimits, SharedClients, is_true, whole_number
from icefield.toolkit.retries import persist, together

QUICK = RetryLimits(retries=3, min_wait=0.01, max_wait=0.02, total=5)


class Refused(Exception):
    """What does not pass."""


def passing(error: Exception) -> bool:
    return isinstance(error, ConnectionError)


def ask(*answers: object, limits: RetryLimits = QUICK) -> tuple[object, int]:
    """The outcome of attempts that end in turn as listed, and how many were made."""
    left: Iterator[object] = iter(answers)
    made = [0]

    async def attempt() -> object:
        made[0] += 1
        answer = next(left)
        if isinstance(answer, Exception):
            raise answer
        return answer

    try:
        return asyncio.run(persist(limits, attempt, passing)), made[0]
    except Exception as error:
        return error, made[0]


def test_what_passes_is_tried_again_and_what_does_not_is_raised_at_once() -> None:
    assert ask(ConnectionError(), ConnectionError(), "answer") == ("answer", 3)
    refused = Refused()
    assert ask(refused, "answer") == (refused, 1)


@pytest.mark.spec("COMMIT-02")
def test_a_refusal_after_a_lost_answer_stays_in_doubt() -> None:
    lost = ConnectionError()
    assert ask(lost, Refused()) == (lost, 2)


@pytest.mark.parametrize("told", [FileExistsError(), FileNotFoundError()])
def test_what_is_there_is_stated_whoever_did_it(told: Exception) -> None:
    assert ask(ConnectionError(), told) == (told, 2)


def test_it_ends_after_so_many_tries_with_the_last_error() -> None:
    last = ConnectionError("last")
    assert ask(ConnectionError(), ConnectionError(), ConnectionError(), last, "never") == (last, 4)


def test_it_ends_after_so_long() -> None:
    endless = RetryLimits(retries=10**6, min_wait=0.01, max_wait=0.01, total=0.1)
    begun = time.monotonic()
    error, made = ask(*[ConnectionError("lost") for _ in range(1_000)], limits=endless)
    assert str(error) == "lost"
    assert 1 < made < 100
    assert time.monotonic() - begun < 2


def test_an_attempt_without_end_is_cut_off() -> None:
    async def attempt() -> None:
        await asyncio.sleep(60)

    with pytest.raises(TimeoutError, match=r"0\.05 s"):
        asyncio.run(persist(RetryLimits(3, 0.01, 0.01, 0.05), attempt, passing))


def test_its_properties_have_one_form() -> None:
    assert RetryLimits.of({}, "x.") == RetryLimits(6, 0.1, 5.0, 30.0)
    given = {"x.retry.num-retries": "0", "x.retry.min-wait-ms": "1", "x.retry.max-wait-ms": "2"}
    assert RetryLimits.of({**given, "x.retry.total-timeout-ms": "3"}, "x.") == RetryLimits(0, 0.001, 0.002, 0.003)


def test_the_first_error_ends_what_goes_on_together() -> None:
    ended: list[str] = []

    async def endless() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def failing() -> None:
        await asyncio.sleep(0.01)
        raise Refused

    async def number(one: int) -> int:
        return one

    assert asyncio.run(together(number(one) for one in range(3))) == [0, 1, 2]
    with pytest.raises(Refused):
        asyncio.run(together([endless(), failing()]))
    assert ended == ["cancelled"]


@pytest.mark.parametrize("text", ["-1", "many", "1.5", ""])
def test_what_is_no_number_is_named(text: str) -> None:
    assert whole_number({"n": "7"}, "n", 1, 0) == 7
    assert whole_number({}, "n", 1, 0) == 1
    with pytest.raises(InvalidArgument, match="n is a whole number"):
        whole_number({"n": text}, "n", 1, 0)


def test_what_is_neither_true_nor_false_is_named() -> None:
    assert is_true({"t": " True "}, "t")
    assert not is_true({"t": "false"}, "t", True)
    assert is_true({}, "t", True)
    with pytest.raises(InvalidArgument, match="t is true or false"):
        is_true({"t": "yes"}, "t")


def test_a_client_is_shared_as_long_as_it_is_held_and_by_no_other_process() -> None:
    class Client:
        pass

    clients: SharedClients[Client] = SharedClients()
    one = clients.get("a", Client)
    assert clients.get("a", Client) is one
    assert clients.get("b", Client) is not one
    child = os.fork()
    if child == 0:
        os._exit(int(clients.get("a", Client) is one))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    known = id(one)
    held = [one]
    del one
    gc.collect()
    assert id(clients.get("a", Client)) == known
    held.clear()
    gc.collect()
    kept = [object() for _ in range(10)]  # so that a new client is not where the old one lay
    assert len(clients._clients) == 0, kept


def test_a_forked_process_does_not_let_go_of_what_its_parent_uses() -> None:
    class Client:
        ended: list[int] = []  # noqa: RUF012

        def __del__(self) -> None:
            self.ended.append(os.getpid())

    clients: SharedClients[Client] = SharedClients()
    held = [clients.get("a", Client)]
    child = os.fork()
    held.clear()
    gc.collect()
    if child == 0:
        clients.get("a", Client)  # one of its own, which it may let go of
        gc.collect()
        os._exit(0 if len(Client.ended) == 1 else 1)
    assert Client.ended == [os.getpid()]
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
