"""The script of a process that a listener hears from its first event to its end. A fresh interpreter runs this file."""

from __future__ import annotations

import importlib
import pickle
import sys
import traceback
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from icefield_testing.listeners.hearing import Hearing, state_of_the_process
from icefield_testing.listeners.sample_events import sample_events

NOT_LOADED: Final = 97
"""The exit status of a fresh interpreter that could not load the listener."""
CHANGED: Final = 96
"""The exit status of a process that the listener has changed; the last line of its standard error names the changes."""


def live(listener: str | bytes, properties: Mapping[str, str], events: Iterable[Any] | None) -> int:
    """Let a listener, the name of a module or a pickled object, hear events; return the exit status."""
    try:
        made = importlib.import_module(listener) if isinstance(listener, str) else pickle.loads(listener)
    except BaseException:
        traceback.print_exc()
        return NOT_LOADED
    with Hearing(made, properties, prints=False) as hearing:
        before = state_of_the_process()
        for event in sample_events() if events is None else events:
            with suppress(AssertionError):  # another check tells an error of the listener
                hearing.hear([event])
        after = state_of_the_process()
    changed = [what for what, value in after.items() if value != before[what]]
    if changed:
        print(" and ".join(changed), file=sys.stderr)
    return CHANGED if changed else 0


if __name__ == "__main__":
    sys.exit(live(*pickle.load(sys.stdin.buffer)))
