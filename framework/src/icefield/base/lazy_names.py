"""Names of a package that are imported when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, modules: Mapping[str, Iterable[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The functions ``__getattr__`` and ``__dir__`` of a package whose names are in some modules.

    ``modules`` gives the names in each module. A module is imported when one of its names is first used. Modules with
    hooks belong to such packages, since each process that lists plugins imports them.
    """
    module_of = {name: module for module, names in modules.items() for name in names}

    def attribute(name: str) -> Any:
        module = module_of.get(name)
        if module is None:
            raise AttributeError(f"module '{package}' has no attribute {name!r}", name=name)
        return getattr(import_module(module), name)

    return attribute, lambda: sorted(module_of)
