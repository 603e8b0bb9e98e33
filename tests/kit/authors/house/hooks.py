"""The hooks of another author's distribution: a file format, a command, a rule, a strategy, an authorizer and more."""

from __future__ import annotations

from authors.house.record_files import FRAME_ROWS
from icefield import Provider, hookimpl
from icefield.metadata import Property
from icefield_cli import Argument, Command, Option
from icefield_maintenance import CompactionStrategy, HealthRules
from icefield_report import ReportSection


@hookimpl
def icefield_addhooks() -> list[str]:
    return ["authors.house.hookspecs"]


@hookimpl
def icefield_file_formats() -> list[Provider]:
    return [Provider("records", "authors.house.record_files:RecordsFormat", contract=(2, 2))]


@hookimpl
def icefield_table_properties() -> list[Property]:
    return [FRAME_ROWS]


@hookimpl(optionalhook=True)
def icefield_commands() -> list[Command]:
    return [
        Command(
            "lint",
            "Check the names of a table's columns.",
            "authors.house.lint_command:run",
            (
                Argument("table"),
                Option("style", "How names are written; default: snake.", choices=("snake", "camel"), default="snake"),
                Option("except_for", "Names that are not checked.", "names", ("--except",)),
                Option("shortest", "The fewest letters.", "authors.house.lint_command:letters", metavar="N"),
                Option("fail", "Fail where a name is wrong.", "flag"),
            ),
            goes_with={"fail": ("style",)},
        )
    ]


@hookimpl(optionalhook=True)
def icefield_health_rules() -> list[HealthRules]:
    return [HealthRules("tidiness", "authors.house.tidy_tables:RULES")]


@hookimpl(optionalhook=True)
def icefield_compaction_strategies() -> list[CompactionStrategy]:
    return [CompactionStrategy("descending", "authors.house.tidy_tables:Descending", takes=("sort_order",))]


@hookimpl(optionalhook=True)
def icefield_report_sections() -> list[ReportSection]:
    return [ReportSection("grants", "Who may use it", "authors.house.grants:section")]


@hookimpl(optionalhook=True)
def icefield_authorizers() -> list[Provider]:
    return [Provider("grants", "authors.house.grants:authorizer")]
