"""The groups of rules that plugins provide."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from icefield import Plugins
from icefield.errors import BrokenPlugin

from icefield_maintenance.doctor.tables.ledger import Ledger
from icefield_maintenance.doctor.tables.rules import Repair, Rule
from icefield_maintenance.doctor.tables.subject import Subject
from icefield_maintenance.hookspecs import HealthRules


@dataclass(frozen=True, slots=True)
class RuleGroup:
    """Rules for tables, and the function that checks them.

    ``examine`` looks at a version of a table, and notes the rules that it breaks in the ledger. It changes nothing.
    ``applies`` says whether the rules are about a table at all; without it, they are about every table.
    """

    rules: tuple[Rule, ...]
    examine: Callable[[Subject, Ledger], None]
    applies: Callable[[Subject], bool] | None = None


def provided(plugins: Plugins) -> Iterator[tuple[str, RuleGroup | BrokenPlugin]]:
    """The groups of plugins by name, in the order of the plugins; an error for a group that does not load."""
    for plugin, record in plugins.records("icefield_health_rules", HealthRules):
        what = f"rules of the doctor '{record.name}'"
        try:
            found = plugins.load(plugin, record.target, what)
        except BrokenPlugin as error:
            yield record.name, error
            continue
        if not isinstance(found, RuleGroup):
            reason = f"plugin {plugin} provides {record.target} as {what}, but it is no RuleGroup"
            found = BrokenPlugin(reason, plugin=plugin.name)
        yield record.name, found


def groups_of(plugins: Plugins) -> dict[str, RuleGroup]:
    """The groups that load, by name."""
    return {name: group for name, group in provided(plugins) if isinstance(group, RuleGroup)}


def rules_with(repair: Repair, plugins: Plugins) -> tuple[Rule, ...]:
    """The rules that a repair is for."""
    return tuple(rule for group in groups_of(plugins).values() for rule in group.rules if rule.repair is repair)
