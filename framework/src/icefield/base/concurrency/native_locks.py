"""Locks of the C++ library that Arrow reads shared pointers under, held during a fork.

Arrow's arrays take one of 16 locks of ``libstdc++`` whenever a child array is asked for. That library does nothing for
forks: if another thread holds a lock at that moment, a forked process waits for it for ever. ``libstdc++`` without
these functions and other C++ libraries are left alone.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Any, Final

_HELD: Final[list[Any]] = []


@cache
def _locks() -> tuple[Any, Any, dict[int, int]]:
    """The functions that take and release a lock, and an address for each lock, by its number."""
    addresses: dict[int, int] = {}
    try:
        library = ctypes.CDLL("libstdc++.so.6")
        take, release = library._ZNSt10_Sp_lockerC1EPKv, library._ZNSt10_Sp_lockerD1Ev
    except (OSError, AttributeError):
        return None, None, addresses
    for address in range(0, 1 << 14, 64):
        taken = (ctypes.c_ubyte * 2)()
        take(taken, ctypes.c_void_p(address))
        release(taken)
        addresses.setdefault(taken[0], address)
    return take, release, dict(sorted(addresses.items()))


def hold() -> None:
    """Take all locks, in the order in which the library itself takes two of them."""
    take, _, addresses = _locks()
    for address in addresses.values():
        taken = (ctypes.c_ubyte * 2)()
        take(taken, ctypes.c_void_p(address))
        _HELD.append(taken)


def let_go() -> None:
    """Release all locks that ``hold`` took."""
    _, release, _ = _locks()
    while _HELD:
        release(_HELD.pop())


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(before=hold, after_in_parent=let_go, after_in_child=let_go)  # noqa: TID251
