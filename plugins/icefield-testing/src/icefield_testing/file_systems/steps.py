"""Tools to look at the store between the steps of a call, and to let a system call fail after it is done."""

from __future__ import annotations

import asyncio
import errno
import io
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final

from icefield.abc import FileSystem

_CONTRACTS: Final = "icefield.abc."
# Calls of compiled functions after which a store may have changed, by their modules.
_REACHING_OUT: Final = frozenset({"posix", "nt", "io", "_io", "_socket", "_ssl"})
_OF_THE_SYSTEM: Final = frozenset({"posix", "nt", "_socket", "_ssl"})
_SYSTEM_CALLS: Final = frozenset(
    {"link", "rename", "replace", "unlink", "mkdir", "open", "write", "close", "fsync", "fdatasync", "stat", "send"}
)

_LOOP_SECONDS: Final = 1.0

READS: Final = frozenset({"read", "readinto", "pread", "preadv", "recv", "recv_into"})
"""System calls that read."""


@contextmanager
def between_steps(file_system: FileSystem, look: Callable[[], None], *others: object) -> Iterator[None]:
    """Call ``look`` after each line of the plugin's own modules, and after each call that may reach a store.

    ``look`` runs in the thread of the step, so its findings do not depend on timing: in this thread, in a thread that
    begins within the block, and in the thread of an event loop. The modules of ``others``, such as an open file, count
    as the plugin's.
    """
    places = tuple(place for each in (file_system, *others) for place in _sources(each))
    busy = False

    def looked() -> None:
        nonlocal busy
        if not busy:
            busy = True
            try:
                look()
            finally:
                busy = False

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(places):
            return None
        if event in ("line", "return"):
            looked()
        return trace

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event == "c_return" and _reaches_out(argument):
            looked()

    before = sys.gettrace(), sys.getprofile()
    loops = _running_loops()

    def follow(traced: Any, profiled: Any) -> None:
        def here() -> None:
            sys.settrace(traced)
            sys.setprofile(profiled)

        threading.settrace(traced)
        threading.setprofile(profiled)
        for loop in loops:
            _run_in(loop, here)
        here()

    try:
        follow(trace, profile)
        yield
    finally:
        sys.setprofile(None)
        follow(*before)


def _running_loops() -> list[asyncio.AbstractEventLoop]:
    """The event loops that run in threads of their own.

    They are found by what the threads do: to look at all objects of a large process takes a second.
    """
    found = []
    for frame in sys._current_frames().values():
        below: FrameType | None = frame
        while below is not None:
            if below.f_code.co_name == "run_forever" and isinstance(
                loop := below.f_locals.get("self"), asyncio.AbstractEventLoop
            ):
                found.append(loop)
            below = below.f_back
    return found


def _run_in(loop: asyncio.AbstractEventLoop, act: Callable[[], object]) -> None:
    done = threading.Event()

    def run() -> None:
        act()
        done.set()

    with suppress(RuntimeError):  # it is closed
        loop.call_soon_threadsafe(run)
        done.wait(_LOOP_SECONDS)


@contextmanager
def handing_over(tell: Callable[[], object]) -> Iterator[None]:
    """Call ``tell`` when another thread hands work to the event loop that runs in this thread, if one does.

    This thread is in a step of the loop, so the work waits until the block has ended.
    """
    loop: Any = asyncio._get_running_loop()
    if loop is None:
        yield
        return
    hand_over = loop.call_soon_threadsafe

    def told(*args: Any, **kwargs: Any) -> Any:
        handle = hand_over(*args, **kwargs)
        tell()
        return handle

    loop.call_soon_threadsafe = told
    try:
        yield
    finally:
        del loop.call_soon_threadsafe


def _sources(made: object) -> tuple[str, ...]:
    """The location of the plugin's code: the modules of its classes, and the whole package if the plugin is one."""
    found = set()
    for kind in type(made).__mro__:
        module = sys.modules.get(kind.__module__)
        file = getattr(module, "__file__", None)
        if file is None or kind.__module__.startswith(_CONTRACTS):
            continue
        package = kind.__module__.partition(".")[0]
        of_plugin = package not in ("icefield", "icefield_testing", kind.__module__)
        folder = getattr(sys.modules.get(package), "__file__", None) if of_plugin else None
        found.add(file if folder is None else os.path.dirname(folder) + os.sep)
    return tuple(found)


def _is_of_the_system(function: Any) -> bool:
    owner = getattr(function, "__self__", None)
    return _module(function) in _OF_THE_SYSTEM or isinstance(owner, io.FileIO | io.BufferedReader)


def _reaches_out(function: Any) -> bool:
    return _module(function) in _REACHING_OUT


def _module(function: Any) -> str:
    owner = getattr(function, "__self__", None)
    module: str = getattr(function, "__module__", None) or type(owner).__module__
    return module


@contextmanager
def failing_when_done(number: int, names: frozenset[str] = _SYSTEM_CALLS) -> Iterator[list[str]]:
    """Let system call ``number`` of this thread raise EIO after it is done; yield the names of the system calls so far.

    A network disk fails like this if its reply is lost. Only calls with these ``names`` count.
    """
    made: list[str] = []

    def profile(_frame: FrameType, event: str, argument: Any) -> None:
        if event == "c_return" and argument.__name__ in names and _is_of_the_system(argument):
            made.append(argument.__name__)
            if len(made) == number + 1:
                raise OSError(errno.EIO, os.strerror(errno.EIO))

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield made
    finally:
        sys.setprofile(before)
