"""The classes that authors subclass keep their own state under names that a subclass cannot take by accident."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator

import icefield.abc
import icefield.toolkit
import pytest

MODULES = (icefield.abc, icefield.toolkit)
BASES = sorted(
    {
        value
        for module in MODULES
        for name in module.__all__
        if inspect.isclass(value := getattr(module, name))
        and not issubclass(value, BaseException)
        and not hasattr(value, "__dataclass_fields__")
        and not issubclass(value, tuple)
    },
    key=lambda kind: kind.__name__,
)
_MANGLED = re.compile(r"_[A-Za-z]\w*?__\w+")
# Functions return objects of these classes, or they are values: authors do not subclass them.
_VALUES = {"BooleanExpression", "LimitedStream", "LruCache", "MetricsCollector", "Schema", "SharedClients", "lazy"}


def private_names(kind: type) -> Iterator[str]:
    """The names with one leading underscore that a class defines or sets on ``self``."""
    for name in vars(kind):
        if name.startswith("_") and not name.startswith("__") and not _MANGLED.fullmatch(name):
            yield name
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    for node in ast.walk(tree):
        is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
        if is_own and node.attr.startswith("_") and not node.attr.startswith("__"):
            yield node.attr


@pytest.mark.parametrize("kind", [kind for kind in BASES if kind.__name__ not in _VALUES], ids=lambda k: k.__name__)
def test_a_base_class_takes_no_private_name_that_a_subclass_could_choose(kind: type) -> None:
    ours = {name for name in private_names(kind) if name not in ("_abc_impl", "_is_protocol", "_is_runtime_protocol")}
    assert not {name for name in ours if name not in enum_names(kind)}


def enum_names(kind: type) -> set[str]:
    """The private names that ``enum`` adds to a class."""
    return {name for name in vars(kind) if name.startswith("_") and hasattr(kind, "__members__")}


def test_the_bases_of_strategies_catalogs_and_streams_are_among_them() -> None:
    assert {kind.__name__ for kind in BASES} >= {
        "CatalogBackend",
        "CommitStrategy",
        "FileFormat",
        "FileSystem",
        "FsspecFileSystem",
        "MetastoreStrategy",
        "PartedOutput",
        "RangedInput",
        "VersionedStrategy",
    }
