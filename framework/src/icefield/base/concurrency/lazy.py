"""Properties that are computed once, without a lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T_co = TypeVar("T_co", covariant=True)


class lazy(Generic[T_co]):  # noqa: N801 -- a decorator, named like ``property``
    """A property that is computed when it is first read, and kept in the instance.

    It takes no lock. ``functools.cached_property`` of Python 3.11 holds one lock for all instances of a class, so that
    a slow table or service would stall every other. Threads that read it first at once may each compute the value; the
    last one is kept.
    """

    def __init__(self, compute: Callable[[Any], T_co]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T_co: ...

    def __get__(self, instance: object | None, owner: type | None = None) -> Self | T_co:
        if instance is None:
            return self
        # Python looks into the instance first, so this runs only until a value is there.
        value = instance.__dict__[self._name] = self._compute(instance)
        return value
