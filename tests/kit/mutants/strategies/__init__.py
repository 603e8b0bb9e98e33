"""Commit strategies that are broken on purpose."""

from mutants import Mutant
from mutants.strategies import claims, drops, pointers, sharing, silence, versions

_MODULES = (versions, drops, pointers, claims, sharing, silence)

MUTANTS: list[Mutant] = [mutant for module in _MODULES for mutant in module.MUTANTS]
