"""Commit strategies that are broken on purpose."""

from mutants import Mutant
from mutants.strategies import claims, drops, pointers, sharing, versions

MUTANTS: list[Mutant] = [*versions.MUTANTS, *drops.MUTANTS, *pointers.MUTANTS, *claims.MUTANTS, *sharing.MUTANTS]
