"""The breaches that an examination of a table has found so far, by rule."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from icefield.toolkit import without_userinfo

from icefield_maintenance.doctor.findings import Finding, Result
from icefield_maintenance.doctor.tables.rules import Rule

MOST_SHOWN: Final = 10
"""The most breaches of one rule to show. Further breaches are only counted."""


@dataclass(slots=True)
class _Breaches:
    shown: list[tuple[str, str, str]] = field(default_factory=list)
    count: int = 0
    locations: set[str] = field(default_factory=set)
    """The files to which the repair of the rule applies."""


class Ledger:
    """The breaches of some rules. All breaches of a rule are counted, and a bounded number is shown.

    ``mended``: names of rules, each with a file; the ledger ignores these breaches.
    """

    def __init__(self, rules: Sequence[Rule], mended: frozenset[tuple[str, str]] = frozenset()) -> None:
        self._mended = mended
        self._breaches = {rule: _Breaches() for rule in rules}
        self._skipped: dict[Rule, str] = {}
        self._seconds = dict.fromkeys(rules, 0.0)
        self._looked_at: Rule | None = None
        self._since = 0.0

    def look_at(self, rule: Rule | None) -> None:
        """Note that the check of a rule starts; None stands for reads that several rules share."""
        now = time.perf_counter()
        if self._looked_at is not None:
            self._seconds[self._looked_at] += now - self._since
        self._looked_at, self._since = rule, now

    def seconds(self) -> Mapping[str, float]:
        """The time spent on each rule so far, by its name."""
        self.look_at(None)
        return {rule.name: seconds for rule, seconds in self._seconds.items()}

    def breach(self, rule: Rule, location: str, found: str, others: Sequence[str] = (), *, no_repair: str = "") -> None:
        """Note that a file breaks a rule, and ``others`` in the same way.

        ``no_repair``: why the repair of the rule does not apply to them.
        """
        files = [location, *others]
        if self._mended:
            files = [each for each in files if (rule.name, each) not in self._mended]
        if not files:
            return
        breaches = self._breaches[rule]
        breaches.count += len(files)
        if not no_repair:
            breaches.locations.update(files)
        if len(breaches.shown) < MOST_SHOWN:
            breaches.shown.append((without_userinfo(files[0]), found, no_repair))

    def skip(self, rule: Rule, why: str) -> None:
        """Note that a rule could not be checked."""
        self._skipped[rule] = why

    def locations(self, rules: Collection[Rule]) -> set[str]:
        """The files that break one of some rules, except files to which the rule's repair does not apply."""
        return {location for rule in rules if rule in self._breaches for location in self._breaches[rule].locations}

    def findings(self) -> Iterator[Finding]:
        """The findings of each rule: that it holds, or each shown breach with its advice."""
        for rule, breaches in self._breaches.items():
            if rule in self._skipped:
                yield Finding(rule.name, Result.SKIPPED, self._skipped[rule])
                continue
            if not breaches.count:
                yield Finding(rule.name, Result.OK)
            more = breaches.count - len(breaches.shown)
            for number, (location, found, no_repair) in enumerate(breaches.shown):
                last = more > 0 and number == len(breaches.shown) - 1
                said = f"{found} (and {more:,} more)" if last else found
                repair, why = (None, no_repair) if no_repair else (rule.repair, rule.no_repair)
                yield Finding(rule.name, rule.result, said, rule.advice, location, rule.section, repair, why)
