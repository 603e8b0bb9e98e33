"""The tests of plugins use only packages that outside authors have: the public packages and the test support."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from repository import ROOT, text_of, tracked_files

STABLE = Path("docs/plugins/stable.md")
TESTS = [
    path
    for path in tracked_files()
    if path.suffix == ".py" and path.parts[0] in ("plugins", "examples") and "tests" in path.parts
]
KIT = "icefield_testing"
SOURCES = (Path("framework/src"), Path("plugins/icefield-testing/src"))
_IMPORT = re.compile(r"^[ \t]*(?:from (icefield[.\w]*) import ([\w, ]+)|import (icefield[.\w]+))", re.MULTILINE)


def public(tier: str) -> set[str]:
    """The packages of a tier."""
    text = text_of(STABLE).partition(f"\n## The {tier} tier\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `icefield")]
    return {name for row in rows for name in re.findall(r"`([\w.]+)`", row)}


def named(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """The names of the kernel, dotted, that are imported or patched: by the code, or by scripts in its strings."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=names, level=0):
                yield from ((f"{module}.{name.name}", node.lineno) for name in names)
            case ast.Import(names=names):
                yield from ((name.name, node.lineno) for name in names)
            case ast.Constant(value=str(value)):
                for module, names_, whole in _IMPORT.findall(value):
                    yield from ((f"{module}.{name.strip()}", node.lineno) for name in names_.split(",") if module)
                    yield from ((whole, node.lineno) for _ in [whole] if whole)
            case ast.Call(func=ast.Attribute(attr="setattr"), args=[ast.Constant(value=str(value)), *_]):
                yield value, node.lineno


def module_of(name: str) -> str:
    """The module part of a dotted name: ``icefield.scan`` for ``icefield.scan.TableScan.to_arrow``."""
    parts = name.split(".")
    for end in range(len(parts), 1, -1):
        paths = [Path(ROOT, source, *parts[:end]) for source in SOURCES]
        if any(path.is_dir() or path.with_suffix(".py").is_file() for path in paths):
            return ".".join(parts[:end])
    return parts[0]


def private(source: str, *tiers: str) -> list[tuple[str, int]]:
    """The forbidden modules in a plugin's tests, with their lines. ``tiers``: the permitted tiers."""
    named_ones = set().union(*map(public, tiers or ("stable",)))
    roots = ("icefield", KIT)
    found = ((module_of(name), line) for name, line in named(ast.parse(source)) if name.split(".")[0] in roots)
    return [(module, line) for module, line in found if module not in named_ones]


def _tiers(path: Path) -> tuple[str, ...]:
    """The tiers of public packages that a test of a plugin may use: the tiers of the plugin itself."""
    below = ("plugins/icefield-import", "plugins/icefield-maintenance")
    return ("stable", "engine") if any(map(path.is_relative_to, below)) else ("stable",)


def test_the_tests_of_plugins_name_public_modules_only() -> None:
    assert len(TESTS) > 100
    found = [
        f"{path}:{line}: {module}"
        for path in TESTS
        for module, line in private(text_of(path), *_tiers(path))
        if not (module.startswith(f"{KIT}.") and path.is_relative_to("plugins/icefield-testing"))
    ]
    assert found == [], (
        f"a test of a plugin uses public packages ({STABLE}) or, in this repository, tests/support: "
        f"an author of another plugin has no others; found {found}"
    )


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("from icefield.builtin.memory import MemoryFileSystem", "icefield.builtin.memory"),
        ("from icefield import storage", "icefield.storage"),
        ("from icefield import catalog", "icefield.catalog"),
        ("from icefield_testing.faults import Crash", "icefield_testing.faults"),
        ("import icefield.commit.loop as loop", "icefield.commit.loop"),
        ("def f():\n    from icefield.types.values import from_bytes", "icefield.types.values"),
        ("run('import os\\nfrom icefield.scan.reading import read_task\\n')", "icefield.scan.reading"),
        ("run('import icefield.catalog')", "icefield.catalog"),
        ("patch.setattr('icefield.builtin.local.LocalFileSystem.rename', None)", "icefield.builtin.local"),
    ],
)
def test_each_way_to_a_private_module_is_found(source: str, module: str) -> None:
    assert [name for name, _ in private(source)] == [module]


@pytest.mark.parametrize(
    "source",
    [
        "import icefield",
        "from icefield import Plugins, types",
        "from icefield_testing import MemoryFileSystem",
        "patch.setattr('icefield.scan.TableScan.to_arrow', None)",
        "from icefield_avro.reader import AvroReader",
    ],
)
def test_what_is_public_passes(source: str) -> None:
    assert private(source) == []
