"""A file system whose process dies, as by ``kill -9``, at a chosen step; a plugin of its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any, ClassVar

from icefield import Provider, hookimpl
from icefield.builtin.local import LocalFileSystem
from icefield.testing import FaultyFileSystem


class Steps:
    """The steps that this process has done, and the one that it dies at."""

    done: ClassVar[int] = 0
    deadly: ClassVar[int | None] = None

    @classmethod
    def step(cls) -> None:
        """One more step; the last, if it is the chosen one."""
        cls.done += 1
        if cls.deadly is not None and cls.done == cls.deadly:
            os.kill(os.getpid(), signal.SIGKILL)


class KillingFileSystem(FaultyFileSystem):
    """The local file system, with a step before and after each call."""

    abilities = LocalFileSystem.abilities

    def __init__(self, properties: Any = None) -> None:
        super().__init__(LocalFileSystem(properties))

    def run(self, name: str, location: str, action: Callable[[], Any]) -> Any:
        Steps.step()
        result = action()
        Steps.step()
        return result


@hookimpl
def icefield_file_systems() -> list[Provider]:
    return [Provider(("file",), "killing:KillingFileSystem")]


def stepping(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function with a step before and after it."""

    def stepped(*arguments: Any, **options: Any) -> Any:
        Steps.step()
        result = function(*arguments, **options)
        Steps.step()
        return result

    return stepped


__all__ = ["KillingFileSystem", "Steps", "icefield_file_systems", "stepping"]
