"""File formats that are broken on purpose: over Avro, and by rows."""

from __future__ import annotations

from mutants import Mutant
from mutants.formats import by_rows, careless, damage, metrics, reading, sources, uncommon, values, writing

_MODULES = (reading, values, writing, metrics, sources, damage, careless, by_rows, uncommon)

MUTANTS: list[Mutant] = [mutant for module in _MODULES for mutant in module.MUTANTS]
