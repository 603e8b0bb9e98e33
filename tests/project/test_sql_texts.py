"""Only the quoting functions put names, types and values of a table into a text of SQL."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from repository import ROOT

SPARK = ROOT / "plugins/icefield-spark/src/icefield_spark"
PLUGINS = sorted(path for path in (ROOT / "plugins").glob("*/src/**/*.py"))
KERNEL = sorted((ROOT / "framework/src").glob("**/*.py"))

WORDS = ("SELECT ", "CAST(", "CASE ", "WHEN ", "INSERT ", "UPDATE ", "DELETE ", "CREATE ", "MERGE ", "named_struct(")
"""What a text of SQL has in it."""

UNQUOTED = frozenset({"simpleString", "catalogString", "sql"})
"""Methods that spell a type or a tree, with the names in it as they are."""

RAW = frozenset({"name", "names", "field_name", "doc", "comment"})
"""Attributes that hold a name as somebody gave it."""

OF_TREES = frozenset({"argument_types.py"})
"""Modules that print a statement of the user's from its tree, in which sqlglot quotes names and strings."""

RUNNERS = frozenset({"sql", "selectExpr", "executescript"})


def texts(tree: ast.AST) -> Iterator[ast.JoinedStr | ast.BinOp]:
    """The f-strings and sums of strings that hold SQL."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise):
            for inner in ast.walk(node):
                inner.is_message = True  # type: ignore[attr-defined]
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr | ast.BinOp) and not hasattr(node, "is_message"):
            constants = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
            if any(isinstance(each, str) and any(word in each for word in WORDS) for each in constants):
                yield node


def unquoted(node: ast.JoinedStr | ast.BinOp) -> Iterator[str]:
    """Pieces of a text that contain a name or type without quotes."""
    for piece in ast.walk(node):
        if isinstance(piece, ast.FormattedValue):
            value = piece.value
            if isinstance(value, ast.Attribute) and value.attr in RAW:
                yield ast.unparse(value)
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in UNQUOTED:
                yield ast.unparse(value)


def faults(path: Path) -> list[str]:
    tree = ast.parse(path.read_text("utf-8"))
    if path.name in OF_TREES:
        return []
    return [f"{path.relative_to(ROOT)}:{node.lineno}: {each}" for node in texts(tree) for each in unquoted(node)]


def test_names_and_types_are_quoted_in_every_text_of_sql() -> None:
    assert not [each for path in [*PLUGINS, *KERNEL] for each in faults(path)]


def test_only_one_function_gives_texts_to_spark() -> None:
    found = []
    for path in sorted(SPARK.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr not in RUNNERS or not node.args or path.name == "running.py":
                continue
            if isinstance(node.args[0], ast.Constant):  # a statement, or the name of a dialect
                continue
            found.append((path.name, ast.unparse(node.func)))
    # The session's own method, whose texts are checked like a user's, and the unchanged script of a user.
    assert set(found) <= {("session.py", "self.sql"), ("analyzed.py", "clone.sql")}, found


def test_texts_given_to_a_database_have_no_values_in_them() -> None:
    for path in PLUGINS:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "execute":
                for inner in node.args[:1]:
                    for value in (each.value for each in ast.walk(inner) if isinstance(each, ast.FormattedValue)):
                        is_own = isinstance(value, ast.Name) and (value.id.startswith("_") or value.id == "pragma")
                        is_own |= isinstance(value, ast.Call) and ast.unparse(value.func) == "_quoted"
                        assert is_own, f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(value)}"


@pytest.mark.parametrize(
    "text",
    [
        'f"SELECT CAST(NULL AS {kind.simpleString()})"',
        'f"SELECT {field.name} FROM t"',
        "f\"named_struct('{each.name}', 1)\"",
        '"SELECT " + f"{tree.sql()}"',
    ],
)
def test_an_unquoted_piece_is_found(text: str) -> None:
    assert [each for node in texts(ast.parse(text)) for each in unquoted(node)]
