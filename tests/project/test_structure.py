"""The rules of the house, on every file."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from repository import ROOT, kernel_modules, plugin_folders, plugin_modules, text_of, tracked_files

MAX_LINES = 500
MAX_IMPORT_SECONDS = 0.150
MAX_SHARED_CLASS_NAMES = 25
# Looking a plugin up, handing a name on, and asking the plugins from below are what importing by name is for.
IMPORT_BY_NAME = {
    Path("framework/src/icefield/base/compute.py"),
    Path("framework/src/icefield/base/notebooks.py"),
    Path("framework/src/icefield/base/lazy_names.py"),
    Path("framework/src/icefield/plugins/registry.py"),
}
HEAVY = {
    "boto3",
    "botocore",
    "s3fs",
    "gcsfs",
    "adlfs",
    "google",
    "azure",
    "fastavro",
    "pyspark",
    "sqlalchemy",
    "pandas",
}
# Spelt in pieces, so that this file keeps the rules that it checks.
MACHINE = re.compile(r"(?<![\w.])/wor" + r"k\b|\.\./shar" + r"ed\b|/home/\w+/|/Users/\w+/")
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b|(?<!except )\bNotImplemented" + r"Error\b")


def modules() -> list[Path]:
    return kernel_modules() + plugin_modules()


def tree_of(path: Path) -> ast.Module:
    return ast.parse(text_of(path))


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def found_in(paths: Iterable[Path], look: Callable[[Path], Iterable[int]]) -> list[str]:
    """``path:line`` of whatever ``look`` finds."""
    return [f"{path}:{line}" for path in paths for line in look(path)]


def lines_matching(pattern: re.Pattern[str], path: Path) -> list[int]:
    text = text_of(path)
    return [n for n, line in enumerate(text.splitlines(), 1) if pattern.search(line)] if pattern.search(text) else []


def test_a_package_only_hands_names_on() -> None:
    def hands_on(node: ast.stmt) -> bool:
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Assign() | ast.Expr(ast.Constant()):
                return True
            case ast.If(ast.Name("TYPE_CHECKING"), body, []):
                return all(isinstance(each, ast.ImportFrom) for each in body)
        return False

    packages = [path for path in modules() if path.name == "__init__.py"]
    assert len(packages) > 10
    assert found_in(packages, lambda path: [n.lineno for n in tree_of(path).body if not hands_on(n)]) == []


def test_a_module_is_of_a_size_that_can_be_read() -> None:
    paths = [path for path in tracked_files() if path.suffix == ".py"]
    sizes = {str(path): text_of(path).count("\n") for path in paths}
    assert {path: lines for path, lines in sizes.items() if lines > MAX_LINES} == {}


def test_the_kernel_stays_small() -> None:
    paths = [path for path in tracked_files() if path.suffix == ".py" and path.is_relative_to("framework/src")]
    assert sum(text_of(path).count("\n") for path in paths) <= 50_000


def test_no_import_hides_inside_a_function_of_the_kernel() -> None:
    def look(path: Path) -> Iterator[int]:
        tree = tree_of(path)
        for function in functions(tree):
            yield from (node.lineno for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom))
        if path not in IMPORT_BY_NAME:
            names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
            yield from (node.lineno for node in names if node.id in ("import_module", "__import__"))

    assert found_in(kernel_modules(), look) == []


def test_no_file_names_a_machine() -> None:
    paths = [path for path in tracked_files() if path != Path(".ci/run")]
    assert found_in(paths, lambda path: lines_matching(MACHINE, path)) == []


def test_nothing_is_left_unfinished() -> None:
    paths = [path for path in tracked_files() if path.suffix == ".py"]
    assert found_in(paths, lambda path: lines_matching(UNFINISHED, path)) == []


def test_every_module_begins_with_a_docstring() -> None:
    assert [str(path) for path in modules() if not ast.get_docstring(tree_of(path))] == []


@pytest.mark.parametrize("folder", [str(folder) for folder in plugin_folders()])
def test_a_plugin_is_a_whole_distribution(folder: str) -> None:
    project = tomllib.loads(text_of(Path(folder, "pyproject.toml")))["project"]
    assert project["license"] == "Apache-2.0"
    assert project["requires-python"] == ">=3.11"
    assert project["readme"] == "README.md"
    assert any(dependency.startswith("icefield>=") for dependency in project["dependencies"])
    assert text_of(Path(folder, "README.md")).startswith("# ")
    typed = [path.parent.name for path in (ROOT / folder).glob("src/*/py.typed")]
    assert project["name"].replace("-", "_") in typed
    assert [*(ROOT / folder).glob("tests/**/test_*.py")], f"{folder} has no tests"


def test_importing_the_kernel_takes_no_time() -> None:
    code = "import time; began = time.perf_counter(); import icefield; print(time.perf_counter() - began)"
    taken = min(float(_python(code)) for _ in range(5))
    assert taken < MAX_IMPORT_SECONDS, f"import icefield took {taken * 1000:.0f} ms"


@pytest.mark.parametrize(
    "code",
    ["import icefield", "from icefield import Catalog, Plugins, Schema, Table, load_catalog; Plugins.installed()"],
    ids=["the package", "its names"],
)
def test_importing_the_kernel_imports_no_sdk(code: str) -> None:
    loaded = set(_python(f"{code}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})").split())
    assert "icefield" in loaded
    assert loaded & HEAVY == set()


def _python(code: str) -> str:
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, encoding="utf-8")
    return run.stdout


def test_few_class_names_have_several_meanings() -> None:
    modules_by_name: dict[str, set[Path]] = {}
    for path in modules():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                modules_by_name.setdefault(node.name.strip("_"), set()).add(path)
    shared = sorted(name for name, paths in modules_by_name.items() if len(paths) > 1)
    assert len(shared) <= MAX_SHARED_CLASS_NAMES, shared
