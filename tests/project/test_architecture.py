"""The page on the architecture agrees with the code."""

from __future__ import annotations

import ast
import importlib.util
import re
from types import ModuleType

import pytest
from repository import ROOT, text_of

KERNEL = ROOT / "framework/src/icefield"
PAGE = ROOT / "docs/architecture.md"
STOP = re.compile(r"`([\w/]+\.py)::(\w+)`")


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_architecture", ROOT / "docs/make_architecture.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_picture_is_that_of_the_layers() -> None:
    assert PAGE.read_text("utf-8") == generator().page(), "docs/architecture.md is out of date: run `make reference`"


def test_every_room_has_its_place_in_the_layers_and_its_paragraph() -> None:
    rooms = {path.name for path in KERNEL.iterdir() if path.is_dir() and (path / "__init__.py").is_file()}
    named = {room for layer in generator().layers() for room in layer}
    assert named == rooms | {"errors"}
    assert set(re.findall(r"^\*\*`(\w+)`\*\*", PAGE.read_text("utf-8"), re.MULTILINE)) == named


def test_the_kernel_has_no_flat_modules_but_its_names_and_its_errors() -> None:
    assert {path.name for path in KERNEL.glob("*.py")} == {"__init__.py", "errors.py"}


@pytest.mark.parametrize(("module", "name"), sorted(set(STOP.findall(PAGE.read_text("utf-8")))))
def test_every_stop_of_the_walks_is_there(module: str, name: str) -> None:
    tree = ast.parse(text_of((KERNEL / module).relative_to(ROOT)))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def test_the_walks_have_stops() -> None:
    assert len(STOP.findall(PAGE.read_text("utf-8"))) > 15
