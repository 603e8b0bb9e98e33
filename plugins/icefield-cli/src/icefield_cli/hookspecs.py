"""The hook for commands of ``icefield``, and its records. Imports no library of the command line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from icefield import hookspec
from icefield.errors import InvalidArgument

KINDS: Final = MappingProxyType(
    {
        "string": None,
        "flag": None,
        "integer": "NUMBER",
        "id": "ID",
        "count": "N",
        "number": "NUMBER",
        "names": "NAMES",
        "pair": "KEY=VALUE",
        "time": "TIME",
        "time-or-age": "TIME",
        "span": "SPAN",
    }
)
"""The kinds of options, and how the help shows a value of each.

``count`` is an integer from 0 on, ``names`` is a tuple of names that commas separate, ``pair`` a tuple of key and
value. ``time`` and ``time-or-age`` are milliseconds since 1970, ``span`` is milliseconds.
"""

_RESERVED: Final = frozenset({"--catalog", "--output", "--property", "-p", "--help", "-h"})
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_SPELLING: Final = re.compile(r"--?[a-z][a-z0-9-]*")


class WrongUsage(Exception):
    """Arguments that contradict each other.

    A command raises this error; the exit status is 2, and the usage is shown.
    """


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a command by its position. ``name`` is the keyword under which the target receives it."""

    name: str
    metavar: str | None = None
    is_required: bool = True


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a command. ``name`` is the keyword under which the target receives it.

    ``kind`` is one of ``KINDS``, or ``"module:function"`` of a function that makes a value of a string and raises
    ``ValueError``. ``spellings`` are by default ``--`` and the name. A flag whose default is True turns the default
    off. ``without_value`` is the value of an option that is given without one; ``bounds`` are the lowest and highest
    integer.
    """

    name: str
    help: str
    kind: str = "string"
    spellings: tuple[str, ...] = ()
    metavar: str | None = None
    default: Any = None
    choices: tuple[str, ...] = ()
    bounds: tuple[int, int] | None = None
    is_required: bool = False
    is_repeatable: bool = False
    without_value: str | None = None

    @property
    def spelt(self) -> tuple[str, ...]:
        """The spellings on the command line."""
        return self.spellings or ("--" + self.name.replace("_", "-"),)


@dataclass(frozen=True, slots=True)
class Command:
    """A command of ``icefield``.

    ``help`` begins with a line for the list of commands. ``target`` is ``"module:attribute"`` of a function of an
    ``icefield_cli.Context`` and of the ``parameters`` as keywords; it is imported when the command runs. ``exclusive``
    are groups of parameters that exclude each other. At least one of the parameters in ``needs`` is required.
    ``goes_with`` maps a parameter to other parameters, of which it requires one. ``prints_rows``: it prints rows by
    ``Context.batches``, so that ``--output csv`` and ``parquet`` are allowed. Raises ``InvalidArgument``.
    """

    name: str
    help: str
    target: str
    parameters: tuple[Argument | Option, ...] = ()
    exclusive: Sequence[Sequence[str]] = ()
    needs: Sequence[str] = ()
    goes_with: Mapping[str, Sequence[str]] = field(default_factory=dict)
    prints_rows: bool = False

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InvalidArgument(f"the name of a command is lower case with hyphens, not {self.name!r}")
        if ":" not in self.target:
            raise InvalidArgument(f"the target of command '{self.name}' is 'module:attribute', not {self.target!r}")
        names = [each.name for each in self.parameters]
        self._check_unique("parameter", names)
        options = [each for each in self.parameters if isinstance(each, Option)]
        self._check_unique("option", [spelling for each in options for spelling in each.spelt])
        for option in options:
            if option.kind not in KINDS and ":" not in option.kind:
                raise InvalidArgument(f"option '{option.name}' of '{self.name}' has the unknown kind '{option.kind}'")
        named = {name for group in self.exclusive for name in group} | set(self.needs) | set(self.goes_with)
        named |= {name for others in self.goes_with.values() for name in others}
        if unknown := sorted(named.difference(names)):
            raise InvalidArgument(f"command '{self.name}' has no parameter '{unknown[0]}'")

    def _check_unique(self, what: str, given: Iterable[str]) -> None:
        seen = set(_RESERVED)
        for each in given:
            is_well_formed = each.isidentifier() if what == "parameter" else _SPELLING.fullmatch(each)
            if each in seen or not is_well_formed:
                raise InvalidArgument(f"command '{self.name}' cannot have the {what} '{each}', or has it twice")
            seen.add(each)


@hookspec
def icefield_commands() -> Sequence[Command]:  # type: ignore[empty-body]
    """Provide commands of ``icefield``.

    Called once, when a command is looked up or the help is shown. Return an empty sequence, or None, to provide none.
    """
