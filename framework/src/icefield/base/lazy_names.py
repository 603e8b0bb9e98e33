"""The public names of packages: each is stated once, by its import in the package."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from inspect import getsource
from types import ModuleType
from typing import Any


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The functions ``__getattr__`` and ``__dir__`` of a package, for the names that it imports for type checkers.

    These are the names imported in its block ``if TYPE_CHECKING``, which is read in its source. A module is imported
    when one of its names is first used. Modules with hooks belong to such packages, since each process that lists
    plugins imports them. Raises ``ImportError`` for a package without its source.
    """
    try:
        source = getsource(sys.modules[package])
    except (OSError, TypeError):
        raise ImportError(f"the package '{package}' needs its source file __init__.py", name=package) from None
    module_of = {
        alias.asname or alias.name: (each.module, alias.name)
        for block in ast.parse(source).body
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
        for each in block.body
        if isinstance(each, ast.ImportFrom) and each.module
        for alias in each.names
    }

    def attribute(name: str) -> Any:
        if name == "__all__":
            return sorted(module_of)
        if name not in module_of:
            raise AttributeError(f"module '{package}' has no attribute {name!r}", name=name)
        module, there = module_of[name]
        found = getattr(import_module(module), there)
        setattr(sys.modules[package], name, found)
        return found

    return attribute, lambda: sorted({*module_of, *getattr(sys.modules[package], "__all__", ())})


def public_names(package: str) -> list[str]:
    """The names that a package has imported so far, without modules and without names that begin with ``_``."""
    held = vars(sys.modules[package])
    return sorted(
        name
        for name, value in held.items()
        if not (name.startswith("_") or isinstance(value, ModuleType) or value is public_names)
    )
