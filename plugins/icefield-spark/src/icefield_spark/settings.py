"""Temporary settings of a session. Several threads may be in such blocks at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from threading import Lock
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession


@dataclass(slots=True)
class _Changed:
    """A changed setting: its value before, the values that open blocks want, and the number of blocks so far."""

    before: str | None = None
    wanted: list[str] = field(default_factory=list)
    blocks: int = 0


_LOCK = Lock()
_CHANGED: WeakKeyDictionary[SparkSession, dict[str, _Changed]] = WeakKeyDictionary()

Choose = Callable[[str | None, Sequence[str]], str]


def at_least(spark: SparkSession, name: str, number: int, default: int) -> AbstractContextManager[None]:
    """Within the block a setting is at least a number; afterwards it has its old value.

    ``default``: the value of the setting when it is unset.
    """
    return _block(spark, name, str(number), lambda before, wanted: str(max(int(before or default), *map(int, wanted))))


def set_to(spark: SparkSession, name: str, value: str) -> AbstractContextManager[None]:
    """Within the block a setting has a value, the same in all blocks; afterwards it has its old value."""
    return _block(spark, name, value, lambda before, wanted: wanted[-1])


@contextmanager
def _block(spark: SparkSession, name: str, value: str, choose: Choose) -> Iterator[None]:
    with _LOCK:
        changed = _CHANGED.setdefault(spark, {}).setdefault(name, _Changed())
        if not changed.wanted:
            changed.before = spark.conf.get(name, None)
        changed.wanted.append(value)
        changed.blocks += 1
        spark.conf.set(name, choose(changed.before, changed.wanted))
    try:
        yield
    finally:
        with _LOCK:
            changed.wanted.remove(value)
            if changed.wanted:
                spark.conf.set(name, choose(changed.before, changed.wanted))
            elif changed.before is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, changed.before)


def blocks_of(spark: SparkSession, name: str) -> int:
    """How many blocks have changed a setting so far.

    If no block is open, two equal results mean that no block changed it in between.
    """
    with _LOCK:
        changed = _CHANGED.get(spark, {}).get(name)
        return 0 if changed is None else changed.blocks
