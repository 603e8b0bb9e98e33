"""Broken key services, by subject."""

from mutants.key_services import keeping, outages, wrapping

MUTANTS = [*wrapping.MUTANTS, *outages.MUTANTS, *keeping.MUTANTS]
