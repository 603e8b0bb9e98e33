"""Write down the public names with their signatures: ``framework/public-api.txt``.

Run it after an intended change of the public interface: ``.venv/bin/python tests/support/public_api.py``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

from icefield.base.concurrency import lazy

ROOT = Path(__file__).resolve().parents[2]
LISTING = ROOT / "framework/public-api.txt"
ENGINE = ("icefield.commit", "icefield.engine", "icefield.manifest", "icefield.puffin", "icefield.storage")
"""The packages of the engine tier; docs/plugins/stable.md explains the tiers."""
MODULES = (
    "icefield",
    "icefield.abc",
    "icefield.errors",
    "icefield.expressions",
    "icefield.metadata",
    "icefield.partitioning",
    "icefield.scan",
    "icefield.schema",
    "icefield.toolkit",
    "icefield.transaction",
    "icefield.types",
    "icefield.writing",
    "icefield_import",
    "icefield_maintenance",
    "icefield_maintenance.doctor",
    "icefield_maintenance.tend",
    "icefield_testing",
    *ENGINE,
)
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_QUOTED_ANNOTATION = re.compile(r"(: |-> )'([^']*)'")


def listing() -> str:
    """The string of the listing."""
    homes: dict[type, str] = {}
    # The contracts re-export the types in their signatures, and the engine tier re-exports some names of the stable
    # tier.
    for name in sorted(MODULES, key=lambda name: (name in ENGINE, name == "icefield.abc")):
        for public, value in _public_values(name):
            if isinstance(value, type):
                homes.setdefault(value, f"{name}.{public}")
    return "\n".join("".join(f"{line}\n" for line in _module_lines(name, homes)) for name in MODULES)


def _public_values(name: str) -> list[tuple[str, Any]]:
    """Return the public values of a module: by ``__all__``, or without it the classes and functions that it defines."""
    module = import_module(name)
    own = [found for found, value in vars(module).items() if getattr(value, "__module__", None) == name]
    listed = getattr(module, "__all__", None) or [found for found in own if not found.startswith("_")]
    return [(found, getattr(module, found)) for found in sorted(listed)]


def _module_lines(module: str, homes: dict[type, str]) -> Iterator[str]:
    yield f"# {module} (engine tier)" if module in ENGINE else f"# {module}"
    for name, value in _public_values(module):
        if not isinstance(value, type):
            yield f"def {name}{_signature(value)}" if inspect.isfunction(value) else f"value {name}"
        elif homes[value] != f"{module}.{name}":
            yield f"{name} = {homes[value]}"
        else:
            bases = ", ".join(dict.fromkeys(_bases(value, homes)))
            yield f"class {name}({bases})" if bases else f"class {name}"
            yield from (f"    {line}" for line in _class_lines(value, homes))


def _bases(kind: type, homes: dict[type, str]) -> Iterator[str]:
    """Yield the bases that a user can name; an internal base is replaced by its own bases."""
    for base in kind.__bases__:
        if base in homes or not base.__module__.startswith("icefield"):
            yield from () if base is object else (base.__name__,)
        else:
            yield from _bases(base, homes)


def _class_lines(kind: type, homes: dict[type, str]) -> Iterator[str]:
    if issubclass(kind, Enum):
        yield from (f"{member.name} = {member.value!r}" for member in kind)
        return
    names = set()
    if is_dataclass(kind) and kind.__dataclass_params__.init:
        for field in fields(kind):
            names.add(field.name)
            if field.name.startswith("_"):
                continue
            default = "" if field.default is MISSING else f" = {_text(field.default)}"
            made = "" if field.default_factory is MISSING else " = ..."
            yield f"{field.name}: {field.type}{default}{made}"
    members = _members(kind, homes)
    if "__init__" in members and not names and not getattr(kind, "_is_protocol", False):
        yield f"__init__{_signature(members['__init__'])}"
    for name, value in sorted(members.items()):
        # New checks of the kit need no change of an author's code, so they are not listed.
        if name.startswith(("_", "test_")) or name in names:
            continue
        annotation = str(vars(kind).get("__annotations__", {}).get(name))
        if annotation.startswith("ClassVar[dict["):  # its contents may change at any time
            yield f"{name}: {annotation}"
        else:
            yield from _member_lines(name, value)


def _members(kind: type, homes: dict[type, str]) -> dict[str, Any]:
    """Return the members of a class, with those of the project's bases that are not public themselves."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base is kind or (base.__module__.startswith("icefield") and base not in homes):
            found |= vars(base)
    made = {name for name, value in found.items() if type(value).__name__ == "_InOneCommit"}  # when it is first used
    return found | {name: getattr(kind, name) for name in made}


def _member_lines(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, property | lazy):
        getter = value.fget if isinstance(value, property) else value._compute
        yield f"{name} -> {inspect.signature(getter).return_annotation}" if getter else name
    elif isinstance(value, staticmethod | classmethod):
        yield f"{type(value).__name__} {name}{_signature(value.__func__)}"
    elif type(value).__name__ == "FixtureFunctionDefinition":
        yield f"fixture {name}"
    elif inspect.isfunction(value):
        yield f"{name}{_signature(value)}"
    elif type(value).__name__ != "member_descriptor":
        yield f"{name} = {_text(value)}"


def _signature(function: Any) -> str:
    return _QUOTED_ANNOTATION.sub(r"\1\2", _text_of(inspect.signature(function)))


def _text(value: Any) -> str:
    if isinstance(value, frozenset | set):
        return "{" + ", ".join(sorted(map(str, value))) + "}"
    return _text_of(repr(value))


def _text_of(value: Any) -> str:
    return _ADDRESS.sub("", str(value))


if __name__ == "__main__":
    LISTING.write_text(listing(), "utf-8")
    print(f"wrote {LISTING.relative_to(ROOT)}")
