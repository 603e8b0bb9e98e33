"""File systems that are broken on purpose, one defect each."""

from __future__ import annotations

from mutants import Mutant
from mutants.file_systems import (
    adopting,
    failing,
    forks,
    input_files,
    leftovers,
    local_copies,
    outages,
    places,
    reading,
    rivals,
    silence,
    spellings,
    streams,
    uploads,
    writing,
)

_MODULES = (
    reading,
    spellings,
    input_files,
    writing,
    streams,
    rivals,
    failing,
    outages,
    leftovers,
    local_copies,
    adopting,
    forks,
    places,
    silence,
    uploads,
)

MUTANTS: list[Mutant] = [mutant for module in _MODULES for mutant in module.MUTANTS]
