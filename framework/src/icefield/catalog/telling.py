"""Methods of a catalog that are operations: listeners are told when each starts and ends."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, Final, TypeVar, cast

from icefield.catalog.identifiers import table_name

_NEW_NAME: Final = "to_identifier"

F = TypeVar("F", bound=Callable[..., Any])


def told(operation: str, name_of: Callable[[Any], tuple[str, ...]] = table_name) -> Callable[[F], F]:
    """A decorator of methods whose first argument is a name; the argument ``to_identifier`` is its new name."""

    def decorated(method: F) -> F:
        parameters = signature(method)
        named = [name for place, name in enumerate(parameters.parameters) if place == 1 or name == _NEW_NAME]

        @wraps(method)
        def telling(catalog: Any, *args: Any, **keywords: Any) -> Any:
            listeners = catalog._backend.io.listeners
            if not listeners:
                return method(catalog, *args, **keywords)
            given = parameters.bind(catalog, *args, **keywords)
            names = {each: name_of(given.arguments[each]) for each in named}
            given.arguments.update(names)  # a name may have been an iterator
            with listeners.operation(operation, names[named[0]], new_name=names.get(_NEW_NAME)):
                return method(*given.args, **given.kwargs)

        return cast(F, telling)

    return decorated
