"""A rival that acts in a step of an event loop, and needs the same loop, is not waited for."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from icefield_testing.file_systems import rivals


async def _reply() -> str:
    return "done"


def test_a_rival_that_needs_the_loop_of_a_step_acts_after_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rivals, "_LOCK_SECONDS", 20.0)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def step(rival: rivals._Rival) -> float:
        began = time.monotonic()
        rival.act()
        return time.monotonic() - began

    with rivals._Rival(lambda: asyncio.run_coroutine_threadsafe(_reply(), loop).result()) as rival:
        waited = asyncio.run_coroutine_threadsafe(step(rival), loop).result()
        assert rival.done() == ["done"]
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
    assert waited < 10.0, f"the step waited {waited:.1f} s for a rival that waits for the step"


def test_a_rival_that_needs_no_loop_has_acted_when_the_step_goes_on() -> None:
    acted: list[str] = []

    async def step(rival: rivals._Rival) -> list[str]:
        rival.act()
        return list(acted)

    with rivals._Rival(lambda: acted.append("done")) as rival:
        assert asyncio.run(step(rival)) == ["done"]
