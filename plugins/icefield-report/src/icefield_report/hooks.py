"""The hooks of this plugin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icefield import hookimpl

from icefield_report.hookspecs import ReportSection

if TYPE_CHECKING:
    from icefield_cli import Command


@hookimpl(optionalhook=True)
def icefield_commands() -> Sequence[Command]:
    """Provide ``icefield report``."""
    from icefield_cli import Argument, Command, Option

    return [
        Command(
            "report",
            "Write a page about a table, or about all tables of the catalog: plots, and advice on maintenance.",
            "icefield_report.command:run",
            (
                Argument("table", is_required=False),
                Option(
                    "path", "The HTML file that is written.", spellings=("-o", "--to"), metavar="FILE", is_required=True
                ),
            ),
        )
    ]


@hookimpl
def icefield_addhooks() -> list[str]:
    """Specify ``icefield_report_sections``."""
    return ["icefield_report.hookspecs"]


@hookimpl
def icefield_report_sections() -> list[ReportSection]:
    """Provide the sections of the page about a table."""
    return [
        ReportSection("figures", "", "icefield_report.sections:figures", order=0),
        ReportSection("help", "What would help", "icefield_report.sections:advice", order=10),
        ReportSection("plots", "How it is laid out", "icefield_report.sections:plots", order=20),
        ReportSection("about", "About the table", "icefield_report.sections:about", order=90),
    ]
