"""Deprecation of hooks and of members of contracts: warnings that name the version of removal."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
_WARNING = "icefield_deprecation"


def deprecation(name: str, *, since: str, removal: str, use: str) -> DeprecationWarning:
    """The warning for a deprecated name. ``@hookspec(warn_on_impl=deprecation(...))`` deprecates a hook."""
    return DeprecationWarning(f"{name} is deprecated since icefield {since} and is removed in {removal}; use {use}")


def deprecated(*, since: str, removal: str, use: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Deprecate a function or a method. A call warns. A plugin's class that implements the method warns when loaded."""

    def mark(function: Callable[P, R]) -> Callable[P, R]:
        warning = deprecation(function.__qualname__, since=since, removal=removal, use=use)

        @wraps(function)
        def warned(*args: P.args, **kwargs: P.kwargs) -> R:
            warnings.warn(warning, stacklevel=2)
            return function(*args, **kwargs)

        setattr(warned, _WARNING, warning)
        return warned

    return mark


def warn_of_implementations(found: type, contract: type) -> None:
    """Warn of each deprecated member of a contract that a class implements."""
    members: dict[str, Any] = {name: each for base in reversed(contract.__mro__) for name, each in vars(base).items()}
    for name, member in members.items():
        warning = getattr(member, _WARNING, None)
        if warning is not None and inspect.getattr_static(found, name) is not member:
            text = f"{found.__module__}.{found.__qualname__} implements {name}, and {warning}"
            warnings.warn(text, DeprecationWarning, stacklevel=2)
