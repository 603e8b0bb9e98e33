"""Listeners that are broken on purpose."""

from mutants import Mutant
from mutants.listeners import hearing, processes

MUTANTS: list[Mutant] = [*hearing.MUTANTS, *processes.MUTANTS]
