"""`make soak` runs exactly the tests with another count there: each test that depends on ICEFIELD_SOAK is marked."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from repository import ROOT, text_of, tracked_files

# The name is split so that this module does not count as one that reads the switch.
SWITCH = "ICEFIELD_" + "SOAK"
KIT = Path("plugins/icefield-testing/src/icefield_testing")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def modules() -> dict[str, ast.Module]:
    """The modules of tests, and of the kit, that read the switch or import from one that does, by their paths."""
    texts = {
        path: text_of(path)
        for path in tracked_files()
        if path.suffix == ".py" and ("tests" in path.parts or KIT in path.parents) and path.name != Path(__file__).name
    }
    chosen = {path for path, text in texts.items() if SWITCH in text}
    size = 0
    while size != (size := len(chosen)):
        stems = "|".join(path.stem for path in chosen)
        importing = re.compile(rf"^ *(from|import) .*\b({stems})\b", re.MULTILINE)
        chosen |= {path for path, text in texts.items() if path not in chosen and importing.search(text)}
    return {str(path): ast.parse(texts[path]) for path in sorted(chosen)}


def names_in(node: ast.AST) -> set[str]:
    """The names and attributes that code uses, decorators and defaults included."""
    found = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return found | {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}


def functions(tree: ast.Module) -> Iterator[Function]:
    """The functions of a module and of its classes; a nested function is part of the outer function."""
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    return (node for body in bodies for node in body if isinstance(node, Function))


def is_test(function: Function) -> bool:
    return function.name.startswith("test_")


def bound_to_the_switch(tree: ast.Module) -> set[str]:
    """The names of a module whose values depend on the switch."""
    found: set[str] = set()
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and SWITCH in ast.dump(statement):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            found |= {name for target in targets for name in names_in(target)}
    return found


@cache
def counted() -> dict[str, set[str]]:
    """The names that depend on the switch, by module: constants, helpers that use them, and tests that use either."""
    trees = modules()
    used = {path: [(each.name, names_in(each)) for each in functions(tree)] for path, tree in trees.items()}
    found = {path: bound_to_the_switch(tree) for path, tree in trees.items()}
    by_stem: dict[str, list[str]] = {}
    for path in trees:
        by_stem.setdefault(Path(path).stem, []).append(path)
    before = -1
    while before != (before := sum(map(len, found.values()))):
        for path, tree in trees.items():
            held = set(found[path])
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom) and node.module:
                    given = by_stem.get(node.module.rpartition(".")[2], [])
                    held |= {alias.name for alias in node.names for source in given if alias.name in found[source]}
            if held:
                found[path] |= {name for name, names in used[path] if names & held} | held
    return found


def says_so(function: Function) -> bool:
    """Whether a test is marked by hand, or is a property test, which ``conftest.py`` marks."""
    return bool({"counted", "soak", "given"} & {name for each in function.decorator_list for name in names_in(each)})


@pytest.mark.slow
def test_each_test_that_has_another_count_in_a_soak_is_marked() -> None:
    found = counted()
    silent = [
        f"{path}: {function.name}"
        for path, tree in modules().items()
        for function in functions(tree)
        if is_test(function)
        and function.name in found[path]
        and not says_so(function)
        # The kit cannot use the markers of this project: `conftest.py` marks tests that name the constant themselves.
        and not (Path(path).is_relative_to(KIT) and "SOAK" in names_in(ast.Module(function.body, [])))
    ]
    assert silent == [], "mark these with `@pytest.mark.counted`"


@pytest.mark.slow
def test_no_test_is_marked_whose_count_is_the_same_in_a_soak() -> None:
    found = counted()
    idle = [
        f"{path}: {function.name}"
        for path, tree in modules().items()
        for function in functions(tree)
        if is_test(function)
        and any("counted" in names_in(each) for each in function.decorator_list)
        and function.name not in found[path]
    ]
    assert idle == []


@pytest.mark.slow
def test_every_module_that_reads_the_switch_binds_it_to_a_name() -> None:
    """The functions above find the switch only in a module that assigns it to a name."""
    reading = {path for path, tree in modules().items() if SWITCH in ast.dump(tree)}
    bound = {path for path, tree in modules().items() if bound_to_the_switch(tree)}
    assert reading - bound <= {str(KIT / "file_format.py")}  # speaks of it in its docstring
    assert len(bound) > 10


def test_a_soak_selects_by_the_markers() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert "SOAK := counted or soak" in makefile
    assert '--run-soak -m "$(SOAK)"' in makefile
