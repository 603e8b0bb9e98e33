"""Descriptions of an operation's options, shared by Python, the command line and ``CALL``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Final

PYTHON_ONLY: Final = ""
"""The spelling of an option that the command line, or ``CALL``, does not have."""


@dataclass(frozen=True, slots=True)
class Description:
    """The description of an option: its documentation, the kind of its values, and its spellings.

    ``kind`` is a kind of options of the command line. ``command`` is the spelling there, ``argument`` the name in
    ``CALL``, and ``entry`` the key in the map ``options`` of ``CALL``. ``command_doc`` is the documentation on the
    command line where it differs: of a flag that turns a default off, or of names in one value.
    """

    doc: str
    kind: str
    command: str | None
    argument: str
    entry: str
    command_doc: str
    metavar: str | None
    choices: tuple[str, ...]
    is_repeatable: bool


@dataclass(frozen=True, slots=True)
class OperationOption:
    """An option of an operation: its keyword, type, default and description."""

    name: str
    annotation: str
    default: Any
    description: Description

    @property
    def is_required(self) -> bool:
        """Whether the option has no default."""
        return self.default is MISSING

    @property
    def command(self) -> str:
        """The spelling on the command line; empty if it is not offered there."""
        spelling = self.description.command
        return "--" + self.name.replace("_", "-") if spelling is None else spelling


def option(
    default: Any,
    doc: str,
    kind: str = "string",
    *,
    command: str | None = None,
    argument: str = PYTHON_ONLY,
    entry: str = PYTHON_ONLY,
    command_doc: str = "",
    metavar: str | None = None,
    choices: tuple[str, ...] = (),
    is_repeatable: bool = False,
) -> Any:
    """A field with a description. ``command`` is by default the name of the field."""
    description = Description(doc, kind, command, argument, entry, command_doc, metavar, choices, is_repeatable)
    return field(default=default, metadata={"description": description})


def options_of(record: type) -> Iterator[OperationOption]:
    """The options of an operation, in order; inherited ones come last."""
    for each in sorted(fields(record), key=lambda each: each.name not in record.__annotations__):
        yield OperationOption(each.name, str(each.type), each.default, each.metadata["description"])
