"""Which private names of their libraries the plugins for object stores use: each is listed, and says when it may go."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
from repository import ROOT, text_of

# By module, the names that begin with an underscore and are defined by another package. A new name fails the test;
# remove a name that is no longer used.
PRIVATE = {
    "icefield_adls.client": {"_registry", "_response_class", "_retry_connection"},
    "icefield_gcs.client": {"_format_path", "_get_headers", "_get_object", "_get_params", "_request", "_set_session"},
    "icefield_s3.client": {"_s3", "_s3creator"},
    "icefield_s3.sessions": {"_credentials", "_get_session", "_response_class", "_retry_connection"},
}
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
    """The names that a module defines: functions, classes, variables, and attributes of ``self``."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
            names.add(node.attr)
    return names


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


def places(path: Path) -> list[tuple[str, int]]:
    """The private names of other packages in a module, with their lines."""
    tree = ast.parse(text_of(path))
    own = defined(tree) | {name for other in path.parent.glob("*.py") for name in defined(ast.parse(text_of(other)))}
    used = [
        (node.attr, node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own
    ]
    return [*used, *overridden(module_of(path))]


@pytest.mark.parametrize("path", MODULES, ids=module_of)
def test_each_private_name_of_a_library_is_listed(path: Path) -> None:
    assert {name for name, _ in places(path)} == PRIVATE.get(module_of(path), set())


@pytest.mark.parametrize("module", sorted(PRIVATE))
def test_each_place_names_the_version_and_when_it_can_go(module: str) -> None:
    path = next(path for path in MODULES if module_of(path) == module)
    comments = [line for line in text_of(path).splitlines() if line.lstrip().startswith("#")]
    said = " ".join(line.lstrip().lstrip("#") for line in comments)
    for name in PRIVATE[module]:
        assert f"`{name}`" in said, f"{path}: no comment says why `{name}` is used"
    assert "can go when" in said
