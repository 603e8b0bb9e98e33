"""Plugins that are broken on purpose, each with the check of the kit that must reject it: the measure of the kit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """A broken plugin."""

    plugin: type
    check: str
    """The check that must reject it."""
    cause: str
    """Words of the error or of its notes, which name the fault to the author."""

    def __str__(self) -> str:
        return self.plugin.__name__


def of(listed: Mapping[type, tuple[str, str]]) -> list[Mutant]:
    """The mutants of a table: by class, the check and the words."""
    return [Mutant(plugin, check, cause) for plugin, (check, cause) in listed.items()]
