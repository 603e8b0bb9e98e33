"""The plugins for object stores use no private name of their libraries."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
from repository import ROOT, text_of

MODULES = sorted(
    path.relative_to(ROOT)
    for plugin in ("adls", "gcs", "s3")
    for path in (ROOT / f"plugins/icefield-{plugin}/src").rglob("*.py")
)


def module_of(path: Path) -> str:
    return ".".join(path.with_suffix("").parts[3:])


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def defined(tree: ast.AST) -> set[str]:
    """The attributes that a module defines: methods, and attributes of ``self``."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            names |= {each.name for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
            names.add(node.attr)
    return names


def used(tree: ast.AST, own: set[str]) -> list[tuple[str, int]]:
    """The private names of other packages in a module, as attributes or imports, with their lines."""
    found = []
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Attribute) and node.attr not in own:
            names = [node.attr]
        elif isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("icefield"):
            names = [*(node.module or "").split("."), *(each.name for each in node.names)]
        elif isinstance(node, ast.Import):
            names = [part for each in node.names for part in each.name.split(".")]
        found += [(name, node.lineno) for name in names if is_private(name)]
    return found


def overridden(module: str) -> Iterator[tuple[str, int]]:
    """Private methods of classes of other packages, which a class of the module replaces."""
    loaded = importlib.import_module(module)
    for _, owner in inspect.getmembers(loaded, inspect.isclass):
        if owner.__module__ != module:
            continue
        foreign = [base for base in owner.__mro__ if not base.__module__.startswith("icefield")]
        for name, value in vars(owner).items():
            if is_private(name) and inspect.isfunction(value) and any(name in vars(base) for base in foreign):
                yield name, inspect.getsourcelines(value)[1]


@pytest.mark.parametrize("path", MODULES, ids=module_of)
def test_no_private_name_of_a_library_is_used(path: Path) -> None:
    own = {name for other in path.parent.glob("*.py") for name in defined(ast.parse(text_of(other)))}
    assert [*used(ast.parse(text_of(path)), own), *overridden(module_of(path))] == []


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("session._retry_connection = False", "_retry_connection"),
        ("from gcsfs.core import _location", "_location"),
        ("import google.auth.transport._mtls_helper", "_mtls_helper"),
    ],
)
def test_a_private_name_would_be_found(line: str, name: str) -> None:
    assert used(ast.parse(line), set()) == [(name, 1)]
