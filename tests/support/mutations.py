"""Small faults in the functions of a module, found in its syntax tree."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

from repository import ROOT

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Change = Callable[[ast.AST], ast.AST]


@dataclass(frozen=True)
class Mutation:
    """A change of one node in a function of a module or class."""

    path: Path
    name: str
    """The qualified name of the function."""

    line: int
    number: int
    """The node, counted from the function's first."""

    before: str
    after: str
    change: _Change

    @property
    def function(self) -> tuple[str, str]:
        return str(self.path), self.name

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line} in {self.name}: {self.before}  ->  {self.after}"

    def code(self) -> CodeType:
        """The code of the changed function."""
        tree = ast.parse(self.path.read_text("utf-8"))
        [function] = [each for name, each in _functions(tree) if name == self.name and _holds(each, self.line)]
        _replace(function, self.number, self.change)
        module = compile(ast.fix_missing_locations(tree), str(self.path), "exec")
        return next(code for code in _codes(module) if code.co_qualname == self.name and _starts(code, function))


def of_module(path: Path) -> Iterator[Mutation]:
    """The possible changes of a module."""
    tree = ast.parse(path.read_text("utf-8"))
    names = [name for name, _ in _functions(tree)]
    for name, function in _functions(tree):
        if names.count(name) > 1 or name.rpartition(".")[2] in ("__repr__", "__str__", "_repr_html_"):
            continue  # overloads, setters, and words for people
        ignored = set(_ignored(function))
        for number, node in enumerate(ast.walk(function)):
            if node not in ignored:
                for change in _changes(node):
                    changed = change(copy.deepcopy(node))
                    before, after = (_line(each) for each in (node, changed))
                    yield Mutation(path, name, node.lineno, number, before, after, change)  # type: ignore[attr-defined]


def _functions(tree: ast.AST, inside: str = "") -> Iterator[tuple[str, _Function]]:
    """Functions of a module and of its classes; a function within a function is a part of the outer one."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, _Function):
            yield inside + child.name, child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{inside}{child.name}.")
        elif not isinstance(child, ast.expr):
            yield from _functions(child, inside)


def _ignored(function: _Function) -> Iterator[ast.AST]:
    """Nodes that are not changed, because no test can or should notice.

    These are texts, types, code that runs at import, and assertions: ``assert``, ``raise AssertionError``, and the
    ``strict`` of a ``zip`` over sequences of one length.
    """
    for part in (*function.decorator_list, function.args, *([function.returns] if function.returns else [])):
        yield from ast.walk(part)
    for node in ast.walk(function):
        match node:
            case ast.Raise(exc=ast.Call(func=ast.Name(id="AssertionError"))):
                yield from ast.walk(node)
            case ast.Call(func=ast.Name(id="zip")):
                yield from (each.value for each in node.keywords)
            case ast.Raise(exc=ast.Call() as call):
                for part in (*call.args, *call.keywords):
                    yield from ast.walk(part)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="_log")))):
                yield from ast.walk(node)
            case ast.Assert() | ast.JoinedStr():
                yield from ast.walk(node)
            case ast.AnnAssign():
                yield from ast.walk(node.annotation)
            case ast.FunctionDef() | ast.AsyncFunctionDef() if node is not function:
                yield from ast.walk(node.args)
            case ast.Call(func=ast.Name(id="cast" | "TypeVar")):
                yield from ast.walk(node)
            case _:
                pass


def _changes(node: ast.AST) -> Iterator[_Change]:
    match node:
        case ast.Compare(ops=[op, *_]) if type(op) in _COMPARISONS:
            yield _compare
        case ast.BoolOp():
            yield _join
        case ast.UnaryOp(op=ast.Not()):
            yield lambda node: node.operand  # type: ignore[attr-defined]
        case ast.BinOp(op=op) if type(op) in _OPERATORS and not _is_text(node):
            yield _operate
        case ast.AugAssign(op=op) if type(op) in _OPERATORS:
            yield _operate
        case ast.Constant(value=bool()):
            yield lambda node: ast.copy_location(ast.Constant(not node.value), node)  # type: ignore[attr-defined]
        case ast.Constant(value=int()):
            yield lambda node: ast.copy_location(ast.Constant(node.value + 1), node)  # type: ignore[attr-defined]
        case ast.Name(id=name) if name in _NAMES:
            yield lambda node: ast.copy_location(ast.Name(_NAMES[node.id], ast.Load()), node)  # type: ignore[attr-defined]
        case ast.Raise() | ast.Expr(value=ast.Call()):
            yield lambda node: ast.copy_location(ast.Pass(), node)
        case ast.If() | ast.IfExp() if not isinstance(node.test, (ast.Compare, ast.BoolOp, ast.UnaryOp)):
            yield _negate
        case ast.Continue():
            yield lambda node: ast.copy_location(ast.Break(), node)
        case ast.Break():
            yield lambda node: ast.copy_location(ast.Continue(), node)
        case _:
            pass


def _compare(node: ast.AST) -> ast.AST:
    assert isinstance(node, ast.Compare)
    node.ops = [_COMPARISONS[type(node.ops[0])](), *node.ops[1:]]
    return node


def _join(node: ast.AST) -> ast.AST:
    assert isinstance(node, ast.BoolOp)
    node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    return node


def _operate(node: ast.AST) -> ast.AST:
    assert isinstance(node, ast.BinOp | ast.AugAssign)
    node.op = _OPERATORS[type(node.op)]()
    return node


def _negate(node: ast.AST) -> ast.AST:
    assert isinstance(node, ast.If | ast.IfExp)
    node.test = ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test)
    return node


def _is_text(node: ast.AST) -> bool:
    return any(isinstance(each, ast.JoinedStr) for each in ast.walk(node))


def _replace(function: _Function, number: int, change: _Change) -> None:
    wanted = list(ast.walk(function))[number]
    for parent in ast.walk(function):
        for name, value in ast.iter_fields(parent):
            if value is wanted:
                setattr(parent, name, change(wanted))
                return
            if isinstance(value, list) and any(each is wanted for each in value):
                setattr(parent, name, [change(each) if each is wanted else each for each in value])
                return


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _holds(function: _Function, line: int) -> bool:
    return function.lineno <= line <= (function.end_lineno or function.lineno)


def _starts(code: CodeType, function: _Function) -> bool:
    return code.co_firstlineno == min(function.lineno, *(each.lineno for each in function.decorator_list), 10**9)


def _line(node: ast.AST) -> str:
    """The source of a node on one short line."""
    text = ast.unparse(node).split("\n")[0]
    return text if len(text) <= 90 else f"{text[:87]}..."
