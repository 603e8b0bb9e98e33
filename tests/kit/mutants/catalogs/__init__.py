"""Catalogs that are broken on purpose."""

from mutants import Mutant
from mutants.catalogs import (
    names,
    namespaces,
    places,
    races,
    requests,
    secrets,
    service,
    several,
    silence,
    tables,
    views,
)

_MODULES = (namespaces, tables, names, places, views, several, service, requests, silence, races, secrets)

MUTANTS: list[Mutant] = [mutant for module in _MODULES for mutant in module.MUTANTS]
