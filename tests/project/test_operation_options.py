"""The options of maintenance are the same in Python, on the command line, in ``CALL`` and in the reference."""

from __future__ import annotations

import inspect
import re
from dataclasses import MISSING
from pathlib import Path
from typing import Any

import pytest
from icefield import Plugins
from icefield_cli import Command, Option
from icefield_maintenance import OPERATIONS, MaintenanceTable, options_of
from icefield_spark.sql.arguments import entries_of, parameters_of
from icefield_spark.sql.procedures import PROCEDURES
from repository import text_of

PAGE = Path("docs/reference/maintenance.md")
COMMANDS = {
    "erase": "erase",
    "expire_snapshots": "expire-snapshots",
    "remove_orphan_files": "remove-orphans",
    "rewrite_data_files": "rewrite-data-files",
    "rewrite_manifests": "rewrite-manifests",
    "rewrite_position_delete_files": "rewrite-deletes",
    "compute_table_stats": "compute-stats",
}
"""The command of an operation."""


def command(name: str) -> Command:
    records = Plugins.installed().records("icefield_commands", Command)
    (found,) = [record for _, record in records if record.name == name]
    return found


def test_every_operation_has_a_record() -> None:
    methods = {name for name, each in inspect.getmembers(MaintenanceTable, inspect.isfunction) if name[0] != "_"}
    assert set(OPERATIONS) == methods - {"on"}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_keywords_follow_from_the_record(operation: str) -> None:
    parameters = list(inspect.signature(getattr(MaintenanceTable, operation)).parameters.values())[1:]
    in_python = {each.name: (each.annotation, each.default) for each in parameters}
    in_record: dict[str, tuple[str, Any]] = {
        each.name: (each.annotation, inspect.Parameter.empty if each.default is MISSING else each.default)
        for each in options_of(OPERATIONS[operation])
    }
    assert in_python == in_record


@pytest.mark.parametrize("operation", COMMANDS)
def test_options_of_the_command_follow_from_the_record(operation: str) -> None:
    found = {each.name: each for each in command(COMMANDS[operation]).parameters if isinstance(each, Option)}
    for each in options_of(OPERATIONS[operation]):
        assert (each.name in found) == bool(each.command), each.name
        if each.command:
            option = found[each.name]
            assert option.spelt == (each.command,)
            assert option.kind == each.description.kind
            assert option.help.startswith((each.description.command_doc or each.description.doc).removesuffix("."))
            assert option.is_required == (each.default is MISSING)
            if each.name != "strategy" and each.default not in ((), False, MISSING):
                assert option.default == each.default


@pytest.mark.parametrize("operation", sorted(set(OPERATIONS) & set(PROCEDURES)))
def test_arguments_of_call_follow_from_the_record(operation: str) -> None:
    """Each parameter follows from the record, or is a parameter of Java's that is ignored or refused."""
    record = OPERATIONS[operation]
    derived = parameters_of(record)
    for each in PROCEDURES[operation].parameters:
        if each.name in derived:
            assert (each.kind, each.required) == (derived[each.name].kind, derived[each.name].required)
        else:
            assert each.ignored or each.unsupported or each.name in ("table", "options"), each.name
    absent = set(derived) - {each.name for each in PROCEDURES[operation].parameters}
    assert absent <= {"branch"}, absent
    assert bool(entries_of(record)) == ("options" in {each.name for each in PROCEDURES[operation].parameters})


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_reference_has_a_row_for_each_option(operation: str) -> None:
    _, _, section = text_of(PAGE).partition(f"\n## `{operation}`\n")
    rows = re.findall(r"^\| `(\w+)` \|", section.partition("\n## ")[0], re.MULTILINE)
    assert rows == [each.name for each in options_of(OPERATIONS[operation])]
